/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one test case with a fixture: the main function of every test here. */
#ifndef CM_TEST_FIXTURE_H
#define CM_TEST_FIXTURE_H

#include <check.h>
#include <stddef.h>

static inline int run_with_fixture(const char *name, void (*setup)(void), void (*teardown)(void),
                                   const TTest *const *tests, size_t count)
{
    Suite *suite = suite_create(name);
    TCase *tcase = tcase_create(name);
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, setup, teardown);
    for (size_t i = 0; i < count; i++)
        tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

#define RUN_WITH_FIXTURE(name, setup, teardown, tests)                                                       \
    run_with_fixture(name, setup, teardown, tests, sizeof(tests) / sizeof((tests)[0]))

#endif
