/* SPDX-License-Identifier: Apache-2.0 */
/* Every status has its word, its text and its class; unknown numbers have theirs too. */
#include "status.h"
#include "suite.h"

#include <ctype.h>
#include <string.h>

#define ROW(name, number, retry, text) {#name, number, CM_RETRY_CLASS_##retry, text},
static const struct {
    const char *name;
    uint32_t number;
    enum cm_retry_class retry;
    const char *text;
} rows[] = {CM_STATUS_TABLE(ROW)};

enum { ROWS = sizeof rows / sizeof rows[0] };

START_TEST(test_every_status)
{
    const char *word = cm_wire_status_word(rows[_i].number);
    const char *name = rows[_i].name;

    ck_assert_uint_eq(strlen(word), strlen(name));
    for (size_t i = 0; name[i] != 0; i++)
        ck_assert_int_eq(word[i], tolower(name[i]));
    ck_assert_str_eq(cm_wire_status_text(rows[_i].number), rows[_i].text);
    ck_assert_int_eq(cm_wire_status_retry(rows[_i].number), rows[_i].retry);
    /* Numbers have no holes and no doubles. */
    ck_assert_uint_eq(rows[_i].number, (uint32_t)_i);
}
END_TEST

START_TEST(test_only_ok_failed_not)
{
    for (int i = 0; i < ROWS; i++)
        ck_assert_int_eq(rows[i].retry == CM_RETRY_CLASS_NONE, rows[i].number == CM_STATUS_OK);
}
END_TEST

START_TEST(test_unknown_numbers)
{
    static const uint32_t numbers[] = {ROWS, ROWS + 1, 100, 0x80000000, UINT32_MAX};

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        ck_assert_str_eq(cm_wire_status_word(numbers[i]), "unknown");
        ck_assert_str_eq(cm_wire_status_text(numbers[i]), "unknown");
        ck_assert_int_eq(cm_wire_status_retry(numbers[i]), CM_RETRY_CLASS_UNKNOWN);
    }
}
END_TEST

/* What others rely on, spelled out once more, so that a change in the table is a change here. */
START_TEST(test_fixed_points)
{
    ck_assert_str_eq(cm_wire_status_word(0), "ok");
    ck_assert_str_eq(cm_wire_status_word(5), "bad_tag");
    ck_assert_str_eq(cm_wire_status_word(17), "going_away");
    ck_assert_int_eq(cm_wire_status_retry(17), CM_RETRY_CLASS_NOT_EXECUTED);
    ck_assert_int_eq(cm_wire_status_retry(18), CM_RETRY_CLASS_UNKNOWN);
    ck_assert_int_eq(cm_wire_status_retry(23), CM_RETRY_CLASS_FINAL);
}
END_TEST

static void add(TCase *test_case)
{
    tcase_add_loop_test(test_case, test_every_status, 0, ROWS);
    tcase_add_test(test_case, test_only_ok_failed_not);
    tcase_add_test(test_case, test_unknown_numbers);
    tcase_add_test(test_case, test_fixed_points);
}

int main(void)
{
    return run_suite("status", add);
}
