/* SPDX-License-Identifier: Apache-2.0 */
/* New connections: who they are, whether there is room for them, and which worker gets them. */
#include "conn.h"
#include "log.h"
#include "server_state.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct cm_transport *const transports[] = {&cm_transport_unix, &cm_transport_tcp};

static const struct cm_transport *transport_of(const char *scheme)
{
    for (size_t i = 0; i < sizeof transports / sizeof transports[0]; i++)
        if (strcmp(transports[i]->scheme, scheme) == 0)
            return transports[i];
    return NULL;
}

static void refuse(struct cm_server *server, int fd, const char *name, const char *text)
{
    static struct cm_log_limit limit;
    const struct cm_refusal refusal = {.status = CM_STATUS_OVERLOADED,
                                       .text = text,
                                       .version_min = CM_PROTOCOL_VERSION,
                                       .version_max = CM_PROTOCOL_VERSION};
    uint8_t scratch[4096], frame[1024];
    struct cm_arena arena;
    size_t length;
    server->refused_total++;
    cm_log_limited(&limit, CM_LOG_WARNING, "refused a connection of %s: %s", name, text);
    cm_arena_init(&arena, scratch, sizeof scratch);
    if (cm_codec_put_refusal(&arena, &refusal, frame, sizeof frame, &length) == CM_CODEC_OK)
        cm_acceptor_refuse(&server->acceptor, fd, frame, length);
    else
        close(fd);
}

/* In turn among those with the fewest connections. Of many connections most are quiet, so a small difference
 * says nothing about load; strictly the fewest would put everything that one client opens onto one worker. */
static uint32_t choose_worker(struct cm_server *server)
{
    const uint32_t *connections = server->worker_connections;
    uint32_t count = server->common.worker_count, least = connections[0];
    for (uint32_t i = 1; i < count; i++)
        if (connections[i] < least)
            least = connections[i];
    do {
        server->last_worker = (server->last_worker + 1) % count;
    } while (connections[server->last_worker] > least + least / 8);
    return server->last_worker;
}

static void on_departed(struct cm_inbox_item *item, void *common)
{
    struct cm_admission *admission = (struct cm_admission *)(void *)item;
    struct cm_server *server = common;
    cm_peers_put(&server->peers, admission->peer);
    server->worker_connections[admission->worker]--;
    atomic_fetch_sub_explicit(&server->common.connections, 1, memory_order_relaxed);
    free(admission);
    cm_server_departed(server);
}

void cm_admission_take(struct cm_listener *listener, int fd)
{
    struct cm_server *server = listener->acceptor->context;
    struct cm_common *common = &server->common;
    struct cm_identity identity;
    if (cm_endpoint_identify(fd, &listener->endpoint, listener->settings, &identity) != 0) {
        close(fd);
        return;
    }
    if (atomic_load_explicit(&common->connections, memory_order_relaxed) >= server->config->connections) {
        refuse(server, fd, identity.name,
               "the daemon has as many connections as it may: limits { connections }");
        return;
    }
    struct cm_peer_count *peer =
        cm_peers_get(&server->peers, identity.name, server->config->connections_per_peer);
    if (peer == NULL) {
        refuse(server, fd, identity.name,
               "this peer has as many connections as it may: limits { connections-per-peer }");
        return;
    }
    struct cm_admission *admission = calloc(1, sizeof *admission);
    if (admission == NULL) {
        cm_peers_put(&server->peers, peer);
        close(fd);
        return;
    }
    *admission = (struct cm_admission){.item.run = cm_conn_admit,
                                       .fd = fd,
                                       .transport = transport_of(listener->endpoint.scheme),
                                       .identity = identity,
                                       .peer = peer,
                                       .worker = choose_worker(server),
                                       .departed = on_departed};
    server->connections_total++;
    server->worker_connections[admission->worker]++;
    atomic_fetch_add_explicit(&common->connections, 1, memory_order_relaxed);
    cm_worker_post(&common->workers[admission->worker], &admission->item);
}
