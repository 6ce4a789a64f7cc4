/* SPDX-License-Identifier: Apache-2.0 */
/* A connection's received bytes: where they stand, what they cost, and how many more may come. */
#include "conn.h"

#include <assert.h>
#include <string.h>

enum {
    OWN_BYTES_LEAST =
        64 * 1024, /* of a buffer that a connection gets for itself: cheap, as only touched pages cost */
    WINDOW_LEAST = 4096,    /* a read of less is not worth its system call */
    WAITING_ENOUGH = 16384, /* bytes in a socket that say: the peer waits for us, not we for it */
};

static struct cm_budget *budget_of(struct cm_conn *conn)
{
    return &conn->worker->common->budget;
}

void cm_conn_charge(struct cm_conn *conn)
{
    uint64_t now = 0;
    if (conn->input != NULL && !conn->borrowed)
        now += conn->input->committed;
    if (conn->kept != NULL)
        now += conn->kept->committed;
    if (conn->arena_buffer != NULL)
        now += conn->arena_buffer->committed;
    cm_budget_charge(budget_of(conn), &conn->charged, now);
}

void cm_conn_borrow(struct cm_conn *conn)
{
    conn->borrows_reserve = true;
    conn->borrowed_enough = false;
    conn->borrowed_ms = uv_now(&conn->worker->loop);
}

void cm_conn_give_back(struct cm_conn *conn)
{
    if (conn->borrows_reserve)
        cm_budget_give_back(budget_of(conn));
    conn->borrows_reserve = false;
}

void cm_conn_drop_input(struct cm_conn *conn)
{
    if (!conn->borrowed)
        cm_pool_put(&conn->worker->pool, conn->input);
    conn->input = NULL;
    conn->borrowed = false;
    conn->start = conn->end = conn->wanted = 0;
}

/* The worker's spare buffer becomes this connection's own. */
static void adopt_spare(struct cm_conn *conn)
{
    assert(conn->input == conn->worker->spare);
    conn->worker->spare = NULL;
    conn->borrowed = false;
}

static bool move_input(struct cm_conn *conn, size_t need)
{
    size_t rest = conn->end - conn->start;
    struct cm_buffer *own =
        cm_pool_take(&conn->worker->pool, need > OWN_BYTES_LEAST ? need : OWN_BYTES_LEAST);
    if (own == NULL)
        return false;
    memcpy(own->data, conn->input->data + conn->start, rest);
    cm_buffer_touch(own, rest);
    size_t wanted = conn->wanted;
    cm_conn_drop_input(conn);
    conn->input = own;
    conn->end = rest;
    conn->wanted = wanted;
    return true;
}

/* Large buffers stay for the next large frame, which is then read straight into it; the tick takes them from
 * a connection that has gone quiet. But not while others may soon need the memory. */
static bool may_keep_empty(struct cm_conn *conn)
{
    const struct cm_budget *budget = budget_of(conn);
    return !conn->borrowed && conn->input->capacity > CM_SPARE_BYTES && !conn->closing && !conn->lingering &&
           cm_budget_room(budget) >= budget->limit / CM_PRESSURE_FREES;
}

static void settle_input(struct cm_conn *conn)
{
    if (conn->input == NULL)
        return;
    if (conn->pinned) {
        if (conn->borrowed)
            adopt_spare(conn);
        return;
    }
    size_t rest = conn->end - conn->start;
    if (rest == 0 || conn->closing || conn->lingering) {
        if (may_keep_empty(conn))
            conn->start = conn->end = conn->wanted = 0;
        else
            cm_conn_drop_input(conn);
        return;
    }
    size_t need = rest > conn->wanted ? rest : conn->wanted;
    if (!conn->borrowed && conn->start + need <= conn->input->capacity)
        return;
    if (!conn->borrowed && need <= conn->input->capacity) {
        memmove(conn->input->data, conn->input->data + conn->start, rest);
        conn->start = 0;
        conn->end = rest;
        return;
    }
    if (!move_input(conn, need))
        cm_conn_close(conn, CM_CLOSE_PRESSURE);
}

void cm_conn_settle(struct cm_conn *conn)
{
    settle_input(conn);
    cm_conn_charge(conn);
    /* Not when the frame is complete, but when what it took is free again: else the next one would borrow
     * what is still in use, and there would be no limit. */
    if (conn->borrowed_enough && !conn->busy && !conn->unsent)
        cm_conn_give_back(conn);
}

/* While memory is short, what can be finished at once is begun all the same: a frame of which everything that
 * is missing already waits in the socket, if its reply will fit there too. Nothing of it stays, so nobody who
 * holds memory keeps small requests of others from being served. 0: there is no such frame. */
static size_t finishable(struct cm_conn *conn)
{
    const struct cm_limits *limits = &conn->worker->common->config->limits;
    size_t held = conn->end - conn->start, waiting, sendable;
    uint8_t prefix[CM_FRAME_PREFIX_BYTES];
    struct cm_frame frame;
    ssize_t there = conn->channel.transport->peek(&conn->channel, prefix, sizeof prefix, &waiting, &sendable);
    conn->owes = false;
    if (there < 0)
        return 0;
    if (there == 0)
        return CM_FRAME_PREFIX_BYTES; /* a read will find nothing, or the end */
    size_t total = conn->wanted;
    if (held == 0) {
        int rc = cm_frame_parse(prefix, (size_t)there, limits->header_bytes, limits->frame_bytes, &frame);
        if (rc == CM_FRAME_MORE)
            return 0;
        if (rc != CM_FRAME_OK)
            return CM_FRAME_PREFIX_BYTES; /* will be refused */
        total = cm_frame_total(&frame);
    }
    size_t missing = total - held;
    conn->owes = waiting < missing && waiting < WAITING_ENOUGH;
    return missing <= waiting && total <= sendable ? missing : 0;
}

size_t cm_conn_window(struct cm_conn *conn, size_t space)
{
    uint64_t own_limit = conn->worker->common->config->limits.inflight_bytes;
    uint64_t own_room = conn->charged < own_limit ? own_limit - conn->charged : 0;
    uint64_t room = cm_budget_room(budget_of(conn));
    if (room > own_room)
        room = own_room;
    /* What was written once is paid for. */
    if (conn->input != NULL && !conn->borrowed && conn->input->committed > conn->end)
        room += conn->input->committed - conn->end;
    size_t useful = space < WINDOW_LEAST ? space : WINDOW_LEAST;
    if (room >= useful)
        return room < space ? (size_t)room : space;
    size_t held = conn->end - conn->start;
    size_t window;
    if (conn->borrows_reserve)
        window = conn->wanted > held ? conn->wanted - held : CM_FRAME_PREFIX_BYTES;
    else
        window = finishable(conn);
    return window < space ? window : space;
}
