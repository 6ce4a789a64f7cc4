/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of each worker, and their sum as Prometheus text. Every label comes from a compile-time table. */
#ifndef CM_METRICS_H
#define CM_METRICS_H

#include "message.h"

#include <stdatomic.h>
#include <stdio.h>

/* What a request was. Calls stand at CM_REQUEST_CALL + enum cm_call_kind. */
enum cm_request_kind {
    CM_REQUEST_HELLO,
    CM_REQUEST_BATCH,
    CM_REQUEST_CALL,
    CM_REQUEST_KINDS = CM_REQUEST_CALL + CM_CALL_DESTROY_KEY + 1
};

/* Why the daemon closed a connection by itself. */
enum cm_close_reason {
    CM_CLOSE_PEER,     /* the peer went away */
    CM_CLOSE_PROTOCOL, /* it does not speak this protocol, or was refused */
    CM_CLOSE_GREETING, /* no greeting in time */
    CM_CLOSE_STALLED,  /* half a frame or an unread reply without progress */
    CM_CLOSE_PRESSURE, /* the same, for a shorter time, while memory was short */
    CM_CLOSE_DRAIN,    /* the daemon is going away */
    CM_CLOSE_REASONS
};

enum {
    CM_METRICS_STATUSES = 32,                 /* wire numbers; higher ones count in the last */
    CM_METRICS_MODES = CM_WIRE_MODE_LAST + 1, /* enum cm_wire_mode; 0 counts unknown ones */
    CM_METRICS_DIRECTIONS = 3,
    CM_METRICS_BUCKETS = 20 /* the last one is +Inf */
};

/* One a thread. Only that thread writes, so adding needs no locked instruction; any thread may read. */
struct cm_metrics {
    _Atomic uint64_t requests[CM_REQUEST_KINDS][CM_METRICS_STATUSES];
    _Atomic uint64_t items[CM_METRICS_MODES][CM_METRICS_DIRECTIONS][CM_METRICS_STATUSES];
    _Atomic uint64_t bytes[CM_METRICS_MODES][CM_METRICS_DIRECTIONS];
    _Atomic uint64_t seconds[CM_METRICS_BUCKETS]; /* not cumulative */
    _Atomic uint64_t seconds_sum_ns;
    _Atomic uint64_t closed[CM_CLOSE_REASONS];
    _Atomic uint64_t jobs_shared;
    _Atomic uint64_t busy_ns;
};

static inline void cm_metrics_add(_Atomic uint64_t *counter, uint64_t amount)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + amount,
                          memory_order_relaxed);
}

/* A request that took `ns` from its last byte read to its reply being ready to leave. */
void cm_metrics_request(struct cm_metrics *metrics, unsigned kind, uint32_t status, uint64_t ns);
/* A batch that was not refused as a whole: its items by status, and the bytes that went in. */
void cm_metrics_batch(struct cm_metrics *metrics, const struct cm_batch *batch,
                      const struct cm_batch_reply *reply, uint64_t bytes);

/* What only the caller of cm_metrics_print knows. */
struct cm_metrics_gauges {
    const struct cm_metrics *const *threads; /* every worker's, in order */
    uint32_t thread_count;
    uint64_t inflight_bytes, inflight_limit_bytes;
    uint64_t connections, connections_total, connections_refused_total, accept_paused_total;
    uint64_t wake_ns; /* measured cost of a cross-core wake-up; 0 where it was not measured */
    bool ready, draining;
    uint64_t start_unix_ms;
    const char *version;
};

/* Prometheus text, version 0.0.4. */
void cm_metrics_print(FILE *out, const struct cm_metrics_gauges *gauges);

#endif
