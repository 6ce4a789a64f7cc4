/* SPDX-License-Identifier: Apache-2.0 */
/* Percentiles are within 3 % of the value that sorting gives, at any scale. */
#include "histogram.h"
#include "suite.h"
#include <math.h>
#include <string.h>

static struct histogram histogram;

static void setup(void)
{
    memset(&histogram, 0, sizeof histogram);
}

START_TEST(test_empty)
{
    ck_assert_uint_eq(histogram_percentile(&histogram, 0.5), 0);
}
END_TEST

START_TEST(test_small_values_are_exact)
{
    for (uint64_t value = 0; value < 64; value++)
        histogram_add(&histogram, value);
    ck_assert_uint_eq(histogram_percentile(&histogram, 0.5), 31);
    ck_assert_uint_eq(histogram_percentile(&histogram, 1), 63);
    ck_assert_uint_eq(histogram_percentile(&histogram, 0), 0);
    ck_assert_uint_eq(histogram.max, 63);
    ck_assert_uint_eq(histogram.count, 64);
    setup();
    histogram_add(&histogram, 10);
    ck_assert_uint_eq(histogram_percentile(&histogram, 0), 10);
}
END_TEST

START_TEST(test_one_value_at_every_scale)
{
    for (uint64_t value = 1; value < (uint64_t)1 << HISTOGRAM_TOP; value += value / 7 + 1) {
        double found;

        setup();
        histogram_add(&histogram, value);
        /* A larger one keeps the maximum from hiding what the bucket says. */
        histogram_add(&histogram, (uint64_t)1 << 50);
        found = (double)histogram_percentile(&histogram, 0.5);
        ck_assert_double_le(fabs(found - (double)value), (double)value * 0.016);
    }
}
END_TEST

START_TEST(test_percentiles_of_a_ramp)
{
    for (uint64_t value = 1; value <= 100000; value++)
        histogram_add(&histogram, value * 1000);
    ck_assert_double_eq_tol((double)histogram_percentile(&histogram, 0.5), 50e6, 1.5e6);
    ck_assert_double_eq_tol((double)histogram_percentile(&histogram, 0.9), 90e6, 2.7e6);
    ck_assert_double_eq_tol((double)histogram_percentile(&histogram, 0.999), 99.9e6, 3e6);
    ck_assert_uint_le(histogram_percentile(&histogram, 1), histogram.max);
    ck_assert_uint_eq(histogram.max, 100000000);
}
END_TEST

START_TEST(test_beyond_the_top)
{
    histogram_add(&histogram, UINT64_MAX);
    ck_assert_uint_eq(histogram_percentile(&histogram, 0.5), UINT64_MAX);
}
END_TEST

START_TEST(test_merge)
{
    static struct histogram other;

    memset(&other, 0, sizeof other);
    for (int i = 0; i < 9; i++)
        histogram_add(&histogram, 10);
    histogram_add(&other, 5000000);
    histogram_merge(&histogram, &other);
    ck_assert_uint_eq(histogram.count, 10);
    ck_assert_uint_eq(histogram.max, 5000000);
    ck_assert_uint_eq(histogram_percentile(&histogram, 0.9), 10);
    ck_assert_double_eq_tol((double)histogram_percentile(&histogram, 0.91), 5e6, 150e3);
}
END_TEST

static void add(TCase *test_case)
{
    tcase_add_checked_fixture(test_case, setup, NULL);
    tcase_add_test(test_case, test_empty);
    tcase_add_test(test_case, test_small_values_are_exact);
    tcase_add_test(test_case, test_one_value_at_every_scale);
    tcase_add_test(test_case, test_percentiles_of_a_ramp);
    tcase_add_test(test_case, test_beyond_the_top);
    tcase_add_test(test_case, test_merge);
}

int main(void)
{
    return run_suite("bench_histogram", add);
}
