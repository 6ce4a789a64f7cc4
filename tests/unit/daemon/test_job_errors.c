/* SPDX-License-Identifier: Apache-2.0 */
/* Batches that are refused, and items that are: every status, and every limit at its edge. */
#include "service_fixture.h"
#include "status.h"
#include <stdlib.h>
#include <string.h>

static struct fixture f;
static struct cm_peer_state *peer;
static uint32_t gcm, blocks, no_iv, encrypt_only, decrypt_only, short_tag, xts;

static uint32_t directed(bool encrypt, bool decrypt)
{
    const struct cm_call call = {
        .kind = CM_CALL_EPHEMERAL_KEY,
        .key_bits = 128,
        .attributes = {.modes = GCM_MODE, .encrypt = encrypt, .decrypt = decrypt, .caller_iv = true}};
    return fixture_call(&f, peer, &call, NULL, 0).handle;
}

static void start(void)
{
    fixture_init(&f);
    f.options.limits.item_bytes = 1000;
    f.options.limits.session_keys = 8;
    ck_assert_msg(fixture_start(&f) == 0, "%s", f.text);
    peer = fixture_peer(&f, &fixture_user);
    gcm = fixture_ephemeral(&f, peer, GCM_MODE, true, 0, NULL, 128);
    blocks = fixture_ephemeral(&f, peer, BLOCK_MODES, true, 0, NULL, 128);
    no_iv = fixture_ephemeral(&f, peer, BLOCK_MODES, false, 0, NULL, 128);
    encrypt_only = directed(true, false);
    decrypt_only = directed(false, true);
    xts = fixture_ephemeral(&f, peer, XTS_MODE, false, 0, NULL, 128);
    short_tag = fixture_ephemeral(&f, peer, GCM_MODE, true, 8, NULL, 128);
}

static void stop(void)
{
    cm_service_peer_free(peer);
    fixture_stop(&f);
    fixture_done(&f);
}

/* Plans without running: a batch that is refused has nothing to run, and answers without columns. */
static void refused(struct run *run, uint32_t status)
{
    uint8_t *before = malloc(run->body_length + 1);
    memcpy(before, run->body, run->body_length);
    run_plan(run, &f, peer, 0);
    ck_assert_uint_eq(run->job.task_count, 0);
    run_finish(run, &f);
    const struct cm_batch_reply *reply = &run->job.reply;
    ck_assert_msg(reply->status == status, "%u: %s", reply->status, reply->text);
    ck_assert_uint_gt(strlen(reply->text), 0);
    ck_assert_uint_eq(reply->count, 0);
    ck_assert_uint_eq(reply->request_id, 42);
    ck_assert_mem_eq(run->body, before, run->body_length);
    free(before);
    run_done(run);
}

static void done_well(struct run *run)
{
    const struct cm_batch_reply *reply = run_all(run, &f, peer, 0);
    ck_assert_msg(reply->status == CM_STATUS_OK, "%s", reply->text);
    ck_assert_ptr_null(reply->statuses);
    run_done(run);
}

/* The usual two items of 32 bytes with IVs of 16 bytes. */
static void usual(struct run *run, uint32_t handle, uint8_t mode, uint8_t direction)
{
    run_init(run, handle, mode, direction, 2, 32, 1);
    run->iv_lengths[0] = run->iv_lengths[1] = 16;
    run->aad_lengths[0] = run->aad_lengths[1] = 5;
    if (mode != CM_WIRE_ECB)
        run->batch.iv_lengths = run->iv_lengths;
    run_layout(run, 1);
    if (mode == CM_WIRE_GCM && direction == CM_WIRE_DECRYPT)
        run->batch.tags = (struct cm_bytes){run->tags, 32};
}

START_TEST(keys)
{
    struct run run;
    usual(&run, 0, CM_WIRE_GCM, CM_WIRE_ENCRYPT);
    refused(&run, CM_STATUS_NO_SUCH_KEY);
    usual(&run, 4711, CM_WIRE_GCM, CM_WIRE_ENCRYPT);
    refused(&run, CM_STATUS_NO_SUCH_KEY);
    usual(&run, gcm, CM_WIRE_GCM, CM_WIRE_ENCRYPT);
    run.batch.key_version = 2;
    refused(&run, CM_STATUS_NO_SUCH_KEY);
    usual(&run, gcm, CM_WIRE_GCM, CM_WIRE_ENCRYPT);
    run.batch.key_version = 1;
    done_well(&run);
}
END_TEST

START_TEST(modes_and_directions)
{
    struct run run;
    for (uint8_t mode = CM_WIRE_ECB; mode <= CM_WIRE_MODE_LAST; mode++) {
        usual(&run, mode == CM_WIRE_GCM ? blocks : gcm, mode, CM_WIRE_ENCRYPT);
        refused(&run, CM_STATUS_NOT_PERMITTED);
    }
    usual(&run, decrypt_only, CM_WIRE_GCM, CM_WIRE_ENCRYPT);
    refused(&run, CM_STATUS_NOT_PERMITTED);
    usual(&run, encrypt_only, CM_WIRE_GCM, CM_WIRE_DECRYPT);
    refused(&run, CM_STATUS_NOT_PERMITTED);
    usual(&run, encrypt_only, CM_WIRE_GCM, CM_WIRE_ENCRYPT);
    done_well(&run);
    static const uint8_t unknown[] = {0, CM_WIRE_MODE_LAST + 1, 255};
    for (size_t i = 0; i < sizeof unknown; i++) {
        usual(&run, gcm, CM_WIRE_GCM, CM_WIRE_ENCRYPT);
        run.batch.mode = unknown[i];
        refused(&run, CM_STATUS_UNSUPPORTED);
        usual(&run, gcm, CM_WIRE_GCM, CM_WIRE_ENCRYPT);
        run.batch.direction = unknown[i];
        refused(&run, CM_STATUS_UNSUPPORTED);
    }
}
END_TEST

START_TEST(padding_goes_with_ecb_and_cbc)
{
    struct run run;
    for (uint8_t mode = CM_WIRE_ECB; mode <= CM_WIRE_MODE_LAST; mode++) {
        usual(&run, mode == CM_WIRE_GCM ? gcm : blocks, mode, CM_WIRE_ENCRYPT);
        run.batch.padding = true;
        run_layout(&run, 1);
        if (mode == CM_WIRE_ECB || mode == CM_WIRE_CBC)
            done_well(&run);
        else
            refused(&run, CM_STATUS_BAD_REQUEST);
    }
}
END_TEST

START_TEST(limits)
{
    struct run run;
    /* items in a batch */
    run_init(&run, gcm, CM_WIRE_GCM, CM_WIRE_ENCRYPT, RUN_ITEMS - 1, 16, 1);
    done_well(&run);
    run_init(&run, gcm, CM_WIRE_GCM, CM_WIRE_ENCRYPT, RUN_ITEMS, 16, 1);
    done_well(&run);
    f.service->options.limits.batch_items = RUN_ITEMS - 1;
    run_init(&run, gcm, CM_WIRE_GCM, CM_WIRE_ENCRYPT, RUN_ITEMS, 16, 1);
    refused(&run, CM_STATUS_TOO_LARGE);
    /* bytes of an item */
    for (uint32_t length = 999; length <= 1001; length++) {
        run_init(&run, gcm, CM_WIRE_GCM, CM_WIRE_ENCRYPT, 2, 16, 1);
        run.lengths[1] = length;
        run_layout(&run, 1);
        if (length <= 1000)
            done_well(&run);
        else
            refused(&run, CM_STATUS_TOO_LARGE);
    }
    /* the reply's header: 64 bytes and 10 + 16 + 16 an item */
    for (uint32_t header = 64 + 2 * 42 - 1; header <= 64 + 2 * 42 + 1; header++) {
        f.service->options.limits.header_bytes = header;
        run_init(&run, gcm, CM_WIRE_GCM, CM_WIRE_ENCRYPT, 2, 16, 1);
        if (header >= 64 + 2 * 42)
            done_well(&run);
        else
            refused(&run, CM_STATUS_TOO_LARGE);
    }
    /* and 10 an item where nothing but lengths and statuses comes back */
    f.service->options.limits.header_bytes = 64 + 2 * 10 - 1;
    static const uint8_t tags[2 * 16];
    run_init(&run, gcm, CM_WIRE_GCM, CM_WIRE_DECRYPT, 2, 16, 1);
    run.batch.tags = (struct cm_bytes){tags, sizeof tags};
    refused(&run, CM_STATUS_TOO_LARGE);
}
END_TEST

START_TEST(slots)
{
    static const struct {
        uint32_t align, gap;
        bool good;
    } cases[] = {{8, 0, false}, {15, 0, false},        {16, 0, true},    {17, 0, false},
                 {32, 0, true}, {4095, 0, false},      {4096, 0, true},  {8192, 0, false},
                 {0, 0, true},  {0, 65535, true},      {0, 65536, true}, {0, 65537, false},
                 {16, 1, true}, {UINT32_MAX, 0, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct run run;
        run_init(&run, gcm, CM_WIRE_GCM, CM_WIRE_ENCRYPT, 2, 33, 1);
        run.batch.slot_align = cases[i].align;
        run.batch.slot_gap = cases[i].gap;
        if (cases[i].good) {
            run_layout(&run, 1);
            done_well(&run);
        } else {
            refused(&run, CM_STATUS_BAD_REQUEST);
        }
    }
}
END_TEST

START_TEST(bodies_and_columns)
{
    struct run run;
    for (int off = -1; off <= 1; off++) {
        usual(&run, gcm, CM_WIRE_GCM, CM_WIRE_ENCRYPT);
        run.batch.aad_lengths = run.aad_lengths;
        run_layout(&run, 1);
        run.body_length += (size_t)off;
        if (off == 0)
            done_well(&run);
        else if (off < 0)
            refused(&run, CM_STATUS_BAD_REQUEST);
        else {
            run.body_length--; /* what is compared below */
            cm_job_plan(&run.job, peer->worker, peer, &run.batch, run.body, run.body_length + 1, &run.arena,
                        0);
            cm_job_finish(&run.job, peer->worker);
            ck_assert_uint_eq(run.job.reply.status, CM_STATUS_BAD_REQUEST);
            run_done(&run);
        }
    }
    usual(&run, gcm, CM_WIRE_GCM, CM_WIRE_ENCRYPT);
    run.batch.ivs.length--;
    refused(&run, CM_STATUS_BAD_REQUEST);
    usual(&run, blocks, CM_WIRE_CBC, CM_WIRE_ENCRYPT);
    run.batch.aad_lengths = run.aad_lengths;
    run_layout(&run, 1);
    refused(&run, CM_STATUS_BAD_REQUEST);
    usual(&run, gcm, CM_WIRE_GCM, CM_WIRE_DECRYPT);
    run.batch.tags.length = 31;
    refused(&run, CM_STATUS_BAD_REQUEST);
    usual(&run, gcm, CM_WIRE_GCM, CM_WIRE_ENCRYPT);
    run.batch.tags = (struct cm_bytes){run.tags, 32};
    refused(&run, CM_STATUS_BAD_REQUEST);
    usual(&run, blocks, CM_WIRE_CTR, CM_WIRE_DECRYPT);
    run.batch.tags = (struct cm_bytes){run.tags, 32};
    refused(&run, CM_STATUS_BAD_REQUEST);
    usual(&run, gcm, CM_WIRE_GCM, CM_WIRE_ENCRYPT);
    run.batch.lengths = NULL;
    refused(&run, CM_STATUS_BAD_REQUEST);
}
END_TEST

START_TEST(tags_have_exactly_the_keys_length)
{
    struct run run;
    for (uint32_t length = 0; length <= 16; length++) {
        usual(&run, short_tag, CM_WIRE_GCM, CM_WIRE_DECRYPT);
        run.batch.tags.length = 2 * (size_t)length;
        if (length != 8) {
            refused(&run, CM_STATUS_BAD_TAG);
            continue;
        }
        const struct cm_batch_reply *reply = run_all(&run, &f, peer, 0);
        ck_assert_uint_eq(reply->status, CM_STATUS_OK);
        ck_assert_uint_eq(run_status(&run, 0), CM_STATUS_BAD_TAG); /* the right length, but a wrong tag */
        run_done(&run);
    }
}
END_TEST

/* Changes the second item of the usual batch: its status is `status`, and the first item is well. */
static void second_fails(struct run *run, uint32_t status)
{
    const struct cm_batch_reply *reply = run_all(run, &f, peer, 0);
    ck_assert_msg(reply->status == CM_STATUS_OK, "%s", reply->text);
    ck_assert_uint_eq(run_status(run, 0), CM_STATUS_OK);
    ck_assert_uint_eq(run_status(run, 1), status);
    ck_assert_uint_eq(reply->lengths[1], 0);
    const uint8_t *slot = run_slot(run, 1);
    uint8_t any = 0;
    for (uint64_t i = 0; i < cm_slot_stride(&run->batch, 1); i++)
        any |= slot[i];
    ck_assert_uint_eq(any, 0);
    for (uint32_t i = 0; i < reply->iv_length; i++)
        ck_assert_uint_eq(reply->ivs[reply->iv_length + i], 0);
    for (uint32_t i = 0; i < reply->tag_length; i++)
        ck_assert_uint_eq(reply->tags[reply->tag_length + i], 0);
    run_done(run);
}

START_TEST(ivs)
{
    static const uint32_t wrong[] = {0, 1, 12, 15, 17, 32};
    struct run run;
    for (uint8_t mode = CM_WIRE_CBC; mode <= CM_WIRE_CTR; mode++)
        for (uint8_t direction = CM_WIRE_ENCRYPT; direction <= CM_WIRE_DECRYPT; direction++)
            for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
                usual(&run, blocks, mode, direction);
                run.iv_lengths[1] = wrong[i];
                run_layout(&run, 1);
                second_fails(&run, CM_STATUS_BAD_IV);
            }
    usual(&run, gcm, CM_WIRE_GCM, CM_WIRE_ENCRYPT);
    run.iv_lengths[1] = 0;
    run_layout(&run, 1);
    second_fails(&run, CM_STATUS_BAD_IV);
    usual(&run, blocks, CM_WIRE_ECB, CM_WIRE_ENCRYPT);
    run.batch.iv_lengths = run.iv_lengths;
    run.iv_lengths[0] = 0;
    run_layout(&run, 1);
    second_fails(&run, CM_STATUS_BAD_IV);
}
END_TEST

START_TEST(callers_iv_needs_the_attribute)
{
    struct run run;
    for (uint8_t mode = CM_WIRE_CBC; mode <= CM_WIRE_CTR; mode++) {
        usual(&run, no_iv, mode, CM_WIRE_ENCRYPT);
        const struct cm_batch_reply *reply = run_all(&run, &f, peer, 0);
        ck_assert_uint_eq(reply->status, CM_STATUS_OK);
        ck_assert_uint_eq(run_status(&run, 0), CM_STATUS_IV_NOT_ALLOWED);
        ck_assert_uint_eq(run_status(&run, 1), CM_STATUS_IV_NOT_ALLOWED);
        run_done(&run);
        usual(&run, no_iv, mode, CM_WIRE_DECRYPT); /* there it is the message's */
        done_well(&run);
        run_init(&run, no_iv, mode, CM_WIRE_DECRYPT, 1, 32, 1);
        run_all(&run, &f, peer, 0);
        ck_assert_uint_eq(run_status(&run, 0), CM_STATUS_BAD_IV);
        run_done(&run);
    }
}
END_TEST

START_TEST(lengths_of_blocks)
{
    struct run run;
    for (uint8_t mode = CM_WIRE_ECB; mode <= CM_WIRE_CBC; mode++) {
        usual(&run, blocks, mode, CM_WIRE_ENCRYPT);
        run.lengths[1] = 33;
        run_layout(&run, 1);
        second_fails(&run, CM_STATUS_BAD_LENGTH);
    }
    /* also where the daemon made an IV for it, which must not stay in the reply */
    run_init(&run, no_iv, CM_WIRE_CBC, CM_WIRE_ENCRYPT, 2, 16, 1);
    run.lengths[1] = 17;
    run_layout(&run, 1);
    second_fails(&run, CM_STATUS_BAD_LENGTH);
}
END_TEST

START_TEST(tweaks)
{
    static const uint32_t wrong[] = {0, 1, 12, 15, 17, 32};
    struct run run;
    for (uint8_t direction = CM_WIRE_ENCRYPT; direction <= CM_WIRE_DECRYPT; direction++) {
        usual(&run, xts, CM_WIRE_XTS, direction); /* it asks for no permission */
        done_well(&run);
        for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
            usual(&run, xts, CM_WIRE_XTS, direction);
            run.iv_lengths[1] = wrong[i];
            run_layout(&run, 1);
            second_fails(&run, CM_STATUS_BAD_IV);
        }
        /* The daemon makes none. */
        run_init(&run, xts, CM_WIRE_XTS, direction, 2, 32, 1);
        const struct cm_batch_reply *reply = run_all(&run, &f, peer, 0);
        ck_assert_uint_eq(reply->status, CM_STATUS_OK);
        ck_assert_uint_eq(run_status(&run, 0), CM_STATUS_BAD_IV);
        ck_assert_uint_eq(run_status(&run, 1), CM_STATUS_BAD_IV);
        ck_assert_uint_eq(reply->iv_length, 0);
        run_done(&run);
    }
}
END_TEST

START_TEST(lengths_of_data_units)
{
    struct run run;
    for (uint8_t direction = CM_WIRE_ENCRYPT; direction <= CM_WIRE_DECRYPT; direction++)
        for (uint32_t length = 0; length <= 40; length++) {
            usual(&run, xts, CM_WIRE_XTS, direction);
            run.lengths[1] = length;
            run_layout(&run, 1);
            if (length < 16)
                second_fails(&run, CM_STATUS_BAD_LENGTH);
            else
                done_well(&run);
        }
}
END_TEST

START_TEST(an_arena_too_small_is_a_status)
{
    struct run run;
    uint32_t well = 0, too_large = 0;
    for (size_t capacity = 0; capacity < 16384; capacity += 8) {
        run_init(&run, gcm, CM_WIRE_GCM, CM_WIRE_ENCRYPT, 16, 16, 1);
        run.arena.capacity = capacity;
        const struct cm_batch_reply *reply = run_all(&run, &f, peer, 1);
        if (reply->status == CM_STATUS_TOO_LARGE) {
            too_large++;
        } else {
            ck_assert_uint_eq(reply->status, CM_STATUS_OK);
            for (uint32_t i = 0; i < 16; i++)
                ck_assert(run_status(&run, i) == CM_STATUS_OK || run_status(&run, i) == CM_STATUS_TOO_LARGE);
            well += reply->statuses == NULL;
        }
        run_done(&run);
    }
    ck_assert_uint_gt(well, 0);
    ck_assert_uint_gt(too_large, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("job_errors");
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, start, stop);
    tcase_set_timeout(all, 240);
    tcase_add_test(all, keys);
    tcase_add_test(all, modes_and_directions);
    tcase_add_test(all, padding_goes_with_ecb_and_cbc);
    tcase_add_test(all, limits);
    tcase_add_test(all, slots);
    tcase_add_test(all, bodies_and_columns);
    tcase_add_test(all, tags_have_exactly_the_keys_length);
    tcase_add_test(all, ivs);
    tcase_add_test(all, callers_iv_needs_the_attribute);
    tcase_add_test(all, lengths_of_blocks);
    tcase_add_test(all, tweaks);
    tcase_add_test(all, lengths_of_data_units);
    tcase_add_test(all, an_arena_too_small_is_a_status);
    suite_add_tcase(suite, all);
    return fixture_main(suite);
}
