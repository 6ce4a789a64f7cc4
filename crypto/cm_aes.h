/* SPDX-License-Identifier: Apache-2.0 */
/* AES over batches of messages: the whole interface of crypto/ to the rest of the tree. */
#ifndef CM_AES_H
#define CM_AES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Modes of operation. ECB, CBC, CTR: SP 800-38A. GCM: SP 800-38D. XTS: SP 800-38E and IEEE Std 1619. */
enum cm_aes_mode { CM_AES_ECB, CM_AES_CBC, CM_AES_CTR, CM_AES_GCM, CM_AES_XTS, CM_AES_MODE_COUNT };

enum cm_aes_direction { CM_AES_ENCRYPT, CM_AES_DECRYPT, CM_AES_DIRECTION_COUNT };

/* PKCS#7 padding (RFC 5652, section 6.3) for ECB and CBC; the other modes take CM_AES_NO_PADDING only. */
enum cm_aes_padding { CM_AES_NO_PADDING, CM_AES_PKCS7 };

/* What became of one item; also the return value of the functions below. One value for all wrong tags and
 * one for all wrong paddings, each found in constant time. */
enum cm_aes_status {
    CM_AES_OK = 0,
    CM_AES_BAD_TAG = -1,     /* GCM: the tag is not that of the message; the destination is wiped */
    CM_AES_BAD_PADDING = -2, /* PKCS#7: the padding is malformed; the destination is wiped */
    CM_AES_BAD_LENGTH = -3,  /* no whole number of blocks, or empty where padding is expected, or shorter or
                              * longer than the mode allows */
    CM_AES_BAD_IV = -4,      /* wrong IV length for the mode */
    CM_AES_BAD_TAG_LENGTH = -5, /* not 4, 8 or 12 to 16 */
    CM_AES_BAD_KEY_LENGTH = -6, /* not 16, 24 or 32 bytes; XTS: not 32 or 64 */
    CM_AES_UNAVAILABLE = -7     /* no such implementation, mode without padding, mode that can't be cut */
};

enum { CM_AES_BLOCK_BYTES = 16, CM_AES_MAX_KEY_BYTES = 64, CM_AES_MAX_TAG_BYTES = 16 };

/* GCM's longest text, SP 800-38D section 5.2.1.1: 2^39 - 256 bits. */
#define CM_AES_GCM_MAX_BYTES ((UINT64_C(1) << 36) - 32)

/* XTS's data unit: at least one block, IEEE Std 1619 section 5.1; at most 2^20 blocks, SP 800-38E section 4.
 */
enum { CM_AES_XTS_MIN_BYTES = 16, CM_AES_XTS_MAX_BYTES = 1 << 24 };

/* One message of a batch. Buffers are the caller's. `source` and `destination` are equal or do not overlap;
 * no alignment is asked. Null pointers are fine where the length is zero. */
struct cm_aes_item {
    const uint8_t *source;
    uint8_t *destination; /* room: `length`; with PKCS#7 encryption, cm_aes_output_bound(length) */
    size_t length;        /* bytes of input, without the tag */
    const uint8_t *iv;    /* ECB: ignored. CBC: the IV. CTR: the first counter block, 128-bit big-endian.
                           * GCM: any length of one byte and more, 12 is the fast case. XTS: the tweak, that
                           * is the data unit's number as 16 bytes, little-endian, or any other value */
    size_t iv_length;     /* ECB: ignored. CBC, CTR and XTS: 16 */
    const uint8_t *aad;   /* GCM: additional data; the other modes ignore it */
    size_t aad_length;
    uint8_t *tag;      /* GCM: written when encrypting, only read when decrypting */
    size_t tag_length; /* GCM: 4, 8, 12 to 16; exactly this many bytes are compared */
    size_t ret_length; /* out: bytes of output; 0 unless CM_AES_OK */
    int ret_status;    /* out: enum cm_aes_status */
};

/* Upper bound on the output of one item: what a destination needs. */
size_t cm_aes_output_bound(enum cm_aes_direction direction, enum cm_aes_padding padding, size_t length);

/* --- Implementations: the one dispatch table --- */

/* What serves one mode in one direction: for each size class of batches one implementation. Immutable,
 * static. */
struct cm_aes_row;

/* Size classes. What fills the widest registers is not what costs a lone short message least, nor what is
 * best for many small ones, so dispatch chooses for each class, by what was measured (`bench-kernels
 * --dispatch`).
 * - Short: at most CM_AES_SHORT_ITEMS messages with at most CM_AES_SHORT_BYTES together.
 * - Small: otherwise, if four items at equal distances have at most CM_AES_SMALL_BYTES each on average.
 * - Long: the rest. */
enum cm_aes_size_class { CM_AES_SHORT, CM_AES_SMALL, CM_AES_LONG, CM_AES_SIZE_CLASS_COUNT };
enum { CM_AES_SHORT_ITEMS = 2, CM_AES_SHORT_BYTES = 128, CM_AES_SMALL_BYTES = 224 };

/* Resolves the table: reads the processor's features together with what the operating system enables,
 * applies `limit` (an implementation's name: it and everything narrower; NULL or "": no limit, except that
 * 512-bit registers are left alone on processors that lower their clock for them) and runs the
 * known-answer self-test of every implementation that would be used; one that fails is never chosen.
 * Call before any other thread uses crypto/. Returns CM_AES_OK, or CM_AES_UNAVAILABLE if `limit` is no known
 * name, or if for some mode not even portable passes its self-test. The program passes
 * getenv("CIPHERMILL_CPU"); this folder reads no environment. */
int cm_aes_init(const char *limit) __attribute__((warn_unused_result));

/* The row that dispatch chose for a mode and direction. Never NULL after cm_aes_init: portable is complete.
 */
const struct cm_aes_row *cm_aes_row(enum cm_aes_mode mode, enum cm_aes_direction direction);

/* The row of the named implementation, whether chosen or not; NULL if there is none or the processor can't
 * run it. For tests and benchmarks. */
const struct cm_aes_row *cm_aes_row_named(enum cm_aes_mode mode, enum cm_aes_direction direction,
                                          const char *implementation);

/* The name of the implementation that serves a size class ("portable", "aesni", …). */
const char *cm_aes_row_name(const struct cm_aes_row *row, enum cm_aes_size_class size_class);

/* What is known about implementation number `index` (0 is the narrowest) for a mode and direction. Returns
 * false past the end. `ret_reason` says why it is not available ("processor lacks AES-NI", "limited by
 * CIPHERMILL_CPU", "self-test failed: …") or is "". All strings are static. */
struct cm_aes_implementation {
    const char *name;
    bool compiled;  /* part of this build */
    bool available; /* the processor can run it and is not slowed down by it, it is within the limit and
                     * passed its self-test */
    bool used[CM_AES_SIZE_CLASS_COUNT]; /* dispatch chooses it for this mode, direction and size class */
    const char *reason;
};
bool cm_aes_implementation(size_t index, enum cm_aes_mode mode, enum cm_aes_direction direction,
                           struct cm_aes_implementation *ret_implementation);

/* --- Keys --- */

/* A key expanded for one row, in memory that the caller owns: cm_aes_key_size(row) bytes, a multiple of and
 * aligned to CM_AES_KEY_ALIGN. Read-only once made, so any number of threads may use it. */
struct cm_aes_key;
enum { CM_AES_KEY_ALIGN = 64, CM_AES_KEY_MAX_SIZE = 9216 }; /* no row's key is larger than the maximum */
size_t cm_aes_key_size(const struct cm_aes_row *row);

/* Expands `key` of 16, 24 or 32 bytes; for XTS of 32 or 64, the key of the data before that of the tweak
 * (equal halves are for the caller to refuse). CM_AES_OK or CM_AES_BAD_KEY_LENGTH. */
int cm_aes_key_init(struct cm_aes_key *memory, const struct cm_aes_row *row, const uint8_t *key,
                    size_t key_length) __attribute__((warn_unused_result));
void cm_aes_key_done(struct cm_aes_key *key); /* wipes it */
const struct cm_aes_row *cm_aes_key_row(const struct cm_aes_key *key);

/* The size class of a batch. */
enum cm_aes_size_class cm_aes_size_class(const struct cm_aes_item *items, size_t count);

/* --- Batches --- */

/* Runs every item under one key, in the key's mode and direction. Each item gets its own status; a bad one
 * never touches its neighbours. No allocation, no lock, no system call. Returns how many items failed. */
size_t cm_aes_batch(const struct cm_aes_key *key, enum cm_aes_padding padding, struct cm_aes_item *items,
                    size_t count);

/* Cuts a range out of one long message so that several threads can share it: ECB, CTR, and CBC decryption.
 * `offset` and, unless it ends the message, `length` are multiples of 16. `iv` (16 bytes, the caller's) gets
 * the range's own IV, so cut every range of an item before running any (in place, running one destroys the
 * next one's IV). Only the last range carries padding. Returns CM_AES_OK, or CM_AES_UNAVAILABLE where the
 * mode can't be cut (GCM, XTS, CBC encryption). */
int cm_aes_slice(enum cm_aes_mode mode, enum cm_aes_direction direction, const struct cm_aes_item *whole,
                 size_t offset, size_t length, uint8_t iv[16], struct cm_aes_item *ret_slice)
    __attribute__((warn_unused_result));

/* --- Incremental: one long message in parts --- */

/* The state between parts of one message. Plain memory, no pointers to free; belongs to one caller at a time.
 * Holds chaining values, never the key. Wipe it with cm_aes_parts_done. */
struct cm_aes_parts {
    uint8_t chain[16];     /* CBC: last ciphertext block. CTR and GCM: next counter block */
    uint8_t hash[16];      /* GCM: running GHASH */
    uint8_t first_pad[16]; /* GCM: E(K, J0) */
    uint64_t aad_bytes, text_bytes;
    bool begun, ended;
};

/* Runs one part of a message; item->iv and item->aad count in the first part only. Every part but the last is
 * a multiple of 16 bytes (CM_AES_BAD_LENGTH otherwise, state unchanged); the last may be empty, except that
 * PKCS#7 decryption needs at least one block in it. `last` applies padding, makes or checks item->tag. GCM
 * decryption releases plaintext before the tag is known: the caller must withhold it until the last part is
 * CM_AES_OK. Zero the state before the first part. XTS has no parts (CM_AES_UNAVAILABLE): a data unit is an
 * item. Returns item->ret_status. */
int cm_aes_part(const struct cm_aes_key *key, enum cm_aes_padding padding, struct cm_aes_parts *state,
                struct cm_aes_item *item, bool last) __attribute__((warn_unused_result));
void cm_aes_parts_done(struct cm_aes_parts *state);

/* --- Small things that must be right in one place --- */

/* Zeroes memory in a way that the compiler keeps. */
void cm_aes_wipe(void *memory, size_t length);

/* Compares in time that depends on the length alone. */
bool cm_aes_equal(const void *a, const void *b, size_t length);

#endif
