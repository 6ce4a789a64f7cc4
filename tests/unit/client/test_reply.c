/* SPDX-License-Identifier: Apache-2.0 */
/* What a daemon may answer wrongly, late, partly or not at all, and what the library says then. */
#include "fake.h"
#include "fixture.h"
#include <ciphermill/ciphermill.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static struct fake fake;
static cm_client *client;
static cm_key *key;
static cm_error error;
static uint8_t in[1000], out[1000];
static cm_item item;

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

static void open_with(void (*serve)(struct fake_peer *peer), uint32_t request_timeout_ms)
{
    cm_options options = CM_OPTIONS_INIT;
    options.request_timeout_ms = request_timeout_ms;
    fake_restart(&fake, serve);
    ck_assert_int_eq(cm_connect(&client, fake.uri, &options, &error), 0);
    ck_assert_int_eq(cm_key_open(&key, client, "orders", &error), 0);
}

static int encrypt_one(void)
{
    memset(out, 0xee, sizeof out);
    item = (cm_item){.in = in, .in_length = sizeof in, .out = out, .out_capacity = sizeof out};
    return cm_encrypt(key, CM_CTR, &item, 1, &error);
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Answers calls; the batch is the test's. */
static bool next_batch(struct fake_peer *peer)
{
    int type;
    while ((type = fake_next_request(peer)) == CM_FRAME_CALL)
        fake_answer_call(peer);
    return type == CM_FRAME_BATCH;
}

/* --- Ends in the middle --- */

static void serve_cut(struct fake_peer *peer)
{
    fake_greet(peer);
    while (next_batch(peer)) {
        size_t length;
        uint8_t *frame = fake_batch_reply(peer, &length);
        size_t cut = (size_t)peer->fake->knob;
        fake_write(peer->fd, frame, cut < length ? cut : length);
        free(frame);
        if (cut < length)
            return;
    }
}

START_TEST(disconnect_at_each_byte_of_a_reply)
{
    open_with(serve_cut, 0);
    int last = CM_ERR_DISCONNECTED, cut = 0;
    for (; last != 0 && cut<2000; cut += fake.peer_count> 40 ? 0 : 1) {
        if (fake.peer_count > 40)
            fake_restart(&fake, serve_cut);
        fake.knob = cut;
        last = encrypt_one();
        if (last == 0)
            break;
        ck_assert_int_eq(last, CM_ERR_DISCONNECTED);
        ck_assert_int_eq(error.retry, CM_RETRY_UNKNOWN);
        ck_assert_int_eq(item.status, CM_ERR_DISCONNECTED);
        ck_assert_uint_eq(item.out_length, 0);
        ck_assert_uint_eq(item.iv_length, 0);
    }
    ck_assert_int_gt(cut, 1000);
    ck_assert_int_eq(last, 0);
}
END_TEST

static void serve_slowly(struct fake_peer *peer)
{
    fake_greet(peer);
    while (next_batch(peer)) {
        size_t length;
        uint8_t *frame = fake_batch_reply(peer, &length);
        for (size_t i = 0; i < length; i++)
            fake_write(peer->fd, frame + i, 1);
        free(frame);
    }
}

START_TEST(a_reply_byte_by_byte)
{
    open_with(serve_slowly, 0);
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(encrypt_one(), 0);
        for (size_t k = 0; k < sizeof in; k++)
            ck_assert_uint_eq(out[k], in[k] ^ FAKE_MASK);
    }
}
END_TEST

/* --- Nothing in time --- */

static void serve_late(struct fake_peer *peer)
{
    fake_greet(peer);
    while (next_batch(peer)) {
        /* Late is: after the client gave up, which ends the connection's other half. */
        if (peer->fake->knob > 0 && peer->fake->batches == peer->fake->knob) {
            uint8_t byte;
            while (recv(peer->fd, &byte, 1, 0) > 0)
                continue;
        }
        fake_answer_batch(peer);
    }
}

START_TEST(a_late_reply_is_nobodys)
{
    open_with(serve_late, 150);
    fake.knob = 1;
    int64_t from = now_ms();
    ck_assert_int_eq(encrypt_one(), CM_ERR_TIMEOUT);
    int64_t took = now_ms() - from;
    ck_assert_msg(took >= 150 && took < 5000, "%lld ms", (long long)took);
    ck_assert_int_eq(error.retry, CM_RETRY_UNKNOWN);
    ck_assert_int_eq(item.status, CM_ERR_TIMEOUT);
    for (size_t i = 0; i < sizeof out; i++)
        ck_assert_uint_eq(out[i], 0xee);
    uint8_t other[10] = "0123456789";
    cm_item next = {.in = other, .in_length = 10, .out = other, .out_capacity = 10};
    ck_assert_int_eq(cm_encrypt(key, CM_CTR, &next, 1, &error), 0);
    ck_assert_uint_eq(other[3], '3' ^ FAKE_MASK);
    for (size_t i = 0; i < sizeof out; i++)
        ck_assert_uint_eq(out[i], 0xee);
    ck_assert_int_eq(fake.accepted, 2);
}
END_TEST

static void serve_without_reading(struct fake_peer *peer)
{
    fake_greet(peer);
    int type = fake_next_request(peer);
    fake_answer(peer, type);
    while (peer->fake->knob == 0)
        usleep(1000);
}

/* A frame of which only a part fits the sockets is never executed. */
START_TEST(a_timeout_while_sending)
{
    open_with(serve_without_reading, 150);
    uint8_t *big = calloc(1, 8 << 20);
    cm_item large = {.in = big, .in_length = 8 << 20, .out = big, .out_capacity = 8 << 20};
    ck_assert_int_eq(cm_encrypt(key, CM_CTR, &large, 1, &error), CM_ERR_TIMEOUT);
    ck_assert_int_eq(error.retry, CM_RETRY_NOT_EXECUTED);
    ck_assert_int_eq(large.status, CM_ERR_NOT_SENT);
    fake.knob = 1;
    free(big);
}
END_TEST

/* --- Bytes that are no answer --- */

enum garbage {
    NO_FRAME,
    BAD_VERSION,
    RESERVED,
    HUGE_HEADER,
    HUGE_BODY,
    MALFORMED,
    WRONG_ID,
    WRONG_COUNT,
    WRONG_BODY,
    LONG_OUTPUT,
    LONG_IV,
    NO_IV,
    REFUSED_WITH_BODY,
    ANSWER_FOR_BATCH,
    WELCOME_AGAIN,
    UNKNOWN_TYPE,
    TWICE,
    GARBAGE_END
};

static void write_reply(struct fake_peer *peer, const struct cm_batch_reply *reply, uint32_t body)
{
    uint8_t frame[4096] = {0};
    size_t length;
    if (cm_codec_put_batch_reply(&peer->arena, reply, body, frame, sizeof frame, &length) != 0)
        abort();
    fake_write(peer->fd, frame, length + body);
}

static void write_garbage(struct fake_peer *peer, enum garbage kind)
{
    const uint32_t length = 1000, too_long = 1001;
    const uint8_t iv[20] = {0};
    struct cm_batch_reply reply = {.request_id = peer->batch.request_id, .count = 1, .lengths = &length};
    struct cm_frame frame = {CM_PROTOCOL_VERSION, CM_FRAME_BATCH_REPLY, 20, 0};
    uint8_t raw[256] = {0};
    const struct cm_answer answer = {.request_id = peer->batch.request_id};
    const struct cm_welcome welcome = {.version = 1, .session_token = {iv, 16}, .limits = peer->fake->limits};
    size_t size = 0;
    switch (kind) {
    case NO_FRAME:
        memset(raw, 'x', sizeof raw);
        break;
    case BAD_VERSION:
        frame.version = 2;
        cm_frame_put(&frame, raw);
        break;
    case RESERVED:
        cm_frame_put(&frame, raw);
        raw[6] = 1;
        break;
    case HUGE_HEADER:
        frame.header_length = CM_HEADER_LIMIT + 1;
        cm_frame_put(&frame, raw);
        break;
    case HUGE_BODY:
        frame.body_length = UINT32_MAX;
        cm_frame_put(&frame, raw);
        break;
    case MALFORMED:
        cm_frame_put(&frame, raw);
        memset(raw + 16, 0xff, 20);
        break;
    case UNKNOWN_TYPE:
        frame.type = 99;
        cm_frame_put(&frame, raw);
        break;
    case WRONG_ID:
        reply.request_id++;
        write_reply(peer, &reply, 1008);
        return;
    case WRONG_COUNT:
        reply.count = 0;
        reply.lengths = NULL;
        write_reply(peer, &reply, 1008);
        return;
    case WRONG_BODY:
        write_reply(peer, &reply, 1024);
        return;
    case LONG_OUTPUT:
        reply.lengths = &too_long;
        write_reply(peer, &reply, 1008);
        return;
    case LONG_IV:
        reply.iv_length = 17;
        reply.ivs = iv;
        write_reply(peer, &reply, 1008);
        return;
    case NO_IV:
        write_reply(peer, &reply, 1008);
        return;
    case REFUSED_WITH_BODY:
        reply.status = CM_STATUS_INTERNAL;
        reply.count = 0;
        reply.lengths = NULL;
        write_reply(peer, &reply, 16);
        return;
    case ANSWER_FOR_BATCH:
        if (cm_codec_put_answer(&peer->arena, &answer, raw, sizeof raw, &size) != 0)
            abort();
        break;
    case WELCOME_AGAIN:
        if (cm_codec_put_welcome(&peer->arena, &welcome, raw, sizeof raw, &size) != 0)
            abort();
        break;
    default:
        return;
    }
    fake_write(peer->fd, raw, size != 0 ? size : sizeof raw);
}

static void serve_garbage(struct fake_peer *peer)
{
    fake_greet(peer);
    while (next_batch(peer)) {
        if (peer->fake->knob == TWICE)
            fake_answer_batch(peer);
        else
            write_garbage(peer, (enum garbage)atomic_load(&peer->fake->knob));
    }
}

START_TEST(garbage_ends_the_connection)
{
    open_with(serve_garbage, 0);
    for (int kind = NO_FRAME; kind < TWICE; kind++) {
        fake.knob = kind;
        int rc = encrypt_one();
        ck_assert_msg(rc == CM_ERR_PROTOCOL, "kind %d: %d, %s", kind, rc, error.text);
        ck_assert_int_eq(error.retry, CM_RETRY_UNKNOWN);
        ck_assert_int_eq(item.status, CM_ERR_PROTOCOL);
        for (size_t i = 0; i < sizeof out; i++)
            ck_assert_uint_eq(out[i], 0xee);
        ck_assert_int_eq(fake.accepted, kind + 1);
    }
    fake.knob = TWICE;
    ck_assert_int_eq(encrypt_one(), 0);
}
END_TEST

static void serve_without_tag(struct fake_peer *peer)
{
    const uint32_t length = 1000;
    const uint8_t iv[12] = {0};
    fake_greet(peer);
    while (next_batch(peer)) {
        const struct cm_batch_reply reply = {.request_id = peer->batch.request_id,
                                             .count = 1,
                                             .lengths = &length,
                                             .iv_length = sizeof iv,
                                             .ivs = iv};
        write_reply(peer, &reply, 1008);
    }
}

/* A ciphertext without its tag could never be opened again. */
START_TEST(an_encryption_without_its_tag)
{
    open_with(serve_without_tag, 0);
    cm_item sealed = {.in = in, .in_length = 1000, .out = out, .out_capacity = sizeof out};
    ck_assert_int_eq(cm_encrypt(key, CM_GCM, &sealed, 1, &error), CM_ERR_PROTOCOL);
    ck_assert_int_eq(sealed.status, CM_ERR_PROTOCOL);
}
END_TEST

static void serve_twice(struct fake_peer *peer)
{
    fake_greet(peer);
    while (next_batch(peer)) {
        size_t length;
        uint8_t *frame = fake_batch_reply(peer, &length);
        fake_write(peer->fd, frame, length);
        fake_write(peer->fd, frame, length);
        free(frame);
    }
}

/* The second copy answers no request: it costs the connection, and at worst the request that it met. */
START_TEST(a_reply_too_many)
{
    open_with(serve_twice, 0);
    ck_assert_int_eq(encrypt_one(), 0);
    for (int i = 0; i < 10; i++) {
        in[0] = (uint8_t)i;
        int rc = encrypt_one();
        ck_assert_msg(rc == 0 || rc == CM_ERR_PROTOCOL, "%d", rc);
        ck_assert_int_eq(out[0], rc == 0 ? i ^ FAKE_MASK : 0xee);
    }
    ck_assert_int_ge(fake.accepted, 5);
}
END_TEST

static void serve_early(struct fake_peer *peer)
{
    fake_greet(peer);
    fake_answer(peer, fake_next_request(peer));
    /* A large frame's first bytes are enough to answer it falsely. */
    uint8_t prefix[64];
    if (recv(peer->fd, prefix, sizeof prefix, MSG_WAITALL) <= 0)
        return;
    const uint32_t length = 4 << 20;
    uint8_t frame[1024];
    size_t size;
    const struct cm_batch_reply reply = {.request_id = 2, .count = 1, .lengths = &length};
    if (cm_codec_put_batch_reply(&peer->arena, &reply, 4 << 20, frame, sizeof frame, &size) != 0)
        abort();
    fake_write(peer->fd, frame, size);
    uint8_t *body = calloc(1, 4 << 20);
    fake_write(peer->fd, body, 4 << 20);
    free(body);
}

/* Otherwise a reply would overwrite in place what has yet to be sent. */
START_TEST(an_answer_before_the_question_was_sent)
{
    open_with(serve_early, 2000);
    uint8_t *big = malloc(4 << 20);
    memset(big, 7, 4 << 20);
    cm_item large = {.in = big, .in_length = 4 << 20, .out = big, .out_capacity = 4 << 20};
    ck_assert_int_eq(cm_encrypt(key, CM_CTR, &large, 1, &error), CM_ERR_PROTOCOL);
    ck_assert_int_eq(error.retry, CM_RETRY_NOT_EXECUTED);
    size_t wrong = 0;
    for (size_t i = 0; i < 4 << 20; i++)
        wrong += big[i] != 7;
    ck_assert_uint_eq(wrong, 0);
    free(big);
}
END_TEST

/* --- Going away --- */

static void serve_goodbye(struct fake_peer *peer)
{
    fake_greet(peer);
    uint64_t answered = 0;
    int type;
    while ((type = fake_next_request(peer)) != 0) {
        int said = peer->fake->knob;
        if (type == CM_FRAME_BATCH && said == 1) { /* answers that it takes nothing more */
            fake_goodbye(peer, answered);
            fake_refuse_batch(peer, CM_STATUS_GOING_AWAY, NULL);
        } else if (type == CM_FRAME_BATCH && said == 2) { /* ends without answering what came after */
            fake_goodbye(peer, answered);
            return;
        } else if (type == CM_FRAME_BATCH && said == 3) { /* names it, and breaks its word */
            fake_goodbye(peer, peer->batch.request_id);
            return;
        } else if (type == CM_FRAME_BATCH && said == 4) { /* names it, answers, ends */
            fake_goodbye(peer, peer->batch.request_id);
            fake_answer(peer, type);
            return;
        } else {
            answered = type == CM_FRAME_CALL ? peer->call.request_id : peer->batch.request_id;
            fake_answer(peer, type);
        }
    }
}

START_TEST(goodbyes)
{
    open_with(serve_goodbye, 0);
    for (int how = 1; how <= 2; how++) {
        fake.knob = how;
        ck_assert_int_eq(encrypt_one(), CM_ERR_GOING_AWAY);
        ck_assert_int_eq(error.retry, CM_RETRY_NOT_EXECUTED);
        ck_assert_int_eq(item.status, CM_ERR_GOING_AWAY);
    }
    fake.knob = 3;
    ck_assert_int_eq(encrypt_one(), CM_ERR_DISCONNECTED);
    ck_assert_int_eq(error.retry, CM_RETRY_UNKNOWN);
    fake.knob = 4;
    ck_assert_int_eq(encrypt_one(), 0);
    fake.knob = 0;
    ck_assert_int_eq(encrypt_one(), 0);
}
END_TEST

static void serve_endless_goodbyes(struct fake_peer *peer)
{
    uint8_t frame[64 * 100];
    size_t length, sent = 0;
    const struct cm_goodbye goodbye = {.last_request_id = 1000, .reason = "on and on"};
    fake_greet(peer);
    if (!next_batch(peer))
        return;
    for (size_t at = 0; at < sizeof frame; at += length)
        if (cm_codec_put_goodbye(&peer->arena, &goodbye, frame + at, sizeof frame - at, &length) != 0)
            abort();
    while (sent < (size_t)100 << 20 && send(peer->fd, frame, sizeof frame, MSG_NOSIGNAL) == sizeof frame)
        sent += sizeof frame;
}

START_TEST(no_row_of_goodbyes_outlasts_the_deadline)
{
    open_with(serve_endless_goodbyes, 0);
    ck_assert_int_eq(encrypt_one(), CM_ERR_PROTOCOL);
    ck_assert_int_eq(error.retry, CM_RETRY_UNKNOWN);
}
END_TEST

static void serve_refusal(struct fake_peer *peer)
{
    fake_greet(peer);
    while (next_batch(peer)) {
        uint8_t frame[256];
        size_t length;
        const struct cm_refusal refusal = {.status = CM_STATUS_BAD_REQUEST,
                                           .text = "that was no\x1b[2J\nframe"};
        if (cm_codec_put_refusal(&peer->arena, &refusal, frame, sizeof frame, &length) != 0)
            abort();
        fake_write(peer->fd, frame, length);
        return;
    }
}

START_TEST(a_refusal_after_the_greeting)
{
    open_with(serve_refusal, 0);
    ck_assert_int_eq(encrypt_one(), CM_ERR_BAD_REQUEST);
    ck_assert_int_eq(error.retry, CM_RETRY_UNKNOWN);
    /* What the daemon says can't steer a terminal. */
    ck_assert_ptr_nonnull(strstr(error.text, "that was no?[2J?frame"));
}
END_TEST

int main(void)
{
    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (uint8_t)(i * 7);
    const TTest *const tests[] = {
        disconnect_at_each_byte_of_a_reply,
        a_reply_byte_by_byte,
        a_late_reply_is_nobodys,
        a_timeout_while_sending,
        garbage_ends_the_connection,
        an_encryption_without_its_tag,
        a_reply_too_many,
        an_answer_before_the_question_was_sent,
        goodbyes,
        no_row_of_goodbyes_outlasts_the_deadline,
        a_refusal_after_the_greeting,
    };
    return RUN_WITH_FIXTURE("client/reply", setup, teardown, tests);
}
