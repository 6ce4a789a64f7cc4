/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one suite with one test case, as every test program does. */
#ifndef CM_TEST_SUITE_H
#define CM_TEST_SUITE_H

#include <check.h>
#include <stdlib.h>

static inline int run_suite(const char *name, void (*add)(TCase *test_case))
{
    Suite *suite = suite_create(name);
    TCase *test_case = tcase_create(name);
    SRunner *runner;
    int failed, run;

    add(test_case);
    suite_add_tcase(suite, test_case);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    run = srunner_ntests_run(runner);
    srunner_free(runner);
    return failed == 0 && run > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
