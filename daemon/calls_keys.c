/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that make keys and that change the store. */
#include "attributes.h"
#include "calls_internal.h"
#include "change.h"
#include "status.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- Making keys --- */

static bool is_xts(const struct cm_key_attributes *attributes)
{
    return attributes->modes == UINT32_C(1) << CM_WIRE_XTS;
}

/* The bytes that a call brings; else answers and returns false. */
static bool check_bytes(const struct cm_pending_call *call, const struct cm_key_attributes *attributes)
{
    uint32_t bits = call->call->key_bits, expected = cm_key_bytes(attributes, bits);
    if (call->body_length != expected) {
        cm_call_refuse(call, CM_STATUS_BAD_REQUEST,
                       "the body has %zu bytes, a key of %" PRIu32 " bits%s has %" PRIu32, call->body_length,
                       bits, is_xts(attributes) ? " in XTS, which takes two," : "", expected);
        return false;
    }
    if (is_xts(attributes) && cm_xts_halves_equal(call->body, call->body_length)) {
        cm_call_refuse(
            call, CM_STATUS_BAD_REQUEST,
            "the two halves of the XTS key are equal, which makes the mode insecure: the key of the "
            "data and that of the tweak must differ");
        return false;
    }
    return true;
}

/* Attributes and key bytes of a call that makes a key; else answers and returns false. */
static bool check_new_key(const struct cm_pending_call *call, struct cm_key_attributes *ret_attributes)
{
    const struct cm_call *asked = call->call;
    const char *text;
    if (call->body_length > 0 && !call->peer->identity.may_send_keys) {
        cm_call_refuse(
            call, CM_STATUS_ACCESS_DENIED,
            "%s may not send key bytes over this connection, since it is not protected; use the Unix "
            "socket, or "
            "let the daemon make the key",
            call->peer->identity.name);
        return false;
    }
    *ret_attributes = asked->attributes;
    uint32_t status = cm_attributes_settle(ret_attributes, asked->key_bits, asked->unsafe_mixed_modes, &text);
    if (status != CM_STATUS_OK) {
        cm_call_refuse(call, status, "%s", text);
        return false;
    }
    return call->body_length == 0 || check_bytes(call, ret_attributes);
}

/* A key of one version, with the body's bytes or fresh ones; else answers and returns NULL. */
static struct cm_live_key *make_key(const struct cm_pending_call *call,
                                    const struct cm_key_attributes *attributes)
{
    struct cm_live_key *key = cm_live_key_new(&call->worker->service->forms, 1);
    if (key == NULL) {
        cm_call_refuse(call, CM_STATUS_INTERNAL, "out of memory");
        return NULL;
    }
    key->key_bits = call->call->key_bits;
    key->attributes = *attributes;
    key->unsafe_mixed_modes = call->call->unsafe_mixed_modes;
    key->revision = 1;
    key->versions[0].number = 1;
    key->versions[0].state = CM_WIRE_KEY_ENABLED;
    key->versions[0].created_unix_s = (uint64_t)time(NULL);
    uint8_t *bytes = key->versions[0].bytes;
    size_t length = cm_key_bytes(attributes, key->key_bits);
    int rc = cm_random_secret(key->id, sizeof key->id);
    if (call->body_length > 0)
        memcpy(bytes, call->body, length);
    else if (rc == 0)
        do
            rc = cm_random_secret(bytes, length);
        while (rc == 0 && is_xts(attributes) && cm_xts_halves_equal(bytes, length));
    if (rc != 0) {
        cm_live_key_put(key);
        cm_call_refuse(call, CM_STATUS_INTERNAL, "no random bytes");
        return NULL;
    }
    return key;
}

void cm_call_ephemeral_key(const struct cm_pending_call *call)
{
    struct cm_key_attributes attributes;
    if (!check_new_key(call, &attributes))
        return;
    struct cm_live_key *key = make_key(call, &attributes);
    if (key == NULL)
        return;
    cm_call_add_handle(call, NULL, key);
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
        size_t length =
            version->state == CM_WIRE_KEY_DESTROYED ? 0 : cm_key_bytes(&key->attributes, key->key_bits);
        versions[v] = (struct cm_stored_version){
            .number = version->number, .state = version->state, .created_unix_s = version->created_unix_s};
        if ((length > 0 &&
             cm_master_fingerprint(master, version->bytes, length, versions[v].fingerprint) != 0) ||
            cm_master_wrap(master, ret_stored, &versions[v], version->bytes, length) != 0)
            return false;
    }
    return true;
}

static bool check_operation_id(const struct cm_pending_call *call)
{
    if (call->call->operation_id.length == CM_OPERATION_ID_BYTES)
        return true;
    cm_call_refuse(call, CM_STATUS_BAD_REQUEST,
                   "a call that changes the store needs an operation id of %d bytes", CM_OPERATION_ID_BYTES);
    return false;
}

/* Takes over `fresh`. */
static void submit(const struct cm_pending_call *call, enum cm_store_change_kind kind,
                   struct cm_live_key *fresh)
{
    struct cm_change *change = cm_change_new(call->peer, call->call, fresh != NULL ? fresh->version_count : 0,
                                             call->answer, call->context);
    if (change == NULL) {
        cm_live_key_put(fresh);
        cm_call_refuse(call, CM_STATUS_INTERNAL, "out of memory");
        return;
    }
    change->store.kind = kind;
    change->store.now_unix_s = (uint64_t)time(NULL);
    change->fresh = fresh;
    snprintf(change->store.key.name, sizeof change->store.key.name, "%s", call->call->name);
    if (fresh != NULL && !seal_key(&call->worker->service->master, fresh, &change->store.key)) {
        cm_change_free(change);
        cm_call_refuse(call, CM_STATUS_INTERNAL, "the key cannot be wrapped");
        return;
    }
    cm_change_submit(change);
}

void cm_call_create_key(const struct cm_pending_call *call)
{
    const struct cm_call *asked = call->call;
    struct cm_key_attributes attributes;
    if (!cm_key_name_valid(asked->name)) {
        cm_call_refuse(call, CM_STATUS_BAD_NAME, NULL);
        return;
    }
    if (!check_operation_id(call) || !check_new_key(call, &attributes))
        return;
    if (asked->import != (call->body_length > 0)) {
        cm_call_refuse(call, CM_STATUS_BAD_REQUEST,
                       "an import comes with the key's bytes, and only an import");
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
void cm_call_destroy_key(const struct cm_pending_call *call)
{
    if (!cm_key_name_valid(call->call->name)) {
        cm_call_refuse(call, CM_STATUS_BAD_NAME, NULL);
        return;
    }
    if (!check_operation_id(call))
        return;
    struct cm_live_key *key = cm_snapshot_find(call->worker->snapshot, call->call->name);
    struct cm_live_key *stone = NULL;
    if (key != NULL && cm_live_key_alive(key)) {
        stone = tombstone_of(key);
        if (stone == NULL) {
            cm_call_refuse(call, CM_STATUS_INTERNAL, "out of memory");
            return;
        }
    }
    submit(call, CM_STORE_DESTROY, stone);
}
