/* SPDX-License-Identifier: Apache-2.0 */
/* Lending connections, making them anew, and keeping the session over them. */
#include "pool.h"
#include "clock.h"
#include "error.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int cm_client_check(const struct cm_client *client, cm_error *error)
{
    if (client->pid == getpid())
        return CM_OK;
    return cm_fail_code(error, CM_ERR_FORKED,
                        "process %ld is a child of the one that connected (%ld): connect anew",
                        (long)getpid(), (long)client->pid);
}

int64_t cm_request_deadline(const struct cm_client *client)
{
    return cm_now_ms() + client->request_timeout_ms;
}

/* What the greeting said becomes the client's. A token other than the one asked for is another session. */
static void take_session(struct cm_client *client, struct cm_conn *conn, const struct cm_welcome *welcome)
{
    pthread_mutex_lock(&client->lock);
    const uint8_t *token = welcome->session_token.data;
    if (client->session_number == 0 || memcmp(client->token, token, CM_TOKEN_BYTES) != 0) {
        memcpy(client->token, token, CM_TOKEN_BYTES);
        client->session_number++;
        client->closing_count = 0;
    }
    client->limits = conn->limits;
    conn->session_number = client->session_number;
    conn->serial = ++client->next_serial;
    pthread_mutex_unlock(&client->lock);
}

static int greet_locked(struct cm_client *client, struct cm_conn **ret_conn, cm_error *error)
{
    cm_error local = CM_ERROR_INIT;
    struct cm_welcome welcome;
    int64_t deadline_ms = cm_now_ms() + client->connect_timeout_ms;
    pthread_mutex_lock(&client->lock);
    bool joins = client->session_number != 0;
    uint8_t token[CM_TOKEN_BYTES];
    memcpy(token, client->token, sizeof token);
    pthread_mutex_unlock(&client->lock);
    int rc = cm_conn_open(&client->endpoint, joins ? token : NULL, client->program, deadline_ms, ret_conn,
                          &welcome, &local);
    if (rc == CM_ERR_NO_SUCH_SESSION && joins)
        rc = cm_conn_open(&client->endpoint, NULL, client->program, deadline_ms, ret_conn, &welcome, &local);
    if (rc != 0)
        return cm_fail_copy(error, &local);
    take_session(client, *ret_conn, &welcome);
    return 0;
}

static int connect_anew(struct cm_client *client, struct cm_conn **ret_conn, cm_error *error)
{
    pthread_mutex_lock(&client->lock);
    bool lost = client->lost && client->no_reconnect;
    pthread_mutex_unlock(&client->lock);
    if (lost)
        return cm_fail(error, CM_ERR_DISCONNECTED, CM_RETRY_NOT_EXECUTED,
                       "the connection to %.150s broke, and the client was told not to reconnect",
                       client->endpoint.uri);
    pthread_mutex_lock(&client->connecting);
    int rc = greet_locked(client, ret_conn, error);
    pthread_mutex_unlock(&client->connecting);
    return rc;
}

void cm_pool_drop(struct cm_client *client, struct cm_conn *conn)
{
    pthread_mutex_lock(&client->lock);
    client->lost = true;
    pthread_mutex_unlock(&client->lock);
    cm_conn_free(conn);
}

/* A connection that lay idle may have ended, or heard a goodbye. One of an old session has nothing to give.
 */
static bool is_alive(struct cm_client *client, struct cm_conn *conn)
{
    cm_conn_step(conn, 0);
    if (conn->broken || conn->going_away)
        return false;
    pthread_mutex_lock(&client->lock);
    bool current = conn->session_number == client->session_number;
    pthread_mutex_unlock(&client->lock);
    return current;
}

/* An idle slot, rather with a connection than without. */
static struct cm_slot *find_idle(struct cm_client *client)
{
    struct cm_slot *found = NULL;
    for (uint32_t i = 0; i < client->slot_count; i++) {
        struct cm_slot *slot = &client->slots[i];
        if (slot->busy)
            continue;
        if (slot->conn != NULL)
            return slot;
        if (found == NULL)
            found = slot;
    }
    return found;
}

/* False when the time is over. The lock is held. */
static bool wait_freed(struct cm_client *client, int64_t deadline_ms)
{
    struct timespec until = {.tv_sec = deadline_ms / 1000, .tv_nsec = deadline_ms % 1000 * 1000000};
    return pthread_cond_timedwait(&client->freed, &client->lock, &until) != ETIMEDOUT;
}

static int fail_wait(struct cm_client *client, cm_error *error)
{
    return cm_fail(error, CM_ERR_TIMEOUT, CM_RETRY_NOT_EXECUTED,
                   "no connection became free within the request timeout; raise cm_options.connections (%u)",
                   client->slot_count);
}

int cm_pool_take(struct cm_client *client, struct cm_slot **ret_slot, cm_error *error)
{
    int64_t deadline_ms = cm_request_deadline(client);
    struct cm_slot *slot;
    pthread_mutex_lock(&client->lock);
    bool in_time = true;
    while ((slot = find_idle(client)) == NULL && in_time)
        in_time = wait_freed(client, deadline_ms);
    if (slot != NULL)
        slot->busy = true;
    pthread_mutex_unlock(&client->lock);
    if (slot == NULL)
        return fail_wait(client, error);
    if (slot->conn != NULL && !is_alive(client, slot->conn)) {
        cm_pool_drop(client, slot->conn);
        slot->conn = NULL;
    }
    int rc = slot->conn != NULL ? 0 : connect_anew(client, &slot->conn, error);
    if (rc != 0) {
        cm_pool_put(client, slot);
        return rc;
    }
    *ret_slot = slot;
    return 0;
}

/* The lock is held. NULL: gone. A busy slot's connection can't be looked at: it is taken for another's until
 * it is free. */
static struct cm_slot *find_serial(struct cm_client *client, uint32_t serial, bool *ret_any_busy)
{
    *ret_any_busy = false;
    for (uint32_t i = 0; i < client->slot_count; i++) {
        struct cm_slot *slot = &client->slots[i];
        if (slot->busy)
            *ret_any_busy = true;
        else if (slot->conn != NULL && slot->conn->serial == serial)
            return slot;
    }
    return NULL;
}

int cm_pool_take_serial(struct cm_client *client, uint32_t serial, struct cm_slot **ret_slot, cm_error *error)
{
    int64_t deadline_ms = cm_request_deadline(client);
    struct cm_slot *slot;
    bool in_time = true, any_busy;
    pthread_mutex_lock(&client->lock);
    while ((slot = find_serial(client, serial, &any_busy)) == NULL && any_busy && in_time)
        in_time = wait_freed(client, deadline_ms);
    if (slot != NULL)
        slot->busy = true;
    pthread_mutex_unlock(&client->lock);
    if (slot == NULL)
        return any_busy ? fail_wait(client, error)
                        : cm_fail(error, CM_ERR_DISCONNECTED, CM_RETRY_FINAL,
                                  "the operation ended with its connection to %.150s; begin it anew",
                                  client->endpoint.uri);
    *ret_slot = slot;
    return 0;
}

struct cm_slot *cm_pool_try_take(struct cm_client *client)
{
    pthread_mutex_lock(&client->lock);
    struct cm_slot *slot = find_idle(client);
    if (slot != NULL && slot->conn != NULL && slot->conn->session_number == client->session_number)
        slot->busy = true;
    else
        slot = NULL;
    pthread_mutex_unlock(&client->lock);
    return slot;
}

void cm_pool_put(struct cm_client *client, struct cm_slot *slot)
{
    struct cm_conn *conn = slot->conn;
    if (conn != NULL)
        conn->pooled = true;
    if (conn != NULL && (conn->broken || conn->going_away)) {
        slot->conn = NULL;
        cm_pool_drop(client, conn);
    }
    pthread_mutex_lock(&client->lock);
    slot->busy = false;
    /* All, since those who wait for one certain connection wait here too. */
    pthread_cond_broadcast(&client->freed);
    pthread_mutex_unlock(&client->lock);
}

int cm_pool_detach(struct cm_client *client, struct cm_conn **ret_conn, cm_error *error)
{
    struct cm_slot *slot = cm_pool_try_take(client);
    struct cm_conn *conn = NULL;
    if (slot != NULL && slot->conn->operations == 0 && is_alive(client, slot->conn)) {
        conn = slot->conn;
        slot->conn = NULL;
    }
    if (slot != NULL)
        cm_pool_put(client, slot);
    if (conn != NULL) {
        *ret_conn = conn;
        return 0;
    }
    return connect_anew(client, ret_conn, error);
}

void cm_pool_close_later(struct cm_client *client, uint32_t session_number, uint32_t handle)
{
    pthread_mutex_lock(&client->lock);
    if (session_number == client->session_number && client->closing_count == client->closing_capacity) {
        uint32_t capacity = client->closing_capacity == 0 ? 16 : client->closing_capacity * 2;
        uint32_t *more = realloc(client->closing, capacity * sizeof *more);
        /* Without memory the handle stays until the session ends. */
        if (more != NULL) {
            client->closing = more;
            client->closing_capacity = capacity;
        }
    }
    if (session_number == client->session_number && client->closing_count < client->closing_capacity)
        client->closing[client->closing_count++] = handle;
    pthread_mutex_unlock(&client->lock);
}

uint32_t cm_pool_next_closing(struct cm_client *client, uint32_t session_number)
{
    uint32_t handle = 0;
    pthread_mutex_lock(&client->lock);
    if (session_number == client->session_number && client->closing_count > 0)
        handle = client->closing[--client->closing_count];
    pthread_mutex_unlock(&client->lock);
    return handle;
}
