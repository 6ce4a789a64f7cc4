/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of a connection, its deadlines, and its end. */
#include "conn.h"
#include "clock.h"
#include "error.h"
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

struct cm_conn *cm_conn_new(int fd, const char *uri)
{
    struct cm_conn *conn = malloc(sizeof *conn);
    if (conn == NULL)
        return NULL;
    /* The buffers stay untouched, and so cost no memory, until they are used. */
    memset(conn, 0, offsetof(struct cm_conn, arena));
    conn->fd = fd;
    conn->epoll = -1;
    conn->pid = getpid();
    conn->uri = uri;
    cm_arena_init(&conn->arena, conn->arena_memory, sizeof conn->arena_memory);
    return conn;
}

/* A child may hold the socket too, so that closing it here would tell neither the daemon nor the epoll. */
static void close_socket(struct cm_conn *conn)
{
    if (conn->fd < 0)
        return;
    if (conn->epoll >= 0)
        (void)epoll_ctl(conn->epoll, EPOLL_CTL_DEL, conn->fd, NULL);
    (void)shutdown(conn->fd, SHUT_RDWR);
    close(conn->fd);
    conn->fd = -1;
}

void cm_conn_free(struct cm_conn *conn)
{
    if (conn == NULL)
        return;
    if (conn->pid == getpid())
        close_socket(conn);
    else if (conn->fd >= 0)
        close(conn->fd);
    for (struct cm_request *request = conn->first, *next; request != NULL; request = next) {
        next = request->next;
        if (request->on_done != NULL)
            request->on_done(request);
    }
    free(conn);
}

/* A failed batch leaves no item that looks done, nor one that looks as if its caller had given an IV. */
static void mark_items(struct cm_request *request)
{
    if (request->call != NULL || request->error.code == CM_OK)
        return;
    bool untouched = request->error.retry == CM_RETRY_NOT_EXECUTED && request->error.code <= CM_ERR_ARGUMENT;
    for (uint32_t i = 0; i < request->count; i++) {
        request->items[i].status = untouched ? CM_ERR_NOT_SENT : request->error.code;
        request->items[i].out_length = 0;
        if (request->daemon_ivs)
            request->items[i].iv_length = 0;
    }
}

static void complete(struct cm_request *request)
{
    mark_items(request);
    request->next = NULL;
    request->done = true;
    if (request->on_done != NULL)
        request->on_done(request);
}

void cm_conn_remove(struct cm_conn *conn, struct cm_request *request)
{
    struct cm_request **link = &conn->first, *before = NULL;
    while (*link != request) {
        before = *link;
        link = &before->next;
    }
    *link = request->next;
    if (conn->last == request)
        conn->last = before;
    if (conn->unsent == request) {
        conn->unsent = request->next;
        conn->encoded = false;
    }
    complete(request);
}

/* What is known of a request whose connection is gone. */
static void judge(const struct cm_conn *conn, struct cm_request *request)
{
    request->error = conn->failure;
    request->error.retry = request->sent ? CM_RETRY_UNKNOWN : CM_RETRY_NOT_EXECUTED;
    if (conn->going_away && (!request->sent || request->id > conn->last_answered_id))
        cm_fail_code(&request->error, CM_ERR_GOING_AWAY,
                     "the daemon at %.150s went away before it took the request", conn->uri);
}

static void break_with_failure(struct cm_conn *conn)
{
    if (conn->broken)
        return;
    conn->broken = true;
    /* Before anybody hears of it: nothing may be read into the buffers any more. */
    close_socket(conn);
    while (conn->first != NULL) {
        judge(conn, conn->first);
        cm_conn_remove(conn, conn->first);
    }
}

void cm_conn_break(struct cm_conn *conn, int code, const char *format, ...)
{
    if (conn->broken)
        return;
    va_list arguments;
    va_start(arguments, format);
    conn->failure.code = code;
    conn->failure.retry = cm_status_retry(code);
    (void)vsnprintf(conn->failure.text, sizeof conn->failure.text, format, arguments);
    cm_text_clean(conn->failure.text);
    va_end(arguments);
    break_with_failure(conn);
}

void cm_conn_add(struct cm_conn *conn, struct cm_request *request)
{
    request->next = NULL;
    request->sent = false;
    request->done = false;
    if (conn->broken || conn->going_away) {
        request->error = conn->failure;
        request->error.retry = CM_RETRY_NOT_EXECUTED;
        complete(request);
        return;
    }
    if (conn->last != NULL)
        conn->last->next = request;
    else
        conn->first = request;
    conn->last = request;
    if (conn->unsent == NULL)
        conn->unsent = request;
    cm_conn_send(conn);
}

bool cm_conn_wants_write(const struct cm_conn *conn)
{
    return conn->unsent != NULL;
}

static void check_deadline(struct cm_conn *conn)
{
    if (conn->broken || conn->first == NULL || cm_now_ms() < conn->first->deadline_ms)
        return;
    cm_conn_break(conn, CM_ERR_TIMEOUT, "no reply from %.150s within the request timeout", conn->uri);
}

/* Until the socket is ready or the first deadline has passed. */
static void wait_ready(struct cm_conn *conn, int wait_ms)
{
    int limit_ms = wait_ms;
    if (conn->first != NULL) {
        /* poll() counts whole milliseconds: one more, so that the deadline has passed when it returns. */
        int left_ms = cm_left_ms(conn->first->deadline_ms) + 1;
        limit_ms = wait_ms < 0 || wait_ms > left_ms ? left_ms : wait_ms;
    }
    struct pollfd wait = {.fd = conn->fd, .events = (short)(POLLIN | (conn->unsent != NULL ? POLLOUT : 0))};
    (void)poll(&wait, 1, limit_ms);
}

/* Data first, deadlines after: a reply that is there counts, however late this side looks. */
void cm_conn_step(struct cm_conn *conn, int wait_ms)
{
    if (conn->broken)
        return;
    if (wait_ms != 0)
        wait_ready(conn, wait_ms);
    cm_conn_receive(conn);
    cm_conn_send(conn);
    check_deadline(conn);
}

void cm_conn_finish(struct cm_conn *conn, struct cm_request *request)
{
    while (!request->done)
        cm_conn_step(conn, -1);
}
