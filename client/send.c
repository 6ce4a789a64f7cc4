/* SPDX-License-Identifier: Apache-2.0 */
/* Sending: a frame's header is encoded when its turn comes, and its body is gathered from the caller's
 * buffers. */
#include "conn.h"
#include "error.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { RUNS_MAX = 512 }; /* of one sendmsg; below every IOV_MAX in use */

static const uint8_t zeros[CM_SLOT_ALIGN_MAX];

static void fill_columns(const struct cm_request *request, struct cm_columns *columns, struct cm_batch *batch)
{
    size_t ivs = 0, tags = 0, aads = 0;
    for (uint32_t i = 0; i < request->count; i++) {
        const cm_item *item = &request->items[i];
        const uint8_t *iv;
        size_t iv_length = cm_shape_iv(&request->shape, item, &iv);
        columns->lengths[i] = (uint32_t)item->in_length;
        columns->iv_lengths[i] = (uint32_t)iv_length;
        columns->aad_lengths[i] = (uint32_t)cm_shape_aad(&request->shape, item);
        aads += columns->aad_lengths[i];
        if (iv_length > 0)
            memcpy(columns->ivs + ivs, iv, iv_length);
        ivs += iv_length;
        if (request->shape.mode == CM_GCM && request->shape.direction == CM_DECRYPT) {
            memcpy(columns->tags + tags, item->tag, item->tag_length);
            tags += item->tag_length;
        }
    }
    batch->lengths = columns->lengths;
    batch->iv_lengths = ivs > 0 ? columns->iv_lengths : NULL;
    batch->ivs = (struct cm_bytes){columns->ivs, ivs};
    batch->aad_lengths = aads > 0 ? columns->aad_lengths : NULL;
    batch->tags = (struct cm_bytes){columns->tags, tags};
}

static int encode_batch(struct cm_conn *conn, struct cm_request *request)
{
    const struct cm_shape *shape = &request->shape;
    struct cm_batch batch = {
        .request_id = request->id,
        .key_handle = request->key_handle,
        .key_version = shape->key_version,
        .mode = shape->mode,
        .direction = shape->direction,
        .padding = shape->padding,
        .slot_align = shape->slot_align,
        .slot_gap = shape->slot_gap,
        .count = request->count,
    };
    fill_columns(request, &conn->columns, &batch);
    if (shape->part != CM_WIRE_SINGLE) {
        batch.parts = &shape->part;
        batch.operations = &shape->operation;
    }
    request->reply_length = cm_slot_total(&batch);
    request->body_length = request->reply_length;
    for (uint32_t i = 0; batch.aad_lengths != NULL && i < request->count; i++)
        request->body_length += batch.aad_lengths[i];
    return cm_codec_put_batch(&conn->arena, &batch, (uint32_t)request->body_length, conn->out,
                              sizeof conn->out, &conn->out_length);
}

int cm_conn_encode(struct cm_conn *conn, struct cm_request *request)
{
    request->id = conn->next_id + 1;
    int rc;
    if (request->call == NULL) {
        rc = encode_batch(conn, request);
    } else {
        struct cm_call call = *request->call;
        call.request_id = request->id;
        request->body_length = request->key_length;
        rc = cm_codec_put_call(&conn->arena, &call, (uint32_t)request->key_length, conn->out,
                               sizeof conn->out, &conn->out_length);
    }
    if (rc == CM_CODEC_OK)
        conn->next_id++;
    return rc;
}

static size_t add_run(struct iovec *runs, size_t count, const uint8_t *start, size_t length)
{
    if (count > 0 && (const uint8_t *)runs[count - 1].iov_base + runs[count - 1].iov_len == start) {
        runs[count - 1].iov_len += length;
        return count;
    }
    runs[count] = (struct iovec){.iov_base = (void *)(uintptr_t)start, .iov_len = length};
    return count + 1;
}

/* The rest of the frame, as much of it as fits. */
static size_t gather(const struct cm_conn *conn, struct iovec *runs)
{
    size_t count = 0;
    if (conn->out_sent < conn->out_length)
        count = add_run(runs, count, conn->out + conn->out_sent, conn->out_length - conn->out_sent);
    struct cm_position position = conn->send_at;
    const uint8_t *start;
    uint64_t length;
    while (count < RUNS_MAX && (length = cm_request_run(conn->unsent, &position, &start)) > 0) {
        if (start == NULL) {
            start = zeros;
            length = length < sizeof zeros ? length : sizeof zeros;
        }
        count = add_run(runs, count, start, length);
        position.offset += length;
    }
    return count;
}

static void advance(struct cm_conn *conn, size_t sent)
{
    size_t header = conn->out_length - conn->out_sent;
    if (header > sent)
        header = sent;
    conn->out_sent += header;
    sent -= header;
    const uint8_t *start;
    while (sent > 0) {
        uint64_t length = cm_request_run(conn->unsent, &conn->send_at, &start);
        if (length > sent)
            length = sent;
        conn->send_at.offset += length;
        sent -= length;
    }
}

static bool all_sent(struct cm_conn *conn)
{
    const uint8_t *start;
    return conn->out_sent == conn->out_length && cm_request_run(conn->unsent, &conn->send_at, &start) == 0;
}

static void drop_unsent(struct cm_conn *conn)
{
    struct cm_request *request = conn->unsent;
    cm_fail(&request->error, CM_ERR_TOO_LARGE, CM_RETRY_FINAL,
            "the request's header is over the limit of %u bytes", conn->limits.header_bytes);
    cm_conn_remove(conn, request);
}

static bool start_frame(struct cm_conn *conn)
{
    conn->out_sent = 0;
    conn->send_at = (struct cm_position){0};
    cm_arena_reset(&conn->arena);
    conn->encoded = cm_conn_encode(conn, conn->unsent) == CM_CODEC_OK;
    if (!conn->encoded)
        drop_unsent(conn);
    return conn->encoded;
}

/* Sends from the current frame. > 0: bytes; 0: the socket is full; < 0: the connection broke. */
static ssize_t send_some(struct cm_conn *conn)
{
    struct iovec runs[RUNS_MAX];
    struct msghdr message = {.msg_iov = runs, .msg_iovlen = gather(conn, runs)};
    ssize_t sent;
    do {
        sent = sendmsg(conn->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    if (sent >= 0)
        return sent;
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS)
        return 0;
    int number = errno;
    /* What the daemon said before it closed (a goodbye, a refusal, replies) may still lie in the socket. */
    while (!conn->broken && cm_conn_receive(conn))
        continue;
    char memory[80];
    cm_conn_break(conn, CM_ERR_DISCONNECTED, "the connection to %.150s broke while sending: %s", conn->uri,
                  cm_errno_text(number, memory, sizeof memory));
    return -1;
}

void cm_conn_send(struct cm_conn *conn)
{
    while (!conn->broken && conn->unsent != NULL) {
        if (!conn->encoded && !start_frame(conn))
            continue;
        ssize_t sent = send_some(conn);
        if (sent <= 0)
            return;
        advance(conn, (size_t)sent);
        if (all_sent(conn)) {
            conn->unsent->sent = true;
            conn->unsent = conn->unsent->next;
            conn->encoded = false;
        }
    }
}
