/* SPDX-License-Identifier: Apache-2.0 */
/* Administration: what a call carries, and that it is repeated under the same operation id. */
#include "fake.h"
#include "fixture.h"
#include <ciphermill/admin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fake fake;
static cm_client *client;
static cm_error error;

static void setup(void)
{
    fake_start(&fake, NULL);
}

static void teardown(void)
{
    cm_close(client);
    fake_stop(&fake);
}

static void open_with(void (*serve)(struct fake_peer *peer))
{
    fake_restart(&fake, serve);
    ck_assert_int_eq(cm_connect(&client, fake.uri, NULL, &error), 0);
}

static uint8_t ids[4][16];
static struct cm_key_attributes attributes;
static bool import;
static uint32_t body_length;

/* Ends the connection at each change that the knob counts, after reading it. */
static void serve_and_forget(struct fake_peer *peer)
{
    fake_greet(peer);
    for (int type; (type = fake_next_request(peer)) != 0;) {
        int seen = peer->fake->created;
        if (peer->call.kind == CM_CALL_CREATE_KEY && seen < 4) {
            memcpy(ids[seen], peer->call.operation_id.data, peer->call.operation_id.length);
            attributes = peer->call.attributes;
            import = peer->call.import;
            body_length = peer->frame.body_length;
            if (peer->fake->knob-- > 0) {
                peer->fake->created++;
                return;
            }
        }
        fake_answer(peer, type);
    }
}

START_TEST(a_change_is_repeated_under_its_id)
{
    open_with(serve_and_forget);
    cm_key_options options = CM_KEY_OPTIONS_INIT;
    options.modes = CM_MODE_BIT(CM_CBC) | CM_MODE_BIT(CM_CTR);
    options.caller_iv = 1;
    fake.knob = 1;
    ck_assert_int_eq(cm_key_create(client, "a", 256, "0123456789abcdef0123456789abcdef", &options, &error),
                     0);
    ck_assert_int_eq(fake.created, 2);
    ck_assert_mem_eq(ids[0], ids[1], 16);
    ck_assert(import);
    ck_assert_uint_eq(body_length, 32);
    ck_assert_uint_eq(attributes.modes, options.modes);
    ck_assert(attributes.caller_iv && attributes.encrypt && attributes.decrypt);
    fake.knob = 2;
    ck_assert_int_eq(cm_key_create(client, "b", 128, NULL, NULL, &error), CM_ERR_DISCONNECTED);
    ck_assert_int_eq(error.retry, CM_RETRY_UNKNOWN);
    ck_assert_int_eq(fake.created, 4);
    ck_assert_mem_eq(ids[2], ids[3], 16);
    ck_assert_mem_ne(ids[1], ids[2], 16);
    ck_assert(!import);
    ck_assert_uint_eq(body_length, 0);
    ck_assert_uint_eq(attributes.modes, CM_MODE_BIT(CM_GCM));
}
END_TEST

START_TEST(wrong_arguments)
{
    open_with(NULL);
    cm_key_details *keys = NULL;
    size_t count = 9;
    ck_assert_int_eq(cm_key_create(client, "a", 100, NULL, NULL, &error), CM_ERR_ARGUMENT);
    ck_assert_int_eq(cm_key_create(client, NULL, 128, NULL, NULL, &error), CM_ERR_ARGUMENT);
    ck_assert_int_eq(cm_key_create(client, "", 128, NULL, NULL, &error), CM_ERR_BAD_NAME);
    ck_assert_int_eq(cm_key_destroy(NULL, "a", &error), CM_ERR_ARGUMENT);
    ck_assert_int_eq(cm_key_list(client, NULL, &keys, NULL, &error), CM_ERR_ARGUMENT);
    ck_assert_int_eq(cm_get_status(client, &(cm_server_details){0}, &error), CM_ERR_ARGUMENT);
    ck_assert_int_eq(cm_get_limits(client, &(cm_limits_info){0}, &error), CM_ERR_ARGUMENT);
    ck_assert_ptr_null(keys);
    ck_assert_uint_eq(count, 9);
}
END_TEST

START_TEST(lists_come_in_pages)
{
    open_with(NULL);
    cm_key_details *keys;
    size_t count;
    ck_assert_int_eq(cm_key_list(client, NULL, &keys, &count, &error), 0);
    ck_assert_uint_eq(count, 250);
    for (size_t i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "k%03zu", i);
        ck_assert_str_eq(keys[i].name, name);
        ck_assert_uint_eq(keys[i].version_count, 1);
        ck_assert_uint_eq(keys[i].versions[0].state, CM_KEY_ENABLED);
        ck_assert_mem_eq(keys[i].id, "0123456789abcdef", 16);
    }
    cm_keys_free(keys, count);
    ck_assert_int_eq(cm_key_list(client, "one", &keys, &count, &error), 0);
    ck_assert_uint_eq(count, 1);
    ck_assert_str_eq(keys[0].name, "one");
    ck_assert_uint_eq(keys[0].key_bits, 192);
    cm_keys_free(keys, count);
    cm_keys_free(NULL, 0);
}
END_TEST

/* Always the first page, and more to come. */
static void serve_the_same_page(struct fake_peer *peer)
{
    int type;
    fake_greet(peer);
    while ((type = fake_next_request(peer)) != 0) {
        if (type == CM_FRAME_CALL && peer->call.kind == CM_CALL_LIST_KEYS)
            peer->call.name = "";
        fake_answer(peer, type);
    }
}

START_TEST(a_list_has_an_end)
{
    open_with(serve_the_same_page);
    cm_key_details *keys = NULL;
    size_t count;
    ck_assert_int_eq(cm_key_list(client, NULL, &keys, &count, &error), CM_ERR_PROTOCOL);
    ck_assert_ptr_null(keys);
}
END_TEST

START_TEST(what_the_daemon_tells_of_itself)
{
    open_with(NULL);
    cm_implementation_details *rows;
    size_t count;
    ck_assert_int_eq(cm_get_implementations(client, &rows, &count, &error), 0);
    ck_assert_uint_eq(count, 4);
    ck_assert_str_eq(rows[0].implementation, "portable");
    ck_assert_int_eq(rows[0].mode, CM_CTR);
    ck_assert_uint_eq(rows[0].used, CM_USED_SHORT | CM_USED_SMALL | CM_USED_LONG);
    ck_assert_uint_eq(rows[1].used, CM_USED_SHORT);
    ck_assert_uint_eq(rows[2].used, CM_USED_LONG);
    ck_assert_uint_eq(rows[3].used, 0);
    free(rows);
    cm_server_details details = {.size = sizeof details};
    ck_assert_int_eq(cm_get_status(client, &details, &error), 0);
    ck_assert_str_eq(details.identity, "uid:0");
    ck_assert_str_eq(details.endpoint, fake.uri);
    ck_assert_uint_eq(details.workers, 3);
    cm_limits_info limits = {.size = sizeof limits};
    ck_assert_int_eq(cm_get_limits(client, &limits, &error), 0);
    ck_assert_uint_eq(limits.item_bytes, 8 << 20);
    ck_assert_uint_eq(limits.batch_items, 1024);
    /* An older caller's shorter struct is filled as far as it goes. */
    limits = (cm_limits_info){.size = offsetof(cm_limits_info, item_bytes), .item_bytes = 77};
    ck_assert_int_eq(cm_get_limits(client, &limits, &error), 0);
    ck_assert_uint_eq(limits.item_bytes, 77);
    ck_assert_uint_eq(limits.frame_bytes, 16 << 20);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_change_is_repeated_under_its_id, wrong_arguments, lists_come_in_pages, a_list_has_an_end,
        what_the_daemon_tells_of_itself,
    };
    return RUN_WITH_FIXTURE("client/admin", setup, teardown, tests);
}
