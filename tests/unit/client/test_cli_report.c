/* SPDX-License-Identifier: Apache-2.0 */
/* Which exit code belongs to which status and retry class. */
#include "report.h"
#include "suite.h"

START_TEST(test_codes)
{
    static const struct {
        int status, retry, code;
    } rows[] = {
        {CM_OK, CM_RETRY_NONE, CODE_OK},
        {CM_ERR_BAD_TAG, CM_RETRY_FINAL, CODE_FAILED},
        {CM_ERR_NO_SUCH_KEY, CM_RETRY_FINAL, CODE_FAILED},
        {CM_ERR_ENDPOINT, CM_RETRY_NOT_EXECUTED, CODE_USAGE},
        {CM_ERR_NOT_FOUND, CM_RETRY_NOT_EXECUTED, CODE_UNREACHABLE},
        {CM_ERR_NOT_CIPHERMILL, CM_RETRY_NOT_EXECUTED, CODE_UNREACHABLE},
        {CM_ERR_CONNECT_TIMEOUT, CM_RETRY_NOT_EXECUTED, CODE_UNREACHABLE},
        {CM_ERR_VERSION_MISMATCH, CM_RETRY_FINAL, CODE_UNREACHABLE},
        {CM_ERR_NO_ACCESS, CM_RETRY_NOT_EXECUTED, CODE_REFUSED},
        {CM_ERR_ACCESS_DENIED, CM_RETRY_FINAL, CODE_REFUSED},
        {CM_ERR_NOT_PERMITTED, CM_RETRY_FINAL, CODE_REFUSED},
        {CM_ERR_IV_NOT_ALLOWED, CM_RETRY_FINAL, CODE_REFUSED},
        {CM_ERR_OVERLOADED, CM_RETRY_NOT_EXECUTED, CODE_REPEAT},
        {CM_ERR_GOING_AWAY, CM_RETRY_NOT_EXECUTED, CODE_REPEAT},
        {CM_ERR_DISCONNECTED, CM_RETRY_NOT_EXECUTED, CODE_REPEAT},
        {CM_ERR_DISCONNECTED, CM_RETRY_UNKNOWN, CODE_UNKNOWN},
        {CM_ERR_TIMEOUT, CM_RETRY_UNKNOWN, CODE_UNKNOWN},
        {CM_ERR_STORE_FAILED, CM_RETRY_UNKNOWN, CODE_UNKNOWN},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ck_assert_msg(report_code_of(rows[i].status, rows[i].retry) == rows[i].code, "row %zu", i);
}
END_TEST

static void add(TCase *test_case)
{
    tcase_add_test(test_case, test_codes);
}

int main(void)
{
    return run_suite("cli_report", add);
}
