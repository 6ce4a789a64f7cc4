/* SPDX-License-Identifier: Apache-2.0 */
/* Keys in memory: references, expanded forms, snapshots. */
#include "keys.h"

#include "status.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct cm_live_key *cm_live_key_new(struct cm_form_budget *budget, uint32_t version_count)
{
    struct cm_live_key *key = calloc(1, sizeof *key + (size_t)version_count * sizeof(struct cm_live_version));
    if (key == NULL)
        return NULL;
    atomic_init(&key->references, 1);
    key->budget = budget;
    key->version_count = version_count;
    for (uint32_t v = 0; v < version_count; v++)
        for (int mode = 0; mode < CM_AES_MODE_COUNT; mode++)
            for (int direction = 0; direction < CM_AES_DIRECTION_COUNT; direction++)
                atomic_init(&key->versions[v].forms[mode][direction], NULL);
    return key;
}

struct cm_live_key *cm_live_key_get(struct cm_live_key *key)
{
    atomic_fetch_add_explicit(&key->references, 1, memory_order_relaxed);
    return key;
}

static void free_form(struct cm_live_key *key, struct cm_aes_key *form)
{
    cm_aes_key_done(form);
    free(form);
    atomic_fetch_sub(&key->budget->used, 1);
}

void cm_live_key_put(struct cm_live_key *key)
{
    if (key == NULL || atomic_fetch_sub_explicit(&key->references, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t v = 0; v < key->version_count; v++)
        for (int mode = 0; mode < CM_AES_MODE_COUNT; mode++)
            for (int direction = 0; direction < CM_AES_DIRECTION_COUNT; direction++) {
                struct cm_aes_key *form = atomic_load(&key->versions[v].forms[mode][direction]);
                if (form != NULL)
                    free_form(key, form);
            }
    void (*on_gone)(void *) = key->on_gone;
    void *context = key->on_gone_context;
    cm_aes_wipe(key, sizeof *key + (size_t)key->version_count * sizeof(struct cm_live_version));
    free(key);
    if (on_gone != NULL)
        on_gone(context);
}

bool cm_live_key_alive(const struct cm_live_key *key)
{
    for (uint32_t v = 0; v < key->version_count; v++)
        if (key->versions[v].state != CM_WIRE_KEY_DESTROYED)
            return true;
    return false;
}

static bool usable(const struct cm_live_version *version, enum cm_aes_direction direction)
{
    return version->state == CM_WIRE_KEY_ENABLED ||
           (version->state == CM_WIRE_KEY_DECRYPT_ONLY && direction == CM_AES_DECRYPT);
}

uint32_t cm_live_key_version(struct cm_live_key *key, uint32_t number, enum cm_aes_direction direction,
                             struct cm_live_version **ret_version)
{
    for (uint32_t v = key->version_count; v > 0; v--) {
        struct cm_live_version *version = &key->versions[v - 1];
        if (number == 0 ? usable(version, direction) : version->number == number) {
            if (!usable(version, direction))
                return CM_STATUS_KEY_UNUSABLE;
            *ret_version = version;
            return CM_STATUS_OK;
        }
    }
    return number == 0 ? CM_STATUS_KEY_UNUSABLE : CM_STATUS_NO_SUCH_KEY;
}

const struct cm_aes_key *cm_live_key_form(struct cm_live_key *key, struct cm_live_version *version,
                                          enum cm_aes_mode mode, enum cm_aes_direction direction)
{
    _Atomic(struct cm_aes_key *) *place = &version->forms[mode][direction];
    struct cm_aes_key *form = atomic_load_explicit(place, memory_order_acquire);
    if (form != NULL)
        return form;

    /* Half of the budget is the named keys' alone: else one client could fill it with ephemeral keys and make
     * everybody else expand keys for each batch. */
    uint32_t limit = key->name[0] != '\0' ? key->budget->limit : key->budget->limit / 2;
    if (atomic_fetch_add(&key->budget->used, 1) >= limit)
        goto over_budget;
    const struct cm_aes_row *row = cm_aes_row(mode, direction);
    form = aligned_alloc(CM_AES_KEY_ALIGN, cm_aes_key_size(row));
    if (form == NULL)
        goto over_budget;
    int rc = cm_aes_key_init(form, row, version->bytes, cm_key_bytes(&key->attributes, key->key_bits));
    assert(rc == CM_AES_OK); /* the length was checked when the key was made */
    (void)rc;
    struct cm_aes_key *first = NULL;
    if (atomic_compare_exchange_strong(place, &first, form))
        return form;
    free_form(key, form); /* somebody else was faster */
    return first;

over_budget:
    atomic_fetch_sub(&key->budget->used, 1);
    return NULL;
}

struct cm_key_info cm_live_key_info(const struct cm_live_key *key, struct cm_key_version_info *versions)
{
    for (uint32_t v = 0; v < key->version_count; v++)
        versions[v] = (struct cm_key_version_info){.version = key->versions[v].number,
                                                   .state = key->versions[v].state,
                                                   .created_unix_s = key->versions[v].created_unix_s};
    return (struct cm_key_info){.name = key->name,
                                .id = {key->id, sizeof key->id},
                                .key_bits = key->key_bits,
                                .attributes = key->attributes,
                                .version_count = key->version_count,
                                .versions = versions};
}

static struct cm_snapshot *snapshot_alloc(uint32_t count)
{
    struct cm_snapshot *snapshot = calloc(1, sizeof *snapshot + (size_t)count * sizeof(struct cm_live_key *));
    if (snapshot != NULL) {
        atomic_init(&snapshot->references, 1);
        snapshot->count = count;
    }
    return snapshot;
}

static void count_alive(struct cm_snapshot *snapshot)
{
    for (uint32_t i = 0; i < snapshot->count; i++)
        snapshot->alive += cm_live_key_alive(snapshot->keys[i]);
}

static int by_name(const void *a, const void *b)
{
    struct cm_live_key *const *left = a, *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

struct cm_snapshot *cm_snapshot_new(struct cm_live_key **keys, uint32_t count)
{
    struct cm_snapshot *snapshot = snapshot_alloc(count);
    if (snapshot == NULL)
        return NULL;
    if (count > 0) {
        memcpy(snapshot->keys, keys, (size_t)count * sizeof(struct cm_live_key *));
        qsort(snapshot->keys, count, sizeof(struct cm_live_key *), by_name);
    }
    snapshot->serial = 1;
    count_alive(snapshot);
    return snapshot;
}

struct cm_snapshot *cm_snapshot_with(const struct cm_snapshot *old, struct cm_live_key *key)
{
    uint32_t at = cm_snapshot_position(old, key->name);
    bool replaces = at < old->count && strcmp(old->keys[at]->name, key->name) == 0;
    struct cm_snapshot *snapshot = snapshot_alloc(old->count + !replaces);
    if (snapshot == NULL)
        return NULL;
    for (uint32_t i = 0, from = 0; i < snapshot->count; i++) {
        if (i == at) {
            snapshot->keys[i] = cm_live_key_get(key);
            from += replaces;
        } else {
            snapshot->keys[i] = cm_live_key_get(old->keys[from++]);
        }
    }
    snapshot->serial = old->serial + 1;
    count_alive(snapshot);
    return snapshot;
}

struct cm_snapshot *cm_snapshot_get(struct cm_snapshot *snapshot)
{
    atomic_fetch_add_explicit(&snapshot->references, 1, memory_order_relaxed);
    return snapshot;
}

void cm_snapshot_put(struct cm_snapshot *snapshot)
{
    if (snapshot == NULL || atomic_fetch_sub_explicit(&snapshot->references, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t i = 0; i < snapshot->count; i++)
        cm_live_key_put(snapshot->keys[i]);
    free(snapshot);
}

uint32_t cm_snapshot_position(const struct cm_snapshot *snapshot, const char *name)
{
    uint32_t low = 0, high = snapshot->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (strcmp(snapshot->keys[middle]->name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct cm_live_key *cm_snapshot_find(const struct cm_snapshot *snapshot, const char *name)
{
    uint32_t at = cm_snapshot_position(snapshot, name);
    if (at < snapshot->count && strcmp(snapshot->keys[at]->name, name) == 0)
        return snapshot->keys[at];
    return NULL;
}
