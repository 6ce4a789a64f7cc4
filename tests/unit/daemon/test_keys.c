/* SPDX-License-Identifier: Apache-2.0 */
/* Live keys and snapshots: references, expanded forms and their budget, versions. */
#include "keys.h"
#include "service_fixture.h"
#include "status.h"
#include <stdio.h>
#include <string.h>

static struct cm_form_budget budget;

static struct cm_live_key *make(const char *name)
{
    struct cm_live_key *key = cm_live_key_new(&budget, 1);
    ck_assert_ptr_nonnull(key);
    snprintf(key->name, sizeof key->name, "%s", name);
    key->key_bits = 128;
    key->versions[0].number = 1;
    key->versions[0].state = CM_WIRE_KEY_ENABLED;
    return key;
}

static void start(void)
{
    atomic_init(&budget.used, 0);
    budget.limit = 100;
}

static void count_gone(void *counter)
{
    ++*(int *)counter;
}

START_TEST(forms_are_made_once_and_counted)
{
    struct cm_live_key *key = make("k");
    const struct cm_aes_key *form = cm_live_key_form(key, &key->versions[0], CM_AES_CTR, CM_AES_ENCRYPT);
    ck_assert_ptr_nonnull(form);
    ck_assert_ptr_eq(cm_live_key_form(key, &key->versions[0], CM_AES_CTR, CM_AES_ENCRYPT), form);
    ck_assert_ptr_ne(cm_live_key_form(key, &key->versions[0], CM_AES_CTR, CM_AES_DECRYPT), form);
    ck_assert_uint_eq(atomic_load(&budget.used), 2);
    cm_live_key_put(key);
    ck_assert_uint_eq(atomic_load(&budget.used), 0);
}
END_TEST

START_TEST(ephemeral_keys_leave_half_of_the_budget)
{
    struct cm_live_key *named = make("k"), *ephemeral = make("");
    budget.limit = 4;
    ck_assert_ptr_nonnull(cm_live_key_form(ephemeral, &ephemeral->versions[0], CM_AES_ECB, CM_AES_ENCRYPT));
    ck_assert_ptr_nonnull(cm_live_key_form(ephemeral, &ephemeral->versions[0], CM_AES_ECB, CM_AES_DECRYPT));
    ck_assert_ptr_null(cm_live_key_form(ephemeral, &ephemeral->versions[0], CM_AES_CBC, CM_AES_DECRYPT));
    ck_assert_ptr_nonnull(cm_live_key_form(named, &named->versions[0], CM_AES_ECB, CM_AES_ENCRYPT));
    ck_assert_ptr_nonnull(cm_live_key_form(named, &named->versions[0], CM_AES_ECB, CM_AES_DECRYPT));
    ck_assert_uint_eq(atomic_load(&budget.used), 4);
    cm_live_key_put(named);
    cm_live_key_put(ephemeral);
    ck_assert_uint_eq(atomic_load(&budget.used), 0);
}
END_TEST

START_TEST(forms_stay_within_the_budget)
{
    struct cm_live_key *key = make("k");
    budget.limit = 1;
    ck_assert_ptr_nonnull(cm_live_key_form(key, &key->versions[0], CM_AES_ECB, CM_AES_ENCRYPT));
    ck_assert_ptr_null(cm_live_key_form(key, &key->versions[0], CM_AES_ECB, CM_AES_DECRYPT));
    ck_assert_uint_eq(atomic_load(&budget.used), 1);
    cm_live_key_put(key);
    ck_assert_uint_eq(atomic_load(&budget.used), 0);
}
END_TEST

START_TEST(last_reference_frees)
{
    int gone = 0;
    struct cm_live_key *key = make("k");
    key->on_gone = count_gone;
    key->on_gone_context = &gone;
    cm_live_key_get(key);
    cm_live_key_put(key);
    ck_assert_int_eq(gone, 0);
    cm_live_key_put(key);
    ck_assert_int_eq(gone, 1);
    cm_live_key_put(NULL);
}
END_TEST

START_TEST(snapshots_share_and_let_go)
{
    int gone = 0;
    struct cm_live_key *keys[] = {make("m"), make("c"), make("x")};
    struct cm_snapshot *first = cm_snapshot_new(keys, 3);
    ck_assert_uint_eq(first->count, 3);
    ck_assert_uint_eq(first->alive, 3);
    ck_assert_str_eq(first->keys[0]->name, "c");
    ck_assert_ptr_eq(cm_snapshot_find(first, "m"), keys[0]);
    ck_assert_ptr_null(cm_snapshot_find(first, "n"));
    ck_assert_ptr_null(cm_snapshot_find(first, "zz"));
    ck_assert_uint_eq(cm_snapshot_position(first, "d"), 1);
    ck_assert_uint_eq(cm_snapshot_position(first, "z"), 3);

    struct cm_live_key *added = make("d"), *stone = make("m");
    stone->versions[0].state = CM_WIRE_KEY_DESTROYED;
    keys[0]->on_gone = count_gone;
    keys[0]->on_gone_context = &gone;
    struct cm_snapshot *second = cm_snapshot_with(first, added);
    ck_assert_uint_eq(second->count, 4);
    ck_assert_str_eq(second->keys[1]->name, "d");
    ck_assert_uint_gt(second->serial, first->serial);
    struct cm_snapshot *third = cm_snapshot_with(second, stone);
    ck_assert_uint_eq(third->count, 4);
    ck_assert_uint_eq(third->alive, 3);
    ck_assert_ptr_eq(cm_snapshot_find(third, "m"), stone);
    cm_live_key_put(added);
    cm_live_key_put(stone);

    cm_snapshot_put(cm_snapshot_get(second));
    cm_snapshot_put(first);
    ck_assert_int_eq(gone, 0);
    cm_snapshot_put(second);
    ck_assert_int_eq(gone, 1);
    cm_snapshot_put(third);
}
END_TEST

START_TEST(versions_by_number_state_and_direction)
{
    struct cm_live_key *key = cm_live_key_new(&budget, 4);
    struct cm_live_version *version = NULL;
    static const uint32_t states[] = {CM_WIRE_KEY_DESTROYED, CM_WIRE_KEY_ENABLED, CM_WIRE_KEY_DECRYPT_ONLY,
                                      CM_WIRE_KEY_DISABLED};
    for (uint32_t v = 0; v < 4; v++) {
        key->versions[v].number = v + 3; /* numbers need not begin with 1 */
        key->versions[v].state = states[v];
    }
    ck_assert_uint_eq(cm_live_key_version(key, 0, CM_AES_ENCRYPT, &version), CM_STATUS_OK);
    ck_assert_uint_eq(version->number, 4);
    ck_assert_uint_eq(cm_live_key_version(key, 0, CM_AES_DECRYPT, &version), CM_STATUS_OK);
    ck_assert_uint_eq(version->number, 5);
    ck_assert_uint_eq(cm_live_key_version(key, 4, CM_AES_DECRYPT, &version), CM_STATUS_OK);
    ck_assert_uint_eq(version->number, 4);
    ck_assert_uint_eq(cm_live_key_version(key, 5, CM_AES_ENCRYPT, &version), CM_STATUS_KEY_UNUSABLE);
    ck_assert_uint_eq(cm_live_key_version(key, 6, CM_AES_DECRYPT, &version), CM_STATUS_KEY_UNUSABLE);
    ck_assert_uint_eq(cm_live_key_version(key, 3, CM_AES_DECRYPT, &version), CM_STATUS_KEY_UNUSABLE);
    ck_assert_uint_eq(cm_live_key_version(key, 2, CM_AES_DECRYPT, &version), CM_STATUS_NO_SUCH_KEY);
    ck_assert_uint_eq(cm_live_key_version(key, 7, CM_AES_DECRYPT, &version), CM_STATUS_NO_SUCH_KEY);
    ck_assert(cm_live_key_alive(key));
    for (uint32_t v = 0; v < 4; v++)
        key->versions[v].state = CM_WIRE_KEY_DESTROYED;
    ck_assert(!cm_live_key_alive(key));
    ck_assert_uint_eq(cm_live_key_version(key, 0, CM_AES_DECRYPT, &version), CM_STATUS_KEY_UNUSABLE);
    cm_live_key_put(key);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("keys");
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, start, NULL);
    tcase_add_test(all, forms_are_made_once_and_counted);
    tcase_add_test(all, forms_stay_within_the_budget);
    tcase_add_test(all, ephemeral_keys_leave_half_of_the_budget);
    tcase_add_test(all, last_reference_frees);
    tcase_add_test(all, snapshots_share_and_let_go);
    tcase_add_test(all, versions_by_number_state_and_direction);
    suite_add_tcase(suite, all);
    return fixture_main(suite);
}
