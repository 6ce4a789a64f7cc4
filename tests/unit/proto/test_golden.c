/* SPDX-License-Identifier: Apache-2.0 */
/* Golden frames: the codec writes exactly these bytes, and reads from them exactly these messages. Each is
 * also read with one more field in every message, as a later version of the other side might send. */
#include "codec.h"
#include "golden_messages.h"
#include "same.h"
#include "suite.h"

#include <stdio.h>
#include <string.h>

enum { FILE_MAX = 4096 };

static uint8_t arena_memory[CM_ARENA_BYTES];

/* One kind of message behind its name: what the codec does with it. Decoding compares with `expected` unless
 * that is NULL. */
#define DEFINE_KIND(name, ...)                                                                               \
    static int put_##name(struct cm_arena *arena, const void *message, uint32_t body_length,                 \
                          uint8_t *buffer, size_t *ret_length)                                               \
    {                                                                                                        \
        (void)body_length;                                                                                   \
        return cm_codec_put_##name(arena, message, __VA_ARGS__ buffer, FILE_MAX, ret_length);                \
    }                                                                                                        \
    static int get_##name(struct cm_arena *arena, const uint8_t *header, size_t length,                      \
                          const void *expected)                                                              \
    {                                                                                                        \
        struct cm_##name message;                                                                            \
        int rc = cm_codec_get_##name(arena, header, length, &message);                                       \
                                                                                                             \
        if (rc == CM_CODEC_OK && expected != NULL)                                                           \
            same_##name(expected, &message);                                                                 \
        return rc;                                                                                           \
    }

DEFINE_KIND(hello)
DEFINE_KIND(welcome)
DEFINE_KIND(refusal)
DEFINE_KIND(goodbye)
DEFINE_KIND(batch, body_length, )
DEFINE_KIND(batch_reply, body_length, )
DEFINE_KIND(call, body_length, )
DEFINE_KIND(answer)

#define FRAME(kind, TYPE, name)                                                                              \
    {                                                                                                        \
#name, CM_FRAME_##TYPE, put_##kind, get_##kind, &golden_##name                                       \
    }

static const struct golden {
    const char *name;
    enum cm_frame_type type;
    int (*put)(struct cm_arena *arena, const void *message, uint32_t body_length, uint8_t *buffer,
               size_t *ret_length);
    int (*get)(struct cm_arena *arena, const uint8_t *header, size_t length, const void *expected);
    const void *message;
} goldens[] = {
    FRAME(hello, HELLO, hello),
    FRAME(hello, HELLO, hello_join),
    FRAME(welcome, WELCOME, welcome),
    FRAME(refusal, REFUSAL, refusal),
    FRAME(goodbye, GOODBYE, goodbye),
    FRAME(batch, BATCH, batch_cbc),
    FRAME(batch, BATCH, batch_gcm),
    FRAME(batch, BATCH, batch_parts),
    FRAME(batch, BATCH, batch_xts),
    FRAME(batch, BATCH, batch_empty),
    FRAME(batch_reply, BATCH_REPLY, batch_reply_cbc),
    FRAME(batch_reply, BATCH_REPLY, batch_reply_gcm),
    FRAME(batch_reply, BATCH_REPLY, batch_reply_failed),
    FRAME(call, CALL, call_open_key),
    FRAME(call, CALL, call_ephemeral_key),
    FRAME(call, CALL, call_close_key),
    FRAME(call, CALL, call_cancel_operation),
    FRAME(call, CALL, call_get_status),
    FRAME(call, CALL, call_get_implementations),
    FRAME(call, CALL, call_create_key),
    FRAME(call, CALL, call_import_key),
    FRAME(call, CALL, call_import_xts),
    FRAME(call, CALL, call_list_keys),
    FRAME(call, CALL, call_describe_key),
    FRAME(call, CALL, call_destroy_key),
    FRAME(answer, ANSWER, answer_done),
    FRAME(answer, ANSWER, answer_failed),
    FRAME(answer, ANSWER, answer_key_handle),
    FRAME(answer, ANSWER, answer_key),
    FRAME(answer, ANSWER, answer_key_list),
    FRAME(answer, ANSWER, answer_implementations),
    FRAME(answer, ANSWER, answer_size_classes),
    FRAME(answer, ANSWER, answer_server_status),
};

enum { GOLDENS = sizeof goldens / sizeof goldens[0] };

static void read_golden(const char *folder, const char *name, uint8_t bytes[FILE_MAX],
                        struct cm_frame *ret_frame)
{
    char path[512];
    FILE *file;
    size_t length;

    (void)snprintf(path, sizeof path, CM_GOLDEN "/%s%s.frame", folder, name);
    file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s cannot be opened", path);
    length = fread(bytes, 1, FILE_MAX, file);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_uint_lt(length, FILE_MAX);
    ck_assert_int_eq(cm_frame_parse(bytes, length, CM_HEADER_LIMIT, FILE_MAX, ret_frame), CM_FRAME_OK);
    ck_assert_uint_eq(cm_frame_total(ret_frame), length);
}

START_TEST(test_encode)
{
    const struct golden *golden = &goldens[_i];
    uint8_t expected[FILE_MAX], buffer[FILE_MAX];
    struct cm_arena arena;
    struct cm_frame frame;
    size_t length;

    read_golden("", golden->name, expected, &frame);
    cm_arena_init(&arena, arena_memory, sizeof arena_memory);
    memset(buffer, 0xee, sizeof buffer);
    ck_assert_int_eq(golden->put(&arena, golden->message, frame.body_length, buffer, &length), CM_CODEC_OK);
    ck_assert_uint_eq(arena.used, 0);
    ck_assert_uint_eq(length, cm_frame_body_offset(frame.header_length));
    ck_assert_mem_eq(buffer, expected, length);
    ck_assert_uint_eq(buffer[length], 0xee);
}
END_TEST

static void decode(int index, const char *folder)
{
    const struct golden *golden = &goldens[index];
    uint8_t bytes[FILE_MAX];
    struct cm_arena arena;
    struct cm_frame frame;

    read_golden(folder, golden->name, bytes, &frame);
    ck_assert_int_eq(frame.type, golden->type);
    ck_assert_int_eq(frame.version, CM_PROTOCOL_VERSION);
    cm_arena_init(&arena, arena_memory, sizeof arena_memory);
    ck_assert_int_eq(golden->get(&arena, bytes + CM_FRAME_PREFIX_BYTES, frame.header_length, golden->message),
                     CM_CODEC_OK);
}

START_TEST(test_decode)
{
    decode(_i, "");
}
END_TEST

START_TEST(test_decode_newer)
{
    decode(_i, "newer/");
}
END_TEST

/* A header cut short anywhere is either malformed or a shorter message, and never read past its end: the copy
 * is just as long, which a sanitizer watches. */
START_TEST(test_decode_cut_short)
{
    const struct golden *golden = &goldens[_i];
    uint8_t bytes[FILE_MAX];
    struct cm_arena arena;
    struct cm_frame frame;

    read_golden("", golden->name, bytes, &frame);
    for (uint32_t length = 1; length < frame.header_length; length++) {
        uint8_t *cut = malloc(length);
        int rc;

        ck_assert_ptr_nonnull(cut);
        memcpy(cut, bytes + CM_FRAME_PREFIX_BYTES, length);
        cm_arena_init(&arena, arena_memory, sizeof arena_memory);
        rc = golden->get(&arena, cut, length, NULL);
        ck_assert(rc == CM_CODEC_OK || rc == CM_CODEC_MALFORMED);
        free(cut);
    }
}
END_TEST

static void add(TCase *test_case)
{
    tcase_add_loop_test(test_case, test_encode, 0, GOLDENS);
    tcase_add_loop_test(test_case, test_decode, 0, GOLDENS);
    tcase_add_loop_test(test_case, test_decode_newer, 0, GOLDENS);
    tcase_add_loop_test(test_case, test_decode_cut_short, 0, GOLDENS);
}

int main(void)
{
    return run_suite("golden", add);
}
