/* SPDX-License-Identifier: Apache-2.0 */
/* What the service knows about one connection: its session, the handles it used lately, its multi-part
 * operations. Everything here happens on the thread of the worker that greeted it. */
#ifndef CM_PEER_H
#define CM_PEER_H

#include "service.h"
#include "session.h"

/* One long message between its parts. Holds chaining values, never a key: the key is looked up and checked
 * for every part. */
struct cm_operation {
    uint32_t number; /* the client's; 0: free */
    uint32_t handle, version;
    uint8_t mode, direction; /* enum cm_wire_mode, cm_wire_direction */
    bool padding;
    bool busy;      /* a job that has not finished runs a part of it */
    bool cancelled; /* ends as soon as it is not busy */
    bool idle;      /* not touched since `idle_since_ms`, a tick */
    uint64_t idle_since_ms;
    struct cm_aes_parts parts;
};

/* Remembers what a handle led to. An ephemeral key is held by a reference, a named one by the snapshot. */
struct cm_handle_cache_entry {
    uint32_t handle; /* 0: empty */
    bool ephemeral;
    uint64_t generation, serial;
    struct cm_live_key *key;
};

enum { CM_HANDLE_CACHE_ENTRIES = 8 }; /* a power of two */

struct cm_change;

struct cm_peer_state {
    struct cm_service_worker *worker;
    struct cm_session *session;
    struct cm_identity identity;
    uint8_t token[CM_TOKEN_BYTES];
    struct cm_handle_cache_entry cache[CM_HANDLE_CACHE_ENTRIES];
    struct cm_operation *operations; /* NULL until first used; as many as the limit says */
    uint32_t operation_count;
    struct cm_change *changes; /* calls that wait for the store */
};

/* The key behind a handle, by the worker's present snapshot. No reference is taken: good until the worker's
 * thread does something else. CM_STATUS_OK or CM_STATUS_NO_SUCH_KEY. */
uint32_t cm_peer_find_key(struct cm_peer_state *peer, uint32_t handle, struct cm_live_key **ret_key);

/* Forgets what handles that have ended led to. */
void cm_peer_drop_stale_keys(struct cm_peer_state *peer);

/* Starts operation `number`. CM_STATUS_OK, CM_STATUS_BAD_REQUEST (it exists) or CM_STATUS_OVERLOADED. */
uint32_t cm_operation_start(struct cm_peer_state *peer, uint32_t number, struct cm_operation **ret_operation);
/* NULL if there is none. */
struct cm_operation *cm_operation_find(struct cm_peer_state *peer, uint32_t number);
/* Wipes it, at once or as soon as it is not busy. NULL is fine. */
void cm_operation_end(struct cm_peer_state *peer, struct cm_operation *operation);

#endif
