/* SPDX-License-Identifier: Apache-2.0 */
/* cm_encrypt and cm_decrypt. */
#include "batch.h"
#include "error.h"
#include <stdio.h>
#include <string.h>

int cm_shape_of(struct cm_key *key, int mode, int direction, unsigned flags, struct cm_shape *ret_shape,
                cm_error *error)
{
    if (mode < CM_ECB || mode > CM_XTS)
        return cm_fail_code(error, CM_ERR_ARGUMENT, "mode %d is unknown", mode);
    if (direction != CM_ENCRYPT && direction != CM_DECRYPT)
        return cm_fail_code(error, CM_ERR_ARGUMENT, "direction %d is unknown", direction);
    if ((flags & ~(unsigned)CM_NO_PADDING) != 0)
        return cm_fail_code(error, CM_ERR_ARGUMENT, "flags 0x%x are unknown", flags);
    *ret_shape = (struct cm_shape){
        .mode = (uint8_t)mode,
        .direction = (uint8_t)direction,
        .padding = (mode == CM_ECB || mode == CM_CBC) && (flags & CM_NO_PADDING) == 0,
        .key_version = direction == CM_DECRYPT ? atomic_load(&key->version_wanted) : 0,
        .slot_align = key->client->slot_align,
        .slot_gap = key->client->slot_gap,
    };
    return 0;
}

/* One attempt. *ret_repeat: nothing was done, and another may succeed. */
static int attempt(struct cm_key *key, struct cm_run *run, bool *ret_repeat)
{
    struct cm_slot *slot;
    *ret_repeat = false;
    int rc = cm_pool_take(key->client, &slot, &run->error);
    if (rc != 0)
        return rc;
    run->conn = slot->conn;
    bool was_pooled = slot->conn->pooled;
    rc = cm_key_handle(key, slot->conn, &run->key_handle, &run->error);
    if (rc == 0)
        rc = cm_run_all(run);
    else if (run->error.retry == CM_RETRY_UNKNOWN)
        run->error.retry = CM_RETRY_NOT_EXECUTED; /* the key may have been opened, but no item was sent */
    *ret_repeat = rc != 0 && was_pooled && cm_run_may_repeat(run);
    cm_pool_put(key->client, slot);
    return rc;
}

int cm_tell_failed_items(const cm_item *items, size_t count, size_t failed, cm_error *error)
{
    for (size_t i = 0; i < count; i++)
        if (items[i].status != CM_OK) {
            int code = items[i].status;
            cm_fail_code(error, code, "%zu of %zu items failed; item %zu: %s", failed, count, i,
                         cm_status_description(code));
            break;
        }
    return (int)failed;
}

static int tell_failure(const struct cm_run *run, cm_error *error)
{
    if (run->answered_items == 0)
        return cm_fail_copy(error, &run->error);
    return cm_fail(error, run->error.code, run->error.retry,
                   "%.150s (%zu of %zu items were done, see each status)", run->error.text,
                   run->answered_items - run->failed_items, run->count);
}

static int run_batch(cm_key *key, int mode, int direction, unsigned flags, cm_item *items, size_t count,
                     cm_error *error)
{
    cm_error_clear(error);
    if (key == NULL || (items == NULL && count > 0) || count > INT32_MAX)
        return cm_fail_code(error, CM_ERR_ARGUMENT, "key or items is NULL, or there are too many items");
    int rc = cm_client_check(key->client, error);
    struct cm_shape shape;
    if (rc == 0)
        rc = cm_shape_of(key, mode, direction, flags, &shape, error);
    if (rc == 0)
        rc = cm_items_check(&shape, items, count, error);
    if (rc != 0 || count == 0)
        return rc;
    struct cm_run run;
    bool repeat = true;
    for (int i = 0; i < 2 && repeat; i++) {
        run = (struct cm_run){.client = key->client, .shape = shape, .items = items, .count = count};
        rc = attempt(key, &run, &repeat);
    }
    if (rc != 0)
        return tell_failure(&run, error);
    if (direction == CM_ENCRYPT && run.failed_items < count)
        atomic_store(&key->version_used, run.key_version);
    return cm_tell_failed_items(items, count, run.failed_items, error);
}

int cm_encrypt(cm_key *key, int mode, cm_item *items, size_t count, cm_error *error)
{
    return run_batch(key, mode, CM_ENCRYPT, 0, items, count, error);
}

int cm_decrypt(cm_key *key, int mode, cm_item *items, size_t count, cm_error *error)
{
    return run_batch(key, mode, CM_DECRYPT, 0, items, count, error);
}

int cm_encrypt_flags(cm_key *key, int mode, unsigned flags, cm_item *items, size_t count, cm_error *error)
{
    return run_batch(key, mode, CM_ENCRYPT, flags, items, count, error);
}

int cm_decrypt_flags(cm_key *key, int mode, unsigned flags, cm_item *items, size_t count, cm_error *error)
{
    return run_batch(key, mode, CM_DECRYPT, flags, items, count, error);
}
