/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: what the connections of one client share, namely key handles and ephemeral keys. */
#ifndef CM_SESSION_H
#define CM_SESSION_H

#include "keys.h"
#include <pthread.h>

/* A handle leads to a named key, by its name, or to an ephemeral key, by a reference. */
struct cm_session_handle {
    uint32_t handle;
    struct cm_live_key *ephemeral; /* NULL: named */
    char *name;                    /* NULL: ephemeral */
};

struct cm_session {
    struct cm_session *next;
    uint8_t token[CM_TOKEN_BYTES];
    char identity[128];
    uint32_t connections; /* under the table's mutex */
    uint32_t handle_limit;

    /* Rises whenever a handle ends. Whoever remembers what a handle led to compares it, without the mutex. */
    atomic_uint_fast64_t generation;

    pthread_mutex_t mutex; /* for the rest; never taken on the data path but for a handle's first use */
    uint32_t last_handle;
    uint32_t count, capacity;
    struct cm_session_handle *handles; /* by rising handle */
};

struct cm_sessions {
    pthread_mutex_t mutex;
    struct cm_session *first;
};

void cm_sessions_init(struct cm_sessions *sessions);
void cm_sessions_done(struct cm_sessions *sessions); /* every session has ended */

/* Starts a session (`token` empty) or joins the one with that token, if it is of the same identity. Any
 * thread. CM_STATUS_OK, CM_STATUS_NO_SUCH_SESSION or CM_STATUS_INTERNAL. */
uint32_t cm_session_join(struct cm_sessions *sessions, const char *identity, struct cm_bytes token,
                         uint32_t handle_limit, struct cm_session **ret_session);
/* With the last connection the session ends; its ephemeral keys are wiped. */
void cm_session_leave(struct cm_sessions *sessions, struct cm_session *session);

/* A new handle to a named key, or (name NULL) to an ephemeral key, of which a reference is taken.
 * CM_STATUS_OK, CM_STATUS_SESSION_FULL or CM_STATUS_INTERNAL. */
uint32_t cm_session_add(struct cm_session *session, const char *name, struct cm_live_key *ephemeral,
                        uint32_t *ret_handle);
/* CM_STATUS_OK or CM_STATUS_NO_SUCH_KEY. */
uint32_t cm_session_remove(struct cm_session *session, uint32_t handle);

/* What a handle leads to: either *ret_ephemeral, with a reference for the caller, or NULL there and the name
 * in ret_name. *ret_generation is what the answer holds for. CM_STATUS_OK or CM_STATUS_NO_SUCH_KEY. */
uint32_t cm_session_find(struct cm_session *session, uint32_t handle, struct cm_live_key **ret_ephemeral,
                         char ret_name[CM_KEY_NAME_MAX + 1], uint64_t *ret_generation);

#endif
