/* SPDX-License-Identifier: Apache-2.0 */
/* The service as a whole: opening store and master key, its workers, its end. */
#include "service.h"

#include "attributes.h"
#include "change.h"
#include "service_internal.h"
#include "status.h"
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void cm_service_log(const struct cm_service *service, enum cm_service_log_level level, const char *format,
                    ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (service->host.log != NULL)
        service->host.log(service->host.host, (int)level, text);
}

/* --- Opening: everything is looked at before anything is written
 * ----------------------------------------------- */

/* The store's keys on their way into the first snapshot. */
struct loading {
    struct cm_service *service;
    struct cm_live_key **keys;
    uint32_t count, capacity;
    bool unwrap; /* false: only count them */
    char *text;
    size_t text_capacity;
};

static int make_folder(const char *path, char *ret_text, size_t text_capacity)
{
    struct stat info;
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        snprintf(ret_text, text_capacity,
                 "state folder %s: cannot be made: %s; make it, owned by the daemon's user", path,
                 strerror(errno));
        return -1;
    }
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) {
        snprintf(ret_text, text_capacity, "state folder %s: is no folder; name another one", path);
        return -1;
    }
    /* Whoever may write there can put another store and another master key in the place of these. */
    if (info.st_uid != 0 && info.st_uid != geteuid()) {
        snprintf(ret_text, text_capacity,
                 "state folder %s: belongs to uid %u; it must belong to root or to uid %u: run chown %u %s",
                 path, (unsigned)info.st_uid, (unsigned)geteuid(), (unsigned)geteuid(), path);
        return -1;
    }
    if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        snprintf(ret_text, text_capacity,
                 "state folder %s: has mode %04o, so that others may change it: run chmod go-w %s", path,
                 (unsigned)(info.st_mode & 07777), path);
        return -1;
    }
    return 0;
}

_Static_assert((int)CM_STORED_KEY_MAX_BYTES == (int)CM_AES_MAX_KEY_BYTES,
               "what is unwrapped fits a live key");

/* NULL if the row is not what was once stored. */
static struct cm_live_key *unwrap_key(struct cm_service *service, const struct cm_stored_key *stored)
{
    struct cm_live_key *key = cm_live_key_new(&service->forms, stored->version_count);
    if (key == NULL)
        return NULL;
    memcpy(key->name, stored->name, sizeof key->name);
    memcpy(key->id, stored->id, sizeof key->id);
    key->key_bits = stored->key_bits;
    key->attributes = stored->attributes;
    key->unsafe_mixed_modes = stored->unsafe_mixed_modes;
    key->revision = stored->revision;
    for (uint32_t v = 0; v < stored->version_count; v++) {
        const struct cm_stored_version *from = &stored->versions[v];
        struct cm_live_version *version = &key->versions[v];
        size_t length, expected = from->state == CM_WIRE_KEY_DESTROYED
                                      ? 0
                                      : cm_key_bytes(&stored->attributes, stored->key_bits);
        version->number = from->number;
        version->state = from->state;
        version->created_unix_s = from->created_unix_s;
        if (cm_master_unwrap(&service->master, stored, from, version->bytes, &length) != 0 ||
            length != expected)
            goto changed;
    }
    return key;
changed:
    cm_live_key_put(key);
    return NULL;
}

static int on_stored_key(void *context, const struct cm_stored_key *stored)
{
    struct loading *loading = context;
    if (!loading->unwrap) {
        loading->count++;
        return 0;
    }
    if (loading->count == loading->capacity) {
        uint32_t capacity = loading->capacity > 0 ? loading->capacity * 2 : 64;
        struct cm_live_key **keys = realloc(loading->keys, capacity * sizeof(struct cm_live_key *));
        if (keys == NULL) {
            snprintf(loading->text, loading->text_capacity, "key store: out of memory after %u keys",
                     loading->count);
            return -1;
        }
        loading->keys = keys;
        loading->capacity = capacity;
    }
    bool sane = cm_key_name_valid(stored->name) && stored->version_count > 0;
    struct cm_live_key *key = sane ? unwrap_key(loading->service, stored) : NULL;
    if (key == NULL) {
        snprintf(loading->text, loading->text_capacity,
                 "key store: key \"%s\" was changed or damaged: its row does not authenticate under the "
                 "master key; "
                 "restore the store from your backup",
                 cm_key_name_valid(stored->name) ? stored->name : "(invalid name)");
        return -1;
    }
    loading->keys[loading->count++] = key;
    return 0;
}

/* Everything between opening the store and letting it write. */
static int load(struct cm_service *service, const char *master_path, char *ret_text, size_t text_capacity)
{
    struct loading loading = {.service = service, .text = ret_text, .text_capacity = text_capacity};
    uint8_t check[CM_MASTER_CHECK_BYTES];
    bool has_check = false, made = false;
    if (service->table->load(service->store, on_stored_key, &loading, check, &has_check, ret_text,
                             text_capacity) != 0)
        return -1;
    bool empty = loading.count == 0;
    if (cm_master_load(&service->master, master_path, empty, &made, ret_text, text_capacity) != 0)
        return -1;
    if (!empty && (!has_check || !cm_aes_equal(check, service->master.check, sizeof check))) {
        snprintf(ret_text, text_capacity,
                 "master key %s: is not the one that the store was made with (its mode is right); restore "
                 "the right "
                 "one, with mode 0600, from your backup",
                 master_path);
        return -1;
    }
    if (made)
        cm_service_log(service, CM_SERVICE_LOG_WARNING,
                       "made the master key %s: back this up, without it no stored key can be read",
                       master_path);

    loading.count = 0;
    loading.unwrap = true;
    int rc = service->table->load(service->store, on_stored_key, &loading, check, &has_check, ret_text,
                                  text_capacity);
    if (rc == 0) {
        service->snapshot = cm_snapshot_new(loading.keys, loading.count);
        if (service->snapshot == NULL) {
            snprintf(ret_text, text_capacity, "key store: out of memory");
            rc = -1;
        }
    }
    for (uint32_t i = 0; rc != 0 && i < loading.count; i++)
        cm_live_key_put(loading.keys[i]);
    free(loading.keys);
    return rc;
}

int cm_service_new(struct cm_service **ret_service, const struct cm_service_options *options,
                   const struct cm_service_host *host, char *ret_text, size_t text_capacity)
{
    char master_path[PATH_MAX];
    if (options->master_key_file != NULL)
        snprintf(master_path, sizeof master_path, "%s", options->master_key_file);
    else
        snprintf(master_path, sizeof master_path, "%s/master.key", options->state_folder);

    struct cm_service *service = calloc(1, sizeof *service);
    if (service == NULL)
        goto no_memory;
    service->workers = calloc(options->workers, sizeof(struct cm_service_worker *));
    if (service->workers == NULL)
        goto no_memory;
    service->options = *options;
    service->options.state_folder = service->options.master_key_file = NULL;
    service->host = *host;
    service->table = cm_keystore_default();
    atomic_init(&service->forms.used, 0);
    service->forms.limit = CM_FORM_LIMIT;
    atomic_init(&service->closing, false);
    cm_sessions_init(&service->sessions);
    pthread_mutex_init(&service->mutex, NULL);

    if (make_folder(options->state_folder, ret_text, text_capacity) != 0 ||
        service->table->open(&service->store, options->state_folder, ret_text, text_capacity) != 0 ||
        load(service, master_path, ret_text, text_capacity) != 0 ||
        service->table->start(service->store, service->master.check, ret_text, text_capacity) != 0) {
        cm_service_free(service);
        return -1;
    }
    cm_cost_measure(&service->cost);
    *ret_service = service;
    return 0;

no_memory:
    free(service);
    snprintf(ret_text, text_capacity, "out of memory");
    return -1;
}

void cm_service_free(struct cm_service *service)
{
    if (service == NULL)
        return;
    atomic_store(&service->closing, true);
    service->table->close(service->store);
    cm_changes_done(service);
    cm_snapshot_put(service->snapshot);
    cm_sessions_done(&service->sessions);
    cm_master_done(&service->master);
    pthread_mutex_destroy(&service->mutex);
    free(service->workers);
    free(service);
}

struct cm_service_worker *cm_service_worker_new(struct cm_service *service, uint32_t index)
{
    struct cm_service_worker *worker = calloc(1, sizeof *worker);
    if (worker == NULL)
        return NULL;
    worker->service = service;
    worker->index = index;
    pthread_mutex_lock(&service->mutex);
    service->workers[index] = worker;
    worker->snapshot = cm_snapshot_get(service->snapshot);
    pthread_mutex_unlock(&service->mutex);
    return worker;
}

void cm_service_worker_free(struct cm_service_worker *worker)
{
    if (worker == NULL)
        return;
    cm_changes_forget_worker(worker);
    cm_aes_wipe(worker, sizeof *worker);
    free(worker);
}
