/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of named keys: from a call to the store's thread, into every worker's snapshot, and back. */
#include "change.h"

#include "service_internal.h"
#include "status.h"
#include <stdlib.h>
#include <string.h>

/* --- Publishing a snapshot: each worker replaces its own pointer ------------------------------------------
 */

struct message {
    struct cm_publication *publication;
    uint32_t worker;
    bool sent;
    bool done; /* that worker's thread only */
};

struct cm_publication {
    struct cm_service *service;
    struct cm_publication *next;
    struct cm_snapshot *snapshot;
    struct cm_change *change; /* told when every worker has the snapshot */
    atomic_uint remaining;
    bool kept; /* a worker ended before its message came, which may still come: freed with the service */
    struct message messages[];
};

static void change_step(struct cm_change *change);

static void acknowledge(struct cm_publication *publication)
{
    if (atomic_fetch_sub(&publication->remaining, 1) != 1)
        return;
    struct cm_service *service = publication->service;
    struct cm_change *change = publication->change;
    cm_snapshot_put(publication->snapshot);
    publication->snapshot = NULL;
    if (!publication->kept) {
        pthread_mutex_lock(&service->mutex);
        struct cm_publication **at = &service->publications;
        while (*at != publication)
            at = &(*at)->next;
        *at = publication->next;
        pthread_mutex_unlock(&service->mutex);
        free(publication);
    }
    change_step(change);
}

/* On the worker's thread. */
static void install(void *argument)
{
    struct message *message = argument;
    if (message->done)
        return;
    message->done = true;
    struct cm_publication *publication = message->publication;
    struct cm_service_worker *worker = publication->service->workers[message->worker];
    struct cm_snapshot *old = worker->snapshot;
    worker->snapshot = cm_snapshot_get(publication->snapshot);
    cm_snapshot_put(old);
    acknowledge(publication);
}

/* Takes over the reference to `snapshot`. Under the service's mutex; the caller then sends. */
static void announce(struct cm_publication *publication, struct cm_snapshot *snapshot)
{
    struct cm_service *service = publication->service;
    publication->snapshot = cm_snapshot_get(snapshot);
    publication->next = service->publications;
    service->publications = publication;
    uint32_t count = 0;
    for (uint32_t i = 0; i < service->options.workers; i++) {
        publication->messages[i] =
            (struct message){publication, i, .sent = service->workers[i] != NULL, .done = false};
        count += publication->messages[i].sent;
    }
    atomic_init(&publication->remaining, count + 1); /* one for the sender, so that it ends after sending */
    service->snapshot = snapshot;
}

static void send(struct cm_publication *publication)
{
    struct cm_service *service = publication->service;
    for (uint32_t i = 0; i < service->options.workers; i++)
        if (publication->messages[i].sent)
            service->host.post(service->host.host, i, install, &publication->messages[i]);
    acknowledge(publication);
}

void cm_changes_forget_worker(struct cm_service_worker *worker)
{
    struct cm_service *service = worker->service;
    pthread_mutex_lock(&service->mutex);
    service->workers[worker->index] = NULL;
    for (struct cm_publication *at = service->publications; at != NULL; at = at->next) {
        struct message *message = &at->messages[worker->index];
        if (!message->sent || message->done)
            continue;
        message->done = true;
        at->kept = true;
        acknowledge(at);
    }
    pthread_mutex_unlock(&service->mutex);
    cm_snapshot_put(worker->snapshot);
    worker->snapshot = NULL;
}

/* --- A change's way ---------------------------------------------------------------------------------------
 */

struct cm_change *cm_change_new(struct cm_peer_state *peer, const struct cm_call *call, uint32_t versions,
                                cm_answer_function answer, void *context)
{
    struct cm_change *change = calloc(1, sizeof *change);
    if (change == NULL)
        return NULL;
    change->sealed = calloc(versions + 1, sizeof *change->sealed);
    if (change->sealed == NULL) {
        free(change);
        return NULL;
    }
    change->store.key.versions = change->sealed;
    change->store.key.version_count = versions;
    change->store.has_operation_id = call->operation_id.length == CM_OPERATION_ID_BYTES;
    if (change->store.has_operation_id)
        memcpy(change->store.operation_id, call->operation_id.data, CM_OPERATION_ID_BYTES);
    change->service = peer->worker->service;
    change->worker = peer->worker->index;
    change->peer = peer;
    change->request_id = call->request_id;
    change->answer = answer;
    change->context = context;
    return change;
}

void cm_change_free(struct cm_change *change)
{
    cm_live_key_put(change->fresh);
    free(change->sealed);
    free(change);
}

/* On the calling worker's thread. */
static void tell(void *argument)
{
    struct cm_change *change = argument;
    struct cm_service *service = change->service;
    if (change->peer != NULL) {
        struct cm_peer_state *peer = change->peer;
        struct cm_change **at = &peer->changes;
        while (*at != change)
            at = &(*at)->next_of_peer;
        *at = change->next_of_peer;

        struct cm_answer answer = {.request_id = change->request_id,
                                   .status = change->store.ret_status,
                                   .text = change->store.ret_text};
        struct cm_live_key *key = cm_snapshot_find(peer->worker->snapshot, change->store.key.name);
        struct cm_key_version_info *versions =
            key != NULL ? calloc(key->version_count + 1, sizeof *versions) : NULL;
        struct cm_key_info info;
        if (answer.status == CM_STATUS_OK && change->store.kind == CM_STORE_CREATE && versions != NULL) {
            info = cm_live_key_info(key, versions);
            answer.kind = CM_ANSWER_KEY;
            answer.key_count = 1;
            answer.keys = &info;
        }
        change->answer(change->context, &answer);
        free(versions);
    }
    pthread_mutex_lock(&service->mutex);
    struct cm_change **at = &service->changes;
    while (*at != change)
        at = &(*at)->next;
    *at = change->next;
    struct cm_change *follower = change->followers;
    pthread_mutex_unlock(&service->mutex);
    while (follower != NULL) {
        struct cm_change *next = follower->next_follower;
        change_step(follower);
        follower = next;
    }
    cm_change_free(change);
}

/* One thing that the change waited for has come. Any thread. */
static void change_step(struct cm_change *change)
{
    if (atomic_fetch_sub(&change->waiting, 1) == 1 && !atomic_load(&change->service->closing))
        change->service->host.post(change->service->host.host, change->worker, tell, change);
}

static void on_old_key_gone(void *context)
{
    change_step(context);
}

/* The next snapshot, with the fresh key in it. Returns what is to be sent, or NULL without memory. */
static struct cm_publication *make_live(struct cm_change *change)
{
    struct cm_service *service = change->service;
    struct cm_publication *publication =
        calloc(1, sizeof *publication + service->options.workers * sizeof publication->messages[0]);
    if (publication == NULL)
        return NULL;
    publication->service = service;
    publication->change = change;

    pthread_mutex_lock(&service->mutex);
    struct cm_snapshot *old = service->snapshot;
    struct cm_snapshot *snapshot = cm_snapshot_with(old, change->fresh);
    if (snapshot != NULL) {
        struct cm_live_key *replaced = cm_snapshot_find(old, change->fresh->name);
        atomic_store(&change->waiting, replaced != NULL ? 2 : 1);
        if (replaced != NULL) { /* `old` holds it, so nobody can be looking at these fields yet */
            replaced->on_gone = on_old_key_gone;
            replaced->on_gone_context = change;
        }
        announce(publication, snapshot);
    }
    pthread_mutex_unlock(&service->mutex);
    if (snapshot == NULL) {
        free(publication);
        return NULL;
    }
    cm_snapshot_put(old);
    return publication;
}

/* A repeat is answered after the first one, which may still wait for a key to be let go. False: that is over.
 */
static bool follow_first(struct cm_change *change)
{
    struct cm_service *service = change->service;
    pthread_mutex_lock(&service->mutex);
    struct cm_change *at = service->changes;
    while (at != NULL && (!at->store.ret_changed || memcmp(at->store.operation_id, change->store.operation_id,
                                                           CM_OPERATION_ID_BYTES) != 0))
        at = at->next;
    if (at != NULL) {
        change->next_follower = at->followers;
        at->followers = change;
    }
    pthread_mutex_unlock(&service->mutex);
    return at != NULL;
}

/* On the store's thread. */
static void on_stored(struct cm_store_change *store)
{
    struct cm_change *change = (struct cm_change *)store;
    atomic_store(&change->waiting, 1);
    if (store->ret_changed && change->fresh != NULL) {
        struct cm_publication *publication = make_live(change);
        if (publication != NULL) {
            send(publication);
            return;
        }
        store->ret_status = CM_STATUS_INTERNAL;
        strcpy(store->ret_text, "the change is stored, but the daemon lacks memory to use it: restart it");
        cm_service_log(change->service, CM_SERVICE_LOG_ERROR, "key %s: %s", store->key.name, store->ret_text);
    }
    if (!store->ret_repeated || !follow_first(change))
        change_step(change);
}

void cm_change_submit(struct cm_change *change)
{
    struct cm_service *service = change->service;
    change->store.done = on_stored;
    change->next_of_peer = change->peer->changes;
    change->peer->changes = change;
    pthread_mutex_lock(&service->mutex);
    change->next = service->changes;
    service->changes = change;
    pthread_mutex_unlock(&service->mutex);
    service->table->submit(service->store, &change->store);
}

void cm_changes_forget_peer(struct cm_peer_state *peer)
{
    for (struct cm_change *at = peer->changes; at != NULL; at = at->next_of_peer)
        at->peer = NULL;
    peer->changes = NULL;
}

void cm_changes_done(struct cm_service *service)
{
    while (service->publications != NULL) {
        struct cm_publication *publication = service->publications;
        service->publications = publication->next;
        cm_snapshot_put(publication->snapshot);
        free(publication);
    }
    while (service->changes != NULL) {
        struct cm_change *change = service->changes;
        service->changes = change->next;
        cm_change_free(change);
    }
}
