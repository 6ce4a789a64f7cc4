/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that keeps some connections loaded, and what it counts. */
#ifndef LOADER_H
#define LOADER_H

#include "connection.h"
#include "verifier.h"

/* What the loaders of a run share. Written before the threads are let go, but for `stop`. */
struct course {
    const struct plan *plan;
    uint64_t start_ns;         /* the first batch */
    uint64_t begin_ns, end_ns; /* what is measured: after the warm-up */
    atomic_bool stop;          /* end now, and report what there is */
};

struct loader {
    struct course *course;
    pthread_t thread;
    struct connection *connections; /* some of the run's */
    uint32_t connection_count;
    struct verifier verifier;
    uint64_t since_verified; /* batches */
    uint64_t given;          /* units that the verifier has */
    uint64_t stopped_ns;     /* when it ceased to send */
    /* The thread's own until it has ended. */
    uint64_t batches, items, bytes, unsent;
    uint64_t statuses[PLAN_STATUSES];
    struct histogram latency, lag;
    cm_error first_error; /* code 0: none */
    int code;             /* exit code of the worst error */
};

/* The body of the thread; `argument` is a struct loader whose connections are open. Its verifier is running.
 */
void *loader_run(void *argument);

#endif
