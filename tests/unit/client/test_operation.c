/* SPDX-License-Identifier: Apache-2.0 */
/* Messages in parts: how they travel, how they end, and who else may use the connection meanwhile. */
#include "fake.h"
#include "fixture.h"
#include <ciphermill/ciphermill.h>
#include <stdlib.h>
#include <string.h>

enum { PART_BYTES = 64 * 1024, PARTS = 40 };

static struct fake fake;
static cm_client *client;
static cm_key *key;
static cm_operation *operation;
static cm_error error;
static uint8_t bytes[PARTS][PART_BYTES + 16];
static cm_item items[PARTS];

/* What the fake saw: the kind of each part, in order, and whether it had an IV. */
static char seen[200];
static uint32_t seen_operation[200];
static atomic_int seen_count;

static void setup(void)
{
    fake_start(&fake, NULL);
    seen_count = 0;
    memset(seen, 0, sizeof seen);
}

static void teardown(void)
{
    cm_operation_close(operation);
    cm_key_close(key);
    cm_close(client);
    fake_stop(&fake);
}

static void serve_parts(struct fake_peer *peer)
{
    static const char kinds[] = "SFML";
    fake_greet(peer);
    for (int type; (type = fake_next_request(peer)) != 0;) {
        if (type == CM_FRAME_BATCH) {
            const struct cm_batch *batch = &peer->batch;
            int at = seen_count;
            seen[at] = kinds[batch->parts != NULL ? batch->parts[0] : 0];
            if (batch->iv_lengths != NULL)
                seen[at] = (char)(seen[at] - 'A' + 'a');
            seen_operation[at] = batch->operations != NULL ? batch->operations[0] : 0;
            seen_count = at + 1;
            if (at + 1 == peer->fake->knob) {
                fake_refuse_batch(peer, CM_STATUS_NO_SUCH_OPERATION, "the operation timed out");
                continue;
            }
        }
        fake_answer(peer, type);
    }
}

static void open_all(int mode, int direction, uint32_t connections)
{
    cm_options options = CM_OPTIONS_INIT;
    options.connections = connections;
    fake_restart(&fake, serve_parts);
    ck_assert_int_eq(cm_connect(&client, fake.uri, &options, &error), 0);
    ck_assert_int_eq(cm_key_open(&key, client, "orders", &error), 0);
    ck_assert_int_eq(cm_operation_open(&operation, key, mode, direction, 0, &error), 0);
}

static void fill(int count, size_t last_length)
{
    memset(items, 0, sizeof items);
    for (int i = 0; i < count; i++) {
        memset(bytes[i], i + 1, PART_BYTES);
        items[i].in = items[i].out = bytes[i];
        items[i].in_length = i == count - 1 ? last_length : PART_BYTES;
        items[i].out_capacity = sizeof bytes[i];
    }
}

static void assert_masked(int count)
{
    for (int i = 0; i < count; i++) {
        ck_assert_int_eq(items[i].status, CM_OK);
        size_t wrong = 0;
        for (size_t k = 0; k < items[i].in_length; k++)
            wrong += bytes[i][k] != ((i + 1) ^ FAKE_MASK);
        ck_assert_uint_eq(wrong, 0);
    }
}

START_TEST(many_parts_in_one_call)
{
    open_all(CM_CBC, CM_ENCRYPT, 1);
    fill(PARTS, 100);
    for (int i = 0; i < PARTS; i++)
        items[i].iv_length = 16; /* counts in the first only */
    ck_assert_int_eq(cm_operation_parts(operation, items, PARTS, 1, &error), 0);
    assert_masked(PARTS);
    ck_assert_uint_eq(items[0].out_length, PART_BYTES);
    ck_assert_uint_eq(items[PARTS - 1].out_length, 112);
    ck_assert_int_eq(seen_count, PARTS);
    ck_assert_int_eq(seen[0], 'f');
    for (int i = 1; i < PARTS - 1; i++)
        ck_assert_int_eq(seen[i], 'M');
    ck_assert_int_eq(seen[PARTS - 1], 'L');
    for (int i = 0; i < PARTS; i++)
        ck_assert_uint_eq(seen_operation[i], seen_operation[0]);
    ck_assert_uint_ne(seen_operation[0], 0);
    ck_assert_int_eq(cm_operation_part(operation, items, 1, &error), CM_ERR_NO_SUCH_OPERATION);
    ck_assert_int_eq(fake.cancelled, 0);
}
END_TEST

START_TEST(part_by_part_with_others_between)
{
    open_all(CM_GCM, CM_ENCRYPT, 1);
    cm_operation *second;
    ck_assert_int_eq(cm_operation_open(&second, key, CM_CTR, CM_DECRYPT, 0, &error), 0);
    fill(4, 5);
    uint8_t byte = 1, aad[3] = "ab";
    items[0].aad = items[1].aad = aad;
    items[0].aad_length = items[1].aad_length = 3;
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(cm_operation_part(operation, &items[i], i == 3, &error), 0);
        cm_item other = {.in = &byte, .in_length = 1, .out = &byte, .out_capacity = 1};
        other.iv_length = 16;
        ck_assert_int_eq(cm_encrypt(key, CM_CTR, &other, 1, &error), 0);
        if (i < 3)
            ck_assert_int_eq(cm_operation_part(second, &(cm_item){.iv_length = 16}, i == 2, &error), 0);
    }
    assert_masked(4);
    ck_assert_uint_eq(items[0].iv_length, 12);
    ck_assert_uint_eq(items[1].iv_length, 0);
    ck_assert_uint_eq(items[3].tag_length, 16);
    ck_assert_str_eq(seen, "FsfMsMMsLLs");
    ck_assert_uint_ne(seen_operation[0], seen_operation[2]);
    cm_operation_close(second);
}
END_TEST

START_TEST(one_part_is_a_single_item)
{
    open_all(CM_CTR, CM_ENCRYPT, 1);
    fill(1, 77);
    ck_assert_int_eq(cm_operation_part(operation, items, 1, &error), 0);
    assert_masked(1);
    ck_assert_str_eq(seen, "S");
}
END_TEST

START_TEST(a_failed_part_ends_the_operation)
{
    open_all(CM_CTR, CM_ENCRYPT, 1);
    fill(6, PART_BYTES);
    fake.knob = 3;
    ck_assert_int_eq(cm_operation_parts(operation, items, 6, 0, &error), CM_ERR_NO_SUCH_OPERATION);
    ck_assert_str_eq(error.text, "the operation timed out");
    ck_assert_int_eq(items[1].status, CM_OK);
    ck_assert_int_eq(items[2].status, CM_ERR_NO_SUCH_OPERATION);
    ck_assert_int_eq(cm_operation_part(operation, items, 1, &error), CM_ERR_NO_SUCH_OPERATION);
    ck_assert_ptr_nonnull(strstr(error.text, "ended"));
}
END_TEST

START_TEST(closing_cancels)
{
    open_all(CM_CTR, CM_ENCRYPT, 3);
    fill(2, PART_BYTES);
    cm_operation_close(operation);
    ck_assert_int_eq(cm_operation_open(&operation, key, CM_CTR, CM_ENCRYPT, 0, &error), 0);
    ck_assert_int_eq(cm_operation_parts(operation, items, 2, 0, &error), 0);
    cm_operation_close(operation);
    operation = NULL;
    fill(1, 1);
    ck_assert_int_eq(cm_encrypt(key, CM_CTR, items, 1, &error), 0);
    ck_assert_int_eq(fake.cancelled, 1);
}
END_TEST

START_TEST(an_operation_ends_with_its_connection)
{
    open_all(CM_CTR, CM_ENCRYPT, 1);
    fill(2, PART_BYTES);
    ck_assert_int_eq(cm_operation_part(operation, items, 0, &error), 0);
    fake_restart(&fake, serve_parts);
    ck_assert_int_eq(cm_operation_part(operation, &items[1], 0, &error), CM_ERR_DISCONNECTED);
    ck_assert_int_eq(cm_operation_part(operation, &items[1], 0, &error), CM_ERR_NO_SUCH_OPERATION);
    cm_operation_close(operation);
    ck_assert_int_eq(cm_operation_open(&operation, key, CM_CTR, CM_ENCRYPT, 0, &error), 0);
    fake_restart(&fake, serve_parts);
    fill(2, PART_BYTES);
    ck_assert_int_eq(cm_operation_parts(operation, items, 2, 1, &error), 0);
    assert_masked(2);
}
END_TEST

START_TEST(what_is_wrong_from_the_start)
{
    open_all(CM_CBC, CM_ENCRYPT, 1);
    cm_operation *other = NULL;
    ck_assert_int_eq(cm_operation_open(&other, key, CM_GCM, CM_DECRYPT, 0, &error), CM_ERR_UNSUPPORTED);
    for (int direction = CM_ENCRYPT; direction <= CM_DECRYPT; direction++)
        ck_assert_int_eq(cm_operation_open(&other, key, CM_XTS, direction, 0, &error), CM_ERR_UNSUPPORTED);
    ck_assert_ptr_null(other);
    fill(2, PART_BYTES);
    items[0].out_capacity = PART_BYTES;
    items[1].out_capacity = PART_BYTES;
    ck_assert_int_eq(cm_operation_parts(operation, items, 2, 1, &error), CM_ERR_ROOM);
    ck_assert_int_eq(seen_count, 0);
    ck_assert_int_eq(cm_operation_parts(operation, items, 0, 1, &error), CM_ERR_ARGUMENT);
    ck_assert_int_eq(cm_operation_parts(operation, items, 2, 0, &error), 0);
    ck_assert_str_eq(seen, "FM");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        many_parts_in_one_call,
        part_by_part_with_others_between,
        one_part_is_a_single_item,
        a_failed_part_ends_the_operation,
        closing_cancels,
        an_operation_ends_with_its_connection,
        what_is_wrong_from_the_start,
    };
    return RUN_WITH_FIXTURE("client/operation", setup, teardown, tests);
}
