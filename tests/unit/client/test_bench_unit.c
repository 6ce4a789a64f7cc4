/* SPDX-License-Identifier: Apache-2.0 */
/* The bench's judge: right answers pass in every mode and direction, and one wrong bit anywhere does not. */
#include "suite.h"
#include "unit.h"
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 3, MOST = 100 };

static struct keys keys;
static struct reference reference;
static struct unit unit;
static uint8_t scratch[MOST + 64];
static struct plan plan;

/* Does what a daemon would: by OpenSSL, too, so that this tests the comparison and not the cipher. */
static void answer(void)
{
    for (size_t i = 0; i < unit.count; i++) {
        cm_item *item = &unit.items[i];
        struct message message = {.in = item->in,
                                  .in_length = item->in_length,
                                  .out = item->out,
                                  .tag = item->tag,
                                  .tag_length = item->tag_length};

        if (unit.mode != CM_ECB && item->iv_length == 0) {
            memset(item->iv, (int)i + 7, sizeof item->iv);
            item->iv_length = unit.mode == CM_GCM ? 12 : 16;
        }
        message.iv = unit.mode == CM_ECB ? NULL : item->iv;
        message.iv_length = item->iv_length;
        ck_assert(reference_run(&reference, unit.mode, unit.direction, (unit.flags & CM_NO_PADDING) == 0,
                                &message));
        item->out_length = message.out_length;
        item->status = CM_OK;
    }
}

/* XTS wants halves that differ, and knows no AES-192. */
static void set_keys(int mode)
{
    for (int family = 0; family < KEYS_FAMILIES; family++)
        for (size_t i = 0; i < sizeof keys.bytes[0]; i++)
            keys.bytes[family][i] = (uint8_t)(i * 5 + 1);
    keys.key_bits = mode == CM_XTS ? 256 : 192;
}

static void setup_unit(int mode, int direction, bool caller_iv)
{
    set_keys(mode);
    plan = (struct plan){.batch = ITEMS,
                         .size_least = mode == CM_XTS ? 16 : 1,
                         .size_most = MOST,
                         .key_bits = keys.key_bits,
                         .padding = true,
                         .caller_iv = caller_iv};
    reference_init(&reference, &keys);
    ck_assert(unit_init(&unit, &plan, (struct combination){mode, direction}, 16, &reference));
}

static uint64_t wrong_items(void)
{
    uint64_t checked;
    uint64_t wrong = unit_verify(&unit, &reference, scratch, &checked);

    ck_assert_uint_eq(checked, ITEMS);
    return wrong;
}

/* Loops over modes, directions, and who makes the IV. */
START_TEST(test_judge)
{
    int mode = _i / 4 + 1;
    int direction = _i / 2 % 2 + 1;

    setup_unit(mode, direction, _i % 2 == 1);
    for (int round = 0; round < 3; round++) {
        cm_item *item = &unit.items[round];

        unit_prepare(&unit, &plan);
        if (mode == CM_XTS) /* nobody else makes a tweak */
            ck_assert_uint_eq(item->iv_length, 16);
        answer();
        ck_assert_uint_eq(wrong_items(), 0);
        ((uint8_t *)item->out)[item->out_length - 1] ^= 1;
        ck_assert_uint_eq(wrong_items(), 1);
        ((uint8_t *)item->out)[item->out_length - 1] ^= 1;
        item->out_length--;
        ck_assert_uint_eq(wrong_items(), 1);
        item->out_length++;
        if (mode == CM_GCM) {
            item->tag[15] ^= 1;
            ck_assert_uint_eq(wrong_items(), 1);
            item->tag[15] ^= 1;
        }
        if (mode != CM_ECB) {
            item->iv[11] ^= 1;
            ck_assert_uint_eq(wrong_items(), 1);
            item->iv[11] ^= 1;
            item->iv_length--;
            ck_assert_uint_eq(wrong_items(), 1);
            item->iv_length++;
        }
        ck_assert_uint_eq(wrong_items(), 0);
    }
    unit_done(&unit);
    reference_done(&reference);
}
END_TEST

/* What the daemon left alone, or answered to the round before, is no answer; not even where the input of a
 * decryption has to be the same each time. */
START_TEST(test_old_answers_are_wrong)
{
    cm_item old[ITEMS];
    uint64_t checked;

    setup_unit(_i / 2 + 1, _i % 2 + 1, false);
    unit_prepare(&unit, &plan);
    answer();
    memcpy(old, unit.items, sizeof old);
    /* Lengths would give it away. */
    plan.size_least = plan.size_most;
    unit_prepare(&unit, &plan);
    ck_assert_uint_eq(unit_verify(&unit, &reference, scratch, &checked), 0);
    ck_assert_uint_eq(checked, 0); /* no item came out well yet */
    memcpy(unit.items, old, sizeof old);
    ck_assert_uint_eq(wrong_items(), ITEMS);
    unit_done(&unit);
    reference_done(&reference);
}
END_TEST

/* So that an answer to the round before is wrong even if all of it arrives. */
START_TEST(test_input_differs_each_round)
{
    uint8_t before[MOST];
    const struct combination kind = {_i / 2 + 1, _i % 2 + 1};
    bool may_differ = kind.mode != CM_GCM || kind.direction == CM_ENCRYPT; /* else the tag would be wrong */

    set_keys(kind.mode);
    plan = (struct plan){
        .batch = ITEMS, .size_least = MOST - 4, .size_most = MOST - 4, .key_bits = keys.key_bits};
    reference_init(&reference, &keys);
    ck_assert(unit_init(&unit, &plan, kind, 16, &reference));
    unit_prepare(&unit, &plan);
    memcpy(before, unit.items[0].in, MOST - 4);
    unit_prepare(&unit, &plan);
    ck_assert_int_eq(memcmp(before, unit.items[0].in, MOST - 4) != 0, may_differ);
    unit_done(&unit);
    reference_done(&reference);
}
END_TEST

START_TEST(test_sizes_stay_in_range)
{
    setup_unit(CM_CTR, CM_ENCRYPT, false);
    plan.size_least = 17;
    plan.size_most = 19;
    for (int round = 0; round < 1000; round++) {
        unit_prepare(&unit, &plan);
        for (size_t i = 0; i < unit.count; i++) {
            ck_assert_uint_ge(unit.items[i].in_length, 17);
            ck_assert_uint_le(unit.items[i].in_length, 19);
        }
    }
    unit_done(&unit);
    reference_done(&reference);
}
END_TEST

static void add(TCase *test_case)
{
    tcase_add_loop_test(test_case, test_judge, 0, 4 * CM_XTS);
    tcase_add_loop_test(test_case, test_old_answers_are_wrong, 0, 2 * CM_XTS);
    tcase_add_loop_test(test_case, test_input_differs_each_round, 0, 2 * CM_XTS);
    tcase_add_test(test_case, test_sizes_stay_in_range);
}

int main(void)
{
    return run_suite("bench_unit", add);
}
