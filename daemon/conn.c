/* SPDX-License-Identifier: Apache-2.0 */
/* A connection's life: opening, reading, parsing, memory, closing. conn_all.c has what concerns all of them.
 */
#include "conn.h"

#include "log.h"
#include "request.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    OWN_BYTES_LEAST =
        64 * 1024, /* of a buffer that a connection gets for itself: cheap, as only touched pages cost */
    WINDOW_LEAST = 4096, /* a read of less is not worth its system call */
    LINGER_MS = 1000,
};

static struct cm_conn *conn_of(struct cm_channel *channel)
{
    return (struct cm_conn *)(void *)((char *)channel - offsetof(struct cm_conn, channel));
}

static uint64_t now_ms(const struct cm_conn *conn)
{
    return uv_now(&conn->worker->loop);
}

static struct cm_budget *budget_of(struct cm_conn *conn)
{
    return &conn->worker->common->budget;
}

/* --- Memory -----------------------------------------------------------------------------------------------
 */

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

static void give_back_reserve(struct cm_conn *conn)
{
    if (conn->borrows_reserve)
        cm_budget_give_back(budget_of(conn));
    conn->borrows_reserve = false;
}

static void drop_input(struct cm_conn *conn)
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
    drop_input(conn);
    conn->input = own;
    conn->end = rest;
    conn->wanted = wanted;
    return true;
}

/* Between events: the worker's spare buffer goes back to it, what is left of the input moves to where the
 * rest of its frame has room, and what nobody needs is returned. */
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
        /* Large buffers stay for the next large frame, which is then read straight into it; the tick takes
         * them from a connection that has gone quiet. */
        if (conn->borrowed || conn->input->capacity <= CM_SPARE_BYTES || conn->closing || conn->lingering)
            drop_input(conn);
        else
            conn->start = conn->end = conn->wanted = 0;
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
    return missing <= waiting && total <= sendable ? missing : 0;
}

/* How much may be read now into `space` bytes; 0: wait for room. */
static size_t read_window(struct cm_conn *conn, size_t space)
{
    uint64_t own_limit = conn->worker->common->config->limits.inflight_bytes;
    uint64_t own_room = conn->charged < own_limit ? own_limit - conn->charged : 0;
    uint64_t room = cm_budget_room(budget_of(conn));
    if (room > own_room)
        room = own_room;
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

/* --- Events of the channel --------------------------------------------------------------------------------
 */

static void on_room(struct cm_channel *channel, uv_buf_t *ret_room)
{
    struct cm_conn *conn = conn_of(channel);
    cm_worker_woke(conn->worker);
    struct cm_buffer *into = conn->input != NULL ? conn->input : cm_worker_spare(conn->worker);
    if (into == NULL)
        return;
    size_t space = into->capacity - conn->end;
    size_t window = conn->lingering ? space : read_window(conn, space);
    *ret_room = uv_buf_init((char *)into->data + conn->end, (unsigned)window);
}

/* Progress is in proportion to what is held: a byte now and then does not keep a large buffer. */
static void note_progress(struct cm_conn *conn, uint64_t bytes)
{
    conn->moved += bytes;
    if (conn->moved > conn->charged / 64) {
        conn->moved = 0;
        conn->progress_ms = now_ms(conn);
    }
}

static void update_reading(struct cm_conn *conn)
{
    bool want = !conn->closing && !conn->starved && (conn->lingering || (!conn->busy && !conn->unsent));
    if (want == conn->reading || conn->closing)
        return;
    conn->reading = want;
    if (!want)
        conn->channel.transport->read_stop(&conn->channel);
    else if (conn->channel.transport->read_start(&conn->channel) != 0)
        cm_conn_close(conn, CM_CLOSE_PEER);
}

static void on_received(struct cm_channel *channel, ssize_t length)
{
    struct cm_conn *conn = conn_of(channel);
    if (conn->closing)
        return;
    if (length == UV_ENOBUFS) {
        conn->starved = true;
        if (conn->starved_ms == 0)
            conn->starved_ms = now_ms(conn);
        conn->worker->starved++;
        cm_worker_hurry(conn->worker);
        update_reading(conn);
        return;
    }
    if (length < 0) {
        cm_conn_close(conn, CM_CLOSE_PEER);
        return;
    }
    conn->heard_ms = now_ms(conn);
    conn->starved_ms = 0;
    if (conn->input == NULL) {
        conn->input = conn->worker->spare;
        conn->borrowed = true;
        conn->start = conn->end = conn->wanted = 0;
    }
    conn->end += (size_t)length;
    cm_buffer_touch(conn->input, conn->end);
    note_progress(conn, (uint64_t)length);
    cm_conn_advance(conn);
}

static void on_written(struct cm_channel *channel, int status)
{
    struct cm_conn *conn = conn_of(channel);
    cm_worker_woke(conn->worker);
    cm_output_written(conn, status);
    if (conn->closing)
        return;
    if (conn->lingering)
        conn->channel.transport->end(&conn->channel);
    cm_request_resume(conn);
    cm_conn_advance(conn);
}

static void on_closed(struct cm_channel *channel)
{
    struct cm_conn *conn = conn_of(channel);
    cm_worker_woke(conn->worker);
    conn->closed = true;
    cm_conn_release(conn);
}

static const struct cm_channel_events events = {on_room, on_received, on_written, on_closed};

/* --- Going on ---------------------------------------------------------------------------------------------
 */

static bool may_go_on(const struct cm_conn *conn)
{
    return !conn->closing && !conn->lingering && !conn->busy && !conn->unsent;
}

/* True if a whole frame stands at the start. */
static bool next_frame(struct cm_conn *conn, struct cm_frame *ret_frame)
{
    const struct cm_limits *limits = &conn->worker->common->config->limits;
    size_t available = conn->end - conn->start;
    if (available == 0)
        return false;
    int rc = cm_frame_parse(conn->input->data + conn->start, available, limits->header_bytes,
                            limits->frame_bytes, ret_frame);
    if (rc == CM_FRAME_MORE) {
        conn->wanted = CM_FRAME_PREFIX_BYTES;
        return false;
    }
    if (rc != CM_FRAME_OK) {
        if (cm_output_ready(conn))
            cm_request_bad_frame(conn, rc, ret_frame);
        return false;
    }
    conn->wanted = cm_frame_total(ret_frame);
    return available >= conn->wanted;
}

static void answer_frames(struct cm_conn *conn)
{
    struct cm_frame frame;
    while (may_go_on(conn)) {
        if (conn->goodbye_wanted && !conn->goodbye_sent) {
            if (cm_output_ready(conn))
                cm_request_goodbye(conn);
            continue;
        }
        if (!next_frame(conn, &frame))
            break;
        /* A call may be answered later; then nothing of before may still be waiting here. */
        if (frame.type == CM_FRAME_CALL)
            cm_output_flush(conn);
        if (!may_go_on(conn) || !cm_output_ready(conn))
            break;
        uint8_t *bytes = conn->input->data + conn->start;
        conn->start += conn->wanted;
        conn->wanted = 0;
        give_back_reserve(conn);
        cm_request_handle(conn, &frame, bytes);
    }
}

void cm_conn_advance(struct cm_conn *conn)
{
    answer_frames(conn);
    cm_output_flush(conn);
    settle_input(conn);
    cm_conn_charge(conn);
    update_reading(conn);
}

void cm_conn_linger(struct cm_conn *conn)
{
    conn->lingering = true;
    conn->linger_until_ms = now_ms(conn) + LINGER_MS;
    cm_output_flush(conn);
    if (!conn->unsent && !conn->closing)
        conn->channel.transport->end(&conn->channel);
}

/* --- Opening and closing ----------------------------------------------------------------------------------
 */

void cm_conn_admit(struct cm_inbox_item *item, void *owner)
{
    struct cm_admission *admission = (struct cm_admission *)(void *)item;
    struct cm_worker *worker = owner;
    struct cm_conn *conn = worker->closing ? NULL : calloc(1, sizeof *conn);
    item->run = admission->departed;
    if (conn == NULL) {
        close(admission->fd);
        cm_common_post_main(worker->common, item);
        return;
    }
    conn->worker = worker;
    conn->admission = admission;
    conn->channel.transport = admission->transport;
    conn->channel.events = &events;
    conn->opened_ms = conn->heard_ms = conn->progress_ms = now_ms(conn);
    conn->next = worker->connections;
    if (conn->next != NULL)
        conn->next->previous = conn;
    worker->connections = conn;
    if (conn->channel.transport->open(&conn->channel, &worker->loop, admission->fd) != 0) {
        cm_conn_close(conn, CM_CLOSE_PEER);
        return;
    }
    conn->goodbye_wanted = worker->draining;
    cm_conn_advance(conn);
}

void cm_conn_close(struct cm_conn *conn, enum cm_close_reason reason)
{
    if (conn->closing)
        return;
    conn->closing = true;
    cm_metrics_add(&conn->worker->metrics.closed[reason], 1);
    if (conn->starved)
        conn->worker->starved--;
    conn->starved = false;
    give_back_reserve(conn);
    conn->channel.transport->close(&conn->channel);
}

void cm_conn_release(struct cm_conn *conn)
{
    struct cm_worker *worker = conn->worker;
    if (!conn->closed || conn->request != NULL)
        return;
    if (conn->peer != NULL)
        cm_service_peer_free(conn->peer);
    drop_input(conn);
    cm_pool_put(&worker->pool, conn->kept);
    conn->kept = NULL;
    cm_conn_charge(conn);
    if (conn->next != NULL)
        conn->next->previous = conn->previous;
    if (conn->previous != NULL)
        conn->previous->next = conn->next;
    else
        worker->connections = conn->next;
    cm_common_post_main(worker->common, &conn->admission->item);
    free(conn);
}
