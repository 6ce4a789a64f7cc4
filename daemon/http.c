/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics and health over HTTP. libmicrohttpd has no thread of its own here: its epoll descriptor is polled.
 */
#include "http.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 32, IDLE_S = 5, CONNECTION_BYTES = 16 * 1024 };

struct cm_http {
    struct MHD_Daemon *daemon;
    struct cm_http_source source;
    uv_poll_t poll;
    uv_timer_t timer;
    unsigned handles;
    int open[CONNECTIONS_MAX]; /* descriptors, the oldest connection's first */
    unsigned open_count;
};

static enum MHD_Result respond(struct MHD_Connection *connection, unsigned status, const char *type,
                               char *text, size_t length, enum MHD_ResponseMemoryMode mode)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(length, text, mode);
    if (response == NULL) {
        if (mode == MHD_RESPMEM_MUST_FREE)
            free(text);
        return MHD_NO;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result respond_text(struct MHD_Connection *connection, unsigned status, const char *text)
{
    return respond(connection, status, "text/plain; charset=utf-8", (char *)(uintptr_t)text, strlen(text),
                   MHD_RESPMEM_PERSISTENT);
}

static enum MHD_Result respond_metrics(struct cm_http *http, struct MHD_Connection *connection)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (out == NULL)
        return MHD_NO;
    http->source.print_metrics(http->source.context, out);
    if (fclose(out) != 0) {
        free(text);
        return MHD_NO;
    }
    return respond(connection, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", text, length,
                   MHD_RESPMEM_MUST_FREE);
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_length, void **request)
{
    struct cm_http *http = context;
    (void)version;
    (void)upload;
    (void)request;
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
        *upload_length = 0;
        return respond_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
    }
    if (strcmp(url, "/metrics") == 0)
        return respond_metrics(http, connection);
    if (strcmp(url, "/healthz") == 0)
        return respond_text(connection, MHD_HTTP_OK, "ok\n");
    if (strcmp(url, "/readyz") == 0)
        return http->source.is_ready(http->source.context)
                   ? respond_text(connection, MHD_HTTP_OK, "ready\n")
                   : respond_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "not ready\n");
    return respond_text(connection, MHD_HTTP_NOT_FOUND, "there are /metrics, /healthz and /readyz\n");
}

static void on_connection(void *context, struct MHD_Connection *connection, void **ret_context,
                          enum MHD_ConnectionNotificationCode what)
{
    struct cm_http *http = context;
    (void)ret_context;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (info == NULL)
        return;
    if (what == MHD_CONNECTION_NOTIFY_STARTED && http->open_count < CONNECTIONS_MAX) {
        http->open[http->open_count++] = info->connect_fd;
        return;
    }
    unsigned at = 0;
    while (at < http->open_count && http->open[at] != info->connect_fd)
        at++;
    if (what != MHD_CONNECTION_NOTIFY_CLOSED || at == http->open_count)
        return;
    http->open_count--;
    memmove(http->open + at, http->open + at + 1, (http->open_count - at) * sizeof http->open[0]);
}

static void on_timer(uv_timer_t *timer);

static void run(struct cm_http *http)
{
    MHD_UNSIGNED_LONG_LONG timeout_ms;
    MHD_run(http->daemon);
    if (MHD_get_timeout(http->daemon, &timeout_ms) == MHD_YES)
        uv_timer_start(&http->timer, on_timer, timeout_ms, 0);
    else
        uv_timer_stop(&http->timer);
}

static void on_timer(uv_timer_t *timer)
{
    run(timer->data);
}

static void on_ready(uv_poll_t *poll, int status, int what)
{
    (void)status;
    (void)what;
    run(poll->data);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct cm_http *http = handle->data;
    if (--http->handles == 0)
        free(http);
}

int cm_http_open(struct cm_http **ret_http, uv_loop_t *loop, const struct cm_http_source *source)
{
    struct cm_http *http = calloc(1, sizeof *http);
    if (http == NULL)
        return UV_ENOMEM;
    http->source = *source;
    http->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL, on_request, http,
                                    MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
                                    MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S,
                                    MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
                                    MHD_OPTION_NOTIFY_CONNECTION, on_connection, http, MHD_OPTION_END);
    const union MHD_DaemonInfo *info =
        http->daemon != NULL ? MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    if (info == NULL || uv_poll_init(loop, &http->poll, info->epoll_fd) != 0) {
        if (http->daemon != NULL)
            MHD_stop_daemon(http->daemon);
        free(http);
        return UV_ENOMEM;
    }
    uv_timer_init(loop, &http->timer);
    http->poll.data = http->timer.data = http;
    http->handles = 2;
    uv_poll_start(&http->poll, UV_READABLE, on_ready);
    *ret_http = http;
    return 0;
}

void cm_http_serve(struct cm_http *http, int fd)
{
    struct sockaddr_storage peer = {0};
    socklen_t length = sizeof peer;
    if (getpeername(fd, (struct sockaddr *)&peer, &length) != 0) {
        close(fd);
        return;
    }
    /* Who takes for ever to ask goes first: a probe of the daemon's health must not fail over somebody's slow
     * connections. */
    if (http->open_count == CONNECTIONS_MAX) {
        (void)shutdown(http->open[0], SHUT_RDWR);
        run(http);
    }
    /* Closes the descriptor itself if it can't take it. */
    (void)MHD_add_connection(http->daemon, fd, (const struct sockaddr *)&peer, length);
    run(http);
}

void cm_http_close(struct cm_http *http)
{
    if (http == NULL)
        return;
    uv_poll_stop(&http->poll);
    uv_close((uv_handle_t *)&http->poll, on_handle_closed);
    uv_close((uv_handle_t *)&http->timer, on_handle_closed);
    MHD_stop_daemon(http->daemon);
}
