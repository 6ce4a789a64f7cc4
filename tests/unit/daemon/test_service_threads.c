/* SPDX-License-Identifier: Apache-2.0 */
/* Two workers at once, each on its thread, and the store's: keys come and go by name on one while the other
 * uses them, and a session is shared. Its worth is what the thread sanitizer sees; it also checks that no
 * batch is done under a key whose destruction was answered. */
#include "service_fixture.h"
#include "status.h"
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 25 };

/* Check's own assertions leave by longjmp, which no second thread may do. */
#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                  \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

static struct fixture f;
static atomic_bool created[ROUNDS], destroyed[ROUNDS], finished;
static atomic_uint used_by_name, shared_handle;
static struct cm_peer_state *maker, *user;

static struct answered call_on(uint32_t worker, struct cm_peer_state *peer, enum cm_call_kind kind,
                               const char *name, uint32_t number, uint8_t operation)
{
    struct answered answered = {0};
    uint8_t id[16];
    memset(id, operation, sizeof id);
    const struct cm_call call = {.kind = kind,
                                 .name = name,
                                 .number = number,
                                 .operation_id = {id, operation != 0 ? 16 : 0},
                                 .key_bits = 128};
    cm_service_call(f.workers[worker], peer, &call, NULL, 0, fixture_on_answer, &answered);
    while (!answered.done)
        fixture_wait(&f, worker);
    return answered;
}

static uint32_t encrypt(struct cm_peer_state *peer, uint32_t handle)
{
    struct run run;
    run_init(&run, handle, CM_WIRE_GCM, CM_WIRE_ENCRYPT, 8, 64, 1);
    uint32_t status = run_all(&run, &f, peer, 1)->status;
    run_done(&run);
    return status;
}

/* Worker 0: makes a key, uses it, destroys it; and a handle of the shared session likewise. */
static void *make_and_destroy(void *unused)
{
    char name[16];
    for (int i = 0; i < ROUNDS; i++) {
        snprintf(name, sizeof name, "k%d", i);
        CHECK(call_on(0, maker, CM_CALL_CREATE_KEY, name, 0, (uint8_t)(2 * i + 1)).status == CM_STATUS_OK);
        atomic_store(&created[i], true);
        uint32_t handle = call_on(0, maker, CM_CALL_OPEN_KEY, name, 0, 0).handle;
        uint32_t ephemeral = call_on(0, maker, CM_CALL_EPHEMERAL_KEY, "", 0, 0).handle;
        CHECK(handle != 0 && ephemeral != 0);
        atomic_store(&shared_handle, ephemeral);
        unsigned before = atomic_load(&used_by_name);
        do {
            CHECK(encrypt(maker, handle) == CM_STATUS_OK);
            CHECK(encrypt(maker, ephemeral) == CM_STATUS_OK);
            fixture_pump(&f, 0);
        } while (atomic_load(&used_by_name) == before); /* the other one uses it as well */
        CHECK(call_on(0, maker, CM_CALL_DESTROY_KEY, name, 0, (uint8_t)(2 * i + 2)).status == CM_STATUS_OK);
        atomic_store(&destroyed[i], true);
        CHECK(encrypt(maker, handle) == CM_STATUS_KEY_UNUSABLE);
        CHECK(call_on(0, maker, CM_CALL_CLOSE_KEY, "", ephemeral, 0).status == CM_STATUS_OK);
        CHECK(call_on(0, maker, CM_CALL_CLOSE_KEY, "", handle, 0).status == CM_STATUS_OK);
    }
    atomic_store(&finished, true);
    return unused;
}

static void use_by_name(int i)
{
    char name[16];
    snprintf(name, sizeof name, "k%d", i);
    bool was_created = atomic_load(&created[i]);
    struct answered answered = call_on(1, user, CM_CALL_OPEN_KEY, name, 0, 0);
    CHECK(answered.status == CM_STATUS_OK || answered.status == CM_STATUS_KEY_UNUSABLE ||
          (!was_created && answered.status == CM_STATUS_NO_SUCH_KEY));
    if (answered.status != CM_STATUS_OK)
        return;
    uint32_t status;
    do {
        bool was_destroyed = atomic_load(&destroyed[i]);
        fixture_pump(&f, 1);
        status = encrypt(user, answered.handle);
        CHECK(status == CM_STATUS_KEY_UNUSABLE || (status == CM_STATUS_OK && !was_destroyed));
        atomic_fetch_add(&used_by_name, 1);
        uint32_t shared = encrypt(user, atomic_load(&shared_handle));
        CHECK(shared == CM_STATUS_OK || shared == CM_STATUS_NO_SUCH_KEY);
        cm_service_peer_tick(user, 1);
    } while (status == CM_STATUS_OK);
    CHECK(call_on(1, user, CM_CALL_CLOSE_KEY, "", answered.handle, 0).status == CM_STATUS_OK);
}

/* Worker 1. */
static void *use(void *unused)
{
    while (!atomic_load(&finished)) {
        for (int i = 0; i < ROUNDS; i++)
            use_by_name(i);
        fixture_pump(&f, 1);
    }
    return unused;
}

START_TEST(keys_come_and_go_under_load)
{
    pthread_t threads[2];
    fixture_init(&f);
    f.options.limits.session_keys = 16;
    ck_assert_msg(fixture_start(&f) == 0, "%s", f.text);
    maker = fixture_peer(&f, &fixture_root);
    user = fixture_greet(&f, 1, &fixture_root, (struct cm_bytes){maker->token, 16});
    ck_assert_int_eq(pthread_create(&threads[0], NULL, make_and_destroy, NULL), 0);
    ck_assert_int_eq(pthread_create(&threads[1], NULL, use, NULL), 0);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    ck_assert_uint_ge(atomic_load(&used_by_name), ROUNDS);
    cm_service_peer_free(user);
    cm_service_peer_free(maker);
    ck_assert_uint_eq(atomic_load(&f.service->forms.used), 0);
    fixture_stop(&f);
    fixture_done(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("service_threads");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 240);
    tcase_add_test(all, keys_come_and_go_under_load);
    suite_add_tcase(suite, all);
    return fixture_main(suite);
}
