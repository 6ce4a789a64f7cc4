/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of named keys: durable, live on every worker, repeated at will, and the end of a key that is in
 * use. */
#include "service_fixture.h"
#include "status.h"
#include <stdio.h>
#include <string.h>

static struct fixture f;
static struct cm_peer_state *root, *user;
static uint8_t key[64];

static void greet(void)
{
    ck_assert_msg(fixture_start(&f) == 0, "%s", f.text);
    root = fixture_peer(&f, &fixture_root);
    user = fixture_greet(&f, 1, &fixture_user, (struct cm_bytes){NULL, 0});
}

static void leave(void)
{
    cm_service_peer_free(root);
    cm_service_peer_free(user);
    fixture_stop(&f);
}

static void start(void)
{
    fixture_init(&f);
    fill(key, sizeof key, 3);
    greet();
}

static void stop(void)
{
    leave();
    fixture_done(&f);
}

static uint32_t open_status(const char *name, uint32_t *ret_handle)
{
    struct answered answered = fixture_named(&f, user, CM_CALL_OPEN_KEY, name, 0);
    *ret_handle = answered.handle;
    return answered.status;
}

/* Encrypts a data unit with the whole of `key`, 64 bytes. */
static uint32_t xts_status(uint32_t handle)
{
    struct run run;
    uint8_t expected[100], plain[100];
    run_init(&run, handle, CM_WIRE_XTS, CM_WIRE_ENCRYPT, 1, 100, 1);
    run.iv_lengths[0] = 16;
    run.batch.iv_lengths = run.iv_lengths;
    run_layout(&run, 1);
    memcpy(plain, run.body, 100);
    uint32_t status = run_all(&run, &f, user, 0)->status;
    if (status == CM_STATUS_OK) {
        reference_encrypt(CM_WIRE_XTS, key, 256, false, run.ivs, 16, NULL, 0, plain, 100, expected, NULL, 0);
        ck_assert_mem_eq(run.body, expected, 100);
    }
    run_done(&run);
    return status;
}

static uint32_t ecb_status(uint32_t handle)
{
    struct run run;
    uint8_t expected[64], plain[64];
    run_init(&run, handle, CM_WIRE_ECB, CM_WIRE_ENCRYPT, 1, 64, 1);
    memcpy(plain, run.body, 64);
    uint32_t status = run_all(&run, &f, user, 0)->status;
    if (status == CM_STATUS_OK) {
        reference_encrypt(CM_WIRE_ECB, key, 256, false, NULL, 0, NULL, 0, plain, 64, expected, NULL, 0);
        ck_assert_mem_eq(run.body, expected, 64);
    }
    run_done(&run);
    return status;
}

START_TEST(keys_outlive_the_daemon)
{
    uint32_t handle;
    ck_assert_uint_eq(fixture_import(&f, root, "k", BLOCK_MODES, key, 256, 1).status, CM_STATUS_OK);
    ck_assert_uint_eq(fixture_import(&f, root, "disk", XTS_MODE, key, 256, 5).status, CM_STATUS_OK);
    ck_assert_uint_eq(fixture_import(&f, root, "gone", 0, NULL, 128, 2).status, CM_STATUS_OK);
    ck_assert_uint_eq(fixture_named(&f, root, CM_CALL_DESTROY_KEY, "gone", 3).status, CM_STATUS_OK);
    leave();
    greet();
    ck_assert_uint_eq(open_status("k", &handle), CM_STATUS_OK);
    ck_assert_uint_eq(ecb_status(handle), CM_STATUS_OK);
    ck_assert_uint_eq(open_status("disk", &handle), CM_STATUS_OK);
    ck_assert_uint_eq(xts_status(handle), CM_STATUS_OK);
    ck_assert_uint_eq(open_status("gone", &handle), CM_STATUS_KEY_UNUSABLE);
    struct answered list = fixture_named(&f, root, CM_CALL_LIST_KEYS, "", 0);
    ck_assert_uint_eq(list.key_count, 2);
    ck_assert_str_eq(list.keys[0].name, "disk");
    ck_assert_str_eq(list.keys[1].name, "k");
    ck_assert_uint_eq(fixture_import(&f, root, "gone", 0, NULL, 128, 4).status, CM_STATUS_EXISTS);
}
END_TEST

START_TEST(names_and_bytes_are_taken_once)
{
    ck_assert_uint_eq(fixture_import(&f, root, "k", BLOCK_MODES, key, 256, 1).status, CM_STATUS_OK);
    ck_assert_uint_eq(fixture_import(&f, root, "k", 0, NULL, 256, 2).status, CM_STATUS_EXISTS);
    struct answered answered = fixture_import(&f, root, "other", 0, key, 256, 3);
    ck_assert_uint_eq(answered.status, CM_STATUS_EXISTS);
    ck_assert_ptr_nonnull(strstr(answered.text, "same bytes"));
    ck_assert_uint_eq(fixture_import(&f, root, "prefix", 0, key, 128, 4).status, CM_STATUS_OK);
    ck_assert_uint_eq(fixture_named(&f, root, CM_CALL_LIST_KEYS, "", 0).key_count, 2);
    /* Once destroyed the bytes are nobody's. */
    ck_assert_uint_eq(fixture_named(&f, root, CM_CALL_DESTROY_KEY, "k", 5).status, CM_STATUS_OK);
    ck_assert_uint_eq(fixture_import(&f, root, "other", BLOCK_MODES, key, 256, 6).status, CM_STATUS_OK);
}
END_TEST

START_TEST(a_repeat_gives_the_first_result)
{
    ck_assert_uint_eq(fixture_import(&f, root, "k", 0, NULL, 256, 1).status, CM_STATUS_OK);
    for (int again = 0; again < 2; again++) {
        struct answered answered = fixture_import(&f, root, "k", 0, NULL, 256, 1);
        ck_assert_msg(answered.status == CM_STATUS_OK, "%s", answered.text);
        ck_assert_str_eq(answered.keys[0].name, "k");
        ck_assert_uint_eq(fixture_import(&f, root, "k", 0, NULL, 256, 2).status, CM_STATUS_EXISTS);
        if (again == 0) { /* also after a restart */
            leave();
            greet();
        }
    }
    ck_assert_uint_eq(fixture_import(&f, root, "other", 0, NULL, 256, 1).status, CM_STATUS_BAD_REQUEST);
    ck_assert_uint_eq(fixture_named(&f, root, CM_CALL_DESTROY_KEY, "k", 1).status, CM_STATUS_BAD_REQUEST);
    ck_assert_uint_eq(fixture_named(&f, root, CM_CALL_DESTROY_KEY, "k", 3).status, CM_STATUS_OK);
    ck_assert_uint_eq(fixture_named(&f, root, CM_CALL_DESTROY_KEY, "k", 3).status, CM_STATUS_OK);
    ck_assert_uint_eq(fixture_named(&f, root, CM_CALL_DESTROY_KEY, "k", 4).status, CM_STATUS_KEY_UNUSABLE);
    ck_assert_uint_eq(fixture_named(&f, root, CM_CALL_LIST_KEYS, "", 0).key_count, 0);
}
END_TEST

START_TEST(a_destroyed_key_is_refused_on_open_handles)
{
    uint32_t handle;
    ck_assert_uint_eq(fixture_import(&f, root, "k", BLOCK_MODES, key, 256, 1).status, CM_STATUS_OK);
    ck_assert_uint_eq(open_status("k", &handle), CM_STATUS_OK);
    ck_assert_uint_eq(ecb_status(handle), CM_STATUS_OK);
    ck_assert_uint_eq(fixture_named(&f, root, CM_CALL_DESTROY_KEY, "k", 2).status, CM_STATUS_OK);
    ck_assert_uint_eq(ecb_status(handle), CM_STATUS_KEY_UNUSABLE);
    ck_assert_uint_eq(atomic_load(&f.service->forms.used), 0);
    ck_assert_uint_eq(fixture_named(&f, root, CM_CALL_DESCRIBE_KEY, "k", 0).status, CM_STATUS_KEY_UNUSABLE);
}
END_TEST

/* The answer to `destroy` comes when the last job has let go, and the job ends well. */
START_TEST(a_key_destroyed_while_a_job_runs)
{
    uint32_t handle;
    ck_assert_uint_eq(fixture_import(&f, root, "k", BLOCK_MODES, key, 256, 1).status, CM_STATUS_OK);
    ck_assert_uint_eq(open_status("k", &handle), CM_STATUS_OK);
    struct run run;
    uint8_t expected[64], plain[64];
    run_init(&run, handle, CM_WIRE_ECB, CM_WIRE_ENCRYPT, 1, 64, 1);
    memcpy(plain, run.body, 64);
    run_plan(&run, &f, user, 0);
    ck_assert_uint_eq(run.job.task_count, 1);

    struct answered answered = {0};
    uint8_t id[16] = {9};
    const struct cm_call call = {.kind = CM_CALL_DESTROY_KEY, .operation_id = {id, 16}, .name = "k"};
    cm_service_call(f.workers[0], root, &call, NULL, 0, fixture_on_answer, &answered);
    fixture_wait(&f, 0); /* the new snapshot */
    fixture_wait(&f, 1);
    ck_assert(!answered.done);
    ck_assert_uint_eq(ecb_status(handle), CM_STATUS_KEY_UNUSABLE); /* nothing new begins */
    struct answered repeated = {0}; /* as a client does that lost its connection meanwhile */
    cm_service_call(f.workers[0], root, &call, NULL, 0, fixture_on_answer, &repeated);
    uint8_t marker[16] = {10};
    const struct cm_call later = {.kind = CM_CALL_DESTROY_KEY, .operation_id = {marker, 16}, .name = "x"};
    ck_assert_uint_eq(fixture_call(&f, root, &later, NULL, 0).status, CM_STATUS_NO_SUCH_KEY);
    ck_assert(!repeated.done);
    ck_assert_uint_eq(atomic_load(&f.service->forms.used), 1);
    cm_job_run(&run.job, 0);
    fixture_pump(&f, 0);
    ck_assert(!answered.done);
    run_finish(&run, &f);
    ck_assert_uint_eq(atomic_load(&f.service->forms.used), 0);
    fixture_wait(&f, 0);
    ck_assert(answered.done);
    ck_assert_uint_eq(answered.status, CM_STATUS_OK);
    ck_assert_int_eq(answered.kind, CM_ANSWER_NONE);
    while (!repeated.done)
        fixture_wait(&f, 0);
    ck_assert_uint_eq(repeated.status, CM_STATUS_OK);
    reference_encrypt(CM_WIRE_ECB, key, 256, false, NULL, 0, NULL, 0, plain, 64, expected, NULL, 0);
    ck_assert_mem_eq(run.body, expected, 64);
    run_done(&run);
}
END_TEST

/* A change is answered when every worker has it, not sooner. */
START_TEST(a_change_waits_for_every_worker)
{
    struct answered answered = {0};
    uint8_t id[16] = {9};
    const struct cm_call call = {
        .kind = CM_CALL_CREATE_KEY, .operation_id = {id, 16}, .name = "k", .key_bits = 128};
    cm_service_call(f.workers[0], root, &call, NULL, 0, fixture_on_answer, &answered);
    fixture_wait(&f, 0);
    ck_assert(!answered.done);
    ck_assert_ptr_null(cm_snapshot_find(f.workers[1]->snapshot, "k"));
    fixture_wait(&f, 1);
    ck_assert_ptr_nonnull(cm_snapshot_find(f.workers[1]->snapshot, "k"));
    fixture_wait(&f, 0);
    ck_assert(answered.done);
    ck_assert_uint_eq(answered.status, CM_STATUS_OK);
}
END_TEST

START_TEST(a_peer_or_a_worker_that_goes_is_not_waited_for)
{
    struct answered answered = {0};
    uint8_t id[16] = {9};
    struct cm_call call = {
        .kind = CM_CALL_CREATE_KEY, .operation_id = {id, 16}, .name = "k", .key_bits = 128};
    struct cm_peer_state *leaving = fixture_peer(&f, &fixture_root);
    cm_service_call(f.workers[0], leaving, &call, NULL, 0, fixture_on_answer, &answered);
    cm_service_peer_free(leaving);
    fixture_wait(&f, 1);
    while (fixture_named(&f, root, CM_CALL_LIST_KEYS, "", 0).key_count == 0)
        fixture_wait(&f, 0);
    fixture_pump(&f, 0);
    ck_assert(!answered.done); /* the change is made, the answer is nobody's */

    call.name = "l";
    id[0]++;
    cm_service_call(f.workers[0], root, &call, NULL, 0, fixture_on_answer, &answered);
    pthread_mutex_lock(&f.mutex);
    while (f.first[1] == NULL) /* its message is on the way when it ends */
        pthread_cond_wait(&f.wake, &f.mutex);
    pthread_mutex_unlock(&f.mutex);
    cm_service_peer_free(user);
    user = NULL;
    cm_service_worker_free(f.workers[1]);
    f.workers[1] = NULL;
    while (!answered.done)
        fixture_wait(&f, 0);
    ck_assert_uint_eq(answered.status, CM_STATUS_OK);
    fixture_pump(&f, 1); /* what was posted to it before it went may still come */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("change");
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, start, stop);
    tcase_set_timeout(all, 240);
    tcase_add_test(all, keys_outlive_the_daemon);
    tcase_add_test(all, names_and_bytes_are_taken_once);
    tcase_add_test(all, a_repeat_gives_the_first_result);
    tcase_add_test(all, a_destroyed_key_is_refused_on_open_handles);
    tcase_add_test(all, a_key_destroyed_while_a_job_runs);
    tcase_add_test(all, a_change_waits_for_every_worker);
    tcase_add_test(all, a_peer_or_a_worker_that_goes_is_not_waited_for);
    suite_add_tcase(suite, all);
    return fixture_main(suite);
}
