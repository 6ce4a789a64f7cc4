/* SPDX-License-Identifier: Apache-2.0 */
/* Codes, their names and their retry classes. */
#include "error.h"
#include "fake.h"
#include "fixture.h"
#include <string.h>

static void nothing(void)
{
}

START_TEST(every_code_has_a_name_of_its_own)
{
    for (int a = 0; a >= CM_ERR_NOT_SENT; a--) {
        if (a < CM_ERR_SESSION_FULL && a > CM_ERR_ARGUMENT)
            continue;
        ck_assert_str_ne(cm_status_name(a), "unknown");
        ck_assert_str_ne(cm_status_description(a), "unknown");
        for (int b = a + 1; b <= 0; b++)
            ck_assert_str_ne(cm_status_name(a), cm_status_name(b));
        ck_assert_int_eq(cm_status_retry(a) == CM_RETRY_NONE, a == CM_OK);
    }
    ck_assert_str_eq(cm_status_name(CM_OK), "ok");
    ck_assert_str_eq(cm_status_name(CM_ERR_BAD_TAG), "bad_tag");
    ck_assert_str_eq(cm_status_name(CM_ERR_ROOM), "room");
    ck_assert_int_eq(cm_status_retry(CM_ERR_TIMEOUT), CM_RETRY_UNKNOWN);
    ck_assert_int_eq(cm_status_retry(CM_ERR_GOING_AWAY), CM_RETRY_NOT_EXECUTED);
    ck_assert_int_eq(cm_status_retry(CM_ERR_BAD_TAG), CM_RETRY_FINAL);
}
END_TEST

START_TEST(unknown_codes_do_no_harm)
{
    const int codes[] = {1, 99, -50, -99, -114, -100000, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        ck_assert_str_eq(cm_status_name(codes[i]), "unknown");
        ck_assert_ptr_nonnull(cm_status_description(codes[i]));
        ck_assert_int_eq(cm_status_retry(codes[i]), CM_RETRY_UNKNOWN);
    }
    ck_assert_str_eq(cm_retry_name(CM_RETRY_NOT_EXECUTED), "not executed");
    ck_assert_str_eq(cm_retry_name(CM_RETRY_UNKNOWN), "unknown");
    ck_assert_str_eq(cm_retry_name(CM_RETRY_FINAL), "final");
    ck_assert_str_eq(cm_retry_name(77), "unknown");
    ck_assert_int_eq(cm_code_of_status(CM_STATUS_BAD_IV), CM_ERR_BAD_IV);
    ck_assert_int_eq(cm_code_of_status(99), -99);
    ck_assert_int_eq(cm_code_of_status(100), CM_ERR_PROTOCOL);
    ck_assert_int_eq(cm_code_of_status(UINT32_MAX), CM_ERR_PROTOCOL);
    ck_assert_str_eq(cm_version(), "0.1.0");
}
END_TEST

START_TEST(texts_are_cut_and_ended)
{
    char much[600];
    memset(much, 'y', sizeof much - 1);
    much[sizeof much - 1] = 0;
    cm_error error;
    memset(&error, 0xff, sizeof error);
    ck_assert_int_eq(cm_fail_code(&error, CM_ERR_ROOM, "%s", much), CM_ERR_ROOM);
    ck_assert_uint_eq(strlen(error.text), sizeof error.text - 1);
    ck_assert_int_eq(error.retry, CM_RETRY_FINAL);
    ck_assert_int_eq(cm_fail_code(NULL, CM_ERR_ROOM, "x"), CM_ERR_ROOM);
    cm_error_clear(&error);
    ck_assert_int_eq(error.code, 0);
    ck_assert_str_eq(error.text, "");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_code_has_a_name_of_its_own,
        unknown_codes_do_no_harm,
        texts_are_cut_and_ended,
    };
    return RUN_WITH_FIXTURE("client/error", nothing, nothing, tests);
}
