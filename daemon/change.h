/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of named keys on their way: to the store, into every worker's snapshot, and back as an answer. */
#ifndef CM_CHANGE_H
#define CM_CHANGE_H

#include "keystore.h"
#include "peer.h"

/* Lives from the call to its answer. Made and answered on the calling worker's thread; between those it
 * belongs to the store's thread, then to whoever lets go of the old key last. */
struct cm_change {
    struct cm_store_change store;     /* first: the store gives back a pointer to it */
    struct cm_stored_version *sealed; /* store.key.versions */
    struct cm_service *service;
    uint32_t worker;
    struct cm_change *next;      /* in the service's list */
    struct cm_live_key *fresh;   /* what the next snapshot is to hold; NULL: nothing */
    struct cm_change *followers; /* repeats of this one, answered after it; under the service's mutex */
    struct cm_change *next_follower;
    atomic_int waiting; /* for the workers' snapshots, for the old key to be wiped */

    /* The calling worker's thread only: */
    struct cm_peer_state *peer; /* NULL once it is gone: nobody waits for the answer */
    struct cm_change *next_of_peer;
    uint64_t request_id;
    cm_answer_function answer;
    void *context;
};

/* A change that the caller fills (store.kind, .key but for .versions, .fresh) and submits; `versions` entries
 * of room in store.key.versions. NULL without memory. */
struct cm_change *cm_change_new(struct cm_peer_state *peer, const struct cm_call *call, uint32_t versions,
                                cm_answer_function answer, void *context);
/* One that was never submitted. */
void cm_change_free(struct cm_change *change);
/* Hands it to the store; the peer's answer function is called when the change is durable, live on every
 * worker, and what it destroyed is wiped. */
void cm_change_submit(struct cm_change *change);

/* Nobody waits for this peer's answers any more; its worker's thread. */
void cm_changes_forget_peer(struct cm_peer_state *peer);
/* A worker ends: it counts as having let go of every snapshot. Its thread. */
void cm_changes_forget_worker(struct cm_service_worker *worker);
/* Frees whatever never came to its end; every worker is gone and the store is closed. */
void cm_changes_done(struct cm_service *service);

#endif
