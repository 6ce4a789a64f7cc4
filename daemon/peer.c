/* SPDX-License-Identifier: Apache-2.0 */
/* A connection as the service sees it: greeting, handles used lately, multi-part operations. */
#include "peer.h"

#include "change.h"
#include "service_internal.h"
#include "status.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t refuse(struct cm_refusal *ret_refusal, uint32_t status, const char *text)
{
    *ret_refusal = (struct cm_refusal){.status = status,
                                       .text = text,
                                       .version_min = CM_PROTOCOL_VERSION,
                                       .version_max = CM_PROTOCOL_VERSION};
    return status;
}

static uint32_t check_hello(const struct cm_hello *hello, struct cm_refusal *ret_refusal)
{
    if (hello->version_min > hello->version_max)
        return refuse(ret_refusal, CM_STATUS_BAD_REQUEST, "the greeting's version range is empty");
    if (hello->version_min > CM_PROTOCOL_VERSION)
        return refuse(ret_refusal, CM_STATUS_VERSION_MISMATCH,
                      "the client's protocol is newer than this daemon knows: upgrade the daemon");
    if (hello->version_max < CM_PROTOCOL_VERSION)
        return refuse(ret_refusal, CM_STATUS_VERSION_MISMATCH,
                      "the client's protocol is older than this daemon speaks: upgrade the client");
    return CM_STATUS_OK;
}

struct cm_peer_state *cm_service_hello(struct cm_service_worker *worker, const struct cm_identity *identity,
                                       const struct cm_hello *hello, struct cm_welcome *ret_welcome,
                                       struct cm_refusal *ret_refusal)
{
    struct cm_service *service = worker->service;
    if (check_hello(hello, ret_refusal) != CM_STATUS_OK)
        return NULL;
    struct cm_peer_state *peer = calloc(1, sizeof *peer);
    if (peer == NULL) {
        refuse(ret_refusal, CM_STATUS_OVERLOADED, "the daemon is out of memory");
        return NULL;
    }
    peer->worker = worker;
    peer->identity = *identity;
    uint32_t status = cm_session_join(&service->sessions, identity->name, hello->session_token,
                                      service->options.limits.session_keys, &peer->session);
    if (status != CM_STATUS_OK) {
        refuse(ret_refusal, status, cm_wire_status_text(status));
        free(peer);
        return NULL;
    }
    memcpy(peer->token, peer->session->token, sizeof peer->token);
    *ret_welcome = (struct cm_welcome){.version = CM_PROTOCOL_VERSION,
                                       .session_token = {peer->token, sizeof peer->token},
                                       .limits = service->options.limits,
                                       .server = CM_SERVER_NAME,
                                       .identity = peer->identity.name,
                                       .may_administer = peer->identity.may_administer};
    return peer;
}

static void cache_drop(struct cm_handle_cache_entry *entry)
{
    if (entry->ephemeral)
        cm_live_key_put(entry->key);
    *entry = (struct cm_handle_cache_entry){0};
}

static bool cache_good(const struct cm_peer_state *peer, const struct cm_handle_cache_entry *entry)
{
    return entry->generation == atomic_load_explicit(&peer->session->generation, memory_order_acquire) &&
           (entry->ephemeral || entry->serial == peer->worker->snapshot->serial);
}

uint32_t cm_peer_find_key(struct cm_peer_state *peer, uint32_t handle, struct cm_live_key **ret_key)
{
    if (handle == 0)
        return CM_STATUS_NO_SUCH_KEY;
    struct cm_handle_cache_entry *entry = &peer->cache[handle % CM_HANDLE_CACHE_ENTRIES];
    if (entry->handle == handle && cache_good(peer, entry)) {
        *ret_key = entry->key;
        return CM_STATUS_OK;
    }
    cache_drop(entry);
    struct cm_live_key *key;
    char name[CM_KEY_NAME_MAX + 1];
    uint64_t generation;
    uint32_t status = cm_session_find(peer->session, handle, &key, name, &generation);
    if (status != CM_STATUS_OK)
        return status;
    bool ephemeral = key != NULL;
    if (!ephemeral)
        key = cm_snapshot_find(peer->worker->snapshot, name);
    if (key == NULL)
        return CM_STATUS_NO_SUCH_KEY;
    *entry = (struct cm_handle_cache_entry){.handle = handle,
                                            .ephemeral = ephemeral,
                                            .generation = generation,
                                            .serial = peer->worker->snapshot->serial,
                                            .key = key};
    *ret_key = key;
    return CM_STATUS_OK;
}

void cm_peer_drop_stale_keys(struct cm_peer_state *peer)
{
    for (uint32_t i = 0; i < CM_HANDLE_CACHE_ENTRIES; i++)
        if (peer->cache[i].handle != 0 && !cache_good(peer, &peer->cache[i]))
            cache_drop(&peer->cache[i]);
}

struct cm_operation *cm_operation_find(struct cm_peer_state *peer, uint32_t number)
{
    for (uint32_t i = 0; number != 0 && i < peer->operation_count; i++)
        if (peer->operations[i].number == number)
            return &peer->operations[i];
    return NULL;
}

uint32_t cm_operation_start(struct cm_peer_state *peer, uint32_t number, struct cm_operation **ret_operation)
{
    if (cm_operation_find(peer, number) != NULL)
        return CM_STATUS_BAD_REQUEST;
    uint32_t limit = peer->worker->service->options.limits.operations;
    if (peer->operations == NULL) {
        peer->operations = calloc(limit, sizeof *peer->operations);
        if (peer->operations == NULL)
            return CM_STATUS_OVERLOADED;
    }
    /* The used ones stand at the front, but for gaps that have ended. */
    uint32_t at = 0;
    while (at < peer->operation_count && peer->operations[at].number != 0)
        at++;
    if (at == limit)
        return CM_STATUS_OVERLOADED;
    if (at == peer->operation_count)
        peer->operation_count++;
    peer->operations[at] = (struct cm_operation){.number = number};
    *ret_operation = &peer->operations[at];
    return CM_STATUS_OK;
}

void cm_operation_end(struct cm_peer_state *peer, struct cm_operation *operation)
{
    if (operation == NULL)
        return;
    if (operation->busy) {
        operation->cancelled = true;
        return;
    }
    cm_aes_parts_done(&operation->parts);
    cm_aes_wipe(operation, sizeof *operation);
    while (peer->operation_count > 0 && peer->operations[peer->operation_count - 1].number == 0)
        peer->operation_count--;
}

void cm_service_peer_tick(struct cm_peer_state *peer, uint64_t now_ms)
{
    uint32_t timeout_ms = peer->worker->service->options.operation_timeout_ms;
    for (uint32_t i = peer->operation_count; i > 0; i--) {
        struct cm_operation *operation = &peer->operations[i - 1];
        if (operation->number == 0 || operation->busy)
            continue;
        if (!operation->idle) {
            operation->idle = true;
            operation->idle_since_ms = now_ms;
        } else if (now_ms - operation->idle_since_ms >= timeout_ms) {
            cm_operation_end(peer, operation);
        }
    }
    /* An ephemeral key that another connection closed should not live on in here. */
    cm_peer_drop_stale_keys(peer);
}

void cm_service_peer_free(struct cm_peer_state *peer)
{
    if (peer == NULL)
        return;
    cm_changes_forget_peer(peer);
    for (uint32_t i = 0; i < CM_HANDLE_CACHE_ENTRIES; i++)
        cache_drop(&peer->cache[i]);
    for (uint32_t i = peer->operation_count; i > 0; i--)
        cm_operation_end(peer, &peer->operations[i - 1]);
    free(peer->operations);
    cm_session_leave(&peer->worker->service->sessions, peer->session);
    cm_aes_wipe(peer, sizeof *peer);
    free(peer);
}
