/* SPDX-License-Identifier: Apache-2.0 */
/* One long message in parts, on the connection on which it began. */
#include "batch.h"
#include "call.h"
#include "error.h"
#include <stdlib.h>
#include <string.h>

struct cm_operation {
    struct cm_key *key;
    struct cm_shape shape;
    uint32_t key_handle;
    uint32_t serial; /* of the connection; 0: not begun */
    bool ended;      /* by its last part, by a failure, or with its connection */
};

int cm_operation_open(cm_operation **ret_operation, cm_key *key, int mode, int direction, unsigned flags,
                      cm_error *error)
{
    cm_error_clear(error);
    if (ret_operation == NULL || key == NULL)
        return cm_fail_code(error, CM_ERR_ARGUMENT, "ret_operation or key is NULL");
    struct cm_shape shape;
    int rc = cm_client_check(key->client, error);
    if (rc == 0)
        rc = cm_shape_of(key, mode, direction, flags, &shape, error);
    if (rc != 0)
        return rc;
    if (mode == CM_XTS)
        return cm_fail_code(error, CM_ERR_UNSUPPORTED,
                            "XTS has no parts: a data unit is one item of a batch");
    if (mode == CM_GCM && direction == CM_DECRYPT)
        return cm_fail_code(error, CM_ERR_UNSUPPORTED,
                            "GCM is not decrypted in parts: no plaintext leaves before the tag is right");
    struct cm_operation *operation = calloc(1, sizeof *operation);
    if (operation == NULL)
        return cm_fail_memory(error, "an operation");
    operation->key = key;
    operation->shape = shape;
    *ret_operation = operation;
    return 0;
}

/* The first part goes to any connection, the others to the same one. */
static int take_conn(struct cm_operation *operation, struct cm_slot **ret_slot, cm_error *error)
{
    struct cm_client *client = operation->key->client;
    if (operation->serial != 0)
        return cm_pool_take_serial(client, operation->serial, ret_slot, error);
    int rc = cm_pool_take(client, ret_slot, error);
    if (rc != 0)
        return rc;
    struct cm_conn *conn = (*ret_slot)->conn;
    rc = cm_key_handle(operation->key, conn, &operation->key_handle, error);
    if (rc != 0) {
        cm_pool_put(client, *ret_slot);
        return rc;
    }
    operation->shape.operation = ++conn->next_operation;
    return 0;
}

/* The first bad part is the cause; those behind it were refused because of it. */
static int tell_part(const struct cm_run *run, cm_error *error)
{
    size_t bad = 0;
    while (bad + 1 < run->count && run->items[bad].status == CM_OK)
        bad++;
    int code = run->items[bad].status;
    if (run->error.code == CM_OK ||
        (run->failed_items > 0 && code != run->error.code && code != CM_ERR_NOT_SENT))
        return run->count == 1 ? cm_fail_code(error, code, "%s", cm_status_description(code))
                               : cm_fail_code(error, code, "part %zu: %s", bad, cm_status_description(code));
    return cm_fail_copy(error, &run->error);
}

static void post_cancel(struct cm_operation *operation, struct cm_conn *conn)
{
    const struct cm_call call = {.kind = CM_CALL_CANCEL_OPERATION, .number = operation->shape.operation};
    (void)cm_call_post(operation->key->client, conn, &call);
}

/* Notes what the parts did to the operation. One that failed here and not in the daemon is cancelled there.
 */
static void settle(struct cm_operation *operation, struct cm_conn *conn, bool failed, bool last)
{
    bool was_open = operation->serial != 0;
    bool is_open = !failed && !last;
    if (is_open && !was_open)
        conn->operations++;
    if (!is_open && was_open)
        conn->operations--;
    if (failed && !conn->broken)
        post_cancel(operation, conn);
    operation->serial = conn->serial;
    operation->ended = !is_open;
}

/* *ret_repeat: the operation did not begin, since its connection had ended while it lay idle. */
static int run_parts(struct cm_operation *operation, struct cm_conn *conn, cm_item *items, size_t count,
                     bool last, bool *ret_repeat, cm_error *error)
{
    struct cm_run run = {
        .client = operation->key->client,
        .conn = conn,
        .shape = operation->shape,
        .key_handle = operation->key_handle,
        .items = items,
        .count = count,
        .parts = true,
        .ends = last,
        .begins = operation->serial == 0,
    };
    bool pooled = conn->pooled;
    int rc = cm_run_all(&run);
    *ret_repeat = rc != 0 && run.begins && pooled && cm_run_may_repeat(&run);
    if (*ret_repeat)
        return cm_fail_copy(error, &run.error);
    bool failed = rc != 0 || run.failed_items > 0;
    settle(operation, conn, failed, last);
    if (run.key_version != 0 && operation->shape.direction == CM_ENCRYPT)
        atomic_store(&operation->key->version_used, run.key_version);
    return failed ? tell_part(&run, error) : 0;
}

/* Whether the parts have room is asked as for last ones where the message ends, and as for middle ones
 * before. */
static int check_parts(const struct cm_operation *operation, cm_item *items, size_t count, int last,
                       cm_error *error)
{
    struct cm_shape shape = operation->shape;
    shape.part = CM_WIRE_LAST;
    int rc = last ? cm_items_check(&shape, items + count - 1, 1, error) : 0;
    shape.part = CM_WIRE_MIDDLE;
    if (rc == 0)
        rc = cm_items_check(&shape, items, last ? count - 1 : count, error);
    return rc;
}

int cm_operation_parts(cm_operation *operation, cm_item *items, size_t count, int last, cm_error *error)
{
    cm_error_clear(error);
    if (operation == NULL || items == NULL || count == 0)
        return cm_fail_code(error, CM_ERR_ARGUMENT, "operation or items is NULL, or there are no parts");
    struct cm_client *client = operation->key->client;
    int rc = cm_client_check(client, error);
    if (rc != 0)
        return rc;
    if (operation->ended)
        return cm_fail_code(error, CM_ERR_NO_SUCH_OPERATION, "the operation has ended");
    rc = check_parts(operation, items, count, last, error);
    if (rc != 0)
        return rc;
    bool repeat = true;
    for (int i = 0; i < 2 && repeat; i++) {
        struct cm_slot *slot;
        rc = take_conn(operation, &slot, error);
        if (rc != 0) {
            operation->ended = operation->serial != 0;
            return rc;
        }
        rc = run_parts(operation, slot->conn, items, count, last != 0, &repeat, error);
        cm_pool_put(client, slot);
    }
    return rc;
}

int cm_operation_part(cm_operation *operation, cm_item *item, int last, cm_error *error)
{
    return cm_operation_parts(operation, item, 1, last, error);
}

static void cancel(struct cm_operation *operation)
{
    struct cm_client *client = operation->key->client;
    struct cm_slot *slot;
    if (cm_pool_take_serial(client, operation->serial, &slot, NULL) != 0)
        return;
    post_cancel(operation, slot->conn);
    slot->conn->operations--;
    cm_pool_put(client, slot);
}

void cm_operation_close(cm_operation *operation)
{
    if (operation == NULL)
        return;
    if (operation->serial != 0 && !operation->ended && cm_client_check(operation->key->client, NULL) == 0)
        cancel(operation);
    free(operation);
}
