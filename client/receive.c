/* SPDX-License-Identifier: Apache-2.0 */
/* Receiving: headers through a small buffer, bodies straight into the callers' output buffers. */
#include "conn.h"
#include "error.h"
#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    RUNS_MAX = 512,
    /* What is read ahead before a large body is copied once more, so it is kept short. */
    READ_AHEAD_BYTES = 4096,
    LARGE_BODY_BYTES = 16384
};

static size_t staged(const struct cm_conn *conn)
{
    return conn->in_end - conn->in_start;
}

/* Moves what was read ahead of the body's end into the output. True if the body got further. */
static bool take_body(struct cm_conn *conn)
{
    struct cm_request *request = conn->first;
    uint8_t *start;
    uint64_t length = cm_reply_run(request, &conn->receive_at, &start);
    if (length == 0) {
        conn->in_body = false;
        cm_error_clear(&request->error);
        cm_conn_remove(conn, request);
        return true;
    }
    if (length > staged(conn))
        length = staged(conn);
    if (start != NULL && length > 0)
        memcpy(start, conn->in + conn->in_start, length);
    conn->in_start += length;
    conn->receive_at.offset += length;
    return length > 0;
}

static void break_over_prefix(struct cm_conn *conn, int rc)
{
    static const char *const texts[] = {
        [-CM_FRAME_BAD_MAGIC] = "it is no frame",
        [-CM_FRAME_BAD_VERSION] = "its version changed",
        [-CM_FRAME_BAD_RESERVED] = "a reserved byte is set",
        [-CM_FRAME_TOO_LARGE] = "it is over the limits",
    };
    cm_conn_break(conn, CM_ERR_PROTOCOL, "%.150s sent what breaks the protocol: %s", conn->uri, texts[-rc]);
}

/* True if a whole header was taken. */
static bool take_header(struct cm_conn *conn)
{
    struct cm_frame frame;
    const uint8_t *at = conn->in + conn->in_start;
    /* A body is bounded by the request that it answers, and nothing is allocated for it. */
    int rc = cm_frame_parse(at, staged(conn), CM_HEADER_LIMIT, SIZE_MAX, &frame);
    if (rc == CM_FRAME_MORE)
        return false;
    if (rc != CM_FRAME_OK) {
        break_over_prefix(conn, rc);
        return false;
    }
    size_t offset = cm_frame_body_offset(frame.header_length);
    if (staged(conn) < offset)
        return false;
    conn->in_start += offset;
    cm_conn_on_header(conn, &frame, at + CM_FRAME_PREFIX_BYTES);
    return true;
}

/* The rest of the body, and read-ahead behind it if all of it fits. *ret_body: bytes of the body. */
static size_t scatter(struct cm_conn *conn, struct iovec *runs, size_t *ret_body)
{
    size_t count = 0, body = 0;
    struct cm_position position = conn->receive_at;
    uint8_t *start;
    uint64_t length;
    while (count < RUNS_MAX && (length = cm_reply_run(conn->first, &position, &start)) > 0) {
        if (start == NULL) {
            start = conn->trash;
            length = length < sizeof conn->trash ? length : sizeof conn->trash;
        }
        if (count > 0 && (uint8_t *)runs[count - 1].iov_base + runs[count - 1].iov_len == start)
            runs[count - 1].iov_len += length;
        else
            runs[count++] = (struct iovec){.iov_base = start, .iov_len = length};
        position.offset += length;
        body += length;
    }
    if (count < RUNS_MAX)
        runs[count++] = (struct iovec){.iov_base = conn->in, .iov_len = READ_AHEAD_BYTES};
    *ret_body = body;
    return count;
}

static void advance(struct cm_conn *conn, size_t received)
{
    uint8_t *start;
    while (received > 0) {
        uint64_t length = cm_reply_run(conn->first, &conn->receive_at, &start);
        if (length > received)
            length = received;
        conn->receive_at.offset += length;
        received -= length;
    }
}

/* Both readers: bytes, 0 at the end of the stream, < 0 with errno. *ret_drained: the socket gave less than
 * asked. */
static ssize_t read_body(struct cm_conn *conn, bool *ret_drained)
{
    struct iovec runs[RUNS_MAX];
    size_t body;
    size_t count = scatter(conn, runs, &body);
    size_t asked = 0;
    for (size_t i = 0; i < count; i++)
        asked += runs[i].iov_len;
    ssize_t got = readv(conn->fd, runs, (int)count);
    if (got <= 0)
        return got;
    *ret_drained = (size_t)got < asked;
    size_t of_body = (size_t)got < body ? (size_t)got : body;
    advance(conn, of_body);
    conn->in_end = (size_t)got - of_body;
    return got;
}

static ssize_t read_header(struct cm_conn *conn, bool *ret_drained)
{
    memmove(conn->in, conn->in + conn->in_start, staged(conn));
    conn->in_end = staged(conn);
    conn->in_start = 0;
    size_t asked = sizeof conn->in - conn->in_end;
    const struct cm_request *next = conn->first;
    if (next != NULL && next->call == NULL && next->reply_length > LARGE_BODY_BYTES && conn->in_end == 0)
        asked = READ_AHEAD_BYTES;
    ssize_t got = read(conn->fd, conn->in + conn->in_end, asked);
    if (got <= 0)
        return got;
    *ret_drained = (size_t)got < asked;
    conn->in_end += (size_t)got;
    return got;
}

/* True if bytes came. */
static bool read_some(struct cm_conn *conn, bool *ret_drained)
{
    ssize_t got;
    if (conn->in_start == conn->in_end)
        conn->in_start = conn->in_end = 0;
    do {
        got = conn->in_body ? read_body(conn, ret_drained) : read_header(conn, ret_drained);
    } while (got < 0 && errno == EINTR);
    if (got > 0)
        return true;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return false;
    char memory[80];
    cm_conn_break(conn, CM_ERR_DISCONNECTED, "the connection to %.150s ended: %s", conn->uri,
                  got == 0 ? "closed by the daemon" : cm_errno_text(errno, memory, sizeof memory));
    return false;
}

bool cm_conn_receive(struct cm_conn *conn)
{
    bool moved = false, drained = false;
    while (!conn->broken) {
        if (conn->in_body ? take_body(conn) : take_header(conn))
            continue;
        if (conn->broken || drained || !read_some(conn, &drained))
            break;
        moved = true;
    }
    return moved;
}
