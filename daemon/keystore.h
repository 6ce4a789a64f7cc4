/* SPDX-License-Identifier: Apache-2.0 */
/* The table of key stores: where named keys are kept. A store sees wrapped keys only; it is asked for changes
 * and answers later. Another store is one more file that ends in such a table, and one line in
 * cm_keystore_default. */
#ifndef CM_KEYSTORE_H
#define CM_KEYSTORE_H

#include "message.h"

enum {
    CM_WRAP_NONCE_BYTES = 12,
    CM_WRAP_TAG_BYTES = 16,
    CM_STORED_KEY_MAX_BYTES = 64, /* of XTS with AES-256 */
    CM_WRAPPED_MAX_BYTES = CM_STORED_KEY_MAX_BYTES + CM_WRAP_TAG_BYTES,
    CM_FINGERPRINT_BYTES = 32,
    CM_MASTER_CHECK_BYTES = 32
};

/* A version as it is kept. A destroyed one has no fingerprint and wraps an empty text: its tag alone, which
 * still vouches for name, number and state. */
struct cm_stored_version {
    uint32_t number, state; /* enum cm_wire_key_state */
    uint64_t created_unix_s;
    uint8_t fingerprint[CM_FINGERPRINT_BYTES]; /* zero: none */
    uint8_t nonce[CM_WRAP_NONCE_BYTES];
    uint8_t wrapped[CM_WRAPPED_MAX_BYTES]; /* ciphertext, then tag */
    size_t wrapped_length;
};

struct cm_stored_key {
    char name[CM_KEY_NAME_MAX + 1];
    uint8_t id[CM_KEY_ID_BYTES];
    uint32_t key_bits;
    struct cm_key_attributes attributes;
    bool unsafe_mixed_modes;
    uint64_t revision;
    uint32_t version_count;
    struct cm_stored_version *versions; /* by rising number */
};

enum cm_store_change_kind { CM_STORE_CREATE, CM_STORE_DESTROY };

/* One change, atomic and durable before it is reported done; the operation id is stored with it. */
struct cm_store_change {
    enum cm_store_change_kind kind;
    bool has_operation_id;
    uint8_t operation_id[CM_OPERATION_ID_BYTES];
    uint64_t now_unix_s;
    /* To create: the whole key. To destroy: its name, the revision that it gets (it must still have the one
     * before), and its versions as they are to be from now on; no versions if the caller knows no such key.
     */
    struct cm_stored_key key;
    /* Called once, on any thread. */
    void (*done)(struct cm_store_change *change);

    uint32_t ret_status; /* enum cm_status */
    bool ret_repeated;   /* the operation id was seen before: this is the first one's result */
    bool ret_changed;    /* this change is in the store now, whatever the status */
    char ret_text[256];
};

struct cm_keystore;

/* Called for each key; 0 to go on, negative to stop. What it sees lives during the call. */
typedef int (*cm_keystore_visit)(void *context, const struct cm_stored_key *key);

struct cm_keystore_table {
    const char *name;
    /* Claims the store in `folder`, which exists, for this process; changes nothing of what it holds. This
     * and the next two: 0, or negative with a text that names path, cause and remedy. */
    int (*open)(struct cm_keystore **ret_store, const char *folder, char *ret_text, size_t text_capacity);
    /* Reads everything without writing. `ret_check` gets what `start` was given, *ret_has_check whether there
     * was one. Nothing is there yet in a store that was never started. */
    int (*load)(struct cm_keystore *store, cm_keystore_visit visit, void *context,
                uint8_t ret_check[CM_MASTER_CHECK_BYTES], bool *ret_has_check, char *ret_text,
                size_t text_capacity);
    /* From here on the store writes; keeps `check`. */
    int (*start)(struct cm_keystore *store, const uint8_t check[CM_MASTER_CHECK_BYTES], char *ret_text,
                 size_t text_capacity);
    /* Asks for a change, in order. Any thread; after start. */
    void (*submit)(struct cm_keystore *store, struct cm_store_change *change);
    /* Finishes every change that was asked for. NULL is fine. */
    void (*close)(struct cm_keystore *store);
};

extern const struct cm_keystore_table cm_keystore_sqlite;

static inline const struct cm_keystore_table *cm_keystore_default(void)
{
    return &cm_keystore_sqlite;
}

#endif
