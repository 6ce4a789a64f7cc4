/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of batches and replies in every form, and what contradicts itself. That the bytes are the right
 * ones is shown by test_golden.c. */
#include "codec.h"
#include "same.h"
#include "suite.h"
#include "wire_bytes.h"

enum { BUFFER_BYTES = 80000 };

static uint8_t arena_memory[CM_ARENA_BYTES];
static uint8_t buffer[BUFFER_BYTES];
static struct cm_arena arena;

static void reset(void)
{
    cm_arena_init(&arena, arena_memory, sizeof arena_memory);
}

/* What a batch with these IV lengths is after a way over the wire. */
static void turn_batch(const struct cm_batch *batch, struct cm_batch *ret_batch)
{
    struct cm_frame frame;
    size_t length;

    ck_assert_int_eq(cm_codec_put_batch(&arena, batch, 7, buffer, sizeof buffer, &length), CM_CODEC_OK);
    ck_assert_int_eq(cm_frame_parse(buffer, length, CM_HEADER_LIMIT, SIZE_MAX, &frame), CM_FRAME_OK);
    ck_assert_uint_eq(frame.body_length, 7);
    ck_assert_int_eq(
        cm_codec_get_batch(&arena, buffer + CM_FRAME_PREFIX_BYTES, frame.header_length, ret_batch),
        CM_CODEC_OK);
}

START_TEST(test_iv_lengths_keep_their_meaning)
{
    static const uint32_t lengths[3] = {1, 2, 3};
    static const uint32_t iv_lengths[][3] = {{16, 16, 16}, {12, 16, 12}, {0, 0, 0}, {0, 16, 0}};
    static const uint8_t ivs[48] = {1, 2, 3};

    for (size_t i = 0; i < sizeof iv_lengths / sizeof iv_lengths[0]; i++) {
        const uint32_t *column = iv_lengths[i];
        struct cm_batch back, batch = {.count = 3, .lengths = lengths, .iv_lengths = column};

        batch.ivs = (struct cm_bytes){.data = ivs, .length = column[0] + column[1] + column[2]};
        reset();
        turn_batch(&batch, &back);
        same_batch(&batch, &back);
    }
}
END_TEST

START_TEST(test_a_batch_with_every_column)
{
    enum { COUNT = 1024 };
    static uint32_t lengths[COUNT], aad_lengths[COUNT], operations[COUNT], iv_lengths[COUNT];
    static uint8_t parts[COUNT], ivs[COUNT * 12], tags[COUNT * 16];
    struct cm_batch back, batch = {.request_id = UINT64_MAX,
                                   .key_handle = UINT32_MAX,
                                   .key_version = UINT32_MAX,
                                   .mode = CM_WIRE_GCM,
                                   .direction = CM_WIRE_DECRYPT,
                                   .padding = true,
                                   .slot_align = UINT32_MAX,
                                   .slot_gap = UINT32_MAX,
                                   .count = COUNT,
                                   .lengths = lengths,
                                   .iv_lengths = iv_lengths,
                                   .aad_lengths = aad_lengths,
                                   .ivs = {.data = ivs, .length = sizeof ivs},
                                   .tags = {.data = tags, .length = sizeof tags},
                                   .parts = parts,
                                   .operations = operations};

    for (uint32_t i = 0; i < COUNT; i++) {
        lengths[i] = UINT32_MAX - i;
        aad_lengths[i] = i * i * i;
        operations[i] = i << 20;
        iv_lengths[i] = i % 2 == 0 ? 11 : 13;
        parts[i] = (uint8_t)(i % 4);
    }
    for (size_t i = 0; i < sizeof ivs; i++)
        ivs[i] = (uint8_t)(i * 7);
    for (size_t i = 0; i < sizeof tags; i++)
        tags[i] = (uint8_t)(i * 11);
    reset();
    turn_batch(&batch, &back);
    same_batch(&batch, &back);
}
END_TEST

START_TEST(test_unknown_modes_stay_unknown)
{
    static const struct {
        uint64_t wire;
        uint8_t plain;
    } cases[] = {{0, 0},
                 {4, 4},
                 {5, 5},
                 {200, 200},
                 {255, 255},
                 {256, 255},
                 {257, 255},
                 {0x101, 255},
                 {UINT32_MAX, 255},
                 {0x7fffffff, 255},
                 {UINT64_MAX, 255},
                 {UINT64_MAX - 2, 255}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wire wire = {.length = 0};
        struct cm_batch batch;

        wire_number(&wire, 4, cases[i].wire);
        wire_number(&wire, 5, cases[i].wire);
        reset();
        ck_assert_int_eq(cm_codec_get_batch(&arena, wire.bytes, wire.length, &batch), CM_CODEC_OK);
        ck_assert_uint_eq(batch.mode, cases[i].plain);
        ck_assert_uint_eq(batch.direction, cases[i].plain);
    }
}
END_TEST

/* Columns of a Batch on the wire: with two lengths, unless `lengths` says otherwise. */
struct columns {
    const char *lengths, *iv_lengths, *ivs, *aad_lengths, *tags, *parts, *operations;
    int expected;
};

static void expect_columns(const struct columns *columns)
{
    const char *contents[] = {columns->lengths == NULL ? "AB" : columns->lengths,
                              columns->iv_lengths,
                              columns->ivs,
                              columns->aad_lengths,
                              columns->tags,
                              columns->parts,
                              columns->operations};
    struct wire wire = {.length = 0};
    struct cm_batch batch = {.key_handle = 12345};

    wire_number(&wire, 1, 77);
    for (uint32_t i = 0; i < sizeof contents / sizeof contents[0]; i++)
        if (contents[i] != NULL)
            wire_bytes(&wire, 9 + i, contents[i], strlen(contents[i]));
    reset();
    ck_assert_int_eq(cm_codec_get_batch(&arena, wire.bytes, wire.length, &batch), columns->expected);
    ck_assert_uint_eq(batch.request_id, 77);
    /* Nothing else is touched when it fails. */
    ck_assert_uint_eq(batch.key_handle, columns->expected == CM_CODEC_OK ? 0 : 12345);
}

START_TEST(test_batch_columns_agree)
{
    static const struct columns cases[] = {
        {.expected = CM_CODEC_OK},
        {.iv_lengths = "\2", .ivs = "abcd", .expected = CM_CODEC_OK},
        {.iv_lengths = "\2", .ivs = "abc", .expected = CM_CODEC_MALFORMED},
        {.iv_lengths = "\2", .ivs = "abcde", .expected = CM_CODEC_MALFORMED},
        {.iv_lengths = "\2", .expected = CM_CODEC_MALFORMED},
        {.iv_lengths = "\1\3", .ivs = "abcd", .expected = CM_CODEC_OK},
        {.iv_lengths = "\1\3", .ivs = "abc", .expected = CM_CODEC_MALFORMED},
        {.iv_lengths = "\1\3", .ivs = "abcde", .expected = CM_CODEC_MALFORMED},
        {.iv_lengths = "\1\1\1", .ivs = "abc", .expected = CM_CODEC_MALFORMED},
        {.ivs = "a", .expected = CM_CODEC_MALFORMED},
        {.aad_lengths = "\1\2", .expected = CM_CODEC_OK},
        {.aad_lengths = "\1", .expected = CM_CODEC_MALFORMED},
        {.aad_lengths = "\1\2\3", .expected = CM_CODEC_MALFORMED},
        {.tags = "abcd", .expected = CM_CODEC_OK},
        {.tags = "abc", .expected = CM_CODEC_MALFORMED},
        {.parts = "\1\2", .operations = "\5\6", .expected = CM_CODEC_OK},
        {.parts = "\1\4", .operations = "\5\6", .expected = CM_CODEC_MALFORMED},
        {.parts = "\1\x81\2", .operations = "\5\6", .expected = CM_CODEC_MALFORMED}, /* second: 257, not 1 */
        {.parts = "\1", .operations = "\5", .expected = CM_CODEC_MALFORMED},
        {.parts = "\1\2\3", .operations = "\5\6\7", .expected = CM_CODEC_MALFORMED},
        {.parts = "\1\2", .expected = CM_CODEC_MALFORMED},
        {.parts = "\1\2", .operations = "\5", .expected = CM_CODEC_MALFORMED},
        {.operations = "\5\6", .expected = CM_CODEC_MALFORMED},
        {.lengths = "", .expected = CM_CODEC_OK},
        {.lengths = "", .iv_lengths = "\5", .expected = CM_CODEC_OK}, /* all none of them have 5 */
        {.lengths = "", .iv_lengths = "\5", .ivs = "abcde", .expected = CM_CODEC_MALFORMED},
        {.lengths = "", .tags = "a", .expected = CM_CODEC_MALFORMED},
        {.lengths = "", .aad_lengths = "\1", .expected = CM_CODEC_MALFORMED},
        {.lengths = "", .parts = "\1", .operations = "\1", .expected = CM_CODEC_MALFORMED},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_columns(&cases[i]);
}
END_TEST

START_TEST(test_iv_length_sums_do_not_wrap)
{
    /* Two IVs of 2^31 bytes are 2^32, which 32 bits take for none. */
    static const uint8_t halves[] = {0x80, 0x80, 0x80, 0x80, 0x08, 0x80, 0x80, 0x80, 0x80, 0x08};

    for (size_t length = 5; length <= 10; length += 5) {
        struct wire wire = {.length = 0};
        struct cm_batch batch;

        wire_bytes(&wire, 9, "AB", 2);
        wire_bytes(&wire, 10, halves, length);
        reset();
        ck_assert_int_eq(cm_codec_get_batch(&arena, wire.bytes, wire.length, &batch), CM_CODEC_MALFORMED);
    }
}
END_TEST

START_TEST(test_reply_columns_agree)
{
    static const struct {
        const char *lengths, *statuses, *ivs, *tags;
        uint32_t iv_length, tag_length;
        int expected;
    } cases[] = {
        {"AB", "", "", "", 0, 0, CM_CODEC_OK},
        {"AB", "\1\2", "", "", 0, 0, CM_CODEC_OK},
        {"AB", "\1", "", "", 0, 0, CM_CODEC_MALFORMED},
        {"", "\1", "", "", 0, 0, CM_CODEC_MALFORMED},
        {"AB", "", "abcd", "", 2, 0, CM_CODEC_OK},
        {"AB", "", "abcd", "", 0, 0, CM_CODEC_MALFORMED},
        {"AB", "", "abc", "", 2, 0, CM_CODEC_MALFORMED},
        {"AB", "", "", "", 2, 0, CM_CODEC_MALFORMED},
        {"AB", "", "", "", 0x80000000, 0, CM_CODEC_MALFORMED},
        {"AB", "", "", "abcd", 0, 2, CM_CODEC_OK},
        {"AB", "", "", "abcde", 0, 2, CM_CODEC_MALFORMED},
        {"AB", "", "", "", 0, 0x80000000, CM_CODEC_MALFORMED},
        {"", "", "", "", 12, 16, CM_CODEC_OK},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wire wire = {.length = 0};
        struct cm_batch_reply reply = {.count = 99};

        wire_number(&wire, 1, 78);
        wire_bytes(&wire, 5, cases[i].lengths, strlen(cases[i].lengths));
        wire_bytes(&wire, 6, cases[i].statuses, strlen(cases[i].statuses));
        wire_number(&wire, 7, cases[i].iv_length);
        wire_bytes(&wire, 8, cases[i].ivs, strlen(cases[i].ivs));
        wire_number(&wire, 9, cases[i].tag_length);
        wire_bytes(&wire, 10, cases[i].tags, strlen(cases[i].tags));
        reset();
        ck_assert_int_eq(cm_codec_get_batch_reply(&arena, wire.bytes, wire.length, &reply),
                         cases[i].expected);
        ck_assert_uint_eq(reply.request_id, 78);
        ck_assert_uint_eq(reply.count, cases[i].expected == CM_CODEC_OK ? strlen(cases[i].lengths) : 99);
    }
}
END_TEST

START_TEST(test_encoding_refuses_contradictions)
{
    static const uint32_t column[2] = {1, 2};
    static const uint8_t bytes[20] = {1}, parts[2] = {1, 2}, unknown_parts[2] = {1, 4};
    const struct cm_batch cases[] = {
        {.count = 2, .lengths = column, .ivs = {bytes, 1}},
        {.count = 2, .lengths = column, .iv_lengths = column, .ivs = {bytes, 2}},
        {.count = 2, .lengths = column, .iv_lengths = column, .ivs = {bytes, 4}},
        {.count = 2, .lengths = column, .tags = {bytes, 3}},
        {.count = 0, .tags = {bytes, 3}},
        {.count = 2, .lengths = column, .parts = parts},
        {.count = 2, .lengths = column, .operations = column},
        {.count = 2, .lengths = column, .parts = unknown_parts, .operations = column},
    };
    const struct cm_hello hello = {.session_token = {bytes, 15}};
    const struct cm_welcome welcome = {.session_token = {bytes, 17}};
    const struct cm_call call = {.kind = CM_CALL_GET_STATUS, .operation_id = {bytes, 1}};
    const struct cm_call nothing = {.kind = CM_CALL_NONE};
    const struct cm_answer answer = {.kind = CM_ANSWER_KEY, .key_count = 0};
    const struct cm_answer handle = {.kind = CM_ANSWER_KEY_HANDLE, .key_count = 2};
    size_t length = 55;

    reset();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ck_assert_int_eq(cm_codec_put_batch(&arena, &cases[i], 0, buffer, sizeof buffer, &length),
                         CM_CODEC_MALFORMED);
    ck_assert_int_eq(cm_codec_put_hello(&arena, &hello, buffer, sizeof buffer, &length), CM_CODEC_MALFORMED);
    ck_assert_int_eq(cm_codec_put_welcome(&arena, &welcome, buffer, sizeof buffer, &length),
                     CM_CODEC_MALFORMED);
    ck_assert_int_eq(cm_codec_put_call(&arena, &call, 0, buffer, sizeof buffer, &length), CM_CODEC_MALFORMED);
    ck_assert_int_eq(cm_codec_put_call(&arena, &nothing, 0, buffer, sizeof buffer, &length),
                     CM_CODEC_MALFORMED);
    ck_assert_int_eq(cm_codec_put_answer(&arena, &answer, buffer, sizeof buffer, &length),
                     CM_CODEC_MALFORMED);
    ck_assert_int_eq(cm_codec_put_answer(&arena, &handle, buffer, sizeof buffer, &length),
                     CM_CODEC_MALFORMED);
    ck_assert_uint_eq(length, 55);
    ck_assert_uint_eq(arena.used, 0);
}
END_TEST

static void add(TCase *test_case)
{
    tcase_add_test(test_case, test_iv_lengths_keep_their_meaning);
    tcase_add_test(test_case, test_a_batch_with_every_column);
    tcase_add_test(test_case, test_unknown_modes_stay_unknown);
    tcase_add_test(test_case, test_batch_columns_agree);
    tcase_add_test(test_case, test_iv_length_sums_do_not_wrap);
    tcase_add_test(test_case, test_reply_columns_agree);
    tcase_add_test(test_case, test_encoding_refuses_contradictions);
}

int main(void)
{
    return run_suite("codec_batch", add);
}
