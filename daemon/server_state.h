/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the main thread share: server.c (start, drain, end) and admission.c (new connections). */
#ifndef CM_SERVER_STATE_H
#define CM_SERVER_STATE_H

#include "acceptor.h"
#include "http.h"
#include "peers.h"
#include "worker.h"

struct cm_server {
    struct cm_common common; /* first: items on the main inbox get it as their owner */
    const struct cm_config *config;
    uv_loop_t loop;
    struct cm_acceptor acceptor;
    struct cm_http *http;
    uv_signal_t signals[3];
    uv_timer_t deadline;
    struct cm_peers peers;
    uint32_t *worker_connections;
    uint32_t last_worker; /* that got a connection */
    uint64_t connections_total, refused_total;
    uint64_t start_unix_ms, start_ns;
    bool ready, stopped;
    unsigned end_signals;
    int exit_status;
};

/* admission.c: a connection on a listener of the configuration. */
void cm_admission_take(struct cm_listener *listener, int fd);
/* server.c: a connection has ended, and everything the admission counted is given back. */
void cm_server_departed(struct cm_server *server);

#endif
