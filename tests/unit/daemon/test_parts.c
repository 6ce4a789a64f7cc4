/* SPDX-License-Identifier: Apache-2.0 */
/* Messages in parts: the same bytes as in one piece, and every way in which an operation ends. */
#include "service_fixture.h"
#include "status.h"
#include <stdlib.h>
#include <string.h>

static struct fixture f;
static struct cm_peer_state *peer;
static uint8_t key[32];
static uint32_t gcm, blocks, no_iv;

static void start(void)
{
    fixture_init(&f);
    ck_assert_msg(fixture_start(&f) == 0, "%s", f.text);
    peer = fixture_peer(&f, &fixture_user);
    fill(key, sizeof key, 7);
    gcm = fixture_ephemeral(&f, peer, GCM_MODE, true, 0, key, 256);
    blocks = fixture_ephemeral(&f, peer, BLOCK_MODES, true, 0, key, 256);
    no_iv = fixture_ephemeral(&f, peer, BLOCK_MODES, false, 0, key, 256);
}

static void stop(void)
{
    cm_service_peer_free(peer);
    fixture_stop(&f);
    fixture_done(&f);
}

struct part {
    uint32_t handle, operation;
    uint8_t mode, direction, kind;
    bool padding, give_iv;
    const uint8_t *in;
    uint32_t length;
    uint64_t share_ns;
    uint32_t aad_length;
};

/* Runs one part beside a single item; its output goes to ret_out. Returns the item's status. */
static uint32_t one_part(const struct part *part, uint8_t *ret_out, uint32_t *ret_length, uint8_t ret_iv[16],
                         uint8_t ret_tag[16])
{
    struct run run;
    run_init(&run, part->handle, part->mode, part->direction, 2, 0, 3);
    run.lengths[0] = 32;
    run.lengths[1] = part->length;
    run.parts[1] = part->kind;
    run.operations[1] = part->operation;
    run.batch.parts = run.parts;
    run.batch.operations = run.operations;
    run.batch.padding = part->padding;
    if (part->give_iv || part->direction == CM_WIRE_DECRYPT) {
        run.iv_lengths[0] = part->mode == CM_WIRE_ECB ? 0 : 16;
        run.iv_lengths[1] = part->give_iv ? 16 : 0;
        if (part->mode != CM_WIRE_ECB)
            run.batch.iv_lengths = run.iv_lengths;
    }
    if (part->aad_length > 0) {
        run.aad_lengths[1] = part->aad_length;
        run.batch.aad_lengths = run.aad_lengths;
    }
    run_layout(&run, 3);
    fill(run.ivs + 16, 16, 77); /* the same IV for every part that brings one */
    memset(run.ivs + 28, 0xff, 4);
    if (part->length > 0)
        memcpy(run_slot(&run, 1), part->in, part->length);
    const struct cm_batch_reply *reply = run_all(&run, &f, peer, part->share_ns);
    ck_assert_msg(reply->status == CM_STATUS_OK, "%s", reply->text);
    uint32_t status = run_status(&run, 1);
    if (ret_out != NULL)
        memcpy(ret_out, run_slot(&run, 1), reply->lengths[1]);
    *ret_length = reply->lengths[1];
    if (ret_iv != NULL)
        memcpy(ret_iv, reply->iv_length > 0 ? reply->ivs + reply->iv_length : run.ivs + 16, 16);
    if (ret_tag != NULL && reply->tag_length > 0)
        memcpy(ret_tag, reply->tags + reply->tag_length, reply->tag_length);
    run_done(&run);
    return status;
}

static const struct {
    uint8_t mode;
    bool padding, give_iv;
    uint64_t share_ns;
} forms[] = {
    {CM_WIRE_ECB, false, false, 0}, {CM_WIRE_ECB, true, false, 1},  {CM_WIRE_CBC, false, true, 0},
    {CM_WIRE_CBC, true, true, 1},   {CM_WIRE_CBC, true, false, 0},  {CM_WIRE_CTR, false, true, 0},
    {CM_WIRE_CTR, false, true, 1},  {CM_WIRE_CTR, false, false, 1}, {CM_WIRE_GCM, false, true, 0},
    {CM_WIRE_GCM, false, true, 1},
};
enum { FORMS = sizeof forms / sizeof forms[0], TOTAL = 200000 };

/* Cuts a message into parts, in one direction. Returns the output's length. */
static uint32_t in_parts(int n, uint32_t handle, uint8_t direction, const uint8_t *in, uint32_t total,
                         uint8_t *ret_out, uint8_t ret_iv[16], uint8_t ret_tag[16])
{
    static const uint32_t steps[] = {16, 0, 100000, 4096, 48};
    uint32_t at = 0, out = 0, count = 0, length;
    while (true) {
        bool last = count == sizeof steps / sizeof steps[0];
        struct part part = {.handle = handle,
                            .operation = 9,
                            .mode = forms[n].mode,
                            .direction = direction,
                            .kind = last         ? CM_WIRE_LAST
                                    : count == 0 ? CM_WIRE_FIRST
                                                 : CM_WIRE_MIDDLE,
                            .padding = forms[n].padding,
                            .give_iv = count == 0 && forms[n].give_iv,
                            .in = in + at,
                            .length = last ? total - at : steps[count],
                            .share_ns = forms[n].share_ns,
                            .aad_length = count == 0 && forms[n].mode == CM_WIRE_GCM ? 21 : 0};
        ck_assert_uint_eq(one_part(&part, ret_out + out, &length, count == 0 ? ret_iv : NULL, ret_tag),
                          CM_STATUS_OK);
        at += part.length;
        out += length;
        count++;
        ck_assert_ptr_eq(cm_operation_find(peer, 9), last ? NULL : &peer->operations[0]);
        if (last)
            return out;
    }
}

START_TEST(same_bytes_as_in_one_piece)
{
    bool blocks_only = !forms[_i].padding && (forms[_i].mode == CM_WIRE_ECB || forms[_i].mode == CM_WIRE_CBC);
    uint32_t total = blocks_only ? TOTAL - TOTAL % 16 : TOTAL + 11;
    uint8_t *plain = malloc(total), *out = malloc(total + 32), *expected = malloc(total + 32), iv[16],
            tag[16], right[16];
    fill(plain, total, 12);
    uint32_t handle = forms[_i].mode == CM_WIRE_GCM ? gcm : forms[_i].give_iv ? blocks : no_iv;
    uint32_t length = in_parts(_i, handle, CM_WIRE_ENCRYPT, plain, total, out, iv, tag);

    uint8_t aad[64] = {0};
    struct run run; /* the additional data is what a layout of that seed has behind the slots */
    run_init(&run, handle, forms[_i].mode, CM_WIRE_ENCRYPT, 2, 0, 3);
    run.lengths[0] = 32;
    run.lengths[1] = 16;
    run.aad_lengths[1] = 21;
    run.batch.aad_lengths = run.aad_lengths;
    run_layout(&run, 3);
    memcpy(aad, run_aad(&run, 1), 21);
    run_done(&run);
    bool is_gcm = forms[_i].mode == CM_WIRE_GCM;
    size_t right_length = reference_encrypt(forms[_i].mode, key, 256, forms[_i].padding, iv, 16, aad,
                                            is_gcm ? 21 : 0, plain, total, expected, right, 16);
    ck_assert_uint_eq(length, right_length);
    ck_assert_mem_eq(out, expected, length);
    if (is_gcm) {
        ck_assert_mem_eq(tag, right, 16);
    } else if (forms[_i].give_iv || forms[_i].mode == CM_WIRE_ECB) {
        uint8_t *back = malloc(total + 32);
        ck_assert_uint_eq(in_parts(_i, blocks, CM_WIRE_DECRYPT, out, length, back, iv, tag), total);
        ck_assert_mem_eq(back, plain, total);
        free(back);
    }
    free(plain);
    free(out);
    free(expected);
}
END_TEST

/* --- How operations end and what is refused --- */

static uint32_t simple(uint8_t kind, uint32_t operation, uint32_t length)
{
    static const uint8_t zero[64];
    uint32_t got;
    const struct part part = {.handle = blocks,
                              .operation = operation,
                              .mode = CM_WIRE_CTR,
                              .direction = CM_WIRE_ENCRYPT,
                              .kind = kind,
                              .in = zero,
                              .length = length};
    return one_part(&part, NULL, &got, NULL, NULL);
}

START_TEST(parts_need_their_operation)
{
    ck_assert_uint_eq(simple(CM_WIRE_MIDDLE, 1, 16), CM_STATUS_NO_SUCH_OPERATION);
    ck_assert_uint_eq(simple(CM_WIRE_LAST, 1, 16), CM_STATUS_NO_SUCH_OPERATION);
    ck_assert_uint_eq(simple(CM_WIRE_FIRST, 1, 16), CM_STATUS_OK);
    ck_assert_uint_eq(simple(CM_WIRE_LAST, 1, 15), CM_STATUS_OK);
    ck_assert_uint_eq(simple(CM_WIRE_LAST, 1, 15), CM_STATUS_NO_SUCH_OPERATION);
    ck_assert_uint_eq(simple(CM_WIRE_FIRST, 1, 16), CM_STATUS_OK); /* the number is free again */
    ck_assert_uint_eq(simple(CM_WIRE_FIRST, 1, 16), CM_STATUS_BAD_REQUEST);
    ck_assert_uint_eq(simple(CM_WIRE_MIDDLE, 1, 16), CM_STATUS_NO_SUCH_OPERATION);
}
END_TEST

START_TEST(a_failed_part_ends_the_operation)
{
    ck_assert_uint_eq(simple(CM_WIRE_FIRST, 1, 17), CM_STATUS_BAD_LENGTH);
    ck_assert_uint_eq(simple(CM_WIRE_MIDDLE, 1, 16), CM_STATUS_NO_SUCH_OPERATION);
    ck_assert_uint_eq(simple(CM_WIRE_FIRST, 1, 16), CM_STATUS_OK);
    ck_assert_uint_eq(simple(CM_WIRE_MIDDLE, 1, 15), CM_STATUS_BAD_LENGTH);
    ck_assert_uint_eq(simple(CM_WIRE_LAST, 1, 16), CM_STATUS_NO_SUCH_OPERATION);
    ck_assert_uint_eq(peer->operation_count, 0);
}
END_TEST

START_TEST(parts_must_agree)
{
    static const uint8_t zero[64];
    uint32_t got;
    for (int change = 0; change < 6; change++) {
        struct part part = {.handle = blocks,
                            .operation = 3,
                            .mode = CM_WIRE_CBC,
                            .direction = CM_WIRE_ENCRYPT,
                            .kind = CM_WIRE_FIRST,
                            .in = zero,
                            .length = 32};
        ck_assert_uint_eq(one_part(&part, NULL, &got, NULL, NULL), CM_STATUS_OK);
        part.kind = CM_WIRE_MIDDLE;
        uint32_t status = CM_STATUS_BAD_REQUEST;
        switch (change) {
        case 0:
            part.handle = no_iv;
            break;
        case 1:
            part.mode = CM_WIRE_CTR;
            break;
        case 2:
            part.direction = CM_WIRE_DECRYPT;
            break;
        case 3:
            part.padding = true;
            break;
        case 4:
            part.give_iv = true;
            status = CM_STATUS_BAD_IV;
            break;
        default:
            status = CM_STATUS_OK;
        }
        ck_assert_uint_eq(one_part(&part, NULL, &got, NULL, NULL), status);
        ck_assert(change == 5 || cm_operation_find(peer, 3) == NULL);
    }
}
END_TEST

START_TEST(no_iv_rule_is_got_round)
{
    static const uint8_t zero[64];
    uint32_t got;
    struct part part = {.handle = no_iv,
                        .operation = 3,
                        .mode = CM_WIRE_CTR,
                        .direction = CM_WIRE_ENCRYPT,
                        .kind = CM_WIRE_FIRST,
                        .give_iv = true,
                        .in = zero,
                        .length = 32};
    ck_assert_uint_eq(one_part(&part, NULL, &got, NULL, NULL), CM_STATUS_IV_NOT_ALLOWED);
    ck_assert_ptr_null(cm_operation_find(peer, 3));
    part.handle = gcm;
    part.mode = CM_WIRE_GCM;
    part.aad_length = 5;
    ck_assert_uint_eq(one_part(&part, NULL, &got, NULL, NULL), CM_STATUS_OK);
    part.kind = CM_WIRE_MIDDLE;
    part.give_iv = false;
    ck_assert_uint_eq(one_part(&part, NULL, &got, NULL, NULL),
                      CM_STATUS_BAD_REQUEST); /* more additional data */
}
END_TEST

START_TEST(gcm_decrypts_in_one_piece_only)
{
    struct run run;
    run_init(&run, gcm, CM_WIRE_GCM, CM_WIRE_DECRYPT, 2, 32, 3);
    run.parts[0] = CM_WIRE_FIRST;
    run.operations[0] = 1;
    run.batch.parts = run.parts;
    run.batch.operations = run.operations;
    run.iv_lengths[0] = run.iv_lengths[1] = 12;
    run.batch.iv_lengths = run.iv_lengths;
    run_layout(&run, 3);
    for (size_t tags = 0; tags <= 32;
         tags += 16) { /* none, too short ones, right ones: the single item counts */
        run.batch.tags = (struct cm_bytes){run.tags, tags};
        run.lengths[1] = 16;
        run_layout(&run, 3);
        reference_encrypt(CM_WIRE_GCM, key, 256, false, run.ivs + 12, 12, NULL, 0,
                          (const uint8_t *)"0123456789abcdef", 16, run_slot(&run, 1), run.tags + 16, 16);
        ck_assert_uint_eq(run_all(&run, &f, peer, 0)->status, CM_STATUS_OK);
        ck_assert_uint_eq(run_status(&run, 0), CM_STATUS_UNSUPPORTED);
        ck_assert_uint_eq(run_status(&run, 1), tags == 32 ? CM_STATUS_OK : CM_STATUS_BAD_TAG);
        ck_assert_uint_eq(peer->operation_count, 0);
    }
    run_done(&run);
}
END_TEST

START_TEST(a_data_unit_has_no_parts)
{
    uint32_t handle = fixture_ephemeral(&f, peer, XTS_MODE, false, 0, NULL, 256);
    for (uint8_t direction = CM_WIRE_ENCRYPT; direction <= CM_WIRE_DECRYPT; direction++) {
        struct run run;
        run_init(&run, handle, CM_WIRE_XTS, direction, 2, 32, 3);
        run.parts[0] = CM_WIRE_FIRST;
        run.operations[0] = 1;
        run.batch.parts = run.parts;
        run.batch.operations = run.operations;
        run.iv_lengths[0] = run.iv_lengths[1] = 16;
        run.batch.iv_lengths = run.iv_lengths;
        run_layout(&run, 3);
        ck_assert_uint_eq(run_all(&run, &f, peer, 0)->status, CM_STATUS_OK);
        ck_assert_uint_eq(run_status(&run, 0), CM_STATUS_UNSUPPORTED);
        ck_assert_uint_eq(run_status(&run, 1), CM_STATUS_OK);
        ck_assert_uint_eq(peer->operation_count, 0);
        run_done(&run);
    }
}
END_TEST

START_TEST(operations_limit)
{
    for (uint32_t number = 1; number <= 4; number++)
        ck_assert_uint_eq(simple(CM_WIRE_FIRST, number, 16), CM_STATUS_OK);
    ck_assert_uint_eq(simple(CM_WIRE_FIRST, 5, 16), CM_STATUS_OVERLOADED);
    ck_assert_uint_eq(simple(CM_WIRE_MIDDLE, 5, 16), CM_STATUS_NO_SUCH_OPERATION);
    ck_assert_uint_eq(simple(CM_WIRE_LAST, 2, 16), CM_STATUS_OK);
    ck_assert_uint_eq(simple(CM_WIRE_FIRST, 5, 16), CM_STATUS_OK);
    ck_assert_uint_eq(simple(CM_WIRE_MIDDLE, 4, 16), CM_STATUS_OK);
}
END_TEST

START_TEST(cancelled_and_timed_out)
{
    ck_assert_uint_eq(simple(CM_WIRE_FIRST, 1, 16), CM_STATUS_OK);
    const struct cm_call cancel = {.kind = CM_CALL_CANCEL_OPERATION, .number = 1};
    ck_assert_uint_eq(fixture_call(&f, peer, &cancel, NULL, 0).status, CM_STATUS_OK);
    ck_assert_uint_eq(fixture_call(&f, peer, &cancel, NULL, 0).status, CM_STATUS_OK);
    ck_assert_uint_eq(simple(CM_WIRE_MIDDLE, 1, 16), CM_STATUS_NO_SUCH_OPERATION);

    ck_assert_uint_eq(simple(CM_WIRE_FIRST, 1, 16), CM_STATUS_OK);
    ck_assert_uint_eq(simple(CM_WIRE_FIRST, 2, 16), CM_STATUS_OK);
    cm_service_peer_tick(peer, 50000);
    cm_service_peer_tick(peer, 50999);
    ck_assert_uint_eq(simple(CM_WIRE_MIDDLE, 1, 16), CM_STATUS_OK); /* 1 is touched, 2 is not */
    cm_service_peer_tick(peer, 51000);
    ck_assert_ptr_nonnull(cm_operation_find(peer, 1));
    ck_assert_ptr_null(cm_operation_find(peer, 2));
    cm_service_peer_tick(peer, 51999);
    ck_assert_ptr_nonnull(cm_operation_find(peer, 1));
    cm_service_peer_tick(peer, 52000);
    ck_assert_ptr_null(cm_operation_find(peer, 1));
}
END_TEST

START_TEST(a_busy_operation_ends_when_its_job_does)
{
    struct run run;
    ck_assert_uint_eq(simple(CM_WIRE_FIRST, 1, 16), CM_STATUS_OK);
    run_init(&run, blocks, CM_WIRE_CTR, CM_WIRE_ENCRYPT, 1, 32, 3);
    run.parts[0] = CM_WIRE_MIDDLE;
    run.operations[0] = 1;
    run.batch.parts = run.parts;
    run.batch.operations = run.operations;
    run_plan(&run, &f, peer, 0);
    const struct cm_call cancel = {.kind = CM_CALL_CANCEL_OPERATION, .number = 1};
    ck_assert_uint_eq(fixture_call(&f, peer, &cancel, NULL, 0).status, CM_STATUS_OK);
    cm_service_peer_tick(peer, 1);
    cm_service_peer_tick(peer, 100000);
    ck_assert_ptr_nonnull(cm_operation_find(peer, 1));
    cm_job_run(&run.job, 0);
    run_finish(&run, &f);
    ck_assert_uint_eq(run_status(&run, 0), CM_STATUS_OK);
    ck_assert_ptr_null(cm_operation_find(peer, 1));
    run_done(&run);
}
END_TEST

/* A batch that is refused as a whole leaves a hole in the messages whose parts it had. */
START_TEST(a_refused_batch_ends_its_operations)
{
    struct run run;
    ck_assert_uint_eq(simple(CM_WIRE_FIRST, 1, 16), CM_STATUS_OK);
    ck_assert_uint_eq(simple(CM_WIRE_FIRST, 2, 16), CM_STATUS_OK);
    run_init(&run, 4711, CM_WIRE_CTR, CM_WIRE_ENCRYPT, 1, 32, 3);
    run.parts[0] = CM_WIRE_MIDDLE;
    run.operations[0] = 1;
    run.batch.parts = run.parts;
    run.batch.operations = run.operations;
    ck_assert_uint_eq(run_all(&run, &f, peer, 0)->status, CM_STATUS_NO_SUCH_KEY);
    ck_assert_uint_eq(simple(CM_WIRE_MIDDLE, 1, 16), CM_STATUS_NO_SUCH_OPERATION);
    ck_assert_uint_eq(simple(CM_WIRE_MIDDLE, 2, 16), CM_STATUS_OK);
    run_done(&run);
}
END_TEST

START_TEST(malformed_columns)
{
    static const struct {
        uint8_t parts[2];
        uint32_t operations[2];
    } cases[] = {{{CM_WIRE_FIRST, CM_WIRE_FIRST}, {5, 5}},
                 {{CM_WIRE_FIRST, CM_WIRE_LAST}, {5, 5}},
                 {{CM_WIRE_SINGLE, CM_WIRE_FIRST}, {0, 0}},
                 {{CM_WIRE_SINGLE, CM_WIRE_SINGLE}, {0, 7}},
                 {{CM_WIRE_SINGLE, 4}, {0, 7}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct run run;
        run_init(&run, blocks, CM_WIRE_CTR, CM_WIRE_ENCRYPT, 2, 32, 3);
        memcpy(run.parts, cases[i].parts, 2);
        memcpy(run.operations, cases[i].operations, sizeof cases[i].operations);
        run.batch.parts = run.parts;
        run.batch.operations = run.operations;
        ck_assert_uint_eq(run_all(&run, &f, peer, 0)->status, CM_STATUS_BAD_REQUEST);
        ck_assert_uint_eq(peer->operation_count, 0);
        run.batch.operations = NULL;
        ck_assert_uint_eq(run_all(&run, &f, peer, 0)->status, CM_STATUS_BAD_REQUEST);
        run_done(&run);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("parts");
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, start, stop);
    tcase_set_timeout(all, 240);
    tcase_add_loop_test(all, same_bytes_as_in_one_piece, 0, FORMS);
    tcase_add_test(all, parts_need_their_operation);
    tcase_add_test(all, a_failed_part_ends_the_operation);
    tcase_add_test(all, parts_must_agree);
    tcase_add_test(all, no_iv_rule_is_got_round);
    tcase_add_test(all, gcm_decrypts_in_one_piece_only);
    tcase_add_test(all, a_data_unit_has_no_parts);
    tcase_add_test(all, operations_limit);
    tcase_add_test(all, cancelled_and_timed_out);
    tcase_add_test(all, a_busy_operation_ends_when_its_job_does);
    tcase_add_test(all, a_refused_batch_ends_its_operations);
    tcase_add_test(all, malformed_columns);
    suite_add_tcase(suite, all);
    return fixture_main(suite);
}
