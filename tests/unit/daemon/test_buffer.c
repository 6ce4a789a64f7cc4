/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers: what is kept, what is wiped, what is charged, and who may borrow the reserve. */
#include "buffer.h"

#include "suite.h"
#include <string.h>
#include <sys/mman.h>

static unsigned resident_pages(const struct cm_buffer *buffer)
{
    static unsigned char pages[8192];
    unsigned count = 0;
    size_t length = buffer->capacity / 4096;
    ck_assert_uint_le(length, sizeof pages);
    ck_assert_int_eq(mincore(buffer->data, buffer->capacity, pages), 0);
    for (size_t i = 0; i < length; i++)
        count += pages[i] & 1;
    return count;
}

START_TEST(capacity_and_alignment)
{
    struct cm_pool pool = {0};
    static const size_t sizes[] = {1, 4095, 4096, 4097, 65536, 1 << 20, 4 << 20, 4194305, 5000000, 16 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct cm_buffer *buffer = cm_pool_take(&pool, sizes[i]);
        ck_assert_ptr_nonnull(buffer);
        ck_assert_uint_ge(buffer->capacity, sizes[i]);
        ck_assert_uint_eq((uintptr_t)buffer->data % 64, 0);
        buffer->data[0] = 1;
        buffer->data[sizes[i] - 1] = 1;
        cm_pool_put(&pool, buffer);
    }
    ck_assert_ptr_null(cm_pool_take(&pool, SIZE_MAX - 100));
    cm_pool_put(&pool, NULL);
    cm_pool_done(&pool);
    ck_assert_uint_eq(pool.kept, 0);
}
END_TEST

/* A frame's claimed length costs nothing: only what was written does. */
START_TEST(untouched_costs_nothing)
{
    struct cm_pool pool = {0};
    struct cm_buffer *buffer = cm_pool_take(&pool, 16 << 20);
    ck_assert_uint_eq(buffer->committed, 0);
    memset(buffer->data, 7, 10000);
    cm_buffer_touch(buffer, 10000);
    ck_assert_uint_eq(buffer->committed, 10000);
    ck_assert_uint_le(resident_pages(buffer), 3);
    cm_buffer_touch(buffer, 5000); /* never less */
    ck_assert_uint_eq(buffer->committed, 10000);
    cm_pool_put(&pool, buffer);
    cm_pool_done(&pool);
}
END_TEST

START_TEST(wiped_and_reused)
{
    struct cm_pool pool = {0};
    struct cm_buffer *buffer = cm_pool_take(&pool, 65536);
    memset(buffer->data, 0xaa, 50000);
    cm_buffer_touch(buffer, 50000);
    cm_pool_put(&pool, buffer);
    ck_assert_uint_eq(pool.kept, 50000);
    struct cm_buffer *again = cm_pool_take(&pool, 40000);
    ck_assert_ptr_eq(again, buffer);
    ck_assert_uint_eq(pool.kept, 0);
    ck_assert_uint_eq(again->used, 0);
    ck_assert_uint_eq(again->committed, 50000); /* it still costs what it ever cost */
    for (size_t i = 0; i < again->capacity; i++)
        ck_assert_uint_eq(again->data[i], 0);
    cm_pool_put(&pool, again);
    cm_pool_done(&pool);
}
END_TEST

START_TEST(pool_is_bounded)
{
    struct cm_pool pool = {0};
    struct cm_buffer *buffers[5];
    for (int i = 0; i < 5; i++) {
        buffers[i] = cm_pool_take(&pool, 4 << 20);
        cm_buffer_touch(buffers[i], 4 << 20);
    }
    for (int i = 0; i < 5; i++)
        cm_pool_put(&pool, buffers[i]);
    ck_assert_uint_eq(pool.kept, CM_POOL_KEEPS);
    struct cm_buffer *huge = cm_pool_take(&pool, (4 << 20) + 1);
    cm_pool_put(&pool, huge); /* too large to be kept */
    ck_assert_uint_eq(pool.kept, CM_POOL_KEEPS);
    cm_pool_done(&pool);
}
END_TEST

START_TEST(charging)
{
    struct cm_budget budget;
    uint64_t one = 0, other = 0;
    cm_budget_init(&budget, 1000, 300);
    ck_assert_uint_eq(cm_budget_room(&budget), 700);
    cm_budget_charge(&budget, &one, 500);
    cm_budget_charge(&budget, &other, 199);
    ck_assert_uint_eq(cm_budget_room(&budget), 1);
    cm_budget_charge(&budget, &other, 200);
    ck_assert_uint_eq(cm_budget_room(&budget), 0);
    cm_budget_charge(&budget, &other, 900); /* over the limit: no room, and no wrap-around */
    ck_assert_uint_eq(cm_budget_room(&budget), 0);
    ck_assert_uint_eq(cm_budget_used(&budget), 1400);
    cm_budget_charge(&budget, &one, 0);
    cm_budget_charge(&budget, &other, 0);
    ck_assert_uint_eq(cm_budget_used(&budget), 0);
    ck_assert_uint_eq(cm_budget_room(&budget), 700);

    ck_assert(!cm_budget_is_lent(&budget));
    ck_assert(cm_budget_borrow(&budget));
    ck_assert(!cm_budget_borrow(&budget));
    ck_assert(cm_budget_is_lent(&budget));
    cm_budget_give_back(&budget);
    ck_assert(cm_budget_borrow(&budget));
}
END_TEST

static void add(TCase *test_case)
{
    tcase_add_test(test_case, capacity_and_alignment);
    tcase_add_test(test_case, untouched_costs_nothing);
    tcase_add_test(test_case, wiped_and_reused);
    tcase_add_test(test_case, pool_is_bounded);
    tcase_add_test(test_case, charging);
}

int main(void)
{
    return run_suite("buffer", add);
}
