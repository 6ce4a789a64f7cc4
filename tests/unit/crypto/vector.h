/* SPDX-License-Identifier: Apache-2.0 */
/* One published test case, checked against one implementation in both directions. */
#ifndef CM_TEST_CRYPTO_VECTOR_H
#define CM_TEST_CRYPTO_VECTOR_H

#include "harness.h"

enum { VECTOR_MAX_BYTES = 2048 };
struct vector_bytes {
    size_t length;
    uint8_t data[VECTOR_MAX_BYTES];
};

/* Reads hex digits, skipping blanks between them, to the end of the string; anything else fails the test. */
void vector_bytes_read(struct vector_bytes *bytes, const char *hex);
/* The same, behind what `bytes` holds already. */
void vector_bytes_append(struct vector_bytes *bytes, const char *hex);

/* A case. `encrypt_status` and `decrypt_status` say what must come out; where it is not CM_AES_OK the case is
 * one that has to be refused. */
struct vector {
    char where[128]; /* file and case, for messages */
    enum cm_aes_mode mode;
    enum cm_aes_padding padding;
    struct vector_bytes key, iv, plaintext, ciphertext, aad, tag;
    int encrypt_status, decrypt_status;
    int key_status; /* of expanding the key; if it is not CM_AES_OK nothing else is tried */
    bool encrypt;   /* false: the source gives nothing that encryption could be held against */
};

/* How many cases of a file were run, and of these how many had to be, and were, refused. */
struct vector_count {
    size_t cases, refused;
};

/* Runs the case between guard pages, apart and in place, and adds it to `count`. */
void vector_check(const struct vector *vector, const char *implementation, struct vector_count *count);

/* --- Files --------------------------------------------------------------------------------------------- */

/* The text of tests/vectors/`name`, ended with a zero byte, without carriage returns; the caller frees it. */
char *vector_file_read(const char *name);

/* One block of a response file: `COUNT = n` and what follows it, with the bracketed lines then in force. */
struct vector_record {
    const char *file;
    int number;       /* the value of COUNT */
    char section[16]; /* the last [WORD], or "" */
    char names[8][16];
    const char *values[8]; /* hex; "" for a name that stands alone */
    size_t fields;
    int lengths_bits[4]; /* IVlen, PTlen, AADlen, Taglen where the file has them, else -1 */
};
bool vector_record_has(const struct vector_record *record, const char *name);
/* The field's bytes; fails the test if there is no such field. */
void vector_record_get(const struct vector_record *record, const char *name, struct vector_bytes *ret_bytes);
/* The same for a field that is a decimal number. */
size_t vector_record_number(const struct vector_record *record, const char *name);

/* Calls `on_record` for every block of a response file, in order. */
void vector_records_read(const char *name,
                         void (*on_record)(const struct vector_record *record, void *context), void *context);

#endif
