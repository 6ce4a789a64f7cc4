/* SPDX-License-Identifier: Apache-2.0 */
/* Administering keys, and what the daemon tells of itself. */
#include "call.h"
#include "error.h"
#include "key.h"
#include <ciphermill/admin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

_Static_assert((int)CM_KEY_ENABLED == (int)CM_WIRE_KEY_ENABLED, "key state");
_Static_assert((int)CM_KEY_DECRYPT_ONLY == (int)CM_WIRE_KEY_DECRYPT_ONLY, "key state");
_Static_assert((int)CM_KEY_DISABLED == (int)CM_WIRE_KEY_DISABLED, "key state");
_Static_assert((int)CM_KEY_DESTROYED == (int)CM_WIRE_KEY_DESTROYED, "key state");

_Static_assert((int)CM_USED_SHORT == (int)CM_WIRE_USED_SHORT, "size class");
_Static_assert((int)CM_USED_SMALL == (int)CM_WIRE_USED_SMALL, "size class");
_Static_assert((int)CM_USED_LONG == (int)CM_WIRE_USED_LONG, "size class");

enum { LIST_PAGE_KEYS = 100 };

static int fail_answer(cm_error *error)
{
    return cm_fail(error, CM_ERR_PROTOCOL, CM_RETRY_UNKNOWN,
                   "the daemon answered a call with something else");
}

static void copy_text(char *ret_text, size_t capacity, const char *from)
{
    (void)snprintf(ret_text, capacity, "%s", from);
    cm_text_clean(ret_text);
}

static int check(const struct cm_client *client, const char *name, bool needs_name, cm_error *error)
{
    cm_error_clear(error);
    if (client == NULL || (needs_name && name == NULL))
        return cm_fail_code(error, CM_ERR_ARGUMENT, "client or name is NULL");
    if (name != NULL && (name[0] == 0 || strlen(name) > CM_KEY_NAME_MAX))
        return cm_fail_code(error, CM_ERR_BAD_NAME, "%s", cm_status_description(CM_ERR_BAD_NAME));
    return cm_client_check(client, error);
}

/* A call that changes the store, under an id of its own by which the daemon knows a repeat. */
static int change(struct cm_client *client, const struct cm_call *what, const void *bytes, size_t length,
                  cm_error *error)
{
    uint8_t id[CM_OPERATION_ID_BYTES];
    if (getrandom(id, sizeof id, 0) != (ssize_t)sizeof id)
        return cm_fail(error, CM_ERR_NO_MEMORY, CM_RETRY_NOT_EXECUTED,
                       "the system gave no random operation id");
    struct cm_call call = *what;
    call.operation_id = (struct cm_bytes){id, sizeof id};
    return cm_call_run(client, &call, bytes, length, NULL, NULL, error);
}

int cm_key_create(cm_client *client, const char *name, uint32_t key_bits, const void *bytes,
                  const cm_key_options *options, cm_error *error)
{
    int rc = check(client, name, true, error);
    if (rc != 0)
        return rc;
    struct cm_call call = {
        .kind = CM_CALL_CREATE_KEY, .name = name, .key_bits = key_bits, .import = bytes != NULL};
    rc = cm_key_attributes_of(options, &call.attributes, &call.unsafe_mixed_modes, error);
    if (rc == 0)
        rc = cm_key_bits_check(key_bits, &call.attributes, error);
    if (rc != 0)
        return rc;
    return change(client, &call, bytes, bytes != NULL ? cm_key_bytes(&call.attributes, key_bits) : 0, error);
}

int cm_key_destroy(cm_client *client, const char *name, cm_error *error)
{
    int rc = check(client, name, true, error);
    const struct cm_call call = {.kind = CM_CALL_DESTROY_KEY, .name = name};
    return rc != 0 ? rc : change(client, &call, NULL, 0, error);
}

/* Keys collected over the pages of a list. */
struct key_list {
    cm_key_details *keys;
    size_t count, capacity;
    bool more;
};

static int copy_key(const struct cm_key_info *info, cm_key_details *ret_key)
{
    cm_key_details key = {
        .key_bits = info->key_bits,
        .modes = info->attributes.modes,
        .may_encrypt = info->attributes.encrypt,
        .may_decrypt = info->attributes.decrypt,
        .caller_iv = info->attributes.caller_iv,
        .tag_length = info->attributes.tag_length,
        .version_count = info->version_count,
    };
    copy_text(key.name, sizeof key.name, info->name);
    if (info->id.length == sizeof key.id)
        memcpy(key.id, info->id.data, sizeof key.id);
    key.versions = calloc(info->version_count != 0 ? info->version_count : 1, sizeof *key.versions);
    if (key.versions == NULL)
        return CM_ERR_NO_MEMORY;
    for (uint32_t i = 0; i < info->version_count; i++)
        key.versions[i] = (cm_key_version_details){info->versions[i].version, info->versions[i].state,
                                                   info->versions[i].created_unix_s};
    *ret_key = key;
    return 0;
}

static int read_keys(void *context, const struct cm_answer *answer, cm_error *error)
{
    struct key_list *list = context;
    if (answer->kind != CM_ANSWER_KEY_LIST && answer->kind != CM_ANSWER_KEY)
        return fail_answer(error);
    size_t wanted = list->count + answer->key_count;
    if (wanted > list->capacity) {
        cm_key_details *more = realloc(list->keys, wanted * sizeof *more);
        if (more == NULL)
            return cm_fail_memory(error, "a list of keys");
        list->keys = more;
        list->capacity = wanted;
    }
    for (uint32_t i = 0; i < answer->key_count; i++) {
        /* In order, page after page: else the list might have no end. */
        if (list->count > 0 && strcmp(answer->keys[i].name, list->keys[list->count - 1].name) <= 0)
            return cm_fail(error, CM_ERR_PROTOCOL, CM_RETRY_UNKNOWN,
                           "the daemon's list of keys is in disorder");
        if (copy_key(&answer->keys[i], &list->keys[list->count]) != 0)
            return cm_fail_memory(error, "a list of keys");
        list->count++;
    }
    list->more = answer->kind == CM_ANSWER_KEY_LIST && answer->more && answer->key_count > 0;
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const cm_key_details *)a)->name, ((const cm_key_details *)b)->name);
}

static int list_all(struct cm_client *client, struct key_list *list, cm_error *error)
{
    int rc;
    do {
        char after[CM_KEY_NAME_MAX + 1] = "";
        if (list->count > 0)
            memcpy(after, list->keys[list->count - 1].name, sizeof after);
        const struct cm_call call = {.kind = CM_CALL_LIST_KEYS, .name = after, .number = LIST_PAGE_KEYS};
        rc = cm_call_run(client, &call, NULL, 0, read_keys, list, error);
    } while (rc == 0 && list->more);
    return rc;
}

int cm_key_list(cm_client *client, const char *name, cm_key_details **ret_keys, size_t *ret_count,
                cm_error *error)
{
    if (ret_keys == NULL || ret_count == NULL)
        return cm_fail_code(error, CM_ERR_ARGUMENT, "ret_keys or ret_count is NULL");
    int rc = check(client, name, false, error);
    if (rc != 0)
        return rc;
    struct key_list list = {0};
    const struct cm_call describe = {.kind = CM_CALL_DESCRIBE_KEY, .name = name};
    if (name != NULL)
        rc = cm_call_run(client, &describe, NULL, 0, read_keys, &list, error);
    else
        rc = list_all(client, &list, error);
    if (rc != 0) {
        cm_keys_free(list.keys, list.count);
        return rc;
    }
    if (list.count > 1)
        qsort(list.keys, list.count, sizeof *list.keys, compare_names);
    *ret_keys = list.keys;
    *ret_count = list.count;
    return 0;
}

void cm_keys_free(cm_key_details *keys, size_t count)
{
    for (size_t i = 0; keys != NULL && i < count; i++)
        free(keys[i].versions);
    free(keys);
}

struct row_list {
    cm_implementation_details *rows;
    size_t count;
};

/* A daemon that does not tell size classes apart uses the implementation for all of them. */
static uint32_t used_bits(const struct cm_implementation_info *row)
{
    if (row->used && row->used_for == 0)
        return CM_USED_SHORT | CM_USED_SMALL | CM_USED_LONG;
    return row->used_for & (CM_USED_SHORT | CM_USED_SMALL | CM_USED_LONG);
}

static int read_rows(void *context, const struct cm_answer *answer, cm_error *error)
{
    struct row_list *list = context;
    if (answer->kind != CM_ANSWER_IMPLEMENTATIONS)
        return fail_answer(error);
    list->rows = calloc(answer->implementation_count + 1, sizeof *list->rows);
    if (list->rows == NULL)
        return cm_fail_memory(error, "a list of implementations");
    list->count = answer->implementation_count;
    for (size_t i = 0; i < list->count; i++) {
        const struct cm_implementation_info *from = &answer->implementations[i];
        cm_implementation_details *to = &list->rows[i];
        to->mode = from->mode;
        to->direction = from->direction;
        to->compiled = from->compiled;
        to->available = from->available;
        to->used = used_bits(from);
        copy_text(to->implementation, sizeof to->implementation, from->implementation);
        copy_text(to->reason, sizeof to->reason, from->reason);
    }
    return 0;
}

int cm_get_implementations(cm_client *client, cm_implementation_details **ret_rows, size_t *ret_count,
                           cm_error *error)
{
    if (ret_rows == NULL || ret_count == NULL)
        return cm_fail_code(error, CM_ERR_ARGUMENT, "ret_rows or ret_count is NULL");
    int rc = check(client, NULL, false, error);
    struct row_list list = {0};
    const struct cm_call call = {.kind = CM_CALL_GET_IMPLEMENTATIONS};
    if (rc == 0)
        rc = cm_call_run(client, &call, NULL, 0, read_rows, &list, error);
    if (rc != 0)
        return rc;
    *ret_rows = list.rows;
    *ret_count = list.count;
    return 0;
}

static int read_status(void *context, const struct cm_answer *answer, cm_error *error)
{
    cm_server_details *to = context;
    if (answer->kind != CM_ANSWER_SERVER_STATUS)
        return fail_answer(error);
    const struct cm_server_status *from = &answer->server;
    copy_text(to->server, sizeof to->server, from->server);
    copy_text(to->identity, sizeof to->identity, from->identity);
    to->may_administer = from->may_administer;
    to->draining = from->draining;
    to->workers = from->workers;
    to->connections = from->connections;
    to->keys = from->keys;
    to->uptime_ms = from->uptime_ms;
    to->inflight_bytes = from->inflight_bytes;
    to->inflight_limit_bytes = from->inflight_limit_bytes;
    return 0;
}

int cm_get_status(cm_client *client, cm_server_details *ret_status, cm_error *error)
{
    if (ret_status == NULL || ret_status->size < sizeof ret_status->size)
        return cm_fail_code(error, CM_ERR_ARGUMENT, "set ret_status->size to sizeof(cm_server_details)");
    int rc = check(client, NULL, false, error);
    if (rc != 0)
        return rc;
    cm_server_details details = {.size = ret_status->size};
    const struct cm_call call = {.kind = CM_CALL_GET_STATUS};
    rc = cm_call_run(client, &call, NULL, 0, read_status, &details, error);
    if (rc != 0)
        return rc;
    (void)snprintf(details.endpoint, sizeof details.endpoint, "%s", client->endpoint.uri);
    memcpy(ret_status, &details, details.size < sizeof details ? details.size : sizeof details);
    return 0;
}
