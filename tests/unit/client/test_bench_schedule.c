/* SPDX-License-Identifier: Apache-2.0 */
/* Intended times: all connections together keep the rate, none drifts, none is forgotten. */
#include "schedule.h"
#include "suite.h"

START_TEST(test_connections_interleave)
{
    struct schedule schedules[3];

    for (uint32_t c = 0; c < 3; c++)
        schedule_init(&schedules[c], 1000, 1e6, c, 3); /* one a microsecond */
    for (uint64_t n = 0; n < 30; n++) {
        ck_assert_uint_eq(schedule_due(&schedules[n % 3]), 1000 + n * 1000);
        schedule_advance(&schedules[n % 3]);
    }
}
END_TEST

START_TEST(test_no_drift)
{
    struct schedule schedule;

    /* A third of a nanosecond too much in each step would be a third of a millisecond by then. */
    schedule_init(&schedule, 0, 3e6, 0, 1);
    for (int i = 0; i < 1000000; i++)
        schedule_advance(&schedule);
    ck_assert_double_eq_tol((double)schedule_due(&schedule), 1e9 / 3, 2);
}
END_TEST

START_TEST(test_left)
{
    struct schedule schedule;

    schedule_init(&schedule, 1000, 1e6, 1, 4); /* due at 2000, 6000, 10000, ... */
    ck_assert_uint_eq(schedule_left(&schedule, 2000), 0);
    ck_assert_uint_eq(schedule_left(&schedule, 2001), 1);
    ck_assert_uint_eq(schedule_left(&schedule, 6000), 1);
    ck_assert_uint_eq(schedule_left(&schedule, 6001), 2);
    schedule_advance(&schedule);
    ck_assert_uint_eq(schedule_left(&schedule, 6001), 1);
    ck_assert_uint_eq(schedule_left(&schedule, 0), 0);
}
END_TEST

static void add(TCase *test_case)
{
    tcase_add_test(test_case, test_connections_interleave);
    tcase_add_test(test_case, test_no_drift);
    tcase_add_test(test_case, test_left);
}

int main(void)
{
    return run_suite("bench_schedule", add);
}
