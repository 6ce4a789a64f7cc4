/* SPDX-License-Identifier: Apache-2.0 */
/* libciphermill: administering keys and looking at the daemon. Threads, fork and errors as in ciphermill.h.
 *
 * A call that changes the store carries an operation id, so that repeating it after a broken connection gives
 * the first result instead of doing it twice; the library repeats by itself when it reconnects. */
#ifndef CIPHERMILL_ADMIN_H
#define CIPHERMILL_ADMIN_H

#include <ciphermill/ciphermill.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CM_KEY_ENABLED = 1, CM_KEY_DECRYPT_ONLY = 2, CM_KEY_DISABLED = 3, CM_KEY_DESTROYED = 4 };

typedef struct cm_key_version_details {
    uint32_t version, state; /* CM_KEY_ */
    uint64_t created_unix_s;
} cm_key_version_details;

typedef struct cm_key_details {
    char name[129];
    uint8_t id[16];
    uint32_t key_bits; /* of AES; a key for XTS is two keys of that size */
    uint32_t modes;    /* CM_MODE_BIT */
    uint32_t may_encrypt, may_decrypt, caller_iv, tag_length;
    uint32_t version_count;
    cm_key_version_details *versions; /* owned by the library until cm_keys_free */
} cm_key_details;

/* All of these: 0 or CM_ERR_. `bytes` NULL lets the daemon make the key; else they are imported: key_bits / 8
 * bytes, for XTS twice as many (the data's key, then the tweak's, which must differ); the library keeps no
 * copy. `options` NULL is a key for GCM. */
CM_API int cm_key_create(cm_client *client, const char *name, uint32_t key_bits, const void *bytes,
                         const cm_key_options *options, cm_error *error) CM_MUST_USE;
CM_API int cm_key_destroy(cm_client *client, const char *name, cm_error *error) CM_MUST_USE;
/* One key by name, or all (name NULL), sorted by name. Free the array with cm_keys_free. */
CM_API int cm_key_list(cm_client *client, const char *name, cm_key_details **ret_keys, size_t *ret_count,
                       cm_error *error) CM_MUST_USE;
CM_API void cm_keys_free(cm_key_details *keys, size_t count);

/* Bits of `used`: for short batches, which have at most 2 items with at most 128 bytes together; for small
 * ones, whose items have at most 224 bytes on average (the daemon looks at four of them); for all others, the
 * long ones. What is fastest for one is not always so for another. */
enum { CM_USED_SHORT = 1, CM_USED_LONG = 2, CM_USED_SMALL = 4 };

typedef struct cm_implementation_details {
    int mode, direction;
    char implementation[32];
    uint32_t compiled, available;
    uint32_t used; /* CM_USED_; 0: not at all */
    char reason[128];
} cm_implementation_details;
/* Free the array with free(). */
CM_API int cm_get_implementations(cm_client *client, cm_implementation_details **ret_rows, size_t *ret_count,
                                  cm_error *error) CM_MUST_USE;

typedef struct cm_server_details {
    size_t size; /* set it first */
    char server[64], identity[128], endpoint[256];
    uint32_t may_administer, draining, workers, connections, keys;
    uint64_t uptime_ms, inflight_bytes, inflight_limit_bytes;
} cm_server_details;
CM_API int cm_get_status(cm_client *client, cm_server_details *ret_status, cm_error *error) CM_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
