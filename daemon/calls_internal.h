/* SPDX-License-Identifier: Apache-2.0 */
/* A call while it is being answered, and the ways to answer it; shared by the files that hold the calls. */
#ifndef CM_CALLS_INTERNAL_H
#define CM_CALLS_INTERNAL_H

#include "service_internal.h"

struct cm_pending_call {
    struct cm_service_worker *worker;
    struct cm_peer_state *peer;
    const struct cm_call *call;
    const uint8_t *body;
    size_t body_length;
    cm_answer_function answer;
    void *context;
};

/* `format` NULL: what the status says by itself. */
void cm_call_refuse(const struct cm_pending_call *call, uint32_t status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Gives the session a handle to a key, named or (`name` NULL) ephemeral, and answers with both. */
void cm_call_add_handle(const struct cm_pending_call *call, const char *name, struct cm_live_key *key);

void cm_call_ephemeral_key(const struct cm_pending_call *call);
void cm_call_create_key(const struct cm_pending_call *call);
void cm_call_destroy_key(const struct cm_pending_call *call);

#endif
