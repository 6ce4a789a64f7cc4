/* SPDX-License-Identifier: Apache-2.0 */
/* cm_submit, cm_poll and cm_fd: order, limits, the descriptor, broken connections, deadlines. */
#include "fake.h"
#include "fixture.h"
#include <ciphermill/ciphermill.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BATCHES = 16, BYTES = 100000 };

static struct fake fake;
static cm_client *client;
static cm_key *key;
static cm_error error;
static uint8_t bytes[BATCHES][BYTES];
static cm_item items[BATCHES];
static cm_completion completions[BATCHES];

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

static void open_with(void (*serve)(struct fake_peer *peer), uint32_t inflight, uint32_t request_timeout_ms)
{
    cm_options options = CM_OPTIONS_INIT;
    options.inflight = inflight;
    options.request_timeout_ms = request_timeout_ms;
    fake_restart(&fake, serve);
    ck_assert_int_eq(cm_connect(&client, fake.uri, &options, &error), 0);
    ck_assert_int_eq(cm_key_open(&key, client, "orders", &error), 0);
}

static int submit(int i)
{
    memset(bytes[i], i, BYTES);
    items[i] = (cm_item){.in = bytes[i], .in_length = BYTES, .out = bytes[i], .out_capacity = BYTES};
    return cm_submit(key, CM_CTR, CM_ENCRYPT, 0, &items[i], 1, bytes[i], &error);
}

static bool is_readable(int timeout_ms)
{
    struct pollfd wait = {.fd = cm_fd(client), .events = POLLIN};
    return poll(&wait, 1, timeout_ms) == 1;
}

/* Collects `count` completions by waiting on the descriptor alone. */
static void collect(int count, size_t at_once)
{
    for (int have = 0; have < count;) {
        ck_assert(is_readable(10000));
        int got = cm_poll(client, completions + have, at_once, 0, &error);
        ck_assert_int_ge(got, 0);
        ck_assert_int_le(got, (int)at_once);
        have += got;
    }
}

static void assert_done(int i)
{
    ck_assert_ptr_eq(completions[i].tag, bytes[i]);
    ck_assert_ptr_eq(completions[i].items, &items[i]);
    ck_assert_uint_eq(completions[i].count, 1);
    ck_assert_int_eq(completions[i].result, 0);
    ck_assert_uint_eq(items[i].out_length, BYTES);
    size_t wrong = 0;
    for (size_t k = 0; k < BYTES; k++)
        wrong += bytes[i][k] != (i ^ FAKE_MASK);
    ck_assert_uint_eq(wrong, 0);
}

START_TEST(batches_come_back_in_order)
{
    open_with(NULL, BATCHES, 0);
    int fd = cm_fd(client);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(cm_poll(client, completions, 1, -1, &error), 0);
    for (size_t at_once = 1; at_once <= 4; at_once++) {
        for (int i = 0; i < BATCHES; i++)
            ck_assert_int_eq(submit(i), 0);
        collect(BATCHES, at_once);
        for (int i = 0; i < BATCHES; i++)
            assert_done(i);
    }
    ck_assert(!is_readable(0));
    ck_assert_int_eq(cm_fd(client), fd);
    ck_assert_int_eq(fake.accepted, 1);
    ck_assert_uint_eq(cm_key_version(key), FAKE_KEY_VERSION);
}
END_TEST

START_TEST(busy_at_the_limit)
{
    open_with(NULL, 3, 0);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(submit(i), 0);
    ck_assert_int_eq(submit(3), CM_ERR_BUSY);
    ck_assert_int_eq(error.retry, CM_RETRY_NOT_EXECUTED);
    ck_assert_int_eq(cm_poll(client, completions, 1, 5000, &error), 1);
    ck_assert_int_eq(submit(3), 0);
    for (int have = 1; have < 4;)
        have += cm_poll(client, completions + have, 4, 5000, &error);
    for (int i = 0; i < 4; i++)
        assert_done(i);
}
END_TEST

START_TEST(a_batch_must_fit_one_frame)
{
    fake.limits.frame_bytes = 8192;
    fake.limits.batch_items = 10;
    open_with(NULL, 0, 0);
    cm_item many[11];
    for (int i = 0; i < 11; i++)
        many[i] = (cm_item){.in = bytes[0], .in_length = 16, .out = bytes[i], .out_capacity = 16};
    ck_assert_int_eq(cm_submit(key, CM_CTR, CM_ENCRYPT, 0, many, 11, NULL, &error), CM_ERR_TOO_LARGE);
    ck_assert_ptr_nonnull(strstr(error.text, "10 of the 11"));
    ck_assert_int_eq(cm_submit(key, CM_CTR, CM_ENCRYPT, 0, many, 10, NULL, &error), 0);
    ck_assert_int_eq(submit(1), CM_ERR_TOO_LARGE);
    ck_assert_int_eq(cm_submit(key, CM_CTR, 3, 0, many, 1, NULL, &error), CM_ERR_ARGUMENT);
    ck_assert_int_eq(cm_submit(key, CM_CTR, CM_ENCRYPT, 0, many, 0, NULL, &error), CM_ERR_ARGUMENT);
    ck_assert_int_eq(cm_poll(client, completions, 5, 5000, &error), 1);
    ck_assert_int_eq(completions[0].result, 0);
}
END_TEST

/* The error of a batch in which items failed is the first failed item's; the batch before and the one after
 * have none. */
START_TEST(a_completion_tells_of_failed_items)
{
    cm_item sealed[3] = {0};
    open_with(NULL, 0, 0);
    for (int i = 0; i < 3; i++)
        sealed[i] = (cm_item){.in = bytes[i], .in_length = 32, .out = bytes[i], .out_capacity = 32};
    ck_assert_int_eq(cm_submit(key, CM_GCM, CM_ENCRYPT, 0, sealed, 3, NULL, &error), 0);
    ck_assert_int_eq(cm_poll(client, completions, 1, 5000, &error), 1);
    ck_assert_int_eq(completions[0].result, 0);
    ck_assert_int_eq(completions[0].error.code, CM_OK);
    bytes[1][31] ^= 1;
    ck_assert_int_eq(cm_submit(key, CM_GCM, CM_DECRYPT, 0, sealed, 3, NULL, &error), 0);
    ck_assert_int_eq(cm_poll(client, completions, 1, 5000, &error), 1);
    ck_assert_int_eq(completions[0].result, 1);
    ck_assert_int_eq(completions[0].error.code, CM_ERR_BAD_TAG);
    ck_assert_int_eq(completions[0].error.retry, CM_RETRY_FINAL);
    ck_assert_ptr_nonnull(strstr(completions[0].error.text, "1 of 3 items failed; item 1:"));
    ck_assert_int_eq(submit(0), 0);
    collect(1, 1);
    ck_assert_int_eq(completions[0].error.code, CM_OK);
    assert_done(0);
}
END_TEST

/* --- Broken connections --- */

static void serve_three(struct fake_peer *peer)
{
    fake_greet(peer);
    int answered = 0;
    for (int type; (type = fake_next_request(peer)) != 0;) {
        if (peer->fake->knob == 1 && type == CM_FRAME_BATCH && answered++ == 3)
            return;
        fake_answer(peer, type);
    }
}

START_TEST(every_batch_of_a_broken_connection_completes)
{
    open_with(serve_three, BATCHES, 0);
    fake.knob = 1;
    int fd = cm_fd(client);
    for (int i = 0; i < BATCHES; i++)
        ck_assert_int_eq(submit(i), 0);
    collect(BATCHES, BATCHES);
    bool all_sent = true;
    for (int i = 0; i < BATCHES; i++) {
        if (i < 3) {
            assert_done(i);
            continue;
        }
        ck_assert_int_eq(completions[i].result, CM_ERR_DISCONNECTED);
        /* What was sent is in doubt; from the first that was not sent on, nothing was. */
        bool in_doubt = completions[i].error.retry == CM_RETRY_UNKNOWN;
        ck_assert(in_doubt || completions[i].error.retry == CM_RETRY_NOT_EXECUTED);
        ck_assert(all_sent || !in_doubt);
        all_sent = in_doubt;
        ck_assert_int_eq(items[i].status, in_doubt ? CM_ERR_DISCONNECTED : CM_ERR_NOT_SENT);
    }
    ck_assert_int_eq(completions[3].error.retry, CM_RETRY_UNKNOWN);
    ck_assert(!is_readable(0));
    fake.knob = 0;
    ck_assert_int_eq(submit(0), 0);
    collect(1, 1);
    assert_done(0);
    ck_assert_int_eq(cm_fd(client), fd);
}
END_TEST

static void serve_goodbye_after_two(struct fake_peer *peer)
{
    fake_greet(peer);
    int batches = 0;
    uint64_t last = 0;
    for (int type; (type = fake_next_request(peer)) != 0;) {
        batches += type == CM_FRAME_BATCH;
        if (batches <= 2 || peer->fake->knob != 1) {
            last = type == CM_FRAME_BATCH ? peer->batch.request_id : peer->call.request_id;
            fake_answer(peer, type);
            if (batches == 2 && peer->fake->knob == 1)
                fake_goodbye(peer, last);
        } else {
            fake_refuse_batch(peer, CM_STATUS_GOING_AWAY, "later");
        }
    }
}

START_TEST(after_a_goodbye_nothing_is_in_doubt)
{
    open_with(serve_goodbye_after_two, BATCHES, 0);
    fake.knob = 1;
    int sent = 0;
    while (sent < BATCHES && submit(sent) == 0)
        sent++;
    ck_assert_int_ge(sent, 3);
    collect(sent, BATCHES);
    for (int i = 0; i < sent; i++) {
        if (i < 2) {
            assert_done(i);
            continue;
        }
        ck_assert_int_eq(completions[i].result, CM_ERR_GOING_AWAY);
        ck_assert_int_eq(completions[i].error.retry, CM_RETRY_NOT_EXECUTED);
    }
    fake.knob = 0;
    ck_assert_int_eq(submit(0), 0);
    collect(1, 1);
    assert_done(0);
}
END_TEST

static void serve_silently(struct fake_peer *peer)
{
    fake_greet(peer);
    for (int type; (type = fake_next_request(peer)) != 0;)
        if (type == CM_FRAME_CALL || peer->fake->knob == 0)
            fake_answer(peer, type);
}

/* The deadline makes the descriptor readable by itself. */
START_TEST(a_deadline_wakes_the_descriptor)
{
    open_with(serve_silently, BATCHES, 1000);
    ck_assert_int_eq(submit(0), 0);
    collect(1, 1);
    fake.knob = 1;
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(submit(i), 0);
    ck_assert(!is_readable(20));
    collect(3, 3);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(completions[i].result, CM_ERR_TIMEOUT);
        ck_assert_int_eq(completions[i].error.retry, CM_RETRY_UNKNOWN);
    }
    ck_assert_int_eq(submit(0), 0);
    ck_assert_int_eq(cm_poll(client, completions, 1, 30, &error), 0);
    ck_assert_int_eq(cm_poll(client, completions, 1, -1, &error), 1);
    ck_assert_int_eq(completions[0].result, CM_ERR_TIMEOUT);
    fake.knob = 0;
    ck_assert_int_eq(submit(0), 0);
    collect(1, 1);
    assert_done(0);
}
END_TEST

/* A child that still holds the socket keeps neither the daemon nor the descriptor from hearing of its end. */
START_TEST(a_child_does_not_hold_the_descriptor_readable)
{
    int ready[2];
    open_with(serve_three, BATCHES, 0);
    ck_assert_int_eq(submit(0), 0);
    collect(1, 1);
    ck_assert_int_eq(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        close(ready[1]);
        (void)!read(ready[0], &byte, 1);
        _exit(0);
    }
    fake_restart(&fake, NULL);
    ck_assert(is_readable(5000));
    ck_assert_int_eq(cm_poll(client, completions, 1, 0, &error), 0);
    ck_assert(!is_readable(0));
    ck_assert_int_eq(submit(0), 0);
    collect(1, 1);
    assert_done(0);
    close(ready[1]);
    close(ready[0]);
    waitpid(child, NULL, 0);
}
END_TEST

START_TEST(closing_with_batches_in_flight)
{
    open_with(serve_silently, BATCHES, 0);
    fake.knob = 1;
    for (int i = 0; i < BATCHES; i++)
        ck_assert_int_eq(submit(i), 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        batches_come_back_in_order,
        busy_at_the_limit,
        a_batch_must_fit_one_frame,
        a_completion_tells_of_failed_items,
        every_batch_of_a_broken_connection_completes,
        after_a_goodbye_nothing_is_in_doubt,
        a_deadline_wakes_the_descriptor,
        a_child_does_not_hold_the_descriptor_readable,
        closing_with_batches_in_flight,
    };
    return RUN_WITH_FIXTURE("client/async", setup, teardown, tests);
}
