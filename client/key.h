/* SPDX-License-Identifier: Apache-2.0 */
/* Keys: a name, and the handle that stands for it in the present session. */
#ifndef CM_CLIENT_KEY_H
#define CM_CLIENT_KEY_H

#include "pool.h"
#include <stdatomic.h>

struct cm_key {
    struct cm_client *client;
    char name[CM_KEY_NAME_MAX + 1]; /* empty: ephemeral */
    atomic_uint version_used, version_wanted;

    pthread_mutex_t lock; /* for the rest; held while the key is opened in a new session */
    uint32_t handle, session_number;
    uint32_t key_bits;
    struct cm_key_attributes attributes;
};

/* The key's handle in the connection's session, opening it there by name if need be. */
int cm_key_handle(struct cm_key *key, struct cm_conn *conn, uint32_t *ret_handle, cm_error *error);

/* A caller's options as attributes of the wire. 0 or CM_ERR_ARGUMENT. */
int cm_key_attributes_of(const cm_key_options *options, struct cm_key_attributes *ret_attributes,
                         bool *ret_unsafe, cm_error *error);

/* Whether there is a key of that size for those modes. 0 or CM_ERR_ARGUMENT. */
int cm_key_bits_check(uint32_t key_bits, const struct cm_key_attributes *attributes, cm_error *error);

#endif
