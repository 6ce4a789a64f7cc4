/* SPDX-License-Identifier: Apache-2.0 */
/* Each allocation of the library fails once: an error, no crash, and the client goes on. The linker puts the
 * functions here in malloc's place, for the library's code and this file; protobuf-c's own allocations go by.
 */
#include "fake.h"
#include "fixture.h"
#include <ciphermill/admin.h>
#include <stdlib.h>
#include <string.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

/* Only the test's own thread fails: the fake shares the process. < 0: never; 0: the next. */
static _Thread_local int left = -1;
static _Thread_local bool failed;

static bool fails(void)
{
    if (left < 0 || left-- > 0)
        return false;
    failed = true;
    return true;
}

void *__wrap_malloc(size_t bytes)
{
    return fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return fails() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    return fails() ? NULL : __real_realloc(memory, bytes);
}

static struct fake fake;
static uint8_t bytes[2][1000];

static void setup(void)
{
    fake_start(&fake, NULL);
}

static void teardown(void)
{
    fake_stop(&fake);
}

static cm_item item(int i)
{
    return (cm_item){.in = bytes[i], .in_length = 1000, .out = bytes[i], .out_capacity = 1016};
}

static int use_keys(cm_client *client, cm_key *key, cm_error *error)
{
    cm_item items[2] = {item(0), item(1)};
    cm_completion completion;
    cm_operation *operation = NULL;
    int rc = cm_encrypt(key, CM_GCM, items, 2, error);
    items[0] = item(0);
    if (rc == 0)
        rc = cm_submit(key, CM_CTR, CM_ENCRYPT, 0, items, 1, NULL, error);
    if (rc == 0)
        rc = cm_poll(client, &completion, 1, 5000, error) == 1 ? 0 : CM_ERR_INTERNAL;
    items[1] = item(1);
    if (rc == 0)
        rc = cm_operation_open(&operation, key, CM_CTR, CM_ENCRYPT, 0, error);
    if (rc == 0)
        rc = cm_operation_part(operation, &items[1], 0, error);
    cm_operation_close(operation);
    return rc;
}

static int use_all(cm_error *error)
{
    cm_client *client = NULL;
    cm_key *key = NULL, *other = NULL;
    cm_key_details *keys = NULL;
    cm_implementation_details *rows = NULL;
    size_t count = 0, row_count = 0;
    int rc = cm_connect(&client, fake.uri, NULL, error);
    if (rc == 0)
        rc = cm_key_open(&key, client, "a", error);
    if (rc == 0)
        rc = cm_key_ephemeral(&other, client, 128, NULL, NULL, error);
    if (rc == 0)
        rc = use_keys(client, key, error);
    if (rc == 0)
        rc = cm_key_list(client, NULL, &keys, &count, error);
    if (rc == 0)
        rc = cm_get_implementations(client, &rows, &row_count, error);
    cm_keys_free(keys, count);
    free(rows);
    cm_key_close(other);
    cm_key_close(key);
    cm_close(client);
    return rc;
}

START_TEST(each_allocation_fails_once)
{
    int hit = 0;
    for (int i = 0;; i++) {
        cm_error error = CM_ERROR_INIT;
        if (fake.peer_count > FAKE_PEERS_MAX - 8)
            fake_restart(&fake, NULL);
        failed = false;
        left = i;
        int rc = use_all(&error);
        left = -1;
        if (!failed) {
            ck_assert_int_eq(rc, 0);
            break;
        }
        /* What is posted, and what only delays closing, goes by unseen. */
        ck_assert_msg(rc == 0 || rc == CM_ERR_NO_MEMORY, "allocation %d: %d %s", i, rc, error.text);
        ck_assert(rc == 0 || strstr(error.text, "memory") != NULL);
        hit += rc != 0;
    }
    ck_assert_int_ge(hit, 10);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {each_allocation_fails_once};
    return RUN_WITH_FIXTURE("client/memory", setup, teardown, tests);
}
