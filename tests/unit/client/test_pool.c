/* SPDX-License-Identifier: Apache-2.0 */
/* Connections lent to threads, made anew after a restart, and left to the parent after a fork. */
#include "fake.h"
#include "fixture.h"
#include <ciphermill/ciphermill.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct fake fake;
static cm_client *client;
static cm_key *key;
static cm_error error;

static void setup(void)
{
    fake_start(&fake, NULL);
}

static void teardown(void)
{
    cm_key_close(key);
    cm_close(client);
    fake_stop(&fake);
}

static void open_with(const cm_options *options)
{
    ck_assert_int_eq(cm_connect(&client, fake.uri, options, &error), 0);
    ck_assert_int_eq(cm_key_open(&key, client, "orders", &error), 0);
}

static int encrypt_with(cm_key *with, uint8_t *byte)
{
    cm_item item = {.in = byte, .in_length = 1, .out = byte, .out_capacity = 1};
    return cm_encrypt(with, CM_CTR, &item, 1, &error);
}

static void assert_works(void)
{
    uint8_t byte = 9;
    int rc = encrypt_with(key, &byte);
    ck_assert_msg(rc == 0, "%d %s", rc, error.text);
    ck_assert_uint_eq(byte, 9 ^ FAKE_MASK);
}

/* --- Restarts --- */

START_TEST(a_restarted_daemon_is_met_again)
{
    open_with(NULL);
    assert_works();
    for (int i = 0; i < 3; i++) {
        int opened = fake.opened;
        fake_restart(&fake, NULL);
        assert_works();
        ck_assert_int_eq(fake.opened, opened + 1);
        assert_works();
        ck_assert_int_eq(fake.opened, opened + 1);
    }
    fake_pause(&fake);
    uint8_t byte = 0;
    ck_assert_int_eq(encrypt_with(key, &byte), CM_ERR_NOT_FOUND);
    ck_assert_int_eq(error.retry, CM_RETRY_NOT_EXECUTED);
    ck_assert_uint_eq(byte, 0);
    fake_restart(&fake, NULL);
    assert_works();
}
END_TEST

START_TEST(an_ephemeral_key_ends_with_its_session)
{
    const uint8_t bytes[32] = "0123456789abcdef0123456789abcde";
    cm_key *ephemeral;
    open_with(NULL);
    ck_assert_int_eq(cm_key_ephemeral(&ephemeral, client, 256, bytes, NULL, &error), 0);
    ck_assert_mem_eq(fake.last_key_bytes, bytes, 32);
    uint8_t byte = 0;
    ck_assert_int_eq(encrypt_with(ephemeral, &byte), 0);
    fake_restart(&fake, NULL);
    byte = 5;
    ck_assert_int_eq(encrypt_with(ephemeral, &byte), CM_ERR_NO_SUCH_KEY);
    ck_assert_ptr_nonnull(strstr(error.text, "ended with its session"));
    ck_assert_int_eq(error.retry, CM_RETRY_FINAL);
    ck_assert_uint_eq(byte, 5);
    assert_works();
    cm_key_close(ephemeral);
}
END_TEST

START_TEST(no_reconnect_stays_broken)
{
    cm_options options = CM_OPTIONS_INIT;
    options.no_reconnect = 1;
    open_with(&options);
    assert_works();
    fake_restart(&fake, NULL);
    uint8_t byte = 0;
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(encrypt_with(key, &byte), CM_ERR_DISCONNECTED);
        ck_assert_int_eq(error.retry, CM_RETRY_NOT_EXECUTED);
    }
    ck_assert_int_eq(fake.accepted, 1);
}
END_TEST

static void serve_goodbye_when_idle(struct fake_peer *peer)
{
    fake_greet(peer);
    for (int type; (type = fake_next_request(peer)) != 0;) {
        fake_answer(peer, type);
        if (type == CM_FRAME_BATCH) {
            fake_goodbye(peer, peer->batch.request_id);
            peer->fake->knob++;
        }
    }
}

START_TEST(a_goodbye_to_an_idle_connection_costs_nothing)
{
    fake_restart(&fake, serve_goodbye_when_idle);
    open_with(NULL);
    for (int i = 0; i < 5; i++) {
        assert_works();
        while (fake.knob <= i)
            usleep(100);
    }
    ck_assert_int_eq(fake.accepted, 5);
}
END_TEST

/* The first connection ends when a batch's first bytes arrive, which are too few to execute. */
static void serve_ending_at_a_batch(struct fake_peer *peer)
{
    uint8_t prefix[CM_FRAME_PREFIX_BYTES];
    fake_greet(peer);
    while (recv(peer->fd, prefix, sizeof prefix, MSG_PEEK | MSG_WAITALL) == sizeof prefix) {
        if (peer->index == 0 && prefix[5] == CM_FRAME_BATCH)
            return;
        int type = fake_next_request(peer);
        if (type == 0)
            return;
        fake_answer(peer, type);
    }
}

static int encrypt_large(bool in_parts)
{
    enum { LENGTH = 6 << 20 };
    uint8_t *bytes = calloc(1, LENGTH);
    cm_item item = {.in = bytes, .in_length = LENGTH, .out = bytes, .out_capacity = LENGTH};
    cm_operation *operation = NULL;
    int rc = in_parts ? cm_operation_open(&operation, key, CM_CTR, CM_ENCRYPT, 0, &error) : 0;
    if (rc == 0)
        rc = in_parts ? cm_operation_part(operation, &item, 0, &error)
                      : cm_encrypt(key, CM_CTR, &item, 1, &error);
    ck_assert(rc != 0 || bytes[LENGTH - 1] == FAKE_MASK);
    cm_operation_close(operation);
    free(bytes);
    return rc;
}

START_TEST(what_was_not_executed_on_an_old_connection_is_repeated)
{
    for (int in_parts = 0; in_parts < 2; in_parts++) {
        fake_stop(&fake);
        fake_start(&fake, serve_ending_at_a_batch);
        open_with(NULL);
        ck_assert_int_eq(encrypt_large(in_parts), 0);
        ck_assert_int_eq(fake.accepted, 2);
        if (in_parts == 0) {
            cm_key_close(key);
            cm_close(client);
        }
    }
}
END_TEST

static void serve_no_second_open(struct fake_peer *peer)
{
    fake_greet(peer);
    for (int type; (type = fake_next_request(peer)) != 0;) {
        if (type == CM_FRAME_CALL && peer->fake->knob != 0)
            return;
        fake_answer(peer, type);
    }
}

/* The key's opening is in doubt then, the batch is not. */
START_TEST(a_key_that_can_not_be_opened_again)
{
    fake_restart(&fake, serve_no_second_open);
    open_with(NULL);
    fake.knob = 1;
    fake_restart(&fake, serve_no_second_open);
    uint8_t byte = 3;
    ck_assert_int_eq(encrypt_with(key, &byte), CM_ERR_DISCONNECTED);
    ck_assert_int_eq(error.retry, CM_RETRY_NOT_EXECUTED);
    ck_assert_uint_eq(byte, 3);
    fake.knob = 0;
    assert_works();
}
END_TEST

/* --- Keys --- */

START_TEST(keys_open_and_close)
{
    open_with(NULL);
    cm_key *other = NULL;
    ck_assert_int_eq(cm_key_open(&other, client, "missing", &error), CM_ERR_NO_SUCH_KEY);
    ck_assert_ptr_null(other);
    ck_assert_str_eq(error.text, "no key of the name missing");
    ck_assert_int_eq(cm_key_open(&other, client, "", &error), CM_ERR_BAD_NAME);
    char name[130];
    memset(name, 'a', 129);
    name[129] = 0;
    ck_assert_int_eq(cm_key_open(&other, client, name, &error), CM_ERR_BAD_NAME);
    ck_assert_int_eq(cm_key_ephemeral(&other, client, 64, NULL, NULL, &error), CM_ERR_ARGUMENT);
    for (int i = 0; i < 20; i++) {
        ck_assert_int_eq(cm_key_open(&other, client, "a", &error), 0);
        cm_key_close(other);
    }
    assert_works();
    ck_assert_int_eq(fake.closed, 20);
    cm_key_options options = CM_KEY_OPTIONS_INIT;
    uint32_t bits = 0;
    ck_assert_int_eq(cm_key_get_options(key, &bits, &options, &error), 0);
    ck_assert_uint_eq(bits, 256);
    ck_assert_uint_eq(options.modes, CM_MODE_BIT(CM_GCM));
    ck_assert_uint_eq(options.caller_iv, 1);
    ck_assert_uint_eq(options.tag_length, 12);
}
END_TEST

/* A key that is closed while no connection is idle is closed in the daemon when the next one opens. */
START_TEST(a_key_closed_without_a_connection)
{
    cm_key *other, *third;
    uint8_t byte = 0;
    cm_item item = {.in = &byte, .in_length = 1, .out = &byte, .out_capacity = 1};
    cm_completion completion;
    open_with(NULL);
    ck_assert_int_eq(cm_key_open(&other, client, "other", &error), 0);
    /* The asynchronous calls take the only connection for their own. */
    ck_assert_int_eq(cm_submit(key, CM_CTR, CM_ENCRYPT, 0, &item, 1, NULL, &error), 0);
    ck_assert_int_eq(cm_poll(client, &completion, 1, 5000, &error), 1);
    cm_key_close(other);
    ck_assert_int_eq(fake.closed, 0);
    ck_assert_int_eq(cm_key_open(&third, client, "third", &error), 0);
    ck_assert_int_eq(fake.closed, 1);
    ck_assert_int_eq(fake.accepted, 2);
    ck_assert_int_eq(fake.sessions, 1);
    cm_key_close(third);
}
END_TEST

/* --- Threads --- */

static void *encrypt_much(void *argument)
{
    uint8_t bytes[3000];
    unsigned seed = *(unsigned *)argument;
    for (unsigned round = 0; round < 60; round++) {
        cm_item items[3];
        cm_error mine;
        for (unsigned i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)(seed * 13 + round + i);
        for (unsigned i = 0; i < 3; i++)
            items[i] = (cm_item){
                .in = bytes + i * 1000, .in_length = 1000, .out = bytes + i * 1000, .out_capacity = 1000};
        if (cm_encrypt(key, CM_GCM, items, 3, &mine) != 0)
            return argument;
        for (unsigned i = 0; i < sizeof bytes; i++)
            if (bytes[i] != ((uint8_t)(seed * 13 + round + i) ^ FAKE_MASK))
                return argument;
        cm_key *other;
        if (cm_key_open(&other, client, "another", &mine) != 0 || cm_key_version(key) != FAKE_KEY_VERSION)
            return argument;
        cm_key_close(other);
    }
    return NULL;
}

static void run_threads(uint32_t connections)
{
    cm_options options = CM_OPTIONS_INIT;
    options.connections = connections;
    open_with(&options);
    pthread_t threads[8];
    unsigned seeds[8];
    for (unsigned i = 0; i < 8; i++) {
        seeds[i] = i;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, encrypt_much, &seeds[i]), 0);
    }
    for (unsigned i = 0; i < 8; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        ck_assert_ptr_null(failed);
    }
    ck_assert_int_le(fake.accepted, (int)connections);
    ck_assert_int_eq(fake.sessions, 1);
}

START_TEST(threads_share_one_connection)
{
    run_threads(1);
    ck_assert_int_eq(fake.accepted, 1);
}
END_TEST

START_TEST(threads_share_a_pool)
{
    run_threads(4);
    ck_assert_int_ge(fake.joined, 1);
    ck_assert_int_eq(fake.joined, fake.accepted - 1);
}
END_TEST

static void serve_until_told(struct fake_peer *peer)
{
    fake_greet(peer);
    for (int type; (type = fake_next_request(peer)) != 0;) {
        while (type == CM_FRAME_BATCH && peer->fake->knob == 0)
            usleep(200);
        fake_answer(peer, type);
    }
}

static void *encrypt_once(void *argument)
{
    uint8_t byte = 0;
    cm_item item = {.in = &byte, .in_length = 1, .out = &byte, .out_capacity = 1};
    return cm_encrypt(key, CM_CTR, &item, 1, argument) == 0 ? argument : NULL;
}

/* Who finds no free connection in time has sent nothing. */
START_TEST(waiting_for_a_connection_ends)
{
    cm_options options = CM_OPTIONS_INIT;
    options.request_timeout_ms = 300;
    fake_restart(&fake, serve_until_told);
    open_with(&options);
    pthread_t threads[3];
    cm_error errors[3] = {{0}};
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, encrypt_once, &errors[i]);
    int unknown = 0, not_executed = 0;
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_int_eq(errors[i].code, CM_ERR_TIMEOUT);
        unknown += errors[i].retry == CM_RETRY_UNKNOWN;
        not_executed += errors[i].retry == CM_RETRY_NOT_EXECUTED;
    }
    fake.knob = 1;
    ck_assert_int_ge(unknown, 1);
    ck_assert_int_eq(unknown + not_executed, 3);
}
END_TEST

/* --- Fork --- */

static int child_tries(void)
{
    uint8_t byte = 0;
    cm_item item = {.in = &byte, .in_length = 1, .out = &byte, .out_capacity = 1};
    cm_key *other = NULL;
    cm_operation *operation = NULL;
    cm_completion completion;
    cm_limits_info limits = {.size = sizeof limits};
    int wrong = 0;
    wrong += cm_encrypt(key, CM_CTR, &item, 1, &error) != CM_ERR_FORKED;
    wrong += cm_decrypt(key, CM_CTR, &item, 1, NULL) != CM_ERR_FORKED;
    wrong += cm_key_open(&other, client, "a", NULL) != CM_ERR_FORKED;
    wrong += cm_key_ephemeral(&other, client, 128, NULL, NULL, NULL) != CM_ERR_FORKED;
    wrong += cm_submit(key, CM_CTR, CM_ENCRYPT, 0, &item, 1, NULL, NULL) != CM_ERR_FORKED;
    wrong += cm_poll(client, &completion, 1, 0, NULL) != CM_ERR_FORKED;
    wrong += cm_fd(client) != CM_ERR_FORKED;
    wrong += cm_operation_open(&operation, key, CM_CTR, CM_ENCRYPT, 0, NULL) != CM_ERR_FORKED;
    wrong += cm_get_limits(client, &limits, NULL) != CM_ERR_FORKED;
    wrong += strstr(error.text, "connect anew") == NULL;
    cm_key_close(key);
    cm_close(client);
    if (cm_connect(&client, fake.uri, NULL, NULL) != 0 || cm_key_open(&key, client, "orders", NULL) != 0)
        return 100;
    wrong += encrypt_with(key, &byte) != 0;
    cm_key_close(key);
    cm_close(client);
    return wrong;
}

static void fork_and_check(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(child_tries());
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
}

/* The parent may not reconnect, so that the slightest harm to its connections shows. */
START_TEST(a_child_connects_anew_and_the_parent_goes_on)
{
    cm_options options = CM_OPTIONS_INIT;
    options.no_reconnect = 1;
    options.connections = 2;
    open_with(&options);
    assert_works();
    int fd = cm_fd(client);
    ck_assert_int_ge(fd, 0);
    uint8_t byte = 1;
    cm_item item = {.in = &byte, .in_length = 1, .out = &byte, .out_capacity = 1};
    ck_assert_int_eq(cm_submit(key, CM_CTR, CM_ENCRYPT, 0, &item, 1, NULL, &error), 0);
    fork_and_check();
    cm_completion completion;
    ck_assert_int_eq(cm_poll(client, &completion, 1, 5000, &error), 1);
    ck_assert_int_eq(completion.result, 0);
    while (fake.closed == 0) /* the child's own key, and only that */
        usleep(100);
    ck_assert_int_eq(fake.closed, 1);
    assert_works();
    ck_assert_int_eq(cm_submit(key, CM_CTR, CM_ENCRYPT, 0, &item, 1, NULL, &error), 0);
    ck_assert_int_eq(cm_poll(client, &completion, 1, 5000, &error), 1);
    ck_assert_int_eq(completion.result, 0);
}
END_TEST

/* The daemon hears of the end although a child still holds the socket. */
START_TEST(closing_beside_a_child)
{
    int ready[2];
    open_with(NULL);
    ck_assert_int_eq(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        close(ready[1]);
        (void)!read(ready[0], &byte, 1);
        _exit(0);
    }
    cm_key_close(key);
    cm_close(client);
    key = NULL;
    client = NULL;
    while (fake.ended == 0)
        usleep(200);
    close(ready[1]);
    close(ready[0]);
    waitpid(child, NULL, 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_restarted_daemon_is_met_again,
        an_ephemeral_key_ends_with_its_session,
        no_reconnect_stays_broken,
        a_goodbye_to_an_idle_connection_costs_nothing,
        what_was_not_executed_on_an_old_connection_is_repeated,
        a_key_that_can_not_be_opened_again,
        keys_open_and_close,
        a_key_closed_without_a_connection,
        closing_beside_a_child,
        threads_share_one_connection,
        threads_share_a_pool,
        waiting_for_a_connection_ends,
        a_child_connects_anew_and_the_parent_goes_on,
    };
    return RUN_WITH_FIXTURE("client/pool", setup, teardown, tests);
}
