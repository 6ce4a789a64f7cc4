/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing keys, and opening them again in a new session. */
#include "key.h"
#include "call.h"
#include "error.h"
#include <stdlib.h>
#include <string.h>

int cm_key_bits_check(uint32_t key_bits, const struct cm_key_attributes *attributes, cm_error *error)
{
    if (key_bits != 128 && key_bits != 192 && key_bits != 256)
        return cm_fail_code(error, CM_ERR_ARGUMENT, "key_bits is %u, not 128, 192 or 256", key_bits);
    if (key_bits == 192 && (attributes->modes & CM_MODE_BIT(CM_XTS)) != 0)
        return cm_fail_code(error, CM_ERR_ARGUMENT, "key_bits is 192: XTS is for AES-128 and AES-256");
    return 0;
}

int cm_key_attributes_of(const cm_key_options *options, struct cm_key_attributes *ret_attributes,
                         bool *ret_unsafe, cm_error *error)
{
    cm_key_options own = CM_KEY_OPTIONS_INIT;
    if (options != NULL) {
        if (options->size < offsetof(cm_key_options, caller_iv))
            return cm_fail_code(error, CM_ERR_ARGUMENT, "cm_key_options.size is %zu: use CM_KEY_OPTIONS_INIT",
                                options->size);
        memcpy(&own, options, options->size < sizeof own ? options->size : sizeof own);
    }
    *ret_attributes = (struct cm_key_attributes){
        .modes = own.modes != 0 ? own.modes : CM_MODE_BIT(CM_GCM),
        .encrypt = true,
        .decrypt = true,
        .caller_iv = own.caller_iv != 0,
        .tag_length = own.tag_length,
    };
    *ret_unsafe = own.unsafe_mixed_modes != 0;
    return 0;
}

/* Keeps what the daemon said. The key's lock is held, or nobody else knows the key yet. */
static int read_handle(void *context, const struct cm_answer *answer, cm_error *error)
{
    struct cm_key *key = context;
    if (answer->kind != CM_ANSWER_KEY_HANDLE || answer->handle == 0)
        return cm_fail(error, CM_ERR_PROTOCOL, CM_RETRY_UNKNOWN, "the daemon opened a key without a handle");
    key->handle = answer->handle;
    if (answer->key_count > 0) {
        key->key_bits = answer->keys[0].key_bits;
        key->attributes = answer->keys[0].attributes;
    }
    return 0;
}

static void close_handle(struct cm_client *client, struct cm_conn *conn, uint32_t handle)
{
    const struct cm_call call = {.kind = CM_CALL_CLOSE_KEY, .number = handle};
    (void)cm_call_post(client, conn, &call);
}

/* Handles that could not be closed in their time go first, so that a session never fills with them. */
static int open_on(struct cm_key *key, struct cm_conn *conn, const struct cm_call *call, const void *bytes,
                   size_t length, cm_error *error)
{
    uint32_t old;
    while ((old = cm_pool_next_closing(key->client, conn->session_number)) != 0)
        close_handle(key->client, conn, old);
    int rc = cm_call_on(key->client, conn, call, bytes, length, read_handle, key, error);
    if (rc == 0)
        key->session_number = conn->session_number;
    return rc;
}

int cm_key_handle(struct cm_key *key, struct cm_conn *conn, uint32_t *ret_handle, cm_error *error)
{
    int rc = 0;
    pthread_mutex_lock(&key->lock);
    if (key->session_number != conn->session_number && key->name[0] == 0) {
        rc = cm_fail_code(error, CM_ERR_NO_SUCH_KEY,
                          "the ephemeral key ended with its session: every connection to %.120s was lost",
                          conn->uri);
    } else if (key->session_number != conn->session_number) {
        const struct cm_call call = {.kind = CM_CALL_OPEN_KEY, .name = key->name};
        rc = open_on(key, conn, &call, NULL, 0, error);
    }
    *ret_handle = key->handle;
    pthread_mutex_unlock(&key->lock);
    return rc;
}

static struct cm_key *new_key(struct cm_client *client)
{
    struct cm_key *key = calloc(1, sizeof *key);
    if (key == NULL)
        return NULL;
    key->client = client;
    pthread_mutex_init(&key->lock, NULL);
    return key;
}

static void free_key(struct cm_key *key)
{
    pthread_mutex_destroy(&key->lock);
    free(key);
}

/* A call that opens a key may be repeated when it broke: what a lost session holds is gone with it. */
static int open_new(struct cm_key *key, const struct cm_call *call, const void *bytes, size_t length,
                    cm_error *error)
{
    struct cm_client *client = key->client;
    cm_error local = CM_ERROR_INIT;
    int rc = 0;
    for (int attempt = 0; attempt < 2; attempt++) {
        struct cm_slot *slot;
        rc = cm_pool_take(client, &slot, &local);
        if (rc != 0)
            break;
        rc = open_on(key, slot->conn, call, bytes, length, &local);
        cm_pool_put(client, slot);
        if (rc != CM_ERR_DISCONNECTED || client->no_reconnect)
            break;
    }
    return rc == 0 ? 0 : cm_fail_copy(error, &local);
}

static int make_key(cm_key **ret_key, struct cm_client *client, const char *name, const struct cm_call *call,
                    const void *bytes, size_t length, cm_error *error)
{
    if (cm_client_check(client, error) != 0)
        return CM_ERR_FORKED;
    struct cm_key *key = new_key(client);
    if (key == NULL)
        return cm_fail_memory(error, "a key");
    if (name != NULL)
        memcpy(key->name, name, strlen(name) + 1);
    int rc = open_new(key, call, bytes, length, error);
    if (rc != 0) {
        free_key(key);
        return rc;
    }
    *ret_key = key;
    return 0;
}

int cm_key_open(cm_key **ret_key, cm_client *client, const char *name, cm_error *error)
{
    cm_error_clear(error);
    if (ret_key == NULL || client == NULL || name == NULL)
        return cm_fail_code(error, CM_ERR_ARGUMENT, "ret_key, client or name is NULL");
    if (name[0] == 0 || strlen(name) > CM_KEY_NAME_MAX)
        return cm_fail_code(error, CM_ERR_BAD_NAME, "%s", cm_status_description(CM_ERR_BAD_NAME));
    const struct cm_call call = {.kind = CM_CALL_OPEN_KEY, .name = name};
    return make_key(ret_key, client, name, &call, NULL, 0, error);
}

int cm_key_ephemeral(cm_key **ret_key, cm_client *client, uint32_t key_bits, const void *bytes,
                     const cm_key_options *options, cm_error *error)
{
    cm_error_clear(error);
    if (ret_key == NULL || client == NULL)
        return cm_fail_code(error, CM_ERR_ARGUMENT, "ret_key or client is NULL");
    struct cm_call call = {.kind = CM_CALL_EPHEMERAL_KEY, .key_bits = key_bits};
    int rc = cm_key_attributes_of(options, &call.attributes, &call.unsafe_mixed_modes, error);
    if (rc == 0)
        rc = cm_key_bits_check(key_bits, &call.attributes, error);
    if (rc != 0)
        return rc;
    size_t length = bytes != NULL ? cm_key_bytes(&call.attributes, key_bits) : 0;
    return make_key(ret_key, client, NULL, &call, bytes, length, error);
}

/* Without waiting for anything: the daemon hears of it now if a connection is idle, else when the next key
 * opens. */
void cm_key_close(cm_key *key)
{
    if (key == NULL)
        return;
    struct cm_client *client = key->client;
    if (cm_client_check(client, NULL) != 0) {
        free(key);
        return;
    }
    struct cm_slot *slot = cm_pool_try_take(client);
    if (slot != NULL && slot->conn->session_number == key->session_number)
        close_handle(client, slot->conn, key->handle);
    else
        cm_pool_close_later(client, key->session_number, key->handle);
    if (slot != NULL)
        cm_pool_put(client, slot);
    free_key(key);
}

int cm_key_get_options(const cm_key *key, uint32_t *ret_key_bits, cm_key_options *ret_options,
                       cm_error *error)
{
    cm_error_clear(error);
    if (key == NULL || (ret_options != NULL && ret_options->size < sizeof ret_options->size))
        return cm_fail_code(error, CM_ERR_ARGUMENT, "key is NULL or ret_options->size is not set");
    if (cm_client_check(key->client, error) != 0)
        return CM_ERR_FORKED;
    /* Reading changes nothing that a caller can see. */
    pthread_mutex_t *lock = &((struct cm_key *)(uintptr_t)key)->lock;
    pthread_mutex_lock(lock);
    cm_key_options options = {
        .size = ret_options != NULL ? ret_options->size : 0,
        .modes = key->attributes.modes,
        .caller_iv = key->attributes.caller_iv,
        .tag_length = key->attributes.tag_length,
    };
    uint32_t key_bits = key->key_bits;
    pthread_mutex_unlock(lock);
    if (ret_options != NULL)
        memcpy(ret_options, &options, options.size < sizeof options ? options.size : sizeof options);
    if (ret_key_bits != NULL)
        *ret_key_bits = key_bits;
    return 0;
}

uint32_t cm_key_version(const cm_key *key)
{
    return key == NULL ? 0 : atomic_load(&((struct cm_key *)(uintptr_t)key)->version_used);
}

void cm_key_use_version(cm_key *key, uint32_t version)
{
    if (key != NULL)
        atomic_store(&key->version_wanted, version);
}
