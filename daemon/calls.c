/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to calls: everything that is not a batch. */
#include "attributes.h"
#include "calls_internal.h"
#include "modes.h"
#include "status.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void cm_call_answer(const struct cm_pending_call *call, struct cm_answer *answer)
{
    answer->request_id = call->call->request_id;
    if (answer->text == NULL)
        answer->text = "";
    call->answer(call->context, answer);
}

void cm_call_refuse(const struct cm_pending_call *call, uint32_t status, const char *format, ...)
{
    char text[320];
    struct cm_answer answer = {.status = status, .text = cm_wire_status_text(status)};
    if (format != NULL) {
        va_list arguments;
        va_start(arguments, format);
        (void)vsnprintf(text, sizeof text, format, arguments);
        va_end(arguments);
        answer.text = text;
    }
    cm_call_answer(call, &answer);
}

static void cm_call_succeed(const struct cm_pending_call *call)
{
    struct cm_answer answer = {.status = CM_STATUS_OK};
    cm_call_answer(call, &answer);
}

static void cm_call_answer_key(const struct cm_pending_call *call, const struct cm_live_key *key,
                               uint32_t handle)
{
    struct cm_key_version_info *versions = calloc(key->version_count + 1, sizeof *versions);
    if (versions == NULL) {
        cm_call_refuse(call, CM_STATUS_INTERNAL, "out of memory");
        return;
    }
    struct cm_key_info info = cm_live_key_info(key, versions);
    if (key->name[0] == '\0')
        info.id = (struct cm_bytes){NULL, 0}; /* an ephemeral key has none */
    struct cm_answer answer = {.status = CM_STATUS_OK,
                               .kind = handle != 0 ? CM_ANSWER_KEY_HANDLE : CM_ANSWER_KEY,
                               .handle = handle,
                               .key_count = 1,
                               .keys = &info};
    cm_call_answer(call, &answer);
    free(versions);
}

void cm_call_add_handle(const struct cm_pending_call *call, const char *name, struct cm_live_key *key)
{
    uint32_t handle;
    uint32_t status = cm_session_add(call->peer->session, name, key, &handle);
    if (status == CM_STATUS_OK)
        cm_call_answer_key(call, key, handle);
    else
        cm_call_refuse(call, status, NULL);
}

/* The named key of a call if it is there and alive; else answers and returns NULL. */
static struct cm_live_key *find_key(const struct cm_pending_call *call)
{
    const char *name = call->call->name;
    if (!cm_key_name_valid(name)) {
        cm_call_refuse(call, CM_STATUS_BAD_NAME, NULL);
        return NULL;
    }
    struct cm_live_key *key = cm_snapshot_find(call->worker->snapshot, name);
    if (key == NULL) {
        cm_call_refuse(call, CM_STATUS_NO_SUCH_KEY, "there is no key \"%s\"", name);
        return NULL;
    }
    if (!cm_live_key_alive(key)) {
        cm_call_refuse(call, CM_STATUS_KEY_UNUSABLE, "key \"%s\" is destroyed", name);
        return NULL;
    }
    return key;
}

/* --- Sessions --- */

static void open_key(const struct cm_pending_call *call)
{
    struct cm_live_key *key = find_key(call);
    if (key != NULL)
        cm_call_add_handle(call, key->name, key);
}

static void close_key(const struct cm_pending_call *call)
{
    uint32_t status = cm_session_remove(call->peer->session, call->call->number);
    cm_peer_drop_stale_keys(call->peer);
    if (status == CM_STATUS_OK)
        cm_call_succeed(call);
    else
        cm_call_refuse(call, status, "the session has no key handle %" PRIu32, call->call->number);
}

static void cancel_operation(const struct cm_pending_call *call)
{
    cm_operation_end(call->peer, cm_operation_find(call->peer, call->call->number));
    cm_call_succeed(call);
}

/* --- Looking --- */

static void describe_key(const struct cm_pending_call *call)
{
    struct cm_live_key *key = find_key(call);
    if (key != NULL)
        cm_call_answer_key(call, key, 0);
}

/* Upper bound of what a key takes in an answer's header. */
static uint64_t encoded_bytes(const struct cm_live_key *key)
{
    enum { FIXED = 64, A_VERSION = 28 };
    return FIXED + strlen(key->name) + (uint64_t)key->version_count * A_VERSION;
}

static void list_keys(const struct cm_pending_call *call)
{
    enum { ANSWER = 128 };
    const struct cm_snapshot *snapshot = call->worker->snapshot;
    const char *after = call->call->name;
    uint32_t max = call->call->number, versions_total = 0, count = 0;
    uint64_t room = call->worker->service->options.limits.header_bytes, used = ANSWER;
    uint32_t from = cm_snapshot_position(snapshot, after);
    if (from < snapshot->count && strcmp(snapshot->keys[from]->name, after) == 0)
        from++;

    uint32_t to = from;
    bool more = false;
    for (; to < snapshot->count; to++) {
        if (!cm_live_key_alive(snapshot->keys[to]))
            continue;
        used += encoded_bytes(snapshot->keys[to]);
        more = (max > 0 && count == max) || (used > room && count > 0);
        if (more)
            break;
        versions_total += snapshot->keys[to]->version_count;
        count++;
    }
    struct cm_key_info *keys = calloc((size_t)count + 1, sizeof *keys);
    struct cm_key_version_info *versions = calloc((size_t)versions_total + 1, sizeof *versions);
    if (keys == NULL || versions == NULL) {
        cm_call_refuse(call, CM_STATUS_INTERNAL, "out of memory");
    } else {
        uint32_t k = 0, v = 0;
        for (uint32_t i = from; i < to; i++) {
            if (!cm_live_key_alive(snapshot->keys[i]))
                continue;
            keys[k++] = cm_live_key_info(snapshot->keys[i], versions + v);
            v += snapshot->keys[i]->version_count;
        }
        struct cm_answer answer = {.status = CM_STATUS_OK,
                                   .kind = CM_ANSWER_KEY_LIST,
                                   .key_count = count,
                                   .keys = keys,
                                   .more = more};
        cm_call_answer(call, &answer);
    }
    free(versions);
    free(keys);
}

static void get_status(const struct cm_pending_call *call)
{
    struct cm_service *service = call->worker->service;
    struct cm_answer answer = {.status = CM_STATUS_OK, .kind = CM_ANSWER_SERVER_STATUS};
    if (service->host.describe != NULL)
        service->host.describe(service->host.host, &answer.server);
    answer.server.server = CM_SERVER_NAME;
    answer.server.identity = call->peer->identity.name;
    answer.server.may_administer = call->peer->identity.may_administer;
    answer.server.workers = service->options.workers;
    answer.server.keys = call->worker->snapshot->alive;
    cm_call_answer(call, &answer);
}

static uint8_t used_for(const struct cm_aes_implementation *row)
{
    return (uint8_t)((row->used[CM_AES_SHORT] ? CM_WIRE_USED_SHORT : 0) |
                     (row->used[CM_AES_SMALL] ? CM_WIRE_USED_SMALL : 0) |
                     (row->used[CM_AES_LONG] ? CM_WIRE_USED_LONG : 0));
}

static void get_implementations(const struct cm_pending_call *call)
{
    enum { ROWS_MAX = 256 };
    struct cm_implementation_info *rows = calloc(ROWS_MAX, sizeof *rows);
    if (rows == NULL) {
        cm_call_refuse(call, CM_STATUS_INTERNAL, "out of memory");
        return;
    }
    uint32_t count = 0;
    for (enum cm_aes_mode mode = 0; mode < CM_AES_MODE_COUNT; mode++)
        for (enum cm_aes_direction direction = 0; direction < CM_AES_DIRECTION_COUNT; direction++) {
            struct cm_aes_implementation row;
            for (size_t index = 0; count < ROWS_MAX && cm_aes_implementation(index, mode, direction, &row);
                 index++)
                rows[count++] = (struct cm_implementation_info){.mode = cm_mode_to_wire(mode),
                                                                .direction = cm_direction_to_wire(direction),
                                                                .implementation = row.name,
                                                                .compiled = row.compiled,
                                                                .available = row.available,
                                                                .used = row.used[CM_AES_LONG],
                                                                .used_for = used_for(&row),
                                                                .reason = row.reason};
        }
    struct cm_answer answer = {.status = CM_STATUS_OK,
                               .kind = CM_ANSWER_IMPLEMENTATIONS,
                               .implementation_count = count,
                               .implementations = rows};
    cm_call_answer(call, &answer);
    free(rows);
}

/* --- The table --- */

enum { ADMINISTERS = 1, TAKES_KEY_BYTES = 2 };

static const struct {
    void (*function)(const struct cm_pending_call *call);
    int needs;
    const char *name;
} calls[] = {
    [CM_CALL_OPEN_KEY] = {open_key, 0, "open_key"},
    [CM_CALL_EPHEMERAL_KEY] = {cm_call_ephemeral_key, TAKES_KEY_BYTES, "ephemeral_key"},
    [CM_CALL_CLOSE_KEY] = {close_key, 0, "close_key"},
    [CM_CALL_CANCEL_OPERATION] = {cancel_operation, 0, "cancel_operation"},
    [CM_CALL_GET_STATUS] = {get_status, 0, "get_status"},
    [CM_CALL_GET_IMPLEMENTATIONS] = {get_implementations, 0, "get_implementations"},
    [CM_CALL_CREATE_KEY] = {cm_call_create_key, ADMINISTERS | TAKES_KEY_BYTES, "create_key"},
    [CM_CALL_LIST_KEYS] = {list_keys, ADMINISTERS, "list_keys"},
    [CM_CALL_DESCRIBE_KEY] = {describe_key, ADMINISTERS, "describe_key"},
    [CM_CALL_DESTROY_KEY] = {cm_call_destroy_key, ADMINISTERS, "destroy_key"},
};

void cm_service_call(struct cm_service_worker *worker, struct cm_peer_state *peer,
                     const struct cm_call *asked, uint8_t *body, size_t body_length,
                     cm_answer_function answer, void *context)
{
    const struct cm_pending_call call = {worker, peer, asked, body, body_length, answer, context};
    unsigned kind = (unsigned)asked->kind;
    if (kind >= sizeof calls / sizeof calls[0] || calls[kind].function == NULL)
        cm_call_refuse(&call, CM_STATUS_UNSUPPORTED, "this daemon does not know the call");
    else if (calls[kind].needs & ADMINISTERS && !peer->identity.may_administer)
        cm_call_refuse(
            &call, CM_STATUS_ACCESS_DENIED,
            "%s may not %s: it takes root or the daemon's own user, over a Unix socket that allows "
            "administration",
            peer->identity.name, calls[kind].name);
    else if (body_length > 0 && !(calls[kind].needs & TAKES_KEY_BYTES))
        cm_call_refuse(&call, CM_STATUS_BAD_REQUEST, "%s takes no body", calls[kind].name);
    else
        calls[kind].function(&call);
    /* Whatever it was, it may have been a key. */
    if (body_length > 0)
        cm_aes_wipe(body, body_length);
}
