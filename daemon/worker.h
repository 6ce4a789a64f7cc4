/* SPDX-License-Identifier: Apache-2.0 */
/* A worker: one thread with its own loop, which serves the connections that it was given. */
#ifndef CM_WORKER_H
#define CM_WORKER_H

#include "buffer.h"
#include "config.h"
#include "inbox.h"
#include "metrics.h"
#include "output.h"
#include "service.h"

#include <stdalign.h>
#include <uv.h>

struct cm_conn;

/* What the threads of the daemon share. Set up before the workers start; later only the atomics change, and
 * wake_ns once, before the first connection. */
struct cm_common {
    const struct cm_config *config;
    struct cm_service *service;
    struct cm_worker *workers;
    uint32_t worker_count;
    struct cm_budget budget;
    uint64_t wake_ns; /* cost of a cross-core wake-up; 0: nothing is shared */
    struct cm_inbox main_inbox;
    uv_async_t main_wake;
    _Atomic uint32_t connections;
    _Atomic bool draining;
};

/* Any thread: the item runs on the main thread, with the cm_common as owner. */
void cm_common_post_main(struct cm_common *common, struct cm_inbox_item *item);

enum {
    CM_SPARE_BYTES = 256 * 1024,
    CM_ARENA_HEAD = 64 /* an arena's buffer begins with its struct cm_arena, on a cache line of its own */
};

/* The gaps keep what other threads touch off the cache lines of the worker's own. */
struct cm_worker { /* NOLINT(clang-analyzer-optin.performance.Padding) */
    /* What other threads touch. */
    struct cm_common *common;
    uint32_t index;
    struct cm_inbox inbox;
    uv_async_t wake;
    _Atomic bool idle; /* waits, and nobody has woken it to help yet */
    struct cm_inbox_item drain_item, close_item, stop_item;
    alignas(64) struct cm_metrics metrics;

    /* Its own. */
    alignas(64) uv_thread_t thread;
    uv_sem_t started;
    bool failed; /* could not start */
    uv_loop_t loop;
    uv_prepare_t prepare;
    uv_timer_t tick;
    bool awake;      /* since woke_ns */
    uv_idle_t turns; /* runs while connections wait for their next turn */
    uint64_t woke_ns, second_ms;
    uint64_t round; /* of the loop */
    struct cm_conn *first_waiting, **end_waiting;
    size_t waiting;
    struct cm_service_worker *service;
    struct cm_pool pool;
    struct cm_buffer *spare; /* what connections read into that hold nothing; taken over by one that must */
    struct cm_buffer *arena_buffer; /* see cm_worker_arena */
    struct cm_output output;
    struct cm_conn *connections;
    uint32_t starved; /* connections that wait for room in the budget */
    bool draining, closing, hurried;
};

/* On the main thread. 0, or negative UV_E…; after a failure nothing is left. `common` and `index` are set. */
int cm_worker_init(struct cm_worker *worker);
/* Starts the thread and waits until it serves. 0 or negative; cm_worker_done is due in both cases. */
int cm_worker_start(struct cm_worker *worker);
/* After cm_worker_stop: waits for the thread's end. */
void cm_worker_join(struct cm_worker *worker);
/* After cm_worker_join and cm_service_free: what was still posted is dropped. */
void cm_worker_done(struct cm_worker *worker);

/* Any thread: the item runs on the worker's, with the worker as owner. */
void cm_worker_post(struct cm_worker *worker, struct cm_inbox_item *item);
/* The same for a function; the memory for it is made here, and the process ends if there is none. */
void cm_worker_post_function(struct cm_worker *worker, void (*function)(void *argument), void *argument);

/* Any thread, each once: say goodbye to every connection; close every connection and refuse new ones; leave
 * the loop (when no connection is left). */
void cm_worker_drain(struct cm_worker *worker);
void cm_worker_close_all(struct cm_worker *worker);
void cm_worker_stop(struct cm_worker *worker);

/* The rest is for the worker's own thread. */

/* Every callback of the loop calls it first: the worker waits no longer. */
void cm_worker_woke(struct cm_worker *worker);
/* NULL when there is no memory. */
struct cm_buffer *cm_worker_spare(struct cm_worker *worker);
/* An empty arena; NULL when there is no memory. It lives in worker->arena_buffer: who needs it for longer
 * takes that buffer away. */
struct cm_arena *cm_worker_arena(struct cm_worker *worker);
/* The connection goes on in the loop's next round; and no more, if it waits for that. */
void cm_worker_wait_turn(struct cm_worker *worker, struct cm_conn *conn);
void cm_worker_leave_turn(struct cm_worker *worker, struct cm_conn *conn);
/* Something needs the tick more often than once a second: a drain, or connections that wait for room. */
void cm_worker_hurry(struct cm_worker *worker);

#endif
