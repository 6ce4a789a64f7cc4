/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that go well: right answers in every mode, whole and in several tasks on two threads, items that fail
 * beside items that do not. OpenSSL says what is right. */
#include "job_internal.h"
#include "service_fixture.h"
#include "status.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct fixture f;
static struct cm_peer_state *peer;
static uint8_t key[64];

static void start(void)
{
    fixture_init(&f);
    ck_assert_msg(fixture_start(&f) == 0, "%s", f.text);
    peer = fixture_peer(&f, &fixture_user);
    fill(key, sizeof key, 99);
}

static void stop(void)
{
    cm_service_peer_free(peer);
    fixture_stop(&f);
    fixture_done(&f);
}

static const struct {
    uint8_t mode;
    bool padding, caller_iv;
    uint32_t iv_length, tag_length, slot_align, slot_gap;
} forms[] = {
    {CM_WIRE_ECB, false, false, 0, 0, 0, 0},     {CM_WIRE_ECB, true, false, 0, 0, 16, 0},
    {CM_WIRE_CBC, false, true, 16, 0, 64, 0},    {CM_WIRE_CBC, true, true, 16, 0, 0, 17},
    {CM_WIRE_CBC, true, false, 16, 0, 0, 0},     {CM_WIRE_CTR, false, true, 16, 0, 4096, 1},
    {CM_WIRE_CTR, false, false, 16, 0, 0, 0},    {CM_WIRE_GCM, false, true, 12, 16, 0, 0},
    {CM_WIRE_GCM, false, true, 1, 4, 32, 65536}, {CM_WIRE_GCM, false, true, 60, 13, 0, 0},
    {CM_WIRE_GCM, false, false, 12, 16, 0, 48},  {CM_WIRE_XTS, false, true, 16, 0, 0, 0},
    {CM_WIRE_XTS, false, true, 16, 0, 512, 3},
};
enum { FORMS = sizeof forms / sizeof forms[0] };

static const uint32_t lengths_any[] = {0, 1, 15, 16, 17, 31, 32, 100, 255, 256, 1000, 5000};
static const uint32_t lengths_blocks[] = {0, 16, 32, 48, 64, 128, 256, 1008, 16, 16, 4096, 5008};
static const uint32_t lengths_units[] = {16, 17, 31, 32, 33, 47, 48, 512, 513, 1000, 4096, 5001};
enum { COUNT = sizeof lengths_any / sizeof lengths_any[0] };

static uint32_t family_of(uint8_t mode)
{
    return mode == CM_WIRE_GCM || mode == CM_WIRE_XTS ? MODE_BIT(mode) : BLOCK_MODES;
}

/* A batch of COUNT items in form `n`, not yet run. */
static void prepare(struct run *run, int n, uint32_t handle, uint8_t direction)
{
    bool any = forms[n].padding || forms[n].mode == CM_WIRE_CTR || forms[n].mode == CM_WIRE_GCM;
    run_init(run, handle, forms[n].mode, direction, COUNT, 0, (uint8_t)n);
    memcpy(run->lengths,
           any                            ? lengths_any
           : forms[n].mode == CM_WIRE_XTS ? lengths_units
                                          : lengths_blocks,
           sizeof lengths_any);
    run->batch.padding = forms[n].padding;
    run->batch.slot_align = forms[n].slot_align;
    run->batch.slot_gap = forms[n].slot_gap;
    for (uint32_t i = 0; i < COUNT; i++) {
        run->iv_lengths[i] = forms[n].iv_length;
        run->aad_lengths[i] = i * 7;
    }
    if (forms[n].mode == CM_WIRE_GCM)
        run->batch.aad_lengths = run->aad_lengths;
    if (forms[n].caller_iv)
        run->batch.iv_lengths = run->iv_lengths;
    run_layout(run, (uint8_t)n);
}

/* One assertion for all bytes: Check's are slow. */
static void assert_zero(const uint8_t *bytes, uint64_t length)
{
    uint8_t any = 0;
    for (uint64_t i = 0; i < length; i++)
        any |= bytes[i];
    ck_assert_uint_eq(any, 0);
}

/* Encrypts, compares with OpenSSL, decrypts what came out and compares with what went in. */
static void there_and_back(int n, uint32_t bits, uint64_t share_ns)
{
    if (forms[n].mode == CM_WIRE_XTS && bits == 192)
        return; /* there is none */
    uint32_t handle = fixture_ephemeral(&f, peer, family_of(forms[n].mode), forms[n].caller_iv,
                                        forms[n].tag_length, key, bits);
    struct run run, back;
    prepare(&run, n, handle, CM_WIRE_ENCRYPT);
    uint8_t *plain = malloc(run.body_length + 1), expected[6000], tag[16] = {0};
    memcpy(plain, run.body, run.body_length);

    const struct cm_batch_reply *reply = run_all(&run, &f, peer, share_ns);
    ck_assert_msg(reply->status == CM_STATUS_OK, "%s", reply->text);
    ck_assert_uint_eq(reply->request_id, 42);
    ck_assert_uint_eq(reply->key_version, 1);
    ck_assert_uint_eq(reply->count, COUNT);
    ck_assert_ptr_null(reply->statuses);
    ck_assert_uint_eq(reply->iv_length, forms[n].caller_iv ? 0 : forms[n].iv_length);
    ck_assert_uint_eq(reply->tag_length, forms[n].tag_length);
    ck_assert_uint_eq(run.job.items_ok, COUNT);

    prepare(&back, n, handle, CM_WIRE_DECRYPT);
    back.batch.iv_lengths = forms[n].iv_length > 0 ? back.iv_lengths : NULL;
    uint64_t offset = 0, bytes = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        uint8_t *slot = run_slot(&run, i);
        const uint8_t *ivs = reply->iv_length > 0 ? reply->ivs : run.ivs, *iv = ivs + i * forms[n].iv_length;
        const uint8_t *aad = run.batch.aad_lengths != NULL ? run_aad(&run, i) : NULL;
        size_t length = reference_encrypt(forms[n].mode, key, bits, forms[n].padding, iv, forms[n].iv_length,
                                          aad, aad != NULL ? run.aad_lengths[i] : 0, plain + offset,
                                          run.lengths[i], expected, tag, forms[n].tag_length);
        ck_assert_uint_eq(reply->lengths[i], length);
        ck_assert_mem_eq(slot, expected, length);
        assert_zero(slot + length, cm_slot_stride(&run.batch, i) - length);
        if (forms[n].mode == CM_WIRE_GCM)
            ck_assert_mem_eq(reply->tags + i * reply->tag_length, tag, forms[n].tag_length);
        memcpy(back.ivs + i * forms[n].iv_length, iv, forms[n].iv_length);
        back.lengths[i] = (uint32_t)length;
        bytes += run.lengths[i];
        offset += cm_slot_stride(&run.batch, i);
    }
    ck_assert_uint_eq(run.job.bytes_in, bytes);

    run_layout(&back, (uint8_t)n);
    if (reply->tags != NULL)
        memcpy(back.tags, reply->tags, (size_t)COUNT * reply->tag_length);
    back.batch.tags = (struct cm_bytes){back.tags, (size_t)COUNT * forms[n].tag_length};
    for (uint32_t i = 0; i < COUNT; i++) {
        memcpy(run_slot(&back, i), run_slot(&run, i), back.lengths[i]);
        if (run.batch.aad_lengths != NULL)
            memcpy(run_aad(&back, i), run_aad(&run, i), run.aad_lengths[i]);
    }
    const struct cm_batch_reply *second = run_all(&back, &f, peer, share_ns);
    ck_assert_msg(second->status == CM_STATUS_OK, "%s", second->text);
    ck_assert_ptr_null(second->statuses);
    ck_assert_uint_eq(second->iv_length, 0);
    ck_assert_uint_eq(second->tag_length, 0);
    offset = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        uint8_t *slot = run_slot(&back, i);
        ck_assert_uint_eq(second->lengths[i], run.lengths[i]);
        ck_assert_mem_eq(slot, plain + offset, run.lengths[i]);
        assert_zero(slot + run.lengths[i], cm_slot_stride(&back.batch, i) - run.lengths[i]);
        offset += cm_slot_stride(&run.batch, i);
    }
    free(plain);
    run_done(&run);
    run_done(&back);
    const struct cm_call close_call = {.kind = CM_CALL_CLOSE_KEY, .number = handle};
    ck_assert_uint_eq(fixture_call(&f, peer, &close_call, NULL, 0).status, CM_STATUS_OK);
}

START_TEST(known_answers)
{
    for (uint32_t bits = 128; bits <= 256; bits += 64)
        there_and_back(_i, bits, 0);
}
END_TEST

START_TEST(known_answers_in_many_tasks)
{
    there_and_back(_i, 256, 1);
}
END_TEST

START_TEST(known_answers_without_room_for_forms)
{
    f.service->forms.limit = 0;
    there_and_back(_i, 192, 0);
    ck_assert_uint_eq(atomic_load(&f.service->forms.used), 0);
}
END_TEST

START_TEST(a_form_in_the_arena_is_wiped)
{
    f.service->forms.limit = 0;
    uint32_t handle = fixture_ephemeral(&f, peer, GCM_MODE, true, 0, key, 256);
    struct run run;
    run_init(&run, handle, CM_WIRE_GCM, CM_WIRE_ENCRYPT, 1, 16, 1);
    run_plan(&run, &f, peer, 0);
    const struct cm_job_form *form = ((struct cm_job_state *)run.job.state)->own_forms;
    ck_assert_ptr_nonnull(form);
    const uint8_t *bytes = (const uint8_t *)form->key;
    size_t length = cm_aes_key_size(cm_aes_row(CM_AES_GCM, CM_AES_ENCRYPT));
    uint8_t any = 0;
    for (size_t i = 0; i < length; i++)
        any |= bytes[i];
    ck_assert_uint_ne(any, 0);
    cm_job_run(&run.job, 0);
    run_finish(&run, &f);
    assert_zero(bytes, length);
    run_done(&run);
}
END_TEST

/* --- Several tasks on two threads --- */

struct thread_half {
    struct cm_job *job;
    uint32_t first;
};

static void *run_half(void *argument)
{
    struct thread_half *half = argument;
    for (uint32_t task = half->first; task < half->job->task_count; task += 2)
        cm_job_run(half->job, task);
    return NULL;
}

static void run_on_two_threads(struct run *run, uint64_t share_ns)
{
    run_plan(run, &f, peer, share_ns);
    struct thread_half halves[] = {{&run->job, 0}, {&run->job, 1}};
    pthread_t other;
    ck_assert_int_eq(pthread_create(&other, NULL, run_half, &halves[1]), 0);
    run_half(&halves[0]);
    pthread_join(other, NULL);
    run_finish(run, &f);
}

static const struct {
    uint8_t mode, direction;
    bool padding, cut;
} large[] = {{CM_WIRE_ECB, CM_WIRE_ENCRYPT, false, true},  {CM_WIRE_ECB, CM_WIRE_ENCRYPT, true, true},
             {CM_WIRE_ECB, CM_WIRE_DECRYPT, true, true},   {CM_WIRE_CBC, CM_WIRE_DECRYPT, false, true},
             {CM_WIRE_CBC, CM_WIRE_DECRYPT, true, true},   {CM_WIRE_CBC, CM_WIRE_ENCRYPT, true, false},
             {CM_WIRE_CTR, CM_WIRE_ENCRYPT, false, true},  {CM_WIRE_CTR, CM_WIRE_DECRYPT, false, true},
             {CM_WIRE_GCM, CM_WIRE_ENCRYPT, false, false}, {CM_WIRE_XTS, CM_WIRE_ENCRYPT, false, false},
             {CM_WIRE_XTS, CM_WIRE_DECRYPT, false, false}};

START_TEST(large_items_are_cut)
{
    enum { LARGE = 300000, ITEMS = 3 };
    bool encrypt = large[_i].direction == CM_WIRE_ENCRYPT, gcm = large[_i].mode == CM_WIRE_GCM;
    bool blocks = !large[_i].padding && (large[_i].mode == CM_WIRE_ECB || large[_i].mode == CM_WIRE_CBC);
    uint32_t handle = fixture_ephemeral(&f, peer, family_of(large[_i].mode), true, 0, key, 128);
    struct run run;
    run_init(&run, handle, large[_i].mode, large[_i].direction, ITEMS, 100, 5);
    run.batch.padding = large[_i].padding;
    uint8_t *plain = malloc(LARGE + 16), *secret = malloc(LARGE + 32), tag[16];
    uint32_t sizes[ITEMS] = {blocks ? 112 : 100, blocks ? LARGE - LARGE % 16 : LARGE + 5, blocks ? 16 : 33};
    for (uint32_t i = 0; i < ITEMS; i++) {
        run.lengths[i] = !encrypt && large[_i].padding ? sizes[i] - sizes[i] % 16 + 16 : sizes[i];
        run.iv_lengths[i] = 16;
    }
    if (large[_i].mode != CM_WIRE_ECB)
        run.batch.iv_lengths = run.iv_lengths;
    run_layout(&run, 5);
    memset(run.ivs, 0xff, 16 * ITEMS); /* the counter carries all the way */
    for (uint32_t i = 0; i < ITEMS; i++) {
        fill(plain, sizes[i], (uint8_t)(i + 1));
        size_t length = reference_encrypt(large[_i].mode, key, 128, large[_i].padding, run.ivs + 16 * i, 16,
                                          NULL, 0, plain, sizes[i], secret, tag, 16);
        memcpy(run_slot(&run, i), encrypt ? plain : secret, encrypt ? sizes[i] : length);
    }
    run_on_two_threads(&run, f.service->cost.of[large[_i].mode - 1][!encrypt].byte_ps * 20000 / 1000);
    ck_assert_msg(run.job.reply.status == CM_STATUS_OK, "%s", run.job.reply.text);
    ck_assert_ptr_null(run.job.reply.statuses);
    ck_assert_uint_ge(run.job.task_count, large[_i].cut ? 8 : 2);
    ck_assert_uint_gt(run.job.cost_ns, 0);
    for (uint32_t i = 0; i < ITEMS; i++) {
        fill(plain, sizes[i], (uint8_t)(i + 1));
        size_t length = reference_encrypt(large[_i].mode, key, 128, large[_i].padding, run.ivs + 16 * i, 16,
                                          NULL, 0, plain, sizes[i], secret, tag, 16);
        ck_assert_uint_eq(run.job.reply.lengths[i], encrypt ? length : sizes[i]);
        ck_assert_mem_eq(run_slot(&run, i), encrypt ? secret : plain, encrypt ? length : sizes[i]);
        if (gcm)
            ck_assert_mem_eq(run.job.reply.tags + 16 * i, tag, 16);
    }
    free(plain);
    free(secret);
    run_done(&run);
}
END_TEST

/* --- Items that fail --- */

START_TEST(a_wrong_tag_fails_its_item_alone)
{
    uint32_t handle = fixture_ephemeral(&f, peer, GCM_MODE, true, 0, key, 256);
    struct run run;
    uint8_t plain[100];
    run_init(&run, handle, CM_WIRE_GCM, CM_WIRE_DECRYPT, 4, 100, 1);
    for (uint32_t i = 0; i < 4; i++)
        run.iv_lengths[i] = 12;
    run.batch.iv_lengths = run.iv_lengths;
    run.batch.slot_gap = 32;
    run_layout(&run, 1);
    fill(plain, sizeof plain, 3);
    for (uint32_t i = 0; i < 4; i++)
        reference_encrypt(CM_WIRE_GCM, key, 256, false, run.ivs + 12 * i, 12, NULL, 0, plain, 100,
                          run_slot(&run, i), run.tags + 16 * i, 16);
    run.batch.tags = (struct cm_bytes){run.tags, 64};
    run.tags[16] ^= 1;
    run_slot(&run, 3)[99] ^= 0x80;
    const struct cm_batch_reply *reply = run_all(&run, &f, peer, 0);
    ck_assert_uint_eq(reply->status, CM_STATUS_OK);
    for (uint32_t i = 0; i < 4; i++) {
        bool bad = i % 2 == 1;
        ck_assert_uint_eq(run_status(&run, i), bad ? CM_STATUS_BAD_TAG : CM_STATUS_OK);
        ck_assert_uint_eq(reply->lengths[i], bad ? 0 : 100);
        if (bad)
            assert_zero(run_slot(&run, i), cm_slot_stride(&run.batch, i));
        else
            ck_assert_mem_eq(run_slot(&run, i), plain, 100);
    }
    ck_assert_uint_eq(run.job.items_ok, 2);
    run_done(&run);
}
END_TEST

START_TEST(wrong_paddings_and_lengths_fail_their_items_alone)
{
    uint32_t handle = fixture_ephemeral(&f, peer, BLOCK_MODES, true, 0, key, 128);
    struct run run;
    uint8_t plain[64];
    run_init(&run, handle, CM_WIRE_ECB, CM_WIRE_DECRYPT, 4, 64, 1);
    run.batch.padding = true;
    run.lengths[2] = 30;
    run.lengths[3] = 0;
    run_layout(&run, 1);
    fill(plain, sizeof plain, 3);
    reference_encrypt(CM_WIRE_ECB, key, 128, true, NULL, 0, NULL, 0, plain, 60, run_slot(&run, 0), NULL, 0);
    plain[63] = 17;
    reference_encrypt(CM_WIRE_ECB, key, 128, false, NULL, 0, NULL, 0, plain, 64, run_slot(&run, 1), NULL, 0);
    const struct cm_batch_reply *reply = run_all(&run, &f, peer, 0);
    ck_assert_uint_eq(reply->status, CM_STATUS_OK);
    ck_assert_uint_eq(run_status(&run, 0), CM_STATUS_OK);
    ck_assert_uint_eq(reply->lengths[0], 60);
    ck_assert_mem_eq(run_slot(&run, 0), plain, 60);
    ck_assert_uint_eq(run_status(&run, 1), CM_STATUS_BAD_PADDING);
    assert_zero(run_slot(&run, 1), 64);
    ck_assert_uint_eq(run_status(&run, 2), CM_STATUS_BAD_LENGTH);
    assert_zero(run_slot(&run, 2), 32);
    ck_assert_uint_eq(run_status(&run, 3), CM_STATUS_BAD_LENGTH);
    run_done(&run);
}
END_TEST

START_TEST(a_cut_item_that_fails_leaves_nothing)
{
    uint32_t handle = fixture_ephemeral(&f, peer, BLOCK_MODES, true, 0, key, 128);
    struct run run;
    run_init(&run, handle, CM_WIRE_CBC, CM_WIRE_DECRYPT, 1, 100000, 1);
    run.batch.padding = true;
    run.iv_lengths[0] = 16;
    run.batch.iv_lengths = run.iv_lengths;
    run_layout(&run, 1);
    uint8_t *plain = calloc(1, 100000); /* whose last byte is no padding */
    reference_encrypt(CM_WIRE_CBC, key, 128, false, run.ivs, 16, NULL, 0, plain, 100000, run.body, NULL, 0);
    const struct cm_batch_reply *reply = run_all(&run, &f, peer, 1);
    ck_assert_uint_eq(run_status(&run, 0), CM_STATUS_BAD_PADDING);
    ck_assert_uint_eq(reply->lengths[0], 0);
    ck_assert_uint_gt(run.job.task_count, 4);
    assert_zero(run.body, 100000);
    free(plain);
    run_done(&run);
}
END_TEST

START_TEST(daemon_made_ivs_differ)
{
    static const uint8_t modes[] = {CM_WIRE_GCM, CM_WIRE_CBC, CM_WIRE_CTR};
    bool gcm = modes[_i] == CM_WIRE_GCM;
    uint32_t handle = fixture_ephemeral(&f, peer, gcm ? GCM_MODE : BLOCK_MODES, false, 0, NULL, 128);
    uint8_t seen[2000][16];
    size_t count = 0, same = 0, length = gcm ? 12 : 16;
    for (int round = 0; round < 20; round++) { /* more than a pool holds */
        struct run run;
        run_init(&run, handle, modes[_i], CM_WIRE_ENCRYPT, RUN_ITEMS, 0, 1);
        const struct cm_batch_reply *reply = run_all(&run, &f, peer, 0);
        ck_assert_uint_eq(reply->status, CM_STATUS_OK);
        ck_assert_uint_eq(reply->iv_length, length);
        for (uint32_t i = 0; i < RUN_ITEMS; i++)
            memcpy(seen[count++], reply->ivs + i * length, length);
        run_done(&run);
    }
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            same += memcmp(seen[i], seen[j], length) == 0;
    ck_assert_uint_eq(same, 0);
}
END_TEST

START_TEST(an_empty_batch_is_done)
{
    uint32_t handle = fixture_ephemeral(&f, peer, GCM_MODE, false, 0, NULL, 128);
    struct run run;
    run_init(&run, handle, CM_WIRE_GCM, CM_WIRE_ENCRYPT, 0, 0, 1);
    const struct cm_batch_reply *reply = run_all(&run, &f, peer, 0);
    ck_assert_msg(reply->status == CM_STATUS_OK, "%s", reply->text);
    ck_assert_uint_eq(reply->count, 0);
    ck_assert_uint_eq(run.job.task_count, 0);
    run_done(&run);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("job");
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, start, stop);
    tcase_set_timeout(all, 240);
    tcase_add_loop_test(all, known_answers, 0, FORMS);
    tcase_add_loop_test(all, known_answers_in_many_tasks, 0, FORMS);
    tcase_add_loop_test(all, known_answers_without_room_for_forms, 0, FORMS);
    tcase_add_test(all, a_form_in_the_arena_is_wiped);
    tcase_add_loop_test(all, large_items_are_cut, 0, sizeof large / sizeof large[0]);
    tcase_add_test(all, a_wrong_tag_fails_its_item_alone);
    tcase_add_test(all, wrong_paddings_and_lengths_fail_their_items_alone);
    tcase_add_test(all, a_cut_item_that_fails_leaves_nothing);
    tcase_add_loop_test(all, daemon_made_ivs_differ, 0, 3);
    tcase_add_test(all, an_empty_batch_is_done);
    suite_add_tcase(suite, all);
    return fixture_main(suite);
}
