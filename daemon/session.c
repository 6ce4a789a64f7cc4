/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: their tokens, handles and ephemeral keys. */
#include "session.h"

#include "random_pool.h"
#include "status.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 8 };

void cm_sessions_init(struct cm_sessions *sessions)
{
    pthread_mutex_init(&sessions->mutex, NULL);
    sessions->first = NULL;
}

void cm_sessions_done(struct cm_sessions *sessions)
{
    assert(sessions->first == NULL);
    pthread_mutex_destroy(&sessions->mutex);
}

static struct cm_session *session_new(const char *identity, uint32_t handle_limit)
{
    struct cm_session *session = calloc(1, sizeof *session);
    if (session == NULL)
        return NULL;
    if (cm_random_secret(session->token, sizeof session->token) != 0) {
        free(session);
        return NULL;
    }
    pthread_mutex_init(&session->mutex, NULL);
    atomic_init(&session->generation, 1);
    snprintf(session->identity, sizeof session->identity, "%s", identity);
    session->handle_limit = handle_limit;
    session->connections = 1;
    return session;
}

uint32_t cm_session_join(struct cm_sessions *sessions, const char *identity, struct cm_bytes token,
                         uint32_t handle_limit, struct cm_session **ret_session)
{
    if (token.length == 0) {
        struct cm_session *session = session_new(identity, handle_limit);
        if (session == NULL)
            return CM_STATUS_INTERNAL;
        pthread_mutex_lock(&sessions->mutex);
        session->next = sessions->first;
        sessions->first = session;
        pthread_mutex_unlock(&sessions->mutex);
        *ret_session = session;
        return CM_STATUS_OK;
    }
    if (token.length != CM_TOKEN_BYTES)
        return CM_STATUS_NO_SUCH_SESSION;

    /* A plain walk: joining is rare, and comparing in constant time gives no token away. */
    struct cm_session *found = NULL;
    pthread_mutex_lock(&sessions->mutex);
    for (struct cm_session *at = sessions->first; at != NULL; at = at->next)
        if (cm_aes_equal(at->token, token.data, CM_TOKEN_BYTES) && strcmp(at->identity, identity) == 0)
            found = at;
    if (found != NULL)
        found->connections++;
    pthread_mutex_unlock(&sessions->mutex);
    if (found == NULL)
        return CM_STATUS_NO_SUCH_SESSION;
    *ret_session = found;
    return CM_STATUS_OK;
}

void cm_session_leave(struct cm_sessions *sessions, struct cm_session *session)
{
    pthread_mutex_lock(&sessions->mutex);
    bool last = --session->connections == 0;
    if (last) {
        struct cm_session **at = &sessions->first;
        while (*at != session)
            at = &(*at)->next;
        *at = session->next;
    }
    pthread_mutex_unlock(&sessions->mutex);
    if (!last)
        return;
    for (uint32_t i = 0; i < session->count; i++) {
        cm_live_key_put(session->handles[i].ephemeral);
        free(session->handles[i].name);
    }
    free(session->handles);
    pthread_mutex_destroy(&session->mutex);
    cm_aes_wipe(session, sizeof *session);
    free(session);
}

/* Under the mutex. */
static bool make_room(struct cm_session *session)
{
    if (session->count < session->capacity)
        return true;
    uint32_t capacity = session->capacity > 0 ? session->capacity * 2 : FIRST_CAPACITY;
    struct cm_session_handle *handles = realloc(session->handles, capacity * sizeof *handles);
    if (handles == NULL)
        return false;
    session->handles = handles;
    session->capacity = capacity;
    return true;
}

uint32_t cm_session_add(struct cm_session *session, const char *name, struct cm_live_key *ephemeral,
                        uint32_t *ret_handle)
{
    char *copy = name != NULL ? strdup(name) : NULL;
    if (name != NULL && copy == NULL)
        return CM_STATUS_INTERNAL;
    uint32_t status = CM_STATUS_OK;
    pthread_mutex_lock(&session->mutex);
    if (session->count >= session->handle_limit || session->last_handle == UINT32_MAX) {
        status = CM_STATUS_SESSION_FULL;
    } else if (!make_room(session)) {
        status = CM_STATUS_INTERNAL;
    } else {
        session->handles[session->count++] = (struct cm_session_handle){
            .handle = ++session->last_handle,
            .name = copy,
            .ephemeral = name == NULL ? cm_live_key_get(ephemeral) : NULL,
        };
        *ret_handle = session->last_handle;
    }
    pthread_mutex_unlock(&session->mutex);
    if (status != CM_STATUS_OK)
        free(copy);
    return status;
}

/* Under the mutex. The handle's index, or session->count. */
static uint32_t position(const struct cm_session *session, uint32_t handle)
{
    uint32_t low = 0, high = session->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (session->handles[middle].handle < handle)
            low = middle + 1;
        else
            high = middle;
    }
    return low < session->count && session->handles[low].handle == handle ? low : session->count;
}

uint32_t cm_session_remove(struct cm_session *session, uint32_t handle)
{
    struct cm_session_handle removed = {0};
    pthread_mutex_lock(&session->mutex);
    uint32_t at = position(session, handle);
    bool found = at < session->count;
    if (found) {
        removed = session->handles[at];
        session->count--;
        memmove(session->handles + at, session->handles + at + 1,
                (session->count - at) * sizeof *session->handles);
        atomic_fetch_add(&session->generation, 1);
    }
    pthread_mutex_unlock(&session->mutex);
    cm_live_key_put(removed.ephemeral);
    free(removed.name);
    return found ? CM_STATUS_OK : CM_STATUS_NO_SUCH_KEY;
}

uint32_t cm_session_find(struct cm_session *session, uint32_t handle, struct cm_live_key **ret_ephemeral,
                         char ret_name[CM_KEY_NAME_MAX + 1], uint64_t *ret_generation)
{
    pthread_mutex_lock(&session->mutex);
    uint32_t at = position(session, handle);
    bool found = at < session->count;
    if (found) {
        const struct cm_session_handle *entry = &session->handles[at];
        *ret_ephemeral = entry->ephemeral != NULL ? cm_live_key_get(entry->ephemeral) : NULL;
        snprintf(ret_name, CM_KEY_NAME_MAX + 1, "%s", entry->name != NULL ? entry->name : "");
        *ret_generation = atomic_load(&session->generation);
    }
    pthread_mutex_unlock(&session->mutex);
    return found ? CM_STATUS_OK : CM_STATUS_NO_SUCH_KEY;
}
