/* SPDX-License-Identifier: Apache-2.0 */
/* Accepts connections on the listening sockets of the main thread, and pauses where descriptors run out. */
#include "acceptor.h"

#include "log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    ACCEPTS_AT_ONCE = 64, /* then signals, metrics and closed connections get their turn */
    PAUSE_MS = 100,
    LOG_EVERY_MS = 60000,
    REFUSED_MS = 500,
};

static void on_timer(uv_timer_t *timer);

static void run_timer(struct cm_acceptor *acceptor)
{
    if (acceptor->paused || acceptor->refused_count > 0)
        uv_timer_start(&acceptor->timer, on_timer, PAUSE_MS, 0);
}

/* A listening socket stays readable while descriptors are short, so polling it on would spin. */
static void pause_accepting(struct cm_acceptor *acceptor, int error)
{
    uint64_t now = uv_now(acceptor->loop);
    acceptor->paused = true;
    acceptor->paused_total++;
    for (size_t i = 0; i < acceptor->count; i++)
        if (acceptor->listeners[i].fd >= 0)
            uv_poll_stop(&acceptor->listeners[i].poll);
    if (acceptor->logged_ms == 0 || now - acceptor->logged_ms >= LOG_EVERY_MS) {
        acceptor->logged_ms = now;
        cm_log(CM_LOG_WARNING, "accepting pauses: %s; raise LimitNOFILE or lower limits { connections }",
               strerror(error));
    }
    run_timer(acceptor);
}

static void on_readable(uv_poll_t *poll, int status, int what)
{
    struct cm_listener *listener = poll->data;
    (void)what;
    if (status < 0) {
        pause_accepting(listener->acceptor, -status);
        return;
    }
    for (int i = 0; i < ACCEPTS_AT_ONCE && listener->fd >= 0; i++) {
        int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            listener->on_connection(listener, fd);
            continue;
        }
        if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO)
            continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK)
            pause_accepting(listener->acceptor, errno);
        return;
    }
}

int cm_acceptor_init(struct cm_acceptor *acceptor, uv_loop_t *loop, size_t capacity, void *context)
{
    *acceptor = (struct cm_acceptor){.loop = loop, .context = context};
    acceptor->listeners = calloc(capacity, sizeof acceptor->listeners[0]);
    if (acceptor->listeners == NULL)
        return UV_ENOMEM;
    acceptor->timer.data = acceptor;
    return uv_timer_init(loop, &acceptor->timer);
}

int cm_acceptor_listen(struct cm_acceptor *acceptor, const struct cm_endpoint *endpoint,
                       const struct cm_listen *settings,
                       void (*on_connection)(struct cm_listener *listener, int fd), char *ret_text,
                       size_t text_capacity)
{
    struct cm_listener *listener = &acceptor->listeners[acceptor->count];
    *listener = (struct cm_listener){
        .acceptor = acceptor, .endpoint = *endpoint, .settings = settings, .on_connection = on_connection};
    listener->fd = cm_endpoint_listen(endpoint, settings, &listener->file, ret_text, text_capacity);
    if (listener->fd < 0)
        return -1;
    int rc = uv_poll_init(acceptor->loop, &listener->poll, listener->fd);
    if (rc != 0) {
        snprintf(ret_text, text_capacity, "%s", uv_strerror(rc));
        cm_endpoint_unlink(endpoint, &listener->file);
        close(listener->fd);
        return -1;
    }
    listener->poll.data = listener;
    acceptor->count++;
    return 0;
}

int cm_acceptor_start(struct cm_acceptor *acceptor)
{
    acceptor->accepting = true;
    for (size_t i = 0; i < acceptor->count; i++) {
        if (acceptor->listeners[i].fd < 0)
            continue;
        int rc = uv_poll_start(&acceptor->listeners[i].poll, UV_READABLE, on_readable);
        if (rc != 0)
            return rc;
    }
    return 0;
}

void cm_acceptor_retry(struct cm_acceptor *acceptor)
{
    if (!acceptor->paused || !acceptor->accepting)
        return;
    acceptor->paused = false;
    if (cm_acceptor_start(acceptor) != 0)
        acceptor->paused = true;
}

static void close_refused(struct cm_acceptor *acceptor, uint64_t now)
{
    size_t gone = 0;
    while (gone < acceptor->refused_count && acceptor->refused[gone].until_ms <= now)
        close(acceptor->refused[gone++].fd);
    acceptor->refused_count -= gone;
    memmove(acceptor->refused, acceptor->refused + gone,
            acceptor->refused_count * sizeof acceptor->refused[0]);
}

static void on_timer(uv_timer_t *timer)
{
    struct cm_acceptor *acceptor = timer->data;
    close_refused(acceptor, uv_now(acceptor->loop));
    cm_acceptor_retry(acceptor);
    run_timer(acceptor);
}

void cm_acceptor_refuse(struct cm_acceptor *acceptor, int fd, const uint8_t *frame, size_t length)
{
    uint64_t now = uv_now(acceptor->loop);
    (void)send(fd, frame, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)shutdown(fd, SHUT_WR);
    if (acceptor->refused_count == CM_REFUSED_MAX)
        acceptor->refused[0].until_ms = now;
    close_refused(acceptor, now);
    acceptor->refused[acceptor->refused_count].fd = fd;
    acceptor->refused[acceptor->refused_count++].until_ms = now + REFUSED_MS;
    run_timer(acceptor);
}

static void close_listener(struct cm_listener *listener)
{
    if (listener->fd < 0)
        return;
    cm_endpoint_unlink(&listener->endpoint, &listener->file);
    uv_close((uv_handle_t *)&listener->poll, NULL);
    close(listener->fd);
    listener->fd = -1;
}

void cm_acceptor_end(struct cm_acceptor *acceptor)
{
    for (size_t i = 0; i < acceptor->count; i++)
        if (acceptor->listeners[i].settings != NULL)
            close_listener(&acceptor->listeners[i]);
}

void cm_acceptor_close(struct cm_acceptor *acceptor)
{
    acceptor->accepting = false;
    for (size_t i = 0; i < acceptor->count; i++)
        close_listener(&acceptor->listeners[i]);
    close_refused(acceptor, UINT64_MAX);
    uv_close((uv_handle_t *)&acceptor->timer, NULL);
}

void cm_acceptor_done(struct cm_acceptor *acceptor)
{
    free(acceptor->listeners);
    acceptor->listeners = NULL;
}
