/* SPDX-License-Identifier: Apache-2.0 */
/* Counting connections by peer: at the limit, one below and one above, and apart from one another. */
#include "peers.h"

#include "suite.h"

START_TEST(limit)
{
    struct cm_peers peers = {0};
    struct cm_peer_count *first = cm_peers_get(&peers, "uid:1", 2);
    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_eq(cm_peers_get(&peers, "uid:1", 2), first);
    ck_assert_ptr_null(cm_peers_get(&peers, "uid:1", 2));
    struct cm_peer_count *other = cm_peers_get(&peers, "uid:11", 2);
    ck_assert_ptr_nonnull(other);
    ck_assert_ptr_ne(other, first);
    cm_peers_put(&peers, first);
    ck_assert_ptr_eq(cm_peers_get(&peers, "uid:1", 2), first);
    cm_peers_put(&peers, first);
    cm_peers_put(&peers, first);
    ck_assert_ptr_eq(peers.first, other);
    cm_peers_put(&peers, other);
    ck_assert_ptr_null(peers.first);
    ck_assert_ptr_null(cm_peers_get(&peers, "uid:1", 0));
    ck_assert_ptr_null(peers.first);
}
END_TEST

static void add(TCase *test_case)
{
    tcase_add_test(test_case, limit);
}

int main(void)
{
    return run_suite("peers", add);
}
