/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to calls: everything that is not a batch. */
#include "attributes.h"
#include "change.h"
#include "service_internal.h"
#include "status.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct call {
    struct cm_service_worker *worker;
    struct cm_peer_state *peer;
    const struct cm_call *call;
    const uint8_t *body;
    size_t body_length;
    cm_answer_function answer;
    void *context;
};

static void respond(const struct call *call, struct cm_answer *answer)
{
    answer->request_id = call->call->request_id;
    if (answer->text == NULL)
        answer->text = "";
    call->answer(call->context, answer);
}

/* `format` NULL: what the status says by itself. */
__attribute__((format(printf, 3, 4))) static void refuse(const struct call *call, uint32_t status,
                                                         const char *format, ...)
{
    char text[320];
    struct cm_answer answer = {.status = status, .text = cm_wire_status_text(status)};
    if (format != NULL) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(text, sizeof text, format, arguments);
        va_end(arguments);
        answer.text = text;
    }
    respond(call, &answer);
}

static void succeed(const struct call *call)
{
    struct cm_answer answer = {.status = CM_STATUS_OK};
    respond(call, &answer);
}

static void respond_with_key(const struct call *call, const struct cm_live_key *key, uint32_t handle)
{
    struct cm_key_version_info *versions = calloc(key->version_count + 1, sizeof *versions);
    if (versions == NULL) {
        refuse(call, CM_STATUS_INTERNAL, "out of memory");
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
    respond(call, &answer);
    free(versions);
}

static void add_handle(const struct call *call, const char *name, struct cm_live_key *key)
{
    uint32_t handle;
    uint32_t status = cm_session_add(call->peer->session, name, key, &handle);
    if (status == CM_STATUS_OK)
        respond_with_key(call, key, handle);
    else
        refuse(call, status, NULL);
}

/* The named key of a call if it is there and alive; else answers and returns NULL. */
static struct cm_live_key *find_key(const struct call *call)
{
    const char *name = call->call->name;
    if (!cm_key_name_valid(name)) {
        refuse(call, CM_STATUS_BAD_NAME, NULL);
        return NULL;
    }
    struct cm_live_key *key = cm_snapshot_find(call->worker->snapshot, name);
    if (key == NULL) {
        refuse(call, CM_STATUS_NO_SUCH_KEY, "there is no key \"%s\"", name);
        return NULL;
    }
    if (!cm_live_key_alive(key)) {
        refuse(call, CM_STATUS_KEY_UNUSABLE, "key \"%s\" is destroyed", name);
        return NULL;
    }
    return key;
}

/* --- Sessions --- */

static void open_key(const struct call *call)
{
    struct cm_live_key *key = find_key(call);
    if (key != NULL)
        add_handle(call, key->name, key);
}

static void close_key(const struct call *call)
{
    uint32_t status = cm_session_remove(call->peer->session, call->call->number);
    cm_peer_drop_stale_keys(call->peer);
    if (status == CM_STATUS_OK)
        succeed(call);
    else
        refuse(call, status, "the session has no key handle %" PRIu32, call->call->number);
}

static void cancel_operation(const struct call *call)
{
    cm_operation_end(call->peer, cm_operation_find(call->peer, call->call->number));
    succeed(call);
}

/* --- Making keys --- */

/* Attributes and key bytes of a call that makes a key; else answers and returns false. */
static bool check_new_key(const struct call *call, struct cm_key_attributes *ret_attributes)
{
    const struct cm_call *asked = call->call;
    const char *text;
    if (call->body_length > 0 && !call->peer->identity.may_send_keys) {
        refuse(call, CM_STATUS_ACCESS_DENIED,
               "%s may not send key bytes over this connection, since it is not protected; use the Unix "
               "socket, or "
               "let the daemon make the key",
               call->peer->identity.name);
        return false;
    }
    *ret_attributes = asked->attributes;
    uint32_t status = cm_attributes_settle(ret_attributes, asked->key_bits, asked->unsafe_mixed_modes, &text);
    if (status != CM_STATUS_OK) {
        refuse(call, status, "%s", text);
        return false;
    }
    if (call->body_length > 0 && call->body_length != asked->key_bits / 8) {
        refuse(call, CM_STATUS_BAD_REQUEST, "the body has %zu bytes, a key of %" PRIu32 " bits has %" PRIu32,
               call->body_length, asked->key_bits, asked->key_bits / 8);
        return false;
    }
    return true;
}

/* A key of one version, with the body's bytes or fresh ones; else answers and returns NULL. */
static struct cm_live_key *make_key(const struct call *call, const struct cm_key_attributes *attributes)
{
    struct cm_live_key *key = cm_live_key_new(&call->worker->service->forms, 1);
    if (key == NULL) {
        refuse(call, CM_STATUS_INTERNAL, "out of memory");
        return NULL;
    }
    key->key_bits = call->call->key_bits;
    key->attributes = *attributes;
    key->unsafe_mixed_modes = call->call->unsafe_mixed_modes;
    key->revision = 1;
    key->versions[0].number = 1;
    key->versions[0].state = CM_WIRE_KEY_ENABLED;
    key->versions[0].created_unix_s = (uint64_t)time(NULL);
    int rc = cm_random_secret(key->id, sizeof key->id);
    if (call->body_length > 0)
        memcpy(key->versions[0].bytes, call->body, call->body_length);
    else if (rc == 0)
        rc = cm_random_secret(key->versions[0].bytes, key->key_bits / 8);
    if (rc != 0) {
        cm_live_key_put(key);
        refuse(call, CM_STATUS_INTERNAL, "no random bytes");
        return NULL;
    }
    return key;
}

static void ephemeral_key(const struct call *call)
{
    struct cm_key_attributes attributes;
    if (!check_new_key(call, &attributes))
        return;
    struct cm_live_key *key = make_key(call, &attributes);
    if (key == NULL)
        return;
    add_handle(call, NULL, key);
    cm_live_key_put(key); /* the session has its own */
}

/* --- Changing the store --- */

/* What the store is to hold of a key from now on, wrapped anew. */
static bool seal_key(const struct cm_master *master, const struct cm_live_key *key,
                     struct cm_stored_key *ret_stored)
{
    struct cm_stored_version *versions = ret_stored->versions;
    memcpy(ret_stored->name, key->name, sizeof ret_stored->name);
    memcpy(ret_stored->id, key->id, sizeof ret_stored->id);
    ret_stored->key_bits = key->key_bits;
    ret_stored->attributes = key->attributes;
    ret_stored->unsafe_mixed_modes = key->unsafe_mixed_modes;
    ret_stored->revision = key->revision;
    for (uint32_t v = 0; v < key->version_count; v++) {
        const struct cm_live_version *version = &key->versions[v];
        size_t length = version->state == CM_WIRE_KEY_DESTROYED ? 0 : key->key_bits / 8;
        versions[v] = (struct cm_stored_version){
            .number = version->number, .state = version->state, .created_unix_s = version->created_unix_s};
        if ((length > 0 &&
             cm_master_fingerprint(master, version->bytes, length, versions[v].fingerprint) != 0) ||
            cm_master_wrap(master, ret_stored, &versions[v], version->bytes, length) != 0)
            return false;
    }
    return true;
}

static bool check_operation_id(const struct call *call)
{
    if (call->call->operation_id.length == CM_OPERATION_ID_BYTES)
        return true;
    refuse(call, CM_STATUS_BAD_REQUEST, "a call that changes the store needs an operation id of %d bytes",
           CM_OPERATION_ID_BYTES);
    return false;
}

/* Takes over `fresh`. */
static void submit(const struct call *call, enum cm_store_change_kind kind, struct cm_live_key *fresh)
{
    struct cm_change *change = cm_change_new(call->peer, call->call, fresh != NULL ? fresh->version_count : 0,
                                             call->answer, call->context);
    if (change == NULL) {
        cm_live_key_put(fresh);
        refuse(call, CM_STATUS_INTERNAL, "out of memory");
        return;
    }
    change->store.kind = kind;
    change->store.now_unix_s = (uint64_t)time(NULL);
    change->fresh = fresh;
    snprintf(change->store.key.name, sizeof change->store.key.name, "%s", call->call->name);
    if (fresh != NULL && !seal_key(&call->worker->service->master, fresh, &change->store.key)) {
        cm_change_free(change);
        refuse(call, CM_STATUS_INTERNAL, "the key cannot be wrapped");
        return;
    }
    cm_change_submit(change);
}

static void create_key(const struct call *call)
{
    const struct cm_call *asked = call->call;
    struct cm_key_attributes attributes;
    if (!cm_key_name_valid(asked->name)) {
        refuse(call, CM_STATUS_BAD_NAME, NULL);
        return;
    }
    if (!check_operation_id(call) || !check_new_key(call, &attributes))
        return;
    if (asked->import != (call->body_length > 0)) {
        refuse(call, CM_STATUS_BAD_REQUEST, "an import comes with the key's bytes, and only an import");
        return;
    }
    struct cm_live_key *key = make_key(call, &attributes);
    if (key == NULL)
        return;
    snprintf(key->name, sizeof key->name, "%s", asked->name);
    submit(call, CM_STORE_CREATE, key);
}

/* The same key without its bytes: what stays of it for ever, so that neither name nor numbers come back. */
static struct cm_live_key *tombstone_of(const struct cm_live_key *key)
{
    struct cm_live_key *stone = cm_live_key_new(key->budget, key->version_count);
    if (stone == NULL)
        return NULL;
    memcpy(stone->name, key->name, sizeof stone->name);
    memcpy(stone->id, key->id, sizeof stone->id);
    stone->key_bits = key->key_bits;
    stone->attributes = key->attributes;
    stone->unsafe_mixed_modes = key->unsafe_mixed_modes;
    stone->revision = key->revision + 1;
    for (uint32_t v = 0; v < key->version_count; v++) {
        stone->versions[v].number = key->versions[v].number;
        stone->versions[v].state = CM_WIRE_KEY_DESTROYED;
        stone->versions[v].created_unix_s = key->versions[v].created_unix_s;
    }
    return stone;
}

/* Even a key that is not there goes to the store: the call may be a repeat, which has its answer there. */
static void destroy_key(const struct call *call)
{
    if (!cm_key_name_valid(call->call->name)) {
        refuse(call, CM_STATUS_BAD_NAME, NULL);
        return;
    }
    if (!check_operation_id(call))
        return;
    struct cm_live_key *key = cm_snapshot_find(call->worker->snapshot, call->call->name);
    struct cm_live_key *stone = NULL;
    if (key != NULL && cm_live_key_alive(key)) {
        stone = tombstone_of(key);
        if (stone == NULL) {
            refuse(call, CM_STATUS_INTERNAL, "out of memory");
            return;
        }
    }
    submit(call, CM_STORE_DESTROY, stone);
}

/* --- Looking --- */

static void describe_key(const struct call *call)
{
    struct cm_live_key *key = find_key(call);
    if (key != NULL)
        respond_with_key(call, key, 0);
}

/* Upper bound of what a key takes in an answer's header. */
static uint64_t encoded_bytes(const struct cm_live_key *key)
{
    enum { FIXED = 64, A_VERSION = 28 };
    return FIXED + strlen(key->name) + (uint64_t)key->version_count * A_VERSION;
}

static void list_keys(const struct call *call)
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
        refuse(call, CM_STATUS_INTERNAL, "out of memory");
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
        respond(call, &answer);
    }
    free(versions);
    free(keys);
}

static void get_status(const struct call *call)
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
    respond(call, &answer);
}

static void get_implementations(const struct call *call)
{
    enum { ROWS_MAX = 256 };
    struct cm_implementation_info *rows = calloc(ROWS_MAX, sizeof *rows);
    if (rows == NULL) {
        refuse(call, CM_STATUS_INTERNAL, "out of memory");
        return;
    }
    uint32_t count = 0;
    for (uint8_t mode = 0; mode < CM_AES_MODE_COUNT; mode++)
        for (uint8_t direction = 0; direction < CM_AES_DIRECTION_COUNT; direction++) {
            struct cm_aes_implementation row;
            for (size_t index = 0;
                 count < ROWS_MAX &&
                 cm_aes_implementation(index, (enum cm_aes_mode)mode, (enum cm_aes_direction)direction, &row);
                 index++)
                rows[count++] = (struct cm_implementation_info){
                    .mode = (uint8_t)(mode + CM_WIRE_ECB),
                    .direction = direction == CM_AES_ENCRYPT ? CM_WIRE_ENCRYPT : CM_WIRE_DECRYPT,
                    .implementation = row.name,
                    .compiled = row.compiled,
                    .available = row.available,
                    .used = row.used,
                    .reason = row.reason};
        }
    struct cm_answer answer = {.status = CM_STATUS_OK,
                               .kind = CM_ANSWER_IMPLEMENTATIONS,
                               .implementation_count = count,
                               .implementations = rows};
    respond(call, &answer);
    free(rows);
}

/* --- The table --- */

enum { ADMINISTERS = 1, TAKES_KEY_BYTES = 2 };

static const struct {
    void (*function)(const struct call *call);
    int needs;
    const char *name;
} calls[] = {
    [CM_CALL_OPEN_KEY] = {open_key, 0, "open_key"},
    [CM_CALL_EPHEMERAL_KEY] = {ephemeral_key, TAKES_KEY_BYTES, "ephemeral_key"},
    [CM_CALL_CLOSE_KEY] = {close_key, 0, "close_key"},
    [CM_CALL_CANCEL_OPERATION] = {cancel_operation, 0, "cancel_operation"},
    [CM_CALL_GET_STATUS] = {get_status, 0, "get_status"},
    [CM_CALL_GET_IMPLEMENTATIONS] = {get_implementations, 0, "get_implementations"},
    [CM_CALL_CREATE_KEY] = {create_key, ADMINISTERS | TAKES_KEY_BYTES, "create_key"},
    [CM_CALL_LIST_KEYS] = {list_keys, ADMINISTERS, "list_keys"},
    [CM_CALL_DESCRIBE_KEY] = {describe_key, ADMINISTERS, "describe_key"},
    [CM_CALL_DESTROY_KEY] = {destroy_key, ADMINISTERS, "destroy_key"},
};

void cm_service_call(struct cm_service_worker *worker, struct cm_peer_state *peer,
                     const struct cm_call *asked, uint8_t *body, size_t body_length,
                     cm_answer_function answer, void *context)
{
    const struct call call = {worker, peer, asked, body, body_length, answer, context};
    unsigned kind = (unsigned)asked->kind;
    if (kind >= sizeof calls / sizeof calls[0] || calls[kind].function == NULL)
        refuse(&call, CM_STATUS_UNSUPPORTED, "this daemon does not know the call");
    else if (calls[kind].needs & ADMINISTERS && !peer->identity.may_administer)
        refuse(&call, CM_STATUS_ACCESS_DENIED,
               "%s may not %s: it takes root or the daemon's own user, over a Unix socket that allows "
               "administration",
               peer->identity.name, calls[kind].name);
    else if (body_length > 0 && !(calls[kind].needs & TAKES_KEY_BYTES))
        refuse(&call, CM_STATUS_BAD_REQUEST, "%s takes no body", calls[kind].name);
    else
        calls[kind].function(&call);
    /* Whatever it was, it may have been a key. */
    if (body_length > 0)
        cm_aes_wipe(body, body_length);
}
