/* SPDX-License-Identifier: Apache-2.0 */
/* cm_connect, cm_close, and what the greeting told. */
#include "async.h"
#include "error.h"
#include "pool.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STRING_OF(x) #x
#define VERSION_STRING(major, minor, patch) STRING_OF(major) "." STRING_OF(minor) "." STRING_OF(patch)

const char *cm_version(void)
{
    return VERSION_STRING(CM_VERSION_MAJOR, CM_VERSION_MINOR, CM_VERSION_PATCH);
}

/* As much of the options as the caller's version of them has. */
static int take_options(struct cm_client *client, const cm_options *given, cm_error *error)
{
    cm_options options = CM_OPTIONS_INIT;
    if (given != NULL) {
        if (given->size < offsetof(cm_options, connections))
            return cm_fail_code(error, CM_ERR_ARGUMENT, "cm_options.size is %zu: use CM_OPTIONS_INIT",
                                given->size);
        memcpy(&options, given, given->size < sizeof options ? given->size : sizeof options);
    }
    if (options.connections > CM_POOL_MAX || options.inflight > CM_INFLIGHT_MAX)
        return cm_fail_code(error, CM_ERR_ARGUMENT,
                            "cm_options: at most %d connections and %d batches in flight", CM_POOL_MAX,
                            CM_INFLIGHT_MAX);
    uint32_t align = options.slot_align;
    if (align != 0 && (align < 16 || align > CM_SLOT_ALIGN_MAX || (align & (align - 1)) != 0))
        return cm_fail_code(error, CM_ERR_ARGUMENT, "cm_options.slot_align is a power of two of 16 to %d",
                            CM_SLOT_ALIGN_MAX);
    if (options.slot_gap > CM_SLOT_GAP_MAX)
        return cm_fail_code(error, CM_ERR_ARGUMENT, "cm_options.slot_gap is at most %d", CM_SLOT_GAP_MAX);
    if (options.program != NULL && strlen(options.program) > CM_PROGRAM_MAX)
        return cm_fail_code(error, CM_ERR_ARGUMENT, "cm_options.program is longer than %d bytes",
                            CM_PROGRAM_MAX);
    if (options.program != NULL)
        memcpy(client->program, options.program, strlen(options.program) + 1);
    client->connect_timeout_ms = options.connect_timeout_ms != 0 ? options.connect_timeout_ms : 5000;
    client->request_timeout_ms = options.request_timeout_ms != 0 ? options.request_timeout_ms : 30000;
    client->slot_count = options.connections != 0 ? options.connections : 1;
    client->inflight = options.inflight != 0 ? options.inflight : 64;
    client->slot_align = options.slot_align;
    client->slot_gap = options.slot_gap;
    client->no_reconnect = options.no_reconnect != 0;
    return 0;
}

static void init_locks(struct cm_client *client)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&client->freed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&client->lock, NULL);
    pthread_mutex_init(&client->connecting, NULL);
}

static const char *choose_endpoint(const char *given)
{
    if (given != NULL)
        return given;
    const char *set = getenv("CIPHERMILL_ENDPOINT");
    return set != NULL && set[0] != 0 ? set : CM_DEFAULT_ENDPOINT;
}

static int prepare(struct cm_client *client, const char *endpoint, const cm_options *options, cm_error *error)
{
    int rc = take_options(client, options, error);
    if (rc == 0)
        rc = cm_endpoint_parse(choose_endpoint(endpoint), &client->endpoint, error);
    if (rc != 0)
        return rc;
    client->slots = calloc(client->slot_count, sizeof *client->slots);
    if (client->slots == NULL)
        return cm_fail_memory(error, "a client");
    client->pid = getpid();
    return 0;
}

int cm_connect(cm_client **ret_client, const char *endpoint, const cm_options *options, cm_error *error)
{
    cm_error_clear(error);
    if (ret_client == NULL)
        return cm_fail_code(error, CM_ERR_ARGUMENT, "ret_client is NULL");
    struct cm_client *client = calloc(1, sizeof *client);
    if (client == NULL)
        return cm_fail_memory(error, "a client");
    init_locks(client);
    struct cm_slot *slot;
    int rc = prepare(client, endpoint, options, error);
    if (rc == 0)
        rc = cm_pool_take(client, &slot, error);
    if (rc != 0) {
        cm_close(client);
        return rc;
    }
    cm_pool_put(client, slot);
    *ret_client = client;
    return 0;
}

/* In a child, closing a descriptor leaves the parent's open, and the locks may be held by a thread that is
 * not there, so that they are left alone. */
void cm_close(cm_client *client)
{
    if (client == NULL)
        return;
    cm_async_free(client->async);
    for (uint32_t i = 0; client->slots != NULL && i < client->slot_count; i++)
        cm_conn_free(client->slots[i].conn);
    if (client->pid == getpid() || client->pid == 0) {
        pthread_cond_destroy(&client->freed);
        pthread_mutex_destroy(&client->lock);
        pthread_mutex_destroy(&client->connecting);
    }
    free(client->closing);
    free(client->slots);
    free(client);
}

int cm_get_limits(cm_client *client, cm_limits_info *ret_limits, cm_error *error)
{
    cm_error_clear(error);
    if (client == NULL || ret_limits == NULL)
        return cm_fail_code(error, CM_ERR_ARGUMENT, "client or ret_limits is NULL");
    if (cm_client_check(client, error) != 0)
        return CM_ERR_FORKED;
    if (ret_limits->size < sizeof ret_limits->size)
        return cm_fail_code(error, CM_ERR_ARGUMENT, "set ret_limits->size to sizeof(cm_limits_info)");
    pthread_mutex_lock(&client->lock);
    cm_limits_info info = {
        .size = ret_limits->size,
        .frame_bytes = client->limits.frame_bytes,
        .batch_items = client->limits.batch_items,
        .item_bytes = client->limits.item_bytes,
        .inflight_bytes = client->limits.inflight_bytes,
    };
    pthread_mutex_unlock(&client->lock);
    memcpy(ret_limits, &info, info.size < sizeof info ? info.size : sizeof info);
    return 0;
}
