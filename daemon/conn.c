/* SPDX-License-Identifier: Apache-2.0 */
/* A connection's life: opening, reading, parsing, closing. conn_input.c has its memory, conn_all.c what
 * concerns all connections. */
#include "conn.h"

#include "log.h"
#include "request.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LINGER_MS = 1000,
    TURN_NS = 1000000, /* whoever has been served for this long lets the others go first */
};

static struct cm_conn *conn_of(struct cm_channel *channel)
{
    return (struct cm_conn *)(void *)((char *)channel - offsetof(struct cm_conn, channel));
}

static uint64_t now_ms(const struct cm_conn *conn)
{
    return uv_now(&conn->worker->loop);
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
    size_t window = conn->lingering ? space : cm_conn_window(conn, space);
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
    bool want = !conn->closing && !conn->starved && !conn->waits_turn &&
                (conn->lingering || (!conn->busy && !conn->unsent));
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
    /* A job whose reply had to wait for this ends here even if there will be no reply any more. */
    cm_request_resume(conn);
    if (conn->closing)
        return;
    if (conn->lingering)
        conn->channel.transport->end(&conn->channel);
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

/* --- Turns: a client that always has more to ask must not keep its worker to itself. A turn is what a
 * connection gets in one round of the loop; it ends between requests, and the time is that of the last one's
 * beginning, which was read anyhow. --- */

static bool turn_is_over(struct cm_conn *conn)
{
    if (conn->turn_round != conn->worker->round) {
        conn->turn_round = conn->worker->round;
        conn->turn_ns = 0;
    }
    return conn->turn_ns != 0 && conn->begun_ns - conn->turn_ns >= TURN_NS;
}

static void answer_frames(struct cm_conn *conn)
{
    struct cm_frame frame;
    while (may_go_on(conn) && !turn_is_over(conn)) {
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
        conn->borrowed_enough = true;
        cm_request_handle(conn, &frame, bytes);
        if (conn->turn_ns == 0)
            conn->turn_ns = conn->begun_ns;
    }
}

void cm_conn_advance(struct cm_conn *conn)
{
    answer_frames(conn);
    cm_output_flush(conn);
    cm_conn_settle(conn);
    if (may_go_on(conn) && turn_is_over(conn))
        cm_worker_wait_turn(conn->worker, conn);
    update_reading(conn);
}

void cm_conn_linger(struct cm_conn *conn)
{
    conn->lingering = true;
    conn->linger_until_ms = now_ms(conn) + LINGER_MS;
    cm_conn_give_back(conn);
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
    cm_conn_give_back(conn);
    conn->channel.transport->close(&conn->channel);
}

void cm_conn_release(struct cm_conn *conn)
{
    struct cm_worker *worker = conn->worker;
    if (!conn->closed || conn->request != NULL)
        return;
    if (conn->peer != NULL)
        cm_service_peer_free(conn->peer);
    cm_worker_leave_turn(worker, conn);
    cm_conn_drop_input(conn);
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
