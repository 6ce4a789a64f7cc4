/* SPDX-License-Identifier: Apache-2.0 */
/* The client: its connections, lent to one call at a time, and the session that they share. */
#ifndef CM_CLIENT_POOL_H
#define CM_CLIENT_POOL_H

#include "conn.h"
#include <pthread.h>
#include <sys/types.h>

enum { CM_POOL_MAX = 256, CM_INFLIGHT_MAX = 4096, CM_PROGRAM_MAX = 200 };

struct cm_async;

/* A place for one connection. While `busy` it and its connection belong to the thread that took it. */
struct cm_slot {
    struct cm_conn *conn;
    bool busy;
};

struct cm_client {
    pid_t pid; /* of the process that connected */
    struct cm_endpoint endpoint;
    char program[CM_PROGRAM_MAX + 1];
    uint32_t connect_timeout_ms, request_timeout_ms, inflight, slot_align, slot_gap;
    bool no_reconnect;

    /* Held while connecting, so that a lost session is replaced once and not by every thread. Taken before
     * `lock`. */
    pthread_mutex_t connecting;

    pthread_mutex_t lock; /* for everything below, but what a busy slot owns; never held over the network */
    pthread_cond_t freed; /* a slot became free; waits by the monotonic clock */
    struct cm_slot *slots;
    uint32_t slot_count;
    bool lost; /* a connection broke (no_reconnect) */
    uint32_t next_serial;
    uint8_t token[CM_TOKEN_BYTES];
    uint32_t session_number; /* 0: none yet */
    struct cm_limits limits;
    uint32_t *closing; /* handles of this session that nobody closed in the daemon yet */
    uint32_t closing_count, closing_capacity;

    struct cm_async *async; /* NULL until first used; belongs to the asynchronous thread */
};

/* CM_OK, or CM_ERR_FORKED in a child of the process that connected. */
int cm_client_check(const struct cm_client *client, cm_error *error);

/* Takes a connection, an idle one if there is one, else a new one, else the next that is given back, for
 * which it waits as long as a request may take. */
int cm_pool_take(struct cm_client *client, struct cm_slot **ret_slot, cm_error *error);
/* Takes the slot that holds the connection with this serial, waiting for it; CM_ERR_DISCONNECTED if it is
 * gone. */
int cm_pool_take_serial(struct cm_client *client, uint32_t serial, struct cm_slot **ret_slot,
                        cm_error *error);
/* An idle, living connection of the present session, or NULL; neither waits nor connects. */
struct cm_slot *cm_pool_try_take(struct cm_client *client);
/* Gives it back; a broken connection is closed. */
void cm_pool_put(struct cm_client *client, struct cm_slot *slot);

/* A connection outside the pool, for the asynchronous calls: an idle one of the pool's, else a new one. */
int cm_pool_detach(struct cm_client *client, struct cm_conn **ret_conn, cm_error *error);
/* Ends a connection, noting that one was lost. */
void cm_pool_drop(struct cm_client *client, struct cm_conn *conn);

/* A handle that shall be closed in the daemon by the next call that opens one. */
void cm_pool_close_later(struct cm_client *client, uint32_t session_number, uint32_t handle);
/* Takes one of them; 0: none. */
uint32_t cm_pool_next_closing(struct cm_client *client, uint32_t session_number);

int64_t cm_request_deadline(const struct cm_client *client);

#endif
