/* SPDX-License-Identifier: Apache-2.0 */
/* Connecting and greeting, and telling apart what may answer in a daemon's place. */
#include "clock.h"
#include "conn.h"
#include "error.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const uint8_t magic[4] = {'C', 'M', 'I', 'L'};
static const char http_request[] = "GET / HTTP/1.0\r\n\r\n";

static int send_hello(struct cm_conn *conn, const uint8_t *token, const char *program, cm_error *error)
{
    const struct cm_hello hello = {
        .version_min = CM_PROTOCOL_VERSION,
        .version_max = CM_PROTOCOL_VERSION,
        .session_token = {token, token != NULL ? CM_TOKEN_BYTES : 0},
        .client = program,
    };
    if (cm_codec_put_hello(&conn->arena, &hello, conn->out, sizeof conn->out, &conn->out_length) !=
        CM_CODEC_OK)
        return cm_fail_code(error, CM_ERR_ARGUMENT, "the program's name is too long for a greeting");
    ssize_t sent;
    do {
        sent = send(conn->fd, conn->out, conn->out_length, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    /* A new socket takes a few hundred bytes at once, or the other side is gone, which the reading tells
     * better. */
    if (sent >= 0 && (size_t)sent != conn->out_length)
        return cm_fail(error, CM_ERR_DISCONNECTED, CM_RETRY_NOT_EXECUTED, "%.150s takes no greeting",
                       conn->uri);
    return 0;
}

static int fail_foreign(struct cm_conn *conn, const uint8_t *bytes, size_t length, cm_error *error)
{
    bool http = length >= 5 && memcmp(bytes, "HTTP/", 5) == 0;
    return cm_fail_code(error, CM_ERR_NOT_CIPHERMILL, "%s answers at %.150s, not a ciphermilld",
                        http ? "an HTTP server" : "something else", conn->uri);
}

static int fail_version(struct cm_conn *conn, unsigned theirs_min, unsigned theirs_max, cm_error *error)
{
    bool mine_is_old = theirs_min > CM_PROTOCOL_VERSION;
    return cm_fail_code(error, CM_ERR_VERSION_MISMATCH,
                        "the daemon at %.100s speaks protocol %u to %u, this client %u: upgrade the %s",
                        conn->uri, theirs_min, theirs_max, (unsigned)CM_PROTOCOL_VERSION,
                        mine_is_old ? "client" : "daemon");
}

/* An HTTP server waits for the end of a line that a greeting has not. So when nothing came for half of the
 * time, a connection of its own asks in HTTP; the one that greets is left in peace, in case the daemon is
 * only slow. */
static int open_probe(const struct cm_endpoint *endpoint, int64_t deadline_ms)
{
    int fd;
    if (endpoint->transport->connect(endpoint, deadline_ms, &fd, NULL) != 0)
        return -1;
    (void)!send(fd, http_request, sizeof http_request - 1, MSG_NOSIGNAL);
    return fd;
}

/* 0: go on waiting. *fd is closed, and -1, when it has nothing more to say. */
static int read_probe(struct cm_conn *conn, int *fd, cm_error *error)
{
    uint8_t bytes[16];
    ssize_t got = recv(*fd, bytes, sizeof bytes, 0);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    close(*fd);
    *fd = -1;
    size_t compare = got < (ssize_t)sizeof magic ? (size_t)(got > 0 ? got : 0) : sizeof magic;
    if (memcmp(bytes, magic, compare) != 0)
        return fail_foreign(conn, bytes, (size_t)got, error);
    return 0;
}

/* 1: a whole header is in `in`; 0: not yet; < 0: failed. */
static int check_greeting(struct cm_conn *conn, struct cm_frame *frame, cm_error *error)
{
    size_t compare = conn->in_end < sizeof magic ? conn->in_end : sizeof magic;
    if (memcmp(conn->in, magic, compare) != 0)
        return fail_foreign(conn, conn->in, conn->in_end, error);
    int rc = cm_frame_parse(conn->in, conn->in_end, CM_HEADER_LIMIT, CM_CONN_FRAME_BYTES, frame);
    if (rc == CM_FRAME_MORE)
        return 0;
    if (rc == CM_FRAME_BAD_VERSION)
        return fail_version(conn, frame->version, frame->version, error);
    if (rc != CM_FRAME_OK || frame->body_length != 0)
        return cm_fail(error, CM_ERR_PROTOCOL, CM_RETRY_FINAL,
                       "%.150s sent a greeting that is no valid frame", conn->uri);
    return conn->in_end >= cm_frame_body_offset(frame->header_length);
}

/* As check_greeting, after reading what is there. */
static int read_greeting(struct cm_conn *conn, struct cm_frame *frame, cm_error *error)
{
    ssize_t got = recv(conn->fd, conn->in + conn->in_end, sizeof conn->in - conn->in_end, 0);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (got <= 0)
        return cm_fail(error, CM_ERR_DISCONNECTED, CM_RETRY_NOT_EXECUTED,
                       "%.150s closed the connection before the greeting: it is ending, or no ciphermilld",
                       conn->uri);
    conn->in_end += (size_t)got;
    return check_greeting(conn, frame, error);
}

static int await_greeting(const struct cm_endpoint *endpoint, struct cm_conn *conn, int64_t deadline_ms,
                          struct cm_frame *frame, cm_error *error)
{
    int64_t probe_at_ms = cm_now_ms() + cm_left_ms(deadline_ms) / 2;
    bool probed = false;
    int probe = -1, rc = 0;
    while (rc == 0) {
        bool may_probe = !probed && conn->in_end == 0;
        struct pollfd wait[2] = {{.fd = conn->fd, .events = POLLIN}, {.fd = probe, .events = POLLIN}};
        int ready = poll(wait, 2, cm_left_ms(may_probe ? probe_at_ms : deadline_ms));
        if (ready < 0 && errno != EINTR)
            rc = cm_fail_memory(error, "waiting for the greeting");
        else if (ready > 0 && wait[0].revents != 0)
            rc = read_greeting(conn, frame, error);
        else if (ready > 0)
            rc = read_probe(conn, &probe, error);
        else if (cm_left_ms(deadline_ms) == 0)
            rc = cm_fail_code(
                error, CM_ERR_CONNECT_TIMEOUT,
                "%.150s accepted the connection but sent no greeting within the connect timeout", conn->uri);
        else if (may_probe && cm_left_ms(probe_at_ms) == 0) {
            probed = true;
            probe = open_probe(endpoint, deadline_ms);
        }
    }
    if (probe >= 0)
        close(probe);
    return rc < 0 ? rc : 0;
}

static int take_refusal(struct cm_conn *conn, const struct cm_refusal *refusal, cm_error *error)
{
    int code = cm_code_of_status(refusal->status);
    if (code == CM_ERR_VERSION_MISMATCH)
        return fail_version(conn, refusal->version_min, refusal->version_max, error);
    if (code == CM_OK)
        code = CM_ERR_PROTOCOL;
    const char *text =
        refusal->text != NULL && refusal->text[0] != 0 ? refusal->text : cm_status_description(code);
    return cm_fail_code(error, code, "the daemon refused the connection: %.200s", text);
}

static uint32_t at_most(uint32_t value, uint32_t limit)
{
    return value < limit ? value : limit;
}

static int take_welcome(struct cm_conn *conn, const struct cm_welcome *welcome, cm_error *error)
{
    if (welcome->version != CM_PROTOCOL_VERSION)
        return fail_version(conn, welcome->version, welcome->version, error);
    conn->limits = welcome->limits;
    conn->limits.header_bytes = at_most(conn->limits.header_bytes, CM_HEADER_LIMIT);
    conn->limits.batch_items = at_most(conn->limits.batch_items, CM_CONN_ITEMS_MAX);
    if (welcome->session_token.length != CM_TOKEN_BYTES || conn->limits.batch_items == 0 ||
        conn->limits.item_bytes == 0 || conn->limits.header_bytes < 1024 || conn->limits.frame_bytes < 4096)
        return cm_fail(error, CM_ERR_PROTOCOL, CM_RETRY_FINAL,
                       "the daemon at %.150s greeted without a session or without usable limits", conn->uri);
    return 0;
}

static int greet(const struct cm_endpoint *endpoint, struct cm_conn *conn, const uint8_t *token,
                 const char *program, int64_t deadline_ms, struct cm_welcome *ret_welcome, cm_error *error)
{
    struct cm_frame frame = {0};
    int rc = send_hello(conn, token, program, error);
    if (rc == 0)
        rc = await_greeting(endpoint, conn, deadline_ms, &frame, error);
    if (rc != 0)
        return rc;
    const uint8_t *header = conn->in + CM_FRAME_PREFIX_BYTES;
    conn->in_start = cm_frame_body_offset(frame.header_length);
    cm_arena_reset(&conn->arena);
    struct cm_refusal refusal;
    if (frame.type == CM_FRAME_REFUSAL &&
        cm_codec_get_refusal(&conn->arena, header, frame.header_length, &refusal) == CM_CODEC_OK)
        return take_refusal(conn, &refusal, error);
    if (frame.type == CM_FRAME_WELCOME &&
        cm_codec_get_welcome(&conn->arena, header, frame.header_length, ret_welcome) == CM_CODEC_OK)
        return take_welcome(conn, ret_welcome, error);
    return cm_fail(error, CM_ERR_PROTOCOL, CM_RETRY_FINAL, "%.150s sent a greeting that can't be read",
                   conn->uri);
}

int cm_conn_open(const struct cm_endpoint *endpoint, const uint8_t *token, const char *program,
                 int64_t deadline_ms, struct cm_conn **ret_conn, struct cm_welcome *ret_welcome,
                 cm_error *error)
{
    int fd;
    int rc = endpoint->transport->connect(endpoint, deadline_ms, &fd, error);
    if (rc != 0)
        return rc;
    struct cm_conn *conn = cm_conn_new(fd, endpoint->uri);
    if (conn == NULL) {
        close(fd);
        return cm_fail_memory(error, "a connection");
    }
    rc = greet(endpoint, conn, token, program, deadline_ms, ret_welcome, error);
    if (rc != 0) {
        cm_conn_free(conn);
        return rc;
    }
    *ret_conn = conn;
    return 0;
}
