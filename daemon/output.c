/* SPDX-License-Identifier: Apache-2.0 */
/* Replies on their way out: gathered while one read is answered, written at once, kept where they can't be.
 */
#include "output.h"

#include "conn.h"

#include <assert.h>
#include <string.h>

/* Up to here what can't leave is copied: then a slow reader holds what it has not read, and no whole buffer.
 */
enum { COPY_MAX = 64 * 1024 };

bool cm_output_ready(struct cm_conn *conn)
{
    struct cm_output *output = &conn->worker->output;
    if (output->count + 2 > CM_OUTPUT_PARTS ||
        output->headers_used + CM_OUTPUT_HEADER_MAX > CM_OUTPUT_HEADER_BYTES)
        cm_output_flush(conn);
    if (conn->unsent || conn->closing)
        return false;
    if (output->headers == NULL) {
        output->headers = cm_pool_take(&conn->worker->pool, CM_OUTPUT_HEADER_BYTES);
        if (output->headers == NULL) {
            cm_conn_close(conn, CM_CLOSE_PRESSURE);
            return false;
        }
    }
    return true;
}

uint8_t *cm_output_header(struct cm_conn *conn)
{
    struct cm_output *output = &conn->worker->output;
    return output->headers->data + output->headers_used;
}

void cm_output_add(struct cm_conn *conn, size_t header_length, const uint8_t *body, size_t body_length)
{
    struct cm_output *output = &conn->worker->output;
    assert(header_length <= CM_OUTPUT_HEADER_MAX && output->count + 2 <= CM_OUTPUT_PARTS);
    uint8_t *header = cm_output_header(conn);
    output->headers_used += header_length;
    cm_buffer_touch(output->headers, output->headers_used);
    output->parts[output->count++] = uv_buf_init((char *)header, (unsigned)header_length);
    if (body_length != 0)
        output->parts[output->count++] = uv_buf_init((char *)(uintptr_t)body, (unsigned)body_length);
    output->bytes += header_length + body_length;
}

static void output_reset(struct cm_output *output)
{
    output->count = 0;
    output->bytes = 0;
    output->headers_used = 0;
}

/* Drops the first `length` bytes; returns the first part that is left. */
static unsigned skip(struct cm_output *output, size_t length)
{
    unsigned first = 0;
    while (length >= output->parts[first].len)
        length -= output->parts[first++].len;
    output->parts[first].base += length;
    output->parts[first].len -= length;
    return first;
}

static bool copy_rest(struct cm_conn *conn, unsigned first, size_t rest)
{
    struct cm_output *output = &conn->worker->output;
    conn->kept = cm_pool_take(&conn->worker->pool, rest);
    if (conn->kept == NULL)
        return false;
    size_t at = 0;
    for (unsigned i = first; i < output->count; i++) {
        memcpy(conn->kept->data + at, output->parts[i].base, output->parts[i].len);
        at += output->parts[i].len;
    }
    cm_buffer_touch(conn->kept, at);
    output->parts[first] = uv_buf_init((char *)conn->kept->data, (unsigned)at);
    output->count = first + 1;
    return true;
}

static void keep_rest(struct cm_conn *conn, size_t written)
{
    struct cm_output *output = &conn->worker->output;
    size_t rest = output->bytes - written;
    unsigned first = skip(output, written);
    if (rest <= COPY_MAX) {
        if (!copy_rest(conn, first, rest)) {
            cm_conn_close(conn, CM_CLOSE_PRESSURE);
            return;
        }
    } else {
        /* The headers' buffer goes along; the bodies stay in the input, which must not move. */
        conn->kept = output->headers;
        output->headers = NULL;
        conn->pinned = true;
    }
    int rc = conn->channel.transport->write(&conn->channel, &output->parts[first], output->count - first);
    if (rc != 0) {
        cm_conn_close(conn, CM_CLOSE_PEER);
        return;
    }
    conn->unsent = true;
    conn->queue_seen = rest;
    conn->progress_ms = uv_now(&conn->worker->loop);
    conn->moved = 0;
}

void cm_output_flush(struct cm_conn *conn)
{
    struct cm_output *output = &conn->worker->output;
    if (output->count == 0)
        return;
    assert(!conn->unsent);
    if (!conn->closing) {
        ssize_t written = conn->channel.transport->try_write(&conn->channel, output->parts, output->count);
        if (written < 0 && written != UV_EAGAIN)
            cm_conn_close(conn, CM_CLOSE_PEER);
        else if (written < 0 || (size_t)written < output->bytes)
            keep_rest(conn, written < 0 ? 0 : (size_t)written);
    }
    output_reset(output);
}

void cm_output_written(struct cm_conn *conn, int status)
{
    conn->unsent = false;
    cm_pool_put(&conn->worker->pool, conn->kept);
    conn->kept = NULL;
    if (conn->request == NULL)
        conn->pinned = false;
    if (status < 0)
        cm_conn_close(conn, CM_CLOSE_PEER);
    conn->progress_ms = uv_now(&conn->worker->loop);
}
