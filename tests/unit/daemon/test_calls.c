/* SPDX-License-Identifier: Apache-2.0 */
/* Calls: who may, what is refused and why, what the answers hold. */
#include "service_fixture.h"
#include "status.h"
#include <stdio.h>
#include <string.h>

static struct fixture f;
static struct cm_peer_state *root, *user, *anonymous;
static uint8_t key[32];

static void start(void)
{
    fixture_init(&f);
    ck_assert_msg(fixture_start(&f) == 0, "%s", f.text);
    root = fixture_peer(&f, &fixture_root);
    user = fixture_peer(&f, &fixture_user);
    anonymous = fixture_peer(&f, &fixture_anonymous);
    fill(key, sizeof key, 21);
}

static void stop(void)
{
    cm_service_peer_free(root);
    cm_service_peer_free(user);
    cm_service_peer_free(anonymous);
    fixture_stop(&f);
    fixture_done(&f);
}

START_TEST(administration_needs_the_right)
{
    static const enum cm_call_kind kinds[] = {CM_CALL_CREATE_KEY, CM_CALL_LIST_KEYS, CM_CALL_DESCRIBE_KEY,
                                              CM_CALL_DESTROY_KEY};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct answered answered = fixture_named(&f, user, kinds[i], "k", 1);
        ck_assert_uint_eq(answered.status, CM_STATUS_ACCESS_DENIED);
        ck_assert_ptr_nonnull(strstr(answered.text, "uid:1000"));
        ck_assert_ptr_nonnull(strstr(answered.text, "root"));
        answered = fixture_named(&f, anonymous, kinds[i], "k", 1);
        ck_assert_uint_eq(answered.status, CM_STATUS_ACCESS_DENIED);
        ck_assert_ptr_nonnull(strstr(answered.text, "tcp:anonymous"));
    }
    ck_assert_uint_eq(fixture_named(&f, root, CM_CALL_LIST_KEYS, "", 0).key_count, 0);
}
END_TEST

START_TEST(key_bytes_stay_off_plain_tcp)
{
    struct cm_call call = {.kind = CM_CALL_EPHEMERAL_KEY, .key_bits = 256};
    struct answered answered = fixture_call(&f, anonymous, &call, key, 32);
    ck_assert_uint_eq(answered.status, CM_STATUS_ACCESS_DENIED);
    ck_assert_ptr_nonnull(strstr(answered.text, "tcp:anonymous"));
    answered = fixture_call(&f, anonymous, &call, NULL, 0);
    ck_assert_uint_eq(answered.status, CM_STATUS_OK);
    ck_assert_uint_ne(answered.handle, 0);
    ck_assert_uint_eq(answered.keys[0].id_length, 0);
    ck_assert_str_eq(answered.keys[0].name, "");
    ck_assert_uint_eq(fixture_call(&f, user, &call, key, 32).status, CM_STATUS_OK);
}
END_TEST

START_TEST(ephemeral_keys_have_the_same_rules)
{
    struct cm_call call = {.kind = CM_CALL_EPHEMERAL_KEY,
                           .key_bits = 128,
                           .attributes = {.modes = GCM_MODE | MODE_BIT(CM_WIRE_CTR)}};
    ck_assert_uint_eq(fixture_call(&f, user, &call, NULL, 0).status, CM_STATUS_BAD_ATTRIBUTES);
    call.attributes.modes = MODE_BIT(CM_WIRE_CTR);
    call.attributes.encrypt = true;
    ck_assert_uint_eq(fixture_call(&f, user, &call, NULL, 0).status, CM_STATUS_BAD_ATTRIBUTES);
    call.attributes = (struct cm_key_attributes){0};
    for (size_t length = 15; length <= 17; length++)
        ck_assert_uint_eq(fixture_call(&f, user, &call, key, length).status,
                          length == 16 ? CM_STATUS_OK : CM_STATUS_BAD_REQUEST);
    call.key_bits = 100;
    ck_assert_uint_eq(fixture_call(&f, user, &call, NULL, 0).status, CM_STATUS_BAD_ATTRIBUTES);
}
END_TEST

START_TEST(an_xts_key_is_two_that_differ)
{
    uint8_t bytes[64], id[16];
    struct cm_call call = {.kind = CM_CALL_EPHEMERAL_KEY, .attributes = {.modes = XTS_MODE}};
    for (call.key_bits = 128; call.key_bits <= 256; call.key_bits += 128) {
        size_t half = call.key_bits / 8;
        fill(bytes, sizeof bytes, (uint8_t)half);
        for (size_t length = half; length <= 2 * half; length += half / 2)
            ck_assert_uint_eq(fixture_call(&f, user, &call, bytes, length).status,
                              length == 2 * half ? CM_STATUS_OK : CM_STATUS_BAD_REQUEST);
        memcpy(bytes + half, bytes, half);
        struct answered answered = fixture_call(&f, user, &call, bytes, 2 * half);
        ck_assert_uint_eq(answered.status, CM_STATUS_BAD_REQUEST);
        ck_assert_ptr_nonnull(strstr(answered.text, "halves"));
        struct cm_call import = call;
        import.kind = CM_CALL_CREATE_KEY;
        import.operation_id = (struct cm_bytes){id, sizeof id};
        import.name = "halves";
        import.import = true;
        memset(id, (int)half, sizeof id);
        answered = fixture_call(&f, root, &import, bytes, 2 * half);
        ck_assert_uint_eq(answered.status, CM_STATUS_BAD_REQUEST);
        ck_assert_ptr_nonnull(strstr(answered.text, "halves"));
        ck_assert_uint_eq(fixture_call(&f, user, &call, NULL, 0).status, CM_STATUS_OK);
    }
    ck_assert_uint_eq(fixture_named(&f, root, CM_CALL_LIST_KEYS, "", 0).key_count, 0);
}
END_TEST

START_TEST(create_describe_list_open)
{
    struct answered answered = fixture_import(&f, root, "orders", 0, NULL, 256, 1);
    ck_assert_msg(answered.status == CM_STATUS_OK, "%s", answered.text);
    ck_assert_int_eq(answered.kind, CM_ANSWER_KEY);
    ck_assert_str_eq(answered.keys[0].name, "orders");
    ck_assert_uint_eq(answered.keys[0].id_length, CM_KEY_ID_BYTES);
    ck_assert_uint_eq(answered.keys[0].attributes.modes, GCM_MODE);
    ck_assert_uint_eq(answered.keys[0].attributes.tag_length, 16);
    ck_assert_uint_eq(answered.keys[0].version_count, 1);
    ck_assert_uint_eq(answered.keys[0].version, 1);
    ck_assert_uint_eq(answered.keys[0].state, CM_WIRE_KEY_ENABLED);
    ck_assert_uint_eq(fixture_import(&f, root, "bills", BLOCK_MODES, key, 192, 2).status, CM_STATUS_OK);

    answered = fixture_named(&f, root, CM_CALL_DESCRIBE_KEY, "bills", 0);
    ck_assert_int_eq(answered.kind, CM_ANSWER_KEY);
    ck_assert_uint_eq(answered.keys[0].key_bits, 192);
    ck_assert_uint_eq(answered.keys[0].attributes.modes, BLOCK_MODES);
    answered = fixture_named(&f, root, CM_CALL_LIST_KEYS, "", 0);
    ck_assert_uint_eq(answered.key_count, 2);
    ck_assert_str_eq(answered.keys[0].name, "bills");
    ck_assert_str_eq(answered.keys[1].name, "orders");

    /* Using needs no administrator, and the right key is used. */
    answered = fixture_named(&f, user, CM_CALL_OPEN_KEY, "bills", 0);
    ck_assert_int_eq(answered.kind, CM_ANSWER_KEY_HANDLE);
    struct run run;
    uint8_t expected[64], plain[64];
    run_init(&run, answered.handle, CM_WIRE_ECB, CM_WIRE_ENCRYPT, 1, 64, 1);
    memcpy(plain, run.body, 64);
    ck_assert_uint_eq(run_all(&run, &f, user, 0)->status, CM_STATUS_OK);
    reference_encrypt(CM_WIRE_ECB, key, 192, false, NULL, 0, NULL, 0, plain, 64, expected, NULL, 0);
    ck_assert_mem_eq(run.body, expected, 64);
    run_done(&run);
}
END_TEST

START_TEST(names)
{
    static const enum cm_call_kind kinds[] = {CM_CALL_OPEN_KEY, CM_CALL_CREATE_KEY, CM_CALL_DESCRIBE_KEY,
                                              CM_CALL_DESTROY_KEY};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        ck_assert_uint_eq(fixture_named(&f, root, kinds[i], ".x", 1).status, CM_STATUS_BAD_NAME);
        if (kinds[i] != CM_CALL_CREATE_KEY)
            ck_assert_uint_eq(fixture_named(&f, root, kinds[i], "nobody", 1).status, CM_STATUS_NO_SUCH_KEY);
    }
}
END_TEST

START_TEST(changes_need_an_operation_id_and_imports_their_bytes)
{
    ck_assert_uint_eq(fixture_import(&f, root, "k", 0, NULL, 256, 0).status, CM_STATUS_BAD_REQUEST);
    ck_assert_uint_eq(fixture_named(&f, root, CM_CALL_DESTROY_KEY, "k", 0).status, CM_STATUS_BAD_REQUEST);
    uint8_t id[16] = {1};
    struct cm_call call = {
        .kind = CM_CALL_CREATE_KEY, .operation_id = {id, 16}, .name = "k", .key_bits = 128, .import = true};
    ck_assert_uint_eq(fixture_call(&f, root, &call, NULL, 0).status, CM_STATUS_BAD_REQUEST);
    call.import = false;
    ck_assert_uint_eq(fixture_call(&f, root, &call, key, 16).status, CM_STATUS_BAD_REQUEST);
    call.import = true;
    ck_assert_uint_eq(fixture_call(&f, root, &call, key, 15).status, CM_STATUS_BAD_REQUEST);
    call.attributes.modes = GCM_MODE | BLOCK_MODES;
    ck_assert_uint_eq(fixture_call(&f, root, &call, key, 16).status, CM_STATUS_BAD_ATTRIBUTES);
    call.unsafe_mixed_modes = true;
    ck_assert_uint_eq(fixture_call(&f, root, &call, key, 16).status, CM_STATUS_OK);
}
END_TEST

START_TEST(lists_come_in_pages)
{
    char name[8];
    for (uint8_t i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "k%u", i);
        ck_assert_uint_eq(fixture_import(&f, root, name, 0, NULL, 128, (uint8_t)(i + 1)).status,
                          CM_STATUS_OK);
    }
    struct cm_call call = {.kind = CM_CALL_LIST_KEYS, .name = "", .number = 2};
    struct answered page = fixture_call(&f, root, &call, NULL, 0);
    ck_assert_uint_eq(page.key_count, 2);
    ck_assert(page.more);
    ck_assert_str_eq(page.keys[1].name, "k1");
    call.name = "k1";
    call.number = 3;
    page = fixture_call(&f, root, &call, NULL, 0);
    ck_assert_uint_eq(page.key_count, 3);
    ck_assert(!page.more);
    ck_assert_str_eq(page.keys[0].name, "k2");
    call.name = "k11"; /* need not exist */
    ck_assert_uint_eq(fixture_call(&f, root, &call, NULL, 0).key_count, 3);
    call.name = "k4";
    page = fixture_call(&f, root, &call, NULL, 0);
    ck_assert_uint_eq(page.key_count, 0);
    ck_assert(!page.more);

    /* As many as surely fit a header, and one at least. */
    call.name = "";
    call.number = 0;
    f.service->options.limits.header_bytes = 400;
    page = fixture_call(&f, root, &call, NULL, 0);
    ck_assert_uint_eq(page.key_count, 2);
    ck_assert(page.more);
    f.service->options.limits.header_bytes = 1;
    ck_assert_uint_eq(fixture_call(&f, root, &call, NULL, 0).key_count, 1);
    f.service->options.limits.header_bytes = 65536;
    ck_assert_uint_eq(fixture_call(&f, root, &call, NULL, 0).key_count, 5);
}
END_TEST

/* What a page may hold must fit a header when it is encoded. */
static void on_full_page(void *context, const struct cm_answer *answer)
{
    static uint8_t memory[CM_ARENA_BYTES], buffer[65536 + 128];
    struct cm_arena arena;
    size_t length;
    cm_arena_init(&arena, memory, sizeof memory);
    ck_assert_int_eq(cm_codec_put_answer(&arena, answer, buffer, sizeof buffer, &length), CM_CODEC_OK);
    *(uint32_t *)context += answer->key_count;
    ck_assert(answer->more);
    ck_assert_uint_gt(length, 32768);
}

START_TEST(a_full_page_fits_a_header)
{
    enum { KEYS = 1200 };
    struct cm_live_key *keys[KEYS];
    for (uint32_t i = 0; i < KEYS; i++) {
        keys[i] = cm_live_key_new(&f.service->forms, 1);
        memset(keys[i]->name, 'n', CM_KEY_NAME_MAX);
        memcpy(keys[i]->name, (char[]){(char)('a' + i / 60 % 26), (char)('A' + i % 60)}, 2);
        keys[i]->key_bits = 256;
        keys[i]->attributes = (struct cm_key_attributes){GCM_MODE | BLOCK_MODES, true, true, true, 16};
        keys[i]->versions[0].number = UINT32_MAX;
        keys[i]->versions[0].state = CM_WIRE_KEY_ENABLED;
        keys[i]->versions[0].created_unix_s = UINT64_MAX;
        memset(keys[i]->id, 0xff, sizeof keys[i]->id);
    }
    struct cm_snapshot *snapshot = cm_snapshot_new(keys, KEYS), *before = f.workers[0]->snapshot;
    f.workers[0]->snapshot = snapshot;
    const struct cm_call call = {.kind = CM_CALL_LIST_KEYS, .name = ""};
    uint32_t count = 0;
    cm_service_call(f.workers[0], root, &call, NULL, 0, on_full_page, &count);
    ck_assert_uint_gt(count, 100);
    f.workers[0]->snapshot = before;
    cm_snapshot_put(snapshot);
}
END_TEST

START_TEST(status_and_implementations)
{
    fixture_import(&f, root, "k", 0, NULL, 128, 1);
    const struct cm_call status_call = {.kind = CM_CALL_GET_STATUS};
    struct answered answered = fixture_call(&f, user, &status_call, NULL, 0);
    ck_assert_int_eq(answered.kind, CM_ANSWER_SERVER_STATUS);
    ck_assert_uint_eq(answered.server.connections, 7);
    ck_assert_uint_eq(answered.server.workers, FIXTURE_WORKERS);
    ck_assert_uint_eq(answered.server.keys, 1);
    ck_assert(!answered.server.may_administer);
    ck_assert_str_eq(answered.server.identity, "uid:1000");
    ck_assert(fixture_call(&f, root, &status_call, NULL, 0).server.may_administer);

    const struct cm_call implementations = {.kind = CM_CALL_GET_IMPLEMENTATIONS};
    answered = fixture_call(&f, user, &implementations, NULL, 0);
    ck_assert_int_eq(answered.kind, CM_ANSWER_IMPLEMENTATIONS);
    struct cm_aes_implementation row;
    uint32_t count = 0;
    for (int mode = 0; mode < CM_AES_MODE_COUNT; mode++)
        for (int direction = 0; direction < CM_AES_DIRECTION_COUNT; direction++)
            for (size_t i = 0;
                 cm_aes_implementation(i, (enum cm_aes_mode)mode, (enum cm_aes_direction)direction, &row);
                 i++)
                count++;
    ck_assert_uint_eq(answered.implementation_count, count);
    ck_assert_uint_ge(count, 10);
    /* Each size class of each mode and direction is served by one of them. */
    unsigned serving[3] = {0, 0, 0};
    for (uint32_t i = 0; i < answered.implementation_count; i++) {
        serving[0] += (answered.used_for[i] & CM_WIRE_USED_SHORT) != 0;
        serving[1] += (answered.used_for[i] & CM_WIRE_USED_LONG) != 0;
        serving[2] += (answered.used_for[i] & CM_WIRE_USED_SMALL) != 0;
        ck_assert(answered.used[i] == ((answered.used_for[i] & CM_WIRE_USED_LONG) != 0));
    }
    ck_assert_uint_eq(serving[0], 10);
    ck_assert_uint_eq(serving[1], 10);
    ck_assert_uint_eq(serving[2], 10);
}
END_TEST

START_TEST(unknown_calls_and_stray_bodies)
{
    struct cm_call call = {.kind = CM_CALL_NONE};
    ck_assert_uint_eq(fixture_call(&f, root, &call, NULL, 0).status, CM_STATUS_UNSUPPORTED);
    call.kind = (enum cm_call_kind)99;
    ck_assert_uint_eq(fixture_call(&f, root, &call, key, 16).status, CM_STATUS_UNSUPPORTED);
    call.kind = CM_CALL_GET_STATUS;
    ck_assert_uint_eq(fixture_call(&f, root, &call, key, 16).status, CM_STATUS_BAD_REQUEST);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("calls");
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, start, stop);
    tcase_set_timeout(all, 240);
    tcase_add_test(all, administration_needs_the_right);
    tcase_add_test(all, key_bytes_stay_off_plain_tcp);
    tcase_add_test(all, ephemeral_keys_have_the_same_rules);
    tcase_add_test(all, an_xts_key_is_two_that_differ);
    tcase_add_test(all, create_describe_list_open);
    tcase_add_test(all, names);
    tcase_add_test(all, changes_need_an_operation_id_and_imports_their_bytes);
    tcase_add_test(all, lists_come_in_pages);
    tcase_add_test(all, a_full_page_fits_a_header);
    tcase_add_test(all, status_and_implementations);
    tcase_add_test(all, unknown_calls_and_stray_bodies);
    suite_add_tcase(suite, all);
    return fixture_main(suite);
}
