/* SPDX-License-Identifier: Apache-2.0 */
/* The cost model: every mode has a price, longer messages and longer keys cost more, and the estimate is of
 * the order of what is measured. */
#include "cost.h"
#include "service_fixture.h"
#include <time.h>

START_TEST(more_costs_more)
{
    struct cm_cost_model model;
    cm_cost_measure(&model);
    for (int mode = 0; mode < CM_AES_MODE_COUNT; mode++)
        for (int direction = 0; direction < CM_AES_DIRECTION_COUNT; direction++) {
            struct cm_cost brief =
                cm_cost_of(&model, (enum cm_aes_mode)mode, (enum cm_aes_direction)direction, 128);
            struct cm_cost lengthy =
                cm_cost_of(&model, (enum cm_aes_mode)mode, (enum cm_aes_direction)direction, 256);
            ck_assert_uint_gt(brief.byte_ps, 0);
            ck_assert_uint_gt(cm_cost_ps(&brief, 2000), cm_cost_ps(&brief, 1000));
            ck_assert_uint_ge(cm_cost_ps(&lengthy, 100000), cm_cost_ps(&brief, 100000) * 13 / 10);
            ck_assert_uint_le(cm_cost_ps(&lengthy, 100000), cm_cost_ps(&brief, 100000) * 15 / 10);
        }
}
END_TEST

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

START_TEST(the_estimate_is_of_the_right_order)
{
    enum { BYTES = 1 << 18 };
    static uint8_t text[BYTES], memory[CM_AES_KEY_MAX_SIZE] __attribute__((aligned(CM_AES_KEY_ALIGN)));
    static const uint8_t zero[16];
    struct cm_cost_model model;
    struct cm_aes_key *key = (struct cm_aes_key *)memory;
    ck_assert_int_eq(cm_aes_key_init(key, cm_aes_row(CM_AES_CTR, CM_AES_ENCRYPT), zero, 16), CM_AES_OK);
    cm_cost_measure(&model);
    uint64_t best = UINT64_MAX;
    for (int round = 0; round < 5; round++) {
        struct cm_aes_item item = {
            .source = text, .destination = text, .length = BYTES, .iv = zero, .iv_length = 16};
        uint64_t begun = now_ns();
        ck_assert_uint_eq(cm_aes_batch(key, CM_AES_NO_PADDING, &item, 1), 0);
        uint64_t taken = now_ns() - begun;
        best = taken < best ? taken : best;
    }
    struct cm_cost cost = cm_cost_of(&model, CM_AES_CTR, CM_AES_ENCRYPT, 128);
    /* A busy machine may disturb either side; a wrong unit is a thousand times off. */
    ck_assert_uint_gt(cm_cost_ps(&cost, BYTES) / 1000, best / 20);
    ck_assert_uint_lt(cm_cost_ps(&cost, BYTES) / 1000, best * 20);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cost");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 120);
    tcase_add_test(all, more_costs_more);
    tcase_add_test(all, the_estimate_is_of_the_right_order);
    suite_add_tcase(suite, all);
    return fixture_main(suite);
}
