/* SPDX-License-Identifier: Apache-2.0 */
/* The master key: its file, and what is done under it: wrapping stored keys and recognising key bytes. */
#ifndef CM_MASTER_H
#define CM_MASTER_H

#include "keystore.h"

enum { CM_MASTER_KEY_BYTES = 32 };

/* Three keys derived from the master key with HMAC-SHA256, each for one purpose, so that none helps against
 * another. */
struct cm_master {
    uint8_t wrapping[32];
    uint8_t fingerprint[32];
    uint8_t
        check[CM_MASTER_CHECK_BYTES]; /* public: kept in the store, tells a wrong master key from damage */
};

/* Reads the master key file; makes one (*ret_made) if there is none and `may_make`. The file has to be a
 * regular one of exactly 32 bytes, of mode 0600 or 0400, owned by root or this process's user. 0, or negative
 * with a text that names path, mode and remedy. */
int cm_master_load(struct cm_master *ret_master, const char *path, bool may_make, bool *ret_made,
                   char *ret_text, size_t text_capacity);
void cm_master_done(struct cm_master *master);

/* Wraps `length` bytes (0 for a destroyed version) with AES-256-GCM under a fresh nonce; the additional data
 * binds the key's id, name, algorithm and attributes and the version's number, state, time and fingerprint. 0
 * or -1. */
int cm_master_wrap(const struct cm_master *master, const struct cm_stored_key *key,
                   struct cm_stored_version *version, const uint8_t *bytes, size_t length)
    __attribute__((warn_unused_result));
/* Undoes it: 0, or -1 if anything of the row was changed (or made under another master key). */
int cm_master_unwrap(const struct cm_master *master, const struct cm_stored_key *key,
                     const struct cm_stored_version *version, uint8_t ret_bytes[CM_STORED_KEY_MAX_BYTES],
                     size_t *ret_length) __attribute__((warn_unused_result));

/* Tells equal key bytes from different ones without saying anything about them. 0 or -1. */
int cm_master_fingerprint(const struct cm_master *master, const uint8_t *bytes, size_t length,
                          uint8_t ret_fingerprint[CM_FINGERPRINT_BYTES]) __attribute__((warn_unused_result));

#endif
