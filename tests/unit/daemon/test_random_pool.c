/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of random bytes: none twice, whatever sizes are taken, and it refills. */
#include "random_pool.h"
#include "service_fixture.h"
#include <string.h>

START_TEST(no_bytes_come_twice)
{
    enum { TAKES = 3000 };
    static struct cm_random_pool pool;
    static uint8_t taken[TAKES][16];
    size_t same = 0;
    memset(&pool, 0, sizeof pool);
    for (size_t i = 0; i < TAKES; i++) /* several pools full, and never the end of one exactly */
        ck_assert_int_eq(cm_random_pool_take(&pool, taken[i], i % 2 == 0 ? 16 : 12), 0);
    for (size_t i = 0; i < TAKES; i++)
        for (size_t j = 0; j < i; j++)
            same += memcmp(taken[i], taken[j], 12) == 0;
    ck_assert_uint_eq(same, 0);
}
END_TEST

START_TEST(takes_exactly_what_is_asked)
{
    static struct cm_random_pool pool;
    static uint8_t bytes[CM_RANDOM_POOL_BYTES + 1];
    for (size_t length = 0; length <= CM_RANDOM_POOL_BYTES; length += length < 64 ? 1 : 504) {
        size_t before = pool.left >= length ? pool.left : CM_RANDOM_POOL_BYTES;
        memset(bytes, 0, sizeof bytes);
        ck_assert_int_eq(cm_random_pool_take(&pool, bytes, length), 0);
        ck_assert_uint_eq(bytes[length], 0);
        ck_assert_uint_eq(pool.left, before - length); /* used up, so that takes do not overlap */
    }
    uint8_t one[32] = {0}, two[32] = {0};
    ck_assert_int_eq(cm_random_secret(one, sizeof one), 0);
    ck_assert_int_eq(cm_random_secret(two, sizeof two), 0);
    ck_assert_mem_ne(one, two, sizeof one);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("random_pool");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 120);
    tcase_add_test(all, no_bytes_come_twice);
    tcase_add_test(all, takes_exactly_what_is_asked);
    suite_add_tcase(suite, all);
    return fixture_main(suite);
}
