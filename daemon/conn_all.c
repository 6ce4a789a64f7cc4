/* SPDX-License-Identifier: Apache-2.0 */
/* What concerns all connections of a worker: deadlines, memory that is short, drain, end. */
#include "conn.h"

#include "log.h"

enum {
    PRESSURE_STALL_MS = 1000, /* while memory is short, whoever is stalled for longer goes */
    BORROWED_STALL_MS = 200,  /* the one who borrows the reserve keeps others waiting, */
    BORROWED_MS = 1000,       /* and may not do so for longer than this, whatever its progress */
    SILENCE_MS = 200,         /* after a goodbye, whoever says nothing for this long has nothing to say */
    QUIET_MS = 1000,          /* a connection's own buffer goes back after this long without a byte */
};

static bool holds(const struct cm_conn *conn)
{
    return conn->unsent || conn->end > conn->start;
}

/* We make it wait. It is no excuse, though, that a request is at work while it does not read the reply
 * before; nor a byte that we do not read: who sends one now and then while memory is short would keep what it
 * holds for ever. */
static bool waits_for_us(const struct cm_conn *conn)
{
    return (conn->busy && !conn->unsent) || conn->waits_turn || (conn->starved && !conn->owes);
}

/* How long the peer has owed us the rest of a frame, or the reading of a reply. */
static uint64_t stalled_ms(const struct cm_conn *conn, uint64_t now)
{
    if (!holds(conn) || waits_for_us(conn) || conn->closing || conn->lingering)
        return 0;
    return now > conn->progress_ms ? now - conn->progress_ms : 0;
}

static void close_stalled(struct cm_conn *conn, enum cm_close_reason reason, uint64_t stalled)
{
    static struct cm_log_limit limit;
    cm_log_limited(&limit, CM_LOG_WARNING, "closed a connection of %s: %s, no progress for %llu ms%s",
                   conn->admission->identity.name,
                   conn->unsent ? "it does not read its reply" : "half a frame", (unsigned long long)stalled,
                   reason == CM_CLOSE_PRESSURE ? ", and memory is short" : "");
    cm_conn_close(conn, reason);
}

/* What is being written gets on without an event before its end. */
static void watch_queue(struct cm_conn *conn, uint64_t now)
{
    size_t queued = conn->channel.transport->queued(&conn->channel);
    if (conn->queue_seen - queued > conn->charged / 64) {
        conn->queue_seen = queued;
        conn->progress_ms = now;
    }
}

/* A buffer that stands empty, kept for the next large frame. */
static bool should_give_up_buffer(const struct cm_conn *conn, uint64_t now)
{
    const struct cm_budget *budget = &conn->worker->common->budget;
    if (conn->pinned || holds(conn) || conn->input == NULL)
        return false;
    return now - conn->heard_ms >= QUIET_MS || cm_budget_room(budget) < budget->limit / CM_PRESSURE_FREES;
}

static void tick(struct cm_conn *conn, uint64_t now, bool second)
{
    static struct cm_log_limit limit;
    const struct cm_config *config = conn->worker->common->config;
    if (conn->closing)
        return;
    if (conn->unsent)
        watch_queue(conn, now);
    uint64_t stalled = stalled_ms(conn, now);
    uint64_t borrowed = conn->borrows_reserve && !conn->busy ? now - conn->borrowed_ms : 0;
    if (conn->lingering) {
        if (now >= conn->linger_until_ms)
            cm_conn_close(conn, CM_CLOSE_PROTOCOL);
    } else if (conn->peer == NULL && now - conn->opened_ms >= config->greeting_timeout_ms) {
        cm_log_limited(&limit, CM_LOG_INFO, "closed a connection of %s: no greeting within %u ms",
                       conn->admission->identity.name, config->greeting_timeout_ms);
        cm_conn_close(conn, CM_CLOSE_GREETING);
    } else if (stalled >= config->stall_timeout_ms) {
        close_stalled(conn, CM_CLOSE_STALLED, stalled);
    } else if (conn->borrows_reserve && stalled >= BORROWED_STALL_MS) {
        close_stalled(conn, CM_CLOSE_PRESSURE, stalled);
    } else if (borrowed >= BORROWED_MS) {
        cm_log_limited(
            &limit, CM_LOG_WARNING,
            "closed a connection of %s: it took %llu ms to complete a request while memory is short",
            conn->admission->identity.name, (unsigned long long)borrowed);
        cm_conn_close(conn, CM_CLOSE_PRESSURE);
    } else if (conn->goodbye_sent && !waits_for_us(conn) && !conn->unsent &&
               now - conn->heard_ms >= SILENCE_MS) {
        cm_conn_close(conn, CM_CLOSE_DRAIN);
    } else if (should_give_up_buffer(conn, now)) {
        cm_conn_drop_input(conn);
        cm_conn_charge(conn);
    }
    if (second && conn->peer != NULL && !conn->closing && conn->request == NULL)
        cm_service_peer_tick(conn->peer, now);
}

static void relieve(struct cm_worker *worker, uint64_t now)
{
    const struct cm_budget *budget = &worker->common->budget;
    uint64_t room = cm_budget_room(budget);
    if (room >= CM_POOL_SMALLEST)
        return;
    while (room < budget->limit / CM_PRESSURE_FREES) {
        struct cm_conn *worst = NULL;
        uint64_t longest = PRESSURE_STALL_MS;
        for (struct cm_conn *conn = worker->connections; conn != NULL; conn = conn->next) {
            uint64_t stalled = stalled_ms(conn, now);
            if (stalled > longest && conn->charged > 0) {
                longest = stalled;
                worst = conn;
            }
        }
        if (worst == NULL)
            return;
        room += worst->charged;
        close_stalled(worst, CM_CLOSE_PRESSURE, longest);
    }
}

void cm_conn_tick_all(struct cm_worker *worker, bool second)
{
    uint64_t now = uv_now(&worker->loop);
    /* Closing only marks: no connection leaves the list in here. */
    for (struct cm_conn *conn = worker->connections; conn != NULL; conn = conn->next)
        tick(conn, now, second);
    relieve(worker, now);
}

static void resume(struct cm_conn *conn)
{
    conn->starved = false;
    conn->worker->starved--;
    if (!conn->owes || conn->borrows_reserve)
        conn->progress_ms = uv_now(&conn->worker->loop);
    cm_conn_advance(conn);
}

void cm_conn_resume_starved(struct cm_worker *worker, bool all)
{
    struct cm_budget *budget = &worker->common->budget;
    struct cm_conn *first = NULL;
    for (struct cm_conn *conn = worker->connections; conn != NULL; conn = conn->next)
        if (conn->starved && (first == NULL || conn->starved_ms < first->starved_ms))
            first = conn;
    /* Whoever has waited longest may complete at the reserve's expense. */
    if (first != NULL && cm_budget_room(budget) < CM_POOL_SMALLEST && cm_budget_borrow(budget)) {
        cm_conn_borrow(first);
        resume(first);
    }
    for (struct cm_conn *conn = worker->connections; conn != NULL; conn = conn->next)
        if (conn->starved && (all || cm_budget_room(budget) >= CM_POOL_SMALLEST))
            resume(conn);
}

void cm_conn_drain_all(struct cm_worker *worker)
{
    for (struct cm_conn *conn = worker->connections; conn != NULL; conn = conn->next) {
        conn->goodbye_wanted = true;
        cm_conn_advance(conn);
    }
}

void cm_conn_close_all(struct cm_worker *worker)
{
    for (struct cm_conn *conn = worker->connections; conn != NULL; conn = conn->next)
        cm_conn_close(conn, CM_CLOSE_DRAIN);
}
