/* SPDX-License-Identifier: Apache-2.0 */
/* Blocking batches against a fake daemon: bytes, slots, limits, results. */
#include "fake.h"
#include "fixture.h"
#include <ciphermill/ciphermill.h>
#include <stdlib.h>
#include <string.h>

static struct fake fake;
static cm_client *client;
static cm_key *key;
static cm_error error;

static void open_with(const cm_options *options)
{
    ck_assert_int_eq(cm_connect(&client, fake.uri, options, &error), 0);
    ck_assert_int_eq(cm_key_open(&key, client, "orders", &error), 0);
}

static void setup(void)
{
    fake_start(&fake, NULL);
}

static void teardown(void)
{
    cm_key_close(key);
    cm_close(client);
    fake_stop(&fake);
}

static uint8_t *pattern(size_t length, unsigned seed)
{
    uint8_t *bytes = malloc(length + 1);
    ck_assert_ptr_nonnull(bytes);
    for (size_t i = 0; i < length; i++)
        bytes[i] = (uint8_t)(i * 31 + i / 251 + seed);
    return bytes;
}

static void assert_masked(const uint8_t *out, const uint8_t *in, size_t length)
{
    size_t wrong = 0;
    for (size_t i = 0; i < length; i++)
        wrong += out[i] != (in[i] ^ FAKE_MASK);
    ck_assert_uint_eq(wrong, 0);
}

/* Lengths around blocks, each through every mode, apart and in place. */
static void one_length(int mode, size_t length, bool in_place)
{
    uint8_t *in = pattern(length, 3), *out = malloc(length + 33), *back = malloc(length + 33);
    memcpy(out, in, length);
    memset(out + length, 0xee, 33);
    cm_item item = {.in = in_place ? out : in, .in_length = length, .out = out, .out_capacity = length + 16};
    item.iv_length = mode == CM_ECB || mode == CM_GCM ? 0 : 16;
    ck_assert_int_eq(cm_encrypt(key, mode, &item, 1, &error), 0);
    size_t expected = mode == CM_ECB || mode == CM_CBC ? length - length % 16 + 16 : length;
    ck_assert_uint_eq(item.out_length, expected);
    assert_masked(out, in, length);
    for (size_t i = expected; i < length + 33; i++)
        ck_assert_uint_eq(out[i], 0xee);
    cm_item turned = item;
    turned.in = out;
    turned.in_length = item.out_length;
    turned.out = back;
    turned.out_capacity = length + 33;
    ck_assert_int_eq(cm_decrypt(key, mode, &turned, 1, &error), 0);
    ck_assert_uint_eq(turned.out_length, length);
    ck_assert_mem_eq(back, in, length);
    free(in);
    free(out);
    free(back);
}

START_TEST(every_length_goes_both_ways)
{
    open_with(NULL);
    for (int mode = CM_ECB; mode <= CM_XTS; mode++)
        for (size_t length = 0; length <= 70; length++)
            one_length(mode, length, length % 2 == 0);
    one_length(CM_CTR, 5 << 20, true);
    one_length(CM_CBC, (5 << 20) + 7, false);
}
END_TEST

/* Items of odd lengths, some with additional data, with gaps between their slots. */
static void many_items(size_t count, size_t longest)
{
    cm_item *items = calloc(count, sizeof *items);
    uint8_t *in = pattern(count * longest, 9), *out = malloc(count * longest), *aad = pattern(500, 1);
    for (size_t i = 0; i < count; i++)
        items[i] = (cm_item){.in = in + i * longest,
                             .in_length = i * 37 % (longest + 1),
                             .out = out + i * longest,
                             .out_capacity = longest,
                             .aad = aad,
                             .aad_length = i * 11 % 500};
    ck_assert_int_eq(cm_encrypt(key, CM_GCM, items, count, &error), 0);
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(items[i].status, CM_OK);
        ck_assert_uint_eq(items[i].out_length, items[i].in_length);
        ck_assert_uint_eq(items[i].iv_length, 12);
        ck_assert_uint_eq(items[i].tag_length, 16);
        assert_masked(items[i].out, items[i].in, items[i].in_length);
    }
    ck_assert_uint_eq(cm_key_version(key), FAKE_KEY_VERSION);
    for (size_t i = 0; i < count; i++) {
        items[i].in = items[i].out;
        items[i].tag[3] ^= i % 10 == 4;
    }
    ck_assert_int_eq(cm_decrypt(key, CM_GCM, items, count, &error), (int)((count + 5) / 10));
    ck_assert_int_eq(error.code, CM_ERR_BAD_TAG);
    ck_assert_ptr_nonnull(strstr(error.text, "item 4"));
    for (size_t i = 0; i < count; i++) {
        bool spoilt = i % 10 == 4;
        ck_assert_int_eq(items[i].status, spoilt ? CM_ERR_BAD_TAG : CM_OK);
        ck_assert_uint_eq(items[i].out_length, spoilt ? 0 : items[i].in_length);
        if (!spoilt)
            ck_assert_mem_eq(items[i].out, in + i * longest, items[i].in_length);
    }
    free(items);
    free(in);
    free(out);
    free(aad);
}

START_TEST(many_items_with_gaps)
{
    cm_options options = CM_OPTIONS_INIT;
    options.slot_align = 64;
    options.slot_gap = 5000;
    options.program = "test \"batch\"";
    open_with(&options);
    ck_assert_str_eq(fake.last_program, options.program);
    many_items(200, 300);
}
END_TEST

START_TEST(many_frames)
{
    open_with(NULL);
    many_items(5000, 300);
    ck_assert_int_ge(fake.batches, 10);
    ck_assert_uint_le(fake.peak_bytes, 256 * 1024);
    ck_assert_int_eq(fake.items, 10000);
}
END_TEST

/* With tiny limits everything is cut; at a limit is well, one above is refused with its name. */
START_TEST(limits_are_kept)
{
    fake.limits.header_bytes = 1024;
    fake.limits.batch_items = 7;
    fake.limits.frame_bytes = 8192;
    fake.limits.item_bytes = 4096;
    open_with(NULL);
    many_items(100, 300);
    ck_assert_int_ge(fake.batches, 2 * 100 / 7);
    ck_assert_uint_le(fake.peak_bytes, 8192);
    uint8_t *bytes = pattern(8192, 0);
    cm_item items[2] = {{.in = bytes, .in_length = 4096, .out = bytes, .out_capacity = 5000},
                        {.in = bytes, .in_length = 4096, .out = bytes, .out_capacity = 5000}};
    ck_assert_int_eq(cm_encrypt(key, CM_CTR, items, 1, &error), 0);
    items[1].in_length = 4097;
    int before = fake.batches;
    ck_assert_int_eq(cm_encrypt(key, CM_CTR, &items[1], 1, &error), CM_ERR_TOO_LARGE);
    ck_assert_int_eq(fake.batches, before);
    ck_assert_int_eq(items[1].status, CM_ERR_TOO_LARGE);
    ck_assert_int_eq(error.retry, CM_RETRY_FINAL);
    ck_assert_ptr_nonnull(strstr(error.text, "item limit of 4096"));
    ck_assert_ptr_nonnull(strstr(error.text, "multi-part"));
    ck_assert_int_eq(cm_encrypt(key, CM_XTS, &items[1], 1, &error), CM_ERR_TOO_LARGE);
    ck_assert_ptr_nonnull(strstr(error.text, "smaller data units"));
    items[0] = (cm_item){.in = bytes, .in_length = 16, .out = bytes, .out_capacity = 16, .aad = bytes};
    items[0].aad_length = 8192 - 1024 - 16;
    ck_assert_int_eq(cm_encrypt(key, CM_GCM, items, 1, &error), 0);
    items[0].iv_length = 0;
    items[0].aad_length = 8192;
    items[0].aad = pattern(8192, 1);
    ck_assert_int_eq(cm_encrypt(key, CM_GCM, items, 1, &error), CM_ERR_TOO_LARGE);
    ck_assert_ptr_nonnull(strstr(error.text, "frame limit of 8192"));
    free((void *)(uintptr_t)items[0].aad);
    items[0] = (cm_item){.in = bytes, .in_length = 16, .out = bytes, .out_capacity = 16, .long_iv = bytes};
    items[0].long_iv_length = 700;
    ck_assert_int_eq(cm_encrypt(key, CM_GCM, items, 1, &error), 0);
    items[0].long_iv_length = 1000;
    ck_assert_int_eq(cm_encrypt(key, CM_GCM, items, 1, &error), CM_ERR_TOO_LARGE);
    ck_assert_ptr_nonnull(strstr(error.text, "header limit of 1024"));
    free(bytes);
}
END_TEST

/* Items that can't share a frame's columns: IVs given and not, tags of several lengths. */
START_TEST(unlike_items_get_frames_of_their_own)
{
    open_with(NULL);
    uint8_t bytes[6][16] = {{0}};
    cm_item items[6];
    for (int i = 0; i < 6; i++)
        items[i] = (cm_item){.in = bytes[i], .in_length = 16, .out = bytes[i], .out_capacity = 16};
    items[2].iv_length = items[3].iv_length = 12;
    memset(items[2].iv, 0xaa, 12);
    int before = fake.batches;
    ck_assert_int_eq(cm_encrypt(key, CM_GCM, items, 6, &error), 0);
    ck_assert_int_eq(fake.batches, before + 3);
    ck_assert_uint_eq(items[2].iv[0], 0xaa);
    ck_assert_uint_eq(items[3].iv[0], 0);
    ck_assert_uint_ne(items[4].iv[0], 0);
    items[1].tag_length = 12;
    ck_assert_int_eq(cm_decrypt(key, CM_GCM, items, 6, &error), 1);
    ck_assert_int_eq(fake.batches, before + 6);
    ck_assert_int_eq(items[1].status, CM_ERR_BAD_TAG);
}
END_TEST

static void assert_argument(cm_item item, int mode, int expected, const char *text)
{
    uint8_t memory[64];
    cm_item items[2] = {{.in = memory, .in_length = 16, .out = memory, .out_capacity = 64}, item};
    int before = fake.batches;
    ck_assert_int_eq(cm_encrypt(key, mode, items, 2, &error), expected);
    ck_assert_int_eq(items[1].status, expected);
    ck_assert_int_eq(items[0].status, CM_ERR_NOT_SENT);
    ck_assert_int_eq(error.retry, CM_RETRY_FINAL);
    ck_assert_msg(strstr(error.text, text) != NULL, "%s", error.text);
    ck_assert_msg(strstr(error.text, "item 1") != NULL, "%s", error.text);
    ck_assert_int_eq(fake.batches, before);
}

START_TEST(wrong_arguments)
{
    open_with(NULL);
    uint8_t m[64];
    assert_argument((cm_item){.in = NULL, .in_length = 1, .out = m, .out_capacity = 64}, CM_CTR,
                    CM_ERR_ARGUMENT, "NULL");
    assert_argument((cm_item){.in = m, .in_length = 16, .out = m, .out_capacity = 15}, CM_CTR, CM_ERR_ROOM,
                    "out_capacity is 15, 16 bytes");
    assert_argument((cm_item){.in = m, .in_length = 16, .out = m, .out_capacity = 31}, CM_CBC, CM_ERR_ROOM,
                    "32 bytes");
    assert_argument((cm_item){.in = m, .in_length = 16, .out = NULL, .out_capacity = 16}, CM_CTR,
                    CM_ERR_ARGUMENT, "out is NULL");
    assert_argument((cm_item){.in = m, .in_length = 1, .out = m, .out_capacity = 64, .iv_length = 17}, CM_GCM,
                    CM_ERR_ARGUMENT, "iv_length");
    assert_argument((cm_item){.in = m, .in_length = 1, .out = m, .out_capacity = 64, .tag_length = 17},
                    CM_GCM, CM_ERR_ARGUMENT, "tag_length");
    assert_argument(
        (cm_item){.in = m, .in_length = 1, .out = m, .out_capacity = 64, .aad = m, .aad_length = 1}, CM_CTR,
        CM_ERR_ARGUMENT, "outside GCM");
    assert_argument((cm_item){.in = m, .in_length = SIZE_MAX, .out = m, .out_capacity = SIZE_MAX}, CM_CTR,
                    CM_ERR_ARGUMENT, "4 GiB");
    cm_item item = {.in = m, .in_length = 16, .out = m, .out_capacity = 32};
    ck_assert_int_eq(cm_encrypt(key, 0, &item, 1, &error), CM_ERR_ARGUMENT);
    ck_assert_int_eq(cm_encrypt(key, CM_XTS + 1, &item, 1, NULL), CM_ERR_ARGUMENT);
    ck_assert_int_eq(cm_encrypt_flags(key, CM_CBC, 2, &item, 1, NULL), CM_ERR_ARGUMENT);
    ck_assert_int_eq(cm_encrypt(NULL, CM_CBC, &item, 1, NULL), CM_ERR_ARGUMENT);
    ck_assert_int_eq(cm_encrypt(key, CM_CBC, NULL, 1, NULL), CM_ERR_ARGUMENT);
    ck_assert_int_eq(cm_encrypt(key, CM_CBC, NULL, 0, NULL), 0);
    ck_assert_int_eq(cm_encrypt_flags(key, CM_CBC, CM_NO_PADDING, &item, 1, &error), 0);
    ck_assert_uint_eq(item.out_length, 16);
}
END_TEST

START_TEST(decrypting_names_a_version)
{
    open_with(NULL);
    uint8_t bytes[16] = {0};
    cm_item item = {.in = bytes, .in_length = 16, .out = bytes, .out_capacity = 16, .iv_length = 16};
    ck_assert_uint_eq(cm_key_version(key), 0);
    cm_key_use_version(key, 3);
    ck_assert_int_eq(cm_encrypt(key, CM_CTR, &item, 1, &error), 0);
    ck_assert_uint_eq(fake.last_key_version, 0);
    ck_assert_uint_eq(cm_key_version(key), FAKE_KEY_VERSION);
    ck_assert_int_eq(cm_decrypt(key, CM_CTR, &item, 1, &error), 0);
    ck_assert_uint_eq(fake.last_key_version, 3);
    cm_key_use_version(key, 0);
    ck_assert_int_eq(cm_decrypt(key, CM_CTR, &item, 1, &error), 0);
    ck_assert_uint_eq(fake.last_key_version, 0);
}
END_TEST

static void serve_refusing(struct fake_peer *peer)
{
    fake_greet(peer);
    for (int type; (type = fake_next_request(peer)) != 0;)
        if (type != CM_FRAME_BATCH)
            fake_answer_call(peer);
        else if (peer->fake->batches <= peer->fake->knob)
            fake_answer_batch(peer);
        else
            fake_refuse_batch(peer, CM_STATUS_OVERLOADED, "too much at once");
}

/* A refused batch carries the daemon's words; one that was cut tells which items are done. */
START_TEST(refused_batches)
{
    fake_restart(&fake, serve_refusing);
    open_with(NULL);
    uint8_t *bytes = pattern(3 << 20, 0);
    cm_item items[3];
    for (int i = 0; i < 3; i++)
        items[i] = (cm_item){.in = bytes + (i << 20), .in_length = 1 << 20, .out = bytes + (i << 20)};
    for (int i = 0; i < 3; i++)
        items[i].out_capacity = 1 << 20;
    ck_assert_int_eq(cm_encrypt(key, CM_CTR, items, 3, &error), CM_ERR_OVERLOADED);
    ck_assert_str_eq(error.text, "too much at once");
    ck_assert_int_eq(error.retry, CM_RETRY_NOT_EXECUTED);
    ck_assert_int_eq(items[0].status, CM_ERR_OVERLOADED);
    ck_assert_int_eq(items[2].status, CM_ERR_NOT_SENT);
    fake.knob = fake.batches + 1;
    ck_assert_int_eq(cm_encrypt(key, CM_CTR, items, 3, &error), CM_ERR_OVERLOADED);
    ck_assert_ptr_nonnull(strstr(error.text, "1 of 3 items were done"));
    ck_assert_int_eq(error.retry, CM_RETRY_UNKNOWN);
    ck_assert_int_eq(items[0].status, CM_OK);
    ck_assert_int_eq(items[1].status, CM_ERR_OVERLOADED);
    ck_assert_int_eq(items[2].status, CM_ERR_NOT_SENT);
    free(bytes);
}
END_TEST

static void serve_refusing_and_ending(struct fake_peer *peer)
{
    fake_greet(peer);
    for (int type; (type = fake_next_request(peer)) != 0;) {
        if (type == CM_FRAME_BATCH && peer->fake->batches == 2)
            return;
        if (type == CM_FRAME_BATCH)
            fake_refuse_batch(peer, CM_STATUS_OVERLOADED, "too much at once");
        else
            fake_answer_call(peer);
    }
}

/* One frame certainly not done, the next one in doubt: the whole is in doubt. */
START_TEST(one_frame_in_doubt)
{
    enum { LENGTH = 300000 };
    fake_restart(&fake, serve_refusing_and_ending);
    open_with(NULL);
    uint8_t *bytes = pattern(3 * LENGTH, 0);
    cm_item items[3];
    for (int i = 0; i < 3; i++)
        items[i] = (cm_item){
            .in = bytes + i * LENGTH, .in_length = LENGTH, .out = bytes + i * LENGTH, .out_capacity = LENGTH};
    ck_assert_int_eq(cm_encrypt(key, CM_CTR, items, 3, &error), CM_ERR_OVERLOADED);
    /* Unless the refusal came before the second frame was begun. */
    bool begun = fake.batches == 2;
    ck_assert_int_eq(items[0].status, CM_ERR_OVERLOADED);
    ck_assert_int_eq(items[1].status, begun ? CM_ERR_DISCONNECTED : CM_ERR_NOT_SENT);
    ck_assert_int_eq(error.retry, begun ? CM_RETRY_UNKNOWN : CM_RETRY_NOT_EXECUTED);
    free(bytes);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_length_goes_both_ways,
        many_items_with_gaps,
        many_frames,
        limits_are_kept,
        unlike_items_get_frames_of_their_own,
        wrong_arguments,
        decrypting_names_a_version,
        refused_batches,
        one_frame_in_doubt,
    };
    return RUN_WITH_FIXTURE("client/batch", setup, teardown, tests);
}
