/* SPDX-License-Identifier: Apache-2.0 */
/* The main thread: starts everything, and ends in good order. */
#include "server.h"

#include "cm_aes.h"
#include "log.h"
#include "notify.h"
#include "server_state.h"
#include "wake.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { DESCRIPTORS_OF_ONE_WORKER = 8, DESCRIPTORS_BESIDE = 64 };

/* --- The service's host -----------------------------------------------------------------------------------
 */

static void host_post(void *host, uint32_t worker, void (*function)(void *argument), void *argument)
{
    struct cm_server *server = host;
    cm_worker_post_function(&server->common.workers[worker], function, argument);
}

static void host_describe(void *host, struct cm_server_status *status)
{
    struct cm_server *server = host;
    status->uptime_ms = (uv_hrtime() - server->start_ns) / 1000000;
    status->workers = server->common.worker_count;
    status->connections = atomic_load_explicit(&server->common.connections, memory_order_relaxed);
    status->inflight_bytes = cm_budget_used(&server->common.budget);
    status->inflight_limit_bytes = server->common.budget.limit;
    status->draining = atomic_load_explicit(&server->common.draining, memory_order_relaxed);
}

static void host_log(void *host, int level, const char *text)
{
    static const int levels[] = {[CM_SERVICE_LOG_ERROR] = CM_LOG_ERROR,
                                 [CM_SERVICE_LOG_WARNING] = CM_LOG_WARNING,
                                 [CM_SERVICE_LOG_INFO] = CM_LOG_INFO};
    (void)host;
    cm_log(levels[level], "%s", text);
}

/* --- Metrics and health -----------------------------------------------------------------------------------
 */

static void print_metrics(void *context, FILE *out)
{
    struct cm_server *server = context;
    struct cm_common *common = &server->common;
    const struct cm_metrics *threads[256];
    for (uint32_t i = 0; i < common->worker_count; i++)
        threads[i] = &common->workers[i].metrics;
    const struct cm_metrics_gauges gauges = {
        .threads = threads,
        .thread_count = common->worker_count,
        .inflight_bytes = cm_budget_used(&common->budget),
        .inflight_limit_bytes = common->budget.limit,
        .connections = atomic_load_explicit(&common->connections, memory_order_relaxed),
        .connections_total = server->connections_total,
        .connections_refused_total = server->refused_total,
        .accept_paused_total = server->acceptor.paused_total,
        .wake_ns = common->wake_ns,
        .ready = server->ready,
        .draining = atomic_load_explicit(&common->draining, memory_order_relaxed),
        .start_unix_ms = server->start_unix_ms,
        .version = CM_VERSION,
    };
    cm_metrics_print(out, &gauges);
}

static bool is_ready(void *context)
{
    return ((struct cm_server *)context)->ready;
}

static void on_http_connection(struct cm_listener *listener, int fd)
{
    struct cm_server *server = listener->acceptor->context;
    cm_http_serve(server->http, fd);
}

/* --- Ending -----------------------------------------------------------------------------------------------
 */

static void stop_when_empty(struct cm_server *server)
{
    if (server->stopped || !atomic_load_explicit(&server->common.draining, memory_order_relaxed) ||
        atomic_load_explicit(&server->common.connections, memory_order_relaxed) > 0)
        return;
    server->stopped = true;
    uv_stop(&server->loop);
}

void cm_server_departed(struct cm_server *server)
{
    cm_acceptor_retry(&server->acceptor);
    stop_when_empty(server);
}

static void close_connections(struct cm_server *server)
{
    for (uint32_t i = 0; i < server->common.worker_count; i++)
        cm_worker_close_all(&server->common.workers[i]);
}

static void on_deadline(uv_timer_t *timer)
{
    struct cm_server *server = timer->data;
    cm_log(CM_LOG_WARNING, "the drain's deadline has passed: closing %u connections",
           atomic_load_explicit(&server->common.connections, memory_order_relaxed));
    close_connections(server);
}

static void drain(struct cm_server *server, int signal)
{
    cm_log(CM_LOG_INFO, "signal %d: draining %u connections, for %u ms at most", signal,
           atomic_load_explicit(&server->common.connections, memory_order_relaxed),
           server->config->drain_timeout_ms);
    cm_notify("STOPPING=1");
    server->ready = false;
    atomic_store_explicit(&server->common.draining, true, memory_order_relaxed);
    cm_acceptor_end(&server->acceptor);
    for (uint32_t i = 0; i < server->common.worker_count; i++)
        cm_worker_drain(&server->common.workers[i]);
    uv_timer_start(&server->deadline, on_deadline, server->config->drain_timeout_ms, 0);
    stop_when_empty(server);
}

static void on_signal(uv_signal_t *handle, int signal)
{
    struct cm_server *server = handle->data;
    if (signal == SIGHUP) {
        cm_log(CM_LOG_WARNING,
               "SIGHUP: reloading is not supported yet; restart to read the configuration again");
        return;
    }
    switch (++server->end_signals) {
    case 1:
        drain(server, signal);
        break;
    case 2:
        cm_log(CM_LOG_WARNING, "signal %d again: ending at once", signal);
        server->exit_status = CM_EXIT_FAILURE;
        uv_timer_stop(&server->deadline);
        close_connections(server);
        break;
    default:
        _exit(CM_EXIT_FAILURE);
    }
}

/* --- Starting ---------------------------------------------------------------------------------------------
 */

static void raise_descriptor_limit(const struct cm_config *config, uint32_t workers)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    bool raises = limit.rlim_cur != limit.rlim_max;
    limit.rlim_cur = limit.rlim_max;
    if (raises && setrlimit(RLIMIT_NOFILE, &limit) != 0)
        cm_log(CM_LOG_WARNING, "can't raise the limit of descriptors: %s", strerror(errno));
    uint64_t needed =
        config->connections + (uint64_t)workers * DESCRIPTORS_OF_ONE_WORKER + DESCRIPTORS_BESIDE;
    if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < needed)
        cm_log(CM_LOG_WARNING,
               "%llu descriptors are allowed, limits { connections } could need %llu: raise LimitNOFILE",
               (unsigned long long)limit.rlim_max, (unsigned long long)needed);
}

static uint32_t count_workers(const struct cm_config *config)
{
    cpu_set_t allowed;
    if (config->workers != 0)
        return config->workers;
    int count = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
    return count < 1 ? 1 : count > 256 ? 256 : (uint32_t)count;
}

static void on_main_wake(uv_async_t *wake)
{
    struct cm_server *server = wake->data;
    cm_inbox_run(&server->common.main_inbox, &server->common);
}

static int open_loop(struct cm_server *server)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    int rc = uv_loop_init(&server->loop);
    if (rc != 0)
        return rc;
    uv_timer_init(&server->loop, &server->deadline);
    server->deadline.data = server;
    rc = uv_async_init(&server->loop, &server->common.main_wake, on_main_wake);
    server->common.main_wake.data = server;
    for (size_t i = 0; rc == 0 && i < 3; i++) {
        rc = uv_signal_init(&server->loop, &server->signals[i]);
        server->signals[i].data = server;
        if (rc == 0)
            rc = uv_signal_start(&server->signals[i], on_signal, numbers[i]);
    }
    return rc;
}

static int listen_all(struct cm_server *server)
{
    char text[CM_CONFIG_TEXT];
    const struct cm_config *config = server->config;
    struct cm_endpoint endpoint;
    for (size_t i = 0; i < config->listen_count; i++) {
        const struct cm_listen *listen = &config->listen[i];
        if (cm_endpoint_parse(listen->uri, &endpoint, text, sizeof text) != 0 ||
            cm_acceptor_listen(&server->acceptor, &endpoint, listen, cm_admission_take, text, sizeof text) !=
                0) {
            cm_log(CM_LOG_ERROR, "%s", text);
            return -1;
        }
    }
    if (config->metrics == NULL)
        return 0;
    const struct cm_http_source source = {print_metrics, is_ready, server};
    if (cm_endpoint_parse_host(config->metrics, &endpoint, text, sizeof text) != 0 ||
        cm_acceptor_listen(&server->acceptor, &endpoint, NULL, on_http_connection, text, sizeof text) != 0) {
        cm_log(CM_LOG_ERROR, "metrics: %s", text);
        return -1;
    }
    if (cm_http_open(&server->http, &server->loop, &source) != 0) {
        cm_log(CM_LOG_ERROR, "metrics: can't start the HTTP server");
        return -1;
    }
    return 0;
}

static int open_service(struct cm_server *server)
{
    char text[CM_CONFIG_TEXT];
    const struct cm_config *config = server->config;
    const struct cm_service_options options = {.limits = config->limits,
                                               .workers = server->common.worker_count,
                                               .state_folder = config->state,
                                               .master_key_file = config->master_key,
                                               .operation_timeout_ms = config->operation_timeout_ms};
    const struct cm_service_host host = {host_post, host_describe, host_log, server};
    if (cm_service_new(&server->common.service, &options, &host, text, sizeof text) == 0)
        return 0;
    cm_log(CM_LOG_ERROR, "%s", text);
    return -1;
}

static void log_start(const struct cm_server *server)
{
    char name[160];
    for (size_t i = 0; i < server->acceptor.count; i++) {
        const struct cm_listener *listener = &server->acceptor.listeners[i];
        cm_endpoint_name(listener->fd, &listener->endpoint, name, sizeof name);
        cm_log(CM_LOG_INFO, "%s on %s", listener->settings != NULL ? "listening" : "metrics", name);
    }
    cm_log(CM_LOG_INFO,
           "ciphermilld " CM_VERSION " is ready: %u workers, a wake-up costs %llu ns, state in %s",
           server->common.worker_count, (unsigned long long)server->common.wake_ns, server->config->state);
}

static void begin(void *context, uint64_t wake_ns)
{
    struct cm_server *server = context;
    if (server->end_signals > 0)
        return;
    server->common.wake_ns = wake_ns;
    if (cm_acceptor_start(&server->acceptor) != 0) {
        cm_log(CM_LOG_ERROR, "can't accept connections");
        server->exit_status = CM_EXIT_FAILURE;
        drain(server, 0);
        return;
    }
    server->ready = true;
    log_start(server);
    cm_notify("READY=1");
}

/* --- Running ----------------------------------------------------------------------------------------------
 */

/* Workers [0, ret_started) are running afterwards. */
static int start_workers(struct cm_server *server, uint32_t *ret_inited, uint32_t *ret_started)
{
    struct cm_common *common = &server->common;
    int rc = 0;
    for (uint32_t i = 0; i < common->worker_count && rc == 0; i++) {
        common->workers[i].common = common;
        common->workers[i].index = i;
        rc = cm_worker_init(&common->workers[i]);
        if (rc == 0)
            *ret_inited = i + 1;
    }
    for (uint32_t i = 0; i < common->worker_count && rc == 0; i++) {
        rc = cm_worker_start(&common->workers[i]);
        if (rc == 0)
            *ret_started = i + 1;
    }
    if (rc != 0)
        cm_log(CM_LOG_ERROR, "can't start the workers: %s", uv_strerror(rc));
    return rc;
}

static void serve(struct cm_server *server)
{
    struct cm_common *common = &server->common;
    uint32_t inited = 0, started = 0;
    bool measures = common->worker_count > 1;
    struct cm_wake *wake = NULL;
    server->exit_status = CM_EXIT_FAILURE;
    if (start_workers(server, &inited, &started) == 0) {
        server->exit_status = CM_EXIT_OK;
        if (measures)
            wake = cm_wake_measure(&common->workers[0], &common->workers[1], begin, server);
        if (wake == NULL)
            begin(server, 0);
        uv_run(&server->loop, UV_RUN_DEFAULT);
    }
    for (uint32_t i = 0; i < started; i++)
        cm_worker_stop(&common->workers[i]);
    for (uint32_t i = 0; i < started; i++)
        cm_worker_join(&common->workers[i]);
    cm_service_free(common->service);
    for (uint32_t i = 0; i < inited; i++)
        cm_worker_done(&common->workers[i]);
    cm_wake_free(wake); /* may still have been in an inbox until here */
}

static void close_loop(struct cm_server *server)
{
    cm_acceptor_close(&server->acceptor);
    cm_http_close(server->http);
    uv_close((uv_handle_t *)&server->deadline, NULL);
    uv_close((uv_handle_t *)&server->common.main_wake, NULL);
    for (size_t i = 0; i < 3; i++)
        uv_close((uv_handle_t *)&server->signals[i], NULL);
    uv_run(&server->loop, UV_RUN_DEFAULT);
    uv_loop_close(&server->loop);
    cm_acceptor_done(&server->acceptor);
}

static void set_up(struct cm_server *server, const struct cm_config *config)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    server->config = server->common.config = config;
    server->start_unix_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    server->start_ns = uv_hrtime();
    server->exit_status = CM_EXIT_FAILURE;
    server->common.worker_count = count_workers(config);
    cm_budget_init(&server->common.budget, config->inflight_bytes, config->limits.frame_bytes);
    (void)signal(SIGPIPE, SIG_IGN);
    raise_descriptor_limit(config, server->common.worker_count);
}

int cm_server_run(const struct cm_config *config)
{
    static struct cm_server server; /* the only one of the process */
    set_up(&server, config);
    size_t workers_bytes = server.common.worker_count * sizeof(struct cm_worker);
    server.common.workers = aligned_alloc(alignof(struct cm_worker), workers_bytes);
    server.worker_connections = calloc(server.common.worker_count, sizeof server.worker_connections[0]);
    if (server.common.workers == NULL || server.worker_connections == NULL || open_loop(&server) != 0 ||
        cm_acceptor_init(&server.acceptor, &server.loop, config->listen_count + 1, &server) != 0) {
        cm_log(CM_LOG_ERROR, "no memory or no descriptors to start with");
        return CM_EXIT_FAILURE;
    }
    memset(server.common.workers, 0, workers_bytes);
    /* The sockets first: they show whether another daemon runs before its store is touched. */
    if (listen_all(&server) == 0 && open_service(&server) == 0)
        serve(&server);
    close_loop(&server);
    free(server.common.workers);
    free(server.worker_connections);
    if (server.exit_status == CM_EXIT_OK)
        cm_log(CM_LOG_INFO, "ciphermilld ends");
    return server.exit_status;
}
