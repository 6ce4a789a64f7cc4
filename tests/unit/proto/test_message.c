/* SPDX-License-Identifier: Apache-2.0 */
/* Slots: outputs, strides and totals, by hand; what the layout may be; and lengths that come near 2^32. */
#include "message.h"
#include "suite.h"

static struct cm_batch one_item(uint8_t mode, uint8_t direction, bool padding, const uint32_t *length)
{
    return (struct cm_batch){
        .mode = mode, .direction = direction, .padding = padding, .count = 1, .lengths = length};
}

START_TEST(test_key_bytes)
{
    const struct cm_key_attributes one = {.modes = 1 << CM_WIRE_GCM}, two = {.modes = 1 << CM_WIRE_XTS};

    ck_assert_uint_eq(cm_key_bytes(&one, 128), 16);
    ck_assert_uint_eq(cm_key_bytes(&one, 192), 24);
    ck_assert_uint_eq(cm_key_bytes(&one, 256), 32);
    ck_assert_uint_eq(cm_key_bytes(&two, 128), 32);
    ck_assert_uint_eq(cm_key_bytes(&two, 256), 64);
}
END_TEST

START_TEST(test_output_grows_with_padding)
{
    static const uint32_t cases[][2] = {{0, 16}, {1, 16}, {15, 16}, {16, 32}, {17, 32}, {31, 32}, {32, 48}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_uint_eq(cm_slot_output(CM_WIRE_ECB, CM_WIRE_ENCRYPT, true, CM_WIRE_SINGLE, cases[i][0]),
                          cases[i][1]);
        ck_assert_uint_eq(cm_slot_output(CM_WIRE_CBC, CM_WIRE_ENCRYPT, true, CM_WIRE_LAST, cases[i][0]),
                          cases[i][1]);
    }
    ck_assert_uint_eq(cm_slot_output(CM_WIRE_ECB, CM_WIRE_ENCRYPT, true, CM_WIRE_SINGLE, 0xffffffef),
                      0xfffffff0);
    ck_assert_uint_eq(cm_slot_output(CM_WIRE_ECB, CM_WIRE_ENCRYPT, true, CM_WIRE_SINGLE, 0xfffffff0),
                      UINT32_MAX);
    ck_assert_uint_eq(cm_slot_output(CM_WIRE_ECB, CM_WIRE_ENCRYPT, true, CM_WIRE_SINGLE, UINT32_MAX),
                      UINT32_MAX);
}
END_TEST

START_TEST(test_output_stays_otherwise)
{
    for (uint8_t mode = 0; mode < 8; mode++)
        for (uint8_t direction = 0; direction < 4; direction++)
            for (uint8_t part = CM_WIRE_SINGLE; part <= CM_WIRE_LAST; part++)
                for (int padding = 0; padding < 2; padding++) {
                    bool grows = (mode == CM_WIRE_ECB || mode == CM_WIRE_CBC) &&
                                 direction == CM_WIRE_ENCRYPT && padding == 1 &&
                                 (part == CM_WIRE_SINGLE || part == CM_WIRE_LAST);

                    ck_assert_uint_eq(cm_slot_output(mode, direction, padding == 1, part, 16),
                                      grows ? 32 : 16);
                }
}
END_TEST

START_TEST(test_stride)
{
    static const struct {
        uint32_t align, gap, length;
        uint64_t plain, padded;
    } cases[] = {
        {0, 0, 0, 0, 16},
        {0, 0, 1, 16, 16},
        {0, 0, 16, 16, 32},
        {16, 0, 17, 32, 32},
        {32, 0, 16, 32, 32},
        {64, 0, 64, 64, 128},
        {64, 192, 1, 256, 256},
        {16, 1, 16, 17, 33},
        {4096, 0, 1, 4096, 4096},
        {4096, 0, 4096, 4096, 8192},
        {4096, 65536, 0, 65536, 69632},
        {0, 0, UINT32_MAX, UINT64_C(0x100000000), UINT64_C(0x100000000)},
        {0, 0, 0xfffffff0, 0xfffffff0, UINT64_C(0x100000000)},
        {4096, 65536, UINT32_MAX, UINT64_C(0x100010000), UINT64_C(0x100010000)},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cm_batch batch = one_item(CM_WIRE_CBC, CM_WIRE_ENCRYPT, false, &cases[i].length);

        batch.slot_align = cases[i].align;
        batch.slot_gap = cases[i].gap;
        ck_assert_uint_eq(cm_slot_stride(&batch, 0), cases[i].plain);
        ck_assert_uint_eq(cm_slot_total(&batch), cases[i].plain);
        batch.padding = true;
        ck_assert_uint_eq(cm_slot_stride(&batch, 0), cases[i].padded);
        ck_assert_uint_eq(cm_slot_total(&batch), cases[i].padded);
        /* Removing padding makes nothing longer: the slot is the input's. */
        batch.direction = CM_WIRE_DECRYPT;
        ck_assert_uint_eq(cm_slot_stride(&batch, 0), cases[i].plain);
    }
}
END_TEST

START_TEST(test_total)
{
    static const uint32_t lengths[] = {5, 16, 0, 100};
    static const uint8_t parts[] = {CM_WIRE_SINGLE, CM_WIRE_FIRST, CM_WIRE_MIDDLE, CM_WIRE_LAST};
    struct cm_batch batch = {.mode = CM_WIRE_CBC,
                             .direction = CM_WIRE_ENCRYPT,
                             .padding = true,
                             .slot_gap = 3,
                             .count = 4,
                             .lengths = lengths};

    ck_assert_uint_eq(cm_slot_total(&batch), 16 + 32 + 16 + 112 + 4 * 3);
    batch.parts = parts;
    ck_assert_uint_eq(cm_slot_total(&batch), 16 + 16 + 0 + 112 + 4 * 3);
    batch.count = 0;
    ck_assert_uint_eq(cm_slot_total(&batch), 0);
}
END_TEST

START_TEST(test_layout_is_bounded)
{
    static const uint32_t bad_aligns[] = {1, 2, 8, 15, 17, 24, 48, 4095, 4097, 8192, 0x80000000, UINT32_MAX};
    static const uint32_t good_aligns[] = {0, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096};
    static const uint32_t length = 1;
    struct cm_batch batch = one_item(CM_WIRE_CTR, CM_WIRE_ENCRYPT, false, &length);

    for (size_t i = 0; i < sizeof bad_aligns / sizeof bad_aligns[0]; i++) {
        batch.slot_align = bad_aligns[i];
        ck_assert_uint_eq(cm_slot_total(&batch), UINT64_MAX);
        ck_assert_uint_eq(cm_slot_stride(&batch, 0), UINT64_MAX);
    }
    for (size_t i = 0; i < sizeof good_aligns / sizeof good_aligns[0]; i++) {
        batch.slot_align = good_aligns[i];
        ck_assert_uint_eq(cm_slot_total(&batch), good_aligns[i] == 0 ? 16 : good_aligns[i]);
    }
    batch.slot_align = 16;
    batch.slot_gap = CM_SLOT_GAP_MAX - 1;
    ck_assert_uint_eq(cm_slot_total(&batch), 16 + 65535);
    batch.slot_gap = CM_SLOT_GAP_MAX;
    ck_assert_uint_eq(cm_slot_total(&batch), 16 + 65536);
    batch.slot_gap = CM_SLOT_GAP_MAX + 1;
    ck_assert_uint_eq(cm_slot_total(&batch), UINT64_MAX);
    /* Even without items: the layout is wrong by itself. */
    batch.count = 0;
    ck_assert_uint_eq(cm_slot_total(&batch), UINT64_MAX);
}
END_TEST

START_TEST(test_total_of_the_largest_lengths)
{
    enum { COUNT = 65536 };
    uint32_t *lengths = malloc(COUNT * sizeof *lengths);
    struct cm_batch batch = one_item(CM_WIRE_CTR, CM_WIRE_ENCRYPT, false, lengths);

    ck_assert_ptr_nonnull(lengths);
    for (int i = 0; i < COUNT; i++)
        lengths[i] = UINT32_MAX;
    batch.count = COUNT;
    ck_assert_uint_eq(cm_slot_total(&batch), UINT64_C(0x1000000000000));
    free(lengths);
}
END_TEST

static void add(TCase *test_case)
{
    tcase_add_test(test_case, test_key_bytes);
    tcase_add_test(test_case, test_output_grows_with_padding);
    tcase_add_test(test_case, test_output_stays_otherwise);
    tcase_add_test(test_case, test_stride);
    tcase_add_test(test_case, test_total);
    tcase_add_test(test_case, test_layout_is_bounded);
    tcase_add_test(test_case, test_total_of_the_largest_lengths);
}

int main(void)
{
    return run_suite("message", add);
}
