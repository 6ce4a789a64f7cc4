/* SPDX-License-Identifier: Apache-2.0 */
/* Key names and attributes: what goes together and what does not. */
#include "attributes.h"
#include "service_fixture.h"
#include "status.h"
#include <string.h>

START_TEST(names)
{
    char longest[CM_KEY_NAME_MAX + 2];
    memset(longest, 'x', sizeof longest);
    longest[CM_KEY_NAME_MAX] = '\0';
    ck_assert(cm_key_name_valid(longest));
    longest[CM_KEY_NAME_MAX] = 'x';
    longest[CM_KEY_NAME_MAX + 1] = '\0';
    ck_assert(!cm_key_name_valid(longest));

    static const char *const good[] = {"a", "Z9", "_x", "orders-2024.v1", "0"};
    static const char *const bad[] = {"", ".a", "-a", "a b", "a/b", "\xc3\xa4", "a\n"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        ck_assert_msg(cm_key_name_valid(good[i]), "%s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(!cm_key_name_valid(bad[i]), "%s", bad[i]);
}
END_TEST

static const struct {
    uint32_t modes, encrypt, decrypt, tag_length, bits, unsafe_mixed, status;
    uint32_t ret_modes, ret_tag_length;
} cases[] = {
    /* defaults */
    {0, 0, 0, 0, 256, 0, CM_STATUS_OK, GCM_MODE, 16},
    {BLOCK_MODES, 0, 0, 0, 128, 0, CM_STATUS_OK, BLOCK_MODES, 0},
    {GCM_MODE, 1, 0, 4, 192, 0, CM_STATUS_OK, GCM_MODE, 4},
    {MODE_BIT(CM_WIRE_ECB) | MODE_BIT(CM_WIRE_CBC), 0, 1, 0, 192, 0, CM_STATUS_OK,
     MODE_BIT(CM_WIRE_ECB) | MODE_BIT(CM_WIRE_CBC), 0},
    /* families */
    {GCM_MODE | MODE_BIT(CM_WIRE_ECB), 1, 1, 0, 256, 0, CM_STATUS_BAD_ATTRIBUTES, 0, 0},
    {GCM_MODE | MODE_BIT(CM_WIRE_CBC), 1, 1, 0, 256, 0, CM_STATUS_BAD_ATTRIBUTES, 0, 0},
    {GCM_MODE | MODE_BIT(CM_WIRE_CTR), 1, 1, 0, 256, 0, CM_STATUS_BAD_ATTRIBUTES, 0, 0},
    {GCM_MODE | BLOCK_MODES, 1, 1, 0, 256, 1, CM_STATUS_OK, GCM_MODE | BLOCK_MODES, 16},
    /* directions in CTR */
    {MODE_BIT(CM_WIRE_CTR), 1, 0, 0, 256, 0, CM_STATUS_BAD_ATTRIBUTES, 0, 0},
    {BLOCK_MODES, 0, 1, 0, 256, 0, CM_STATUS_BAD_ATTRIBUTES, 0, 0},
    /* XTS stands alone, whatever is asked for, and has no AES-192 */
    {XTS_MODE, 0, 0, 0, 128, 0, CM_STATUS_OK, XTS_MODE, 0},
    {XTS_MODE, 1, 0, 0, 256, 1, CM_STATUS_OK, XTS_MODE, 0},
    {XTS_MODE, 0, 0, 0, 192, 0, CM_STATUS_BAD_ATTRIBUTES, 0, 0},
    {XTS_MODE, 0, 0, 0, 512, 0, CM_STATUS_BAD_ATTRIBUTES, 0, 0},
    {XTS_MODE, 0, 0, 16, 256, 0, CM_STATUS_BAD_ATTRIBUTES, 0, 0},
    {XTS_MODE | MODE_BIT(CM_WIRE_ECB), 1, 1, 0, 256, 1, CM_STATUS_BAD_ATTRIBUTES, 0, 0},
    {XTS_MODE | BLOCK_MODES, 1, 1, 0, 256, 1, CM_STATUS_BAD_ATTRIBUTES, 0, 0},
    {XTS_MODE | GCM_MODE, 1, 1, 0, 256, 1, CM_STATUS_BAD_ATTRIBUTES, 0, 0},
    /* modes, sizes, tags */
    {1, 1, 1, 0, 256, 0, CM_STATUS_BAD_ATTRIBUTES, 0, 0},
    {64, 1, 1, 0, 256, 1, CM_STATUS_BAD_ATTRIBUTES, 0, 0},
    {0, 0, 0, 0, 0, 0, CM_STATUS_BAD_ATTRIBUTES, 0, 0},
    {0, 0, 0, 0, 127, 0, CM_STATUS_BAD_ATTRIBUTES, 0, 0},
    {0, 0, 0, 0, 512, 0, CM_STATUS_BAD_ATTRIBUTES, 0, 0},
    {0, 0, 0, 3, 256, 0, CM_STATUS_BAD_ATTRIBUTES, 0, 0},
    {0, 0, 0, 8, 256, 0, CM_STATUS_OK, GCM_MODE, 8},
    {0, 0, 0, 9, 256, 0, CM_STATUS_BAD_ATTRIBUTES, 0, 0},
    {0, 0, 0, 11, 256, 0, CM_STATUS_BAD_ATTRIBUTES, 0, 0},
    {0, 0, 0, 12, 256, 0, CM_STATUS_OK, GCM_MODE, 12},
    {0, 0, 0, 17, 256, 0, CM_STATUS_BAD_ATTRIBUTES, 0, 0},
    {BLOCK_MODES, 1, 1, 16, 256, 0, CM_STATUS_BAD_ATTRIBUTES, 0, 0},
};

START_TEST(attributes)
{
    struct cm_key_attributes given = {.modes = cases[_i].modes,
                                      .encrypt = cases[_i].encrypt,
                                      .decrypt = cases[_i].decrypt,
                                      .tag_length = cases[_i].tag_length};
    const char *text = NULL;
    ck_assert_uint_eq(cm_attributes_settle(&given, cases[_i].bits, cases[_i].unsafe_mixed, &text),
                      cases[_i].status);
    if (cases[_i].status != CM_STATUS_OK) {
        ck_assert_ptr_nonnull(text);
        return;
    }
    ck_assert_ptr_null(text);
    ck_assert_uint_eq(given.modes, cases[_i].ret_modes);
    ck_assert_uint_eq(given.tag_length, cases[_i].ret_tag_length);
    bool left_open = !cases[_i].encrypt && !cases[_i].decrypt;
    ck_assert(given.encrypt == (cases[_i].encrypt || left_open));
    ck_assert(given.decrypt == (cases[_i].decrypt || left_open));
}
END_TEST

START_TEST(halves)
{
    uint8_t bytes[64];
    for (size_t length = 32; length <= 64; length += 32) {
        fill(bytes, sizeof bytes, 9);
        ck_assert(!cm_xts_halves_equal(bytes, length));
        memcpy(bytes + length / 2, bytes, length / 2);
        ck_assert(cm_xts_halves_equal(bytes, length));
        for (size_t bit = 0; bit < 8 * length; bit++) {
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            ck_assert(!cm_xts_halves_equal(bytes, length));
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("attributes");
    TCase *all = tcase_create("all");
    tcase_add_test(all, names);
    tcase_add_test(all, halves);
    tcase_add_loop_test(all, attributes, 0, sizeof cases / sizeof cases[0]);
    suite_add_tcase(suite, all);
    return fixture_main(suite);
}
