/* SPDX-License-Identifier: Apache-2.0 */
/* Greeting, sessions, handles: who may join, what a handle leads to, and when keys end. */
#include "service_fixture.h"
#include "status.h"
#include <string.h>

static struct fixture f;

static void start(void)
{
    fixture_init(&f);
    ck_assert_msg(fixture_start(&f) == 0, "%s", f.text);
}

static void stop(void)
{
    fixture_stop(&f);
    fixture_done(&f);
}

static uint32_t greet_status(const struct cm_identity *identity, const struct cm_hello *hello,
                             struct cm_refusal *ret_refusal)
{
    struct cm_welcome welcome;
    struct cm_peer_state *peer = cm_service_hello(f.workers[0], identity, hello, &welcome, ret_refusal);
    cm_service_peer_free(peer);
    return peer != NULL ? (uint32_t)CM_STATUS_OK : ret_refusal->status;
}

START_TEST(welcome_says_what_is_agreed)
{
    const struct cm_hello hello = {.version_min = 1, .version_max = 9, .features = 5, .client = ""};
    struct cm_welcome welcome;
    struct cm_refusal refusal;
    struct cm_peer_state *peer = cm_service_hello(f.workers[0], &fixture_user, &hello, &welcome, &refusal);
    ck_assert_ptr_nonnull(peer);
    ck_assert_uint_eq(welcome.version, 1);
    ck_assert_uint_eq(welcome.features, 0);
    ck_assert_uint_eq(welcome.session_token.length, CM_TOKEN_BYTES);
    ck_assert_str_eq(welcome.identity, "uid:1000");
    ck_assert(!welcome.may_administer);
    ck_assert_ptr_nonnull(strstr(welcome.server, "ciphermilld "));
    ck_assert_uint_eq(welcome.limits.batch_items, f.options.limits.batch_items);
    cm_service_peer_free(peer);
}
END_TEST

START_TEST(versions)
{
    struct cm_refusal refusal;
    struct cm_hello hello = {.version_min = 2, .version_max = 3, .client = ""};
    ck_assert_uint_eq(greet_status(&fixture_user, &hello, &refusal), CM_STATUS_VERSION_MISMATCH);
    ck_assert_ptr_nonnull(strstr(refusal.text, "upgrade the daemon"));
    ck_assert_uint_eq(refusal.version_min, 1);
    ck_assert_uint_eq(refusal.version_max, 1);
    hello.version_min = hello.version_max = 0;
    ck_assert_uint_eq(greet_status(&fixture_user, &hello, &refusal), CM_STATUS_VERSION_MISMATCH);
    ck_assert_ptr_nonnull(strstr(refusal.text, "upgrade the client"));
    hello.version_min = 2;
    hello.version_max = 1;
    ck_assert_uint_eq(greet_status(&fixture_user, &hello, &refusal), CM_STATUS_BAD_REQUEST);
}
END_TEST

START_TEST(joining_takes_token_and_identity)
{
    struct cm_peer_state *first = fixture_peer(&f, &fixture_user);
    struct cm_peer_state *other = fixture_peer(&f, &fixture_user);
    ck_assert_mem_ne(first->token, other->token, CM_TOKEN_BYTES);
    cm_service_peer_free(other);

    uint8_t token[CM_TOKEN_BYTES];
    memcpy(token, first->token, sizeof token);
    struct cm_hello hello = {.version_min = 1, .version_max = 1, .session_token = {token, 16}, .client = ""};
    struct cm_refusal refusal;
    ck_assert_uint_eq(greet_status(&fixture_user, &hello, &refusal), CM_STATUS_OK);
    ck_assert_uint_eq(greet_status(&fixture_root, &hello, &refusal), CM_STATUS_NO_SUCH_SESSION);
    ck_assert_uint_eq(greet_status(&fixture_anonymous, &hello, &refusal), CM_STATUS_NO_SUCH_SESSION);
    token[15] ^= 1;
    ck_assert_uint_eq(greet_status(&fixture_user, &hello, &refusal), CM_STATUS_NO_SUCH_SESSION);
    token[15] ^= 1;
    hello.session_token.length = 15;
    ck_assert_uint_eq(greet_status(&fixture_user, &hello, &refusal), CM_STATUS_NO_SUCH_SESSION);
    hello.session_token.length = 16;
    cm_service_peer_free(first);
    ck_assert_uint_eq(greet_status(&fixture_user, &hello, &refusal), CM_STATUS_NO_SUCH_SESSION);
}
END_TEST

static uint32_t batch_status(struct cm_peer_state *peer, uint32_t handle)
{
    struct run run;
    run_init(&run, handle, CM_WIRE_GCM, CM_WIRE_ENCRYPT, 1, 16, 1);
    uint32_t status = run_all(&run, &f, peer, 0)->status;
    run_done(&run);
    return status;
}

START_TEST(handles_belong_to_the_session)
{
    struct cm_peer_state *one = fixture_peer(&f, &fixture_user);
    struct cm_peer_state *two = fixture_greet(&f, 1, &fixture_user, (struct cm_bytes){one->token, 16});
    struct cm_peer_state *stranger = fixture_peer(&f, &fixture_user);
    uint32_t handle = fixture_ephemeral(&f, one, GCM_MODE, false, 0, NULL, 256);
    ck_assert_uint_ne(handle, 0);
    ck_assert_uint_eq(batch_status(one, handle), CM_STATUS_OK);
    ck_assert_uint_eq(batch_status(two, handle), CM_STATUS_OK);
    ck_assert_uint_eq(batch_status(stranger, handle), CM_STATUS_NO_SUCH_KEY);
    ck_assert_uint_eq(batch_status(one, 0), CM_STATUS_NO_SUCH_KEY);

    /* The session lives as long as one of its connections. */
    cm_service_peer_free(one);
    ck_assert_uint_eq(batch_status(two, handle), CM_STATUS_OK);
    ck_assert_uint_eq(atomic_load(&f.service->forms.used), 1);
    cm_service_peer_free(two);
    ck_assert_uint_eq(atomic_load(&f.service->forms.used), 0);
    cm_service_peer_free(stranger);
}
END_TEST

START_TEST(closing_ends_a_handle_everywhere)
{
    struct cm_peer_state *one = fixture_peer(&f, &fixture_user);
    struct cm_peer_state *two = fixture_greet(&f, 1, &fixture_user, (struct cm_bytes){one->token, 16});
    uint32_t handle = fixture_ephemeral(&f, one, GCM_MODE, false, 0, NULL, 256);
    uint32_t kept = fixture_ephemeral(&f, one, GCM_MODE, false, 0, NULL, 256);
    ck_assert_uint_eq(batch_status(two, handle), CM_STATUS_OK); /* two remembers it */
    ck_assert_uint_eq(atomic_load(&f.service->forms.used), 1);

    const struct cm_call close_call = {.kind = CM_CALL_CLOSE_KEY, .number = handle};
    ck_assert_uint_eq(fixture_call(&f, one, &close_call, NULL, 0).status, CM_STATUS_OK);
    ck_assert_uint_eq(fixture_call(&f, one, &close_call, NULL, 0).status, CM_STATUS_NO_SUCH_KEY);
    cm_service_peer_tick(two, 1); /* an idle connection lets go too */
    ck_assert_uint_eq(atomic_load(&f.service->forms.used), 0);
    ck_assert_uint_eq(batch_status(two, handle), CM_STATUS_NO_SUCH_KEY);
    ck_assert_uint_eq(batch_status(one, handle), CM_STATUS_NO_SUCH_KEY);
    ck_assert_uint_eq(batch_status(two, kept), CM_STATUS_OK);
    cm_service_peer_free(one);
    cm_service_peer_free(two);
}
END_TEST

START_TEST(session_keys_limit)
{
    struct cm_peer_state *peer = fixture_peer(&f, &fixture_user);
    uint32_t handles[6];
    for (int i = 0; i < 6; i++)
        handles[i] = fixture_ephemeral(&f, peer, GCM_MODE, false, 0, NULL, 128);
    const struct cm_call call = {.kind = CM_CALL_EPHEMERAL_KEY, .key_bits = 128};
    ck_assert_uint_eq(fixture_call(&f, peer, &call, NULL, 0).status, CM_STATUS_SESSION_FULL);
    const struct cm_call close_call = {.kind = CM_CALL_CLOSE_KEY, .number = handles[2]};
    ck_assert_uint_eq(fixture_call(&f, peer, &close_call, NULL, 0).status, CM_STATUS_OK);
    uint32_t next = fixture_ephemeral(&f, peer, GCM_MODE, false, 0, NULL, 128);
    for (int i = 0; i < 6; i++) {
        ck_assert_uint_ne(handles[i], next); /* numbers do not come back */
        ck_assert_uint_eq(batch_status(peer, handles[i]), i == 2 ? CM_STATUS_NO_SUCH_KEY : CM_STATUS_OK);
    }
    cm_service_peer_free(peer);
}
END_TEST

START_TEST(more_handles_than_the_cache_holds)
{
    struct cm_peer_state *peer = fixture_peer(&f, &fixture_user);
    uint32_t handle = fixture_ephemeral(&f, peer, GCM_MODE, false, 0, NULL, 128);
    for (int i = 0; i < 2 * CM_HANDLE_CACHE_ENTRIES; i++) {
        uint32_t next = fixture_ephemeral(&f, peer, GCM_MODE, false, 0, NULL, 128);
        ck_assert_uint_eq(batch_status(peer, next), CM_STATUS_OK);
        ck_assert_uint_eq(batch_status(peer, handle), CM_STATUS_OK);
        const struct cm_call close_call = {.kind = CM_CALL_CLOSE_KEY, .number = next};
        ck_assert_uint_eq(fixture_call(&f, peer, &close_call, NULL, 0).status, CM_STATUS_OK);
    }
    cm_service_peer_free(peer);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("session");
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, start, stop);
    tcase_set_timeout(all, 120);
    tcase_add_test(all, welcome_says_what_is_agreed);
    tcase_add_test(all, versions);
    tcase_add_test(all, joining_takes_token_and_identity);
    tcase_add_test(all, handles_belong_to_the_session);
    tcase_add_test(all, closing_ends_a_handle_everywhere);
    tcase_add_test(all, session_keys_limit);
    tcase_add_test(all, more_handles_than_the_cache_holds);
    suite_add_tcase(suite, all);
    return fixture_main(suite);
}
