/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: a run of frames through the frame decoder and the codec. What decodes must encode again, and
 * encoding must not depend on how the sender chose to write it: the second turn gives the first one's bytes.
 */
#include "codec.h"
#include "fuzz_target.h"

#include <stdlib.h>
#include <string.h>

enum { BUFFER_BYTES = CM_FRAME_PREFIX_BYTES + CM_HEADER_LIMIT + CM_FRAME_BODY_ALIGN };

static uint8_t *arena_memory;
static uint8_t *buffers[2];

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            abort();                                                                                         \
    } while (0)

/* Reads everything, so that a pointer that leads astray is found. The sum keeps the compiler from skipping
 * it. */
static volatile uint64_t touched;

static void touch(const void *data, size_t length)
{
    const uint8_t *bytes = data;
    uint64_t sum = 0;

    for (size_t i = 0; i < length; i++)
        sum += bytes[i];
    touched += sum;
}

static void touch_text(const char *text)
{
    CHECK(text != NULL);
    touch(text, strlen(text));
}

static void touch_hello(const struct cm_hello *hello)
{
    CHECK(hello->session_token.length == 0 || hello->session_token.length == CM_TOKEN_BYTES);
    touch(hello->session_token.data, hello->session_token.length);
    touch_text(hello->client);
}

static void touch_welcome(const struct cm_welcome *welcome)
{
    CHECK(welcome->session_token.length == CM_TOKEN_BYTES);
    touch(welcome->session_token.data, welcome->session_token.length);
    touch_text(welcome->server);
    touch_text(welcome->identity);
}

static void touch_refusal(const struct cm_refusal *refusal)
{
    touch_text(refusal->text);
}

static void touch_goodbye(const struct cm_goodbye *goodbye)
{
    touch_text(goodbye->reason);
}

static void touch_batch(const struct cm_batch *batch)
{
    size_t column = batch->count * sizeof(uint32_t);
    uint64_t ivs = 0, total = 0, stride;

    touch(batch->lengths, column);
    if (batch->aad_lengths != NULL)
        touch(batch->aad_lengths, column);
    for (uint32_t i = 0; batch->iv_lengths != NULL && i < batch->count; i++)
        ivs += batch->iv_lengths[i];
    CHECK(ivs == batch->ivs.length);
    touch(batch->ivs.data, batch->ivs.length);
    CHECK(batch->count == 0 ? batch->tags.length == 0 : batch->tags.length % batch->count == 0);
    touch(batch->tags.data, batch->tags.length);
    CHECK((batch->parts == NULL) == (batch->operations == NULL));
    for (uint32_t i = 0; batch->parts != NULL && i < batch->count; i++)
        CHECK(batch->parts[i] <= CM_WIRE_LAST);
    if (batch->operations != NULL)
        touch(batch->operations, column);
    for (uint32_t i = 0; i < batch->count; i++) {
        stride = cm_slot_stride(batch, i);
        if (stride == UINT64_MAX)
            return;
        CHECK(stride % 16 == batch->slot_gap % 16 && stride >= batch->lengths[i]);
        total += stride;
    }
    CHECK(batch->count == 0 || cm_slot_total(batch) == total);
}

static void touch_batch_reply(const struct cm_batch_reply *reply)
{
    touch_text(reply->text);
    touch(reply->lengths, reply->count * sizeof(uint32_t));
    if (reply->statuses != NULL)
        touch(reply->statuses, reply->count * sizeof(uint32_t));
    touch(reply->ivs, (size_t)reply->count * reply->iv_length);
    touch(reply->tags, (size_t)reply->count * reply->tag_length);
}

static void touch_call(const struct cm_call *call)
{
    touch(call->operation_id.data, call->operation_id.length);
    touch_text(call->name);
}

static void touch_answer(const struct cm_answer *answer)
{
    touch_text(answer->text);
    CHECK((answer->kind != CM_ANSWER_KEY && answer->kind != CM_ANSWER_KEY_HANDLE) || answer->key_count == 1);
    for (uint32_t i = 0; i < answer->key_count; i++) {
        const struct cm_key_info *key = &answer->keys[i];

        touch_text(key->name);
        touch(key->id.data, key->id.length);
        touch(key->versions, key->version_count * sizeof *key->versions);
    }
    for (uint32_t i = 0; i < answer->implementation_count; i++) {
        touch_text(answer->implementations[i].implementation);
        touch_text(answer->implementations[i].reason);
    }
    touch_text(answer->server.server);
    touch_text(answer->server.identity);
}

/* The two forms of the encoding functions, as one. */
#define PUT_BARE(name, arena, message, buffer, ret_length)                                                   \
    cm_codec_put_##name(arena, message, buffer, BUFFER_BYTES, ret_length)
#define PUT_BODY(name, arena, message, buffer, ret_length)                                                   \
    cm_codec_put_##name(arena, message, 7, buffer, BUFFER_BYTES, ret_length)

/* turn_NAME: decodes; if that worked, does it again in a block of just the size that it took, so that a
 * sanitizer sees a write behind the last thing taken; looks at everything and encodes. The encoded length, or
 * 0. */
#define DEFINE_TURN(name, PUT, MAY_PUT)                                                                      \
    static size_t turn_##name(const uint8_t *header, size_t length, uint8_t *buffer)                         \
    {                                                                                                        \
        struct cm_##name message;                                                                            \
        struct cm_arena arena, scratch;                                                                      \
        size_t encoded = 0;                                                                                  \
        uint8_t *exact;                                                                                      \
        int rc;                                                                                              \
                                                                                                             \
        cm_arena_init(&arena, arena_memory, CM_ARENA_BYTES);                                                 \
        rc = cm_codec_get_##name(&arena, header, length, &message);                                          \
        CHECK(arena.used <= arena.capacity);                                                                 \
        CHECK(rc == CM_CODEC_OK || rc == CM_CODEC_MALFORMED || rc == CM_CODEC_TOO_COMPLEX);                  \
        if (rc != CM_CODEC_OK)                                                                               \
            return 0;                                                                                        \
        exact = malloc(arena.used);                                                                          \
        CHECK(exact != NULL);                                                                                \
        cm_arena_init(&arena, exact, arena.used);                                                            \
        CHECK(cm_codec_get_##name(&arena, header, length, &message) == CM_CODEC_OK);                         \
        CHECK(arena.used == arena.capacity);                                                                 \
        touch_##name(&message);                                                                              \
        if (MAY_PUT) {                                                                                       \
            cm_arena_init(&scratch, arena_memory, CM_ARENA_BYTES);                                           \
            rc = PUT(name, &scratch, &message, buffer, &encoded);                                            \
            CHECK(scratch.used == 0);                                                                        \
            /* Where a header is near its limit, defaults that are written out may take it over. */          \
            CHECK(rc == CM_CODEC_OK || (rc == CM_CODEC_NO_ROOM && length > CM_HEADER_LIMIT / 8));            \
        }                                                                                                    \
        free(exact);                                                                                         \
        return encoded;                                                                                      \
    }

DEFINE_TURN(hello, PUT_BARE, true)
DEFINE_TURN(welcome, PUT_BARE, true)
DEFINE_TURN(refusal, PUT_BARE, true)
DEFINE_TURN(goodbye, PUT_BARE, true)
DEFINE_TURN(batch, PUT_BODY, true)
DEFINE_TURN(batch_reply, PUT_BODY, true)
DEFINE_TURN(call, PUT_BODY, message.kind != CM_CALL_NONE)
DEFINE_TURN(answer, PUT_BARE, true)

static size_t (*const turns[])(const uint8_t *header, size_t length, uint8_t *buffer) = {
    [CM_FRAME_HELLO] = turn_hello,     [CM_FRAME_WELCOME] = turn_welcome,
    [CM_FRAME_BATCH] = turn_batch,     [CM_FRAME_BATCH_REPLY] = turn_batch_reply,
    [CM_FRAME_CALL] = turn_call,       [CM_FRAME_ANSWER] = turn_answer,
    [CM_FRAME_GOODBYE] = turn_goodbye, [CM_FRAME_REFUSAL] = turn_refusal,
};

static void two_turns(uint8_t type, const uint8_t *header, size_t length)
{
    /* A block of its own, so that a sanitizer sees a read behind the header. */
    uint8_t *exact = malloc(length == 0 ? 1 : length);
    struct cm_frame frame;
    size_t first, second;

    CHECK(exact != NULL);
    memcpy(exact, header, length);
    first = turns[type](exact, length, buffers[0]);
    free(exact);
    if (first == 0)
        return;
    CHECK(cm_frame_parse(buffers[0], first, CM_HEADER_LIMIT, SIZE_MAX, &frame) == CM_FRAME_OK);
    CHECK(frame.type == type && cm_frame_body_offset(frame.header_length) == first);
    second = turns[type](buffers[0] + CM_FRAME_PREFIX_BYTES, frame.header_length, buffers[1]);
    /* The second turn needs no more room than the first, which is why it can't fail. */
    CHECK(second == first && memcmp(buffers[0], buffers[1], first) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t types = sizeof turns / sizeof turns[0];

    if (arena_memory == NULL) {
        arena_memory = malloc(CM_ARENA_BYTES);
        buffers[0] = malloc(BUFFER_BYTES);
        buffers[1] = malloc(BUFFER_BYTES);
        CHECK(arena_memory != NULL && buffers[0] != NULL && buffers[1] != NULL);
    }
    for (;;) {
        struct cm_frame frame;
        size_t header;

        if (cm_frame_parse(data, size, CM_HEADER_LIMIT, 16u << 20, &frame) != CM_FRAME_OK)
            return 0;
        /* A length that says more than there is stops a connection, but need not stop the search for faults.
         */
        header = size - CM_FRAME_PREFIX_BYTES;
        if (header > frame.header_length)
            header = frame.header_length;
        if (frame.type < types && turns[frame.type] != NULL)
            two_turns(frame.type, data + CM_FRAME_PREFIX_BYTES, header);
        if (cm_frame_total(&frame) > size)
            return 0;
        data += cm_frame_total(&frame);
        size -= cm_frame_total(&frame);
    }
}
