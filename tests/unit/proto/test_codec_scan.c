/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile headers: each ends in a status or is decoded, within the arena, whatever it repeats or nests. */
#include "codec.h"
#include "suite.h"
#include "wire_bytes.h"

/* The arena, and behind it bytes that nobody may write. */
enum { FENCE_BYTES = 4096 };
static uint8_t memory[CM_ARENA_BYTES + FENCE_BYTES];
static struct wire wire;

static void reset(void)
{
    wire.length = 0;
    memset(memory, 0xa5, sizeof memory);
}

static void expect_fence(const struct cm_arena *arena)
{
    ck_assert_uint_le(arena->used, CM_ARENA_BYTES);
    for (size_t i = CM_ARENA_BYTES; i < sizeof memory; i++)
        ck_assert_uint_eq(memory[i], 0xa5);
}

static int get_batch(uint64_t *ret_request_id)
{
    struct cm_batch batch;
    struct cm_arena arena;
    int rc;

    cm_arena_init(&arena, memory, CM_ARENA_BYTES);
    rc = cm_codec_get_batch(&arena, wire.bytes, wire.length, &batch);
    expect_fence(&arena);
    if (ret_request_id != NULL)
        *ret_request_id = batch.request_id;
    return rc;
}

static int get_call(void)
{
    struct cm_call call;
    struct cm_arena arena;
    int rc;

    cm_arena_init(&arena, memory, CM_ARENA_BYTES);
    rc = cm_codec_get_call(&arena, wire.bytes, wire.length, &call);
    expect_fence(&arena);
    return rc;
}

static int get_answer(void)
{
    struct cm_answer answer;
    struct cm_arena arena;
    int rc;

    cm_arena_init(&arena, memory, CM_ARENA_BYTES);
    rc = cm_codec_get_answer(&arena, wire.bytes, wire.length, &answer);
    expect_fence(&arena);
    return rc;
}

/* Repeats the pattern as often as the header limit allows. */
static void fill(const void *pattern, size_t length)
{
    while (wire.length + length <= CM_HEADER_LIMIT) {
        memcpy(wire.bytes + wire.length, pattern, length);
        wire.length += length;
    }
}

START_TEST(test_field_limit)
{
    for (uint32_t count = CM_HEADER_FIELDS_MAX - 1; count <= CM_HEADER_FIELDS_MAX + 1; count++) {
        uint64_t request_id;

        reset();
        wire_number(&wire, 1, 99);
        for (uint32_t i = 1; i < count; i++)
            wire_number(&wire, 1000, 1);
        ck_assert_int_eq(get_batch(&request_id),
                         count <= CM_HEADER_FIELDS_MAX ? CM_CODEC_OK : CM_CODEC_TOO_COMPLEX);
        ck_assert_uint_eq(request_id, 99);
    }
}
END_TEST

/* Fields of inner messages count too: OpenKey with unknown fields inside. */
START_TEST(test_field_limit_counts_inner_fields)
{
    for (uint32_t inner = CM_HEADER_FIELDS_MAX - 2; inner <= CM_HEADER_FIELDS_MAX; inner++) {
        static uint8_t content[2 * CM_HEADER_FIELDS_MAX];

        for (uint32_t i = 0; i < inner; i++) {
            content[2 * i] = 15 << 3;
            content[2 * i + 1] = 1;
        }
        reset();
        wire_bytes(&wire, 16, content, 2 * inner);
        ck_assert_int_eq(get_call(), inner + 1 <= CM_HEADER_FIELDS_MAX ? CM_CODEC_OK : CM_CODEC_TOO_COMPLEX);
    }
}
END_TEST

/* 64 KiB of one pattern, in the place of each message. */
static const struct {
    const char *what;
    const char *pattern;
    size_t length;
    int batch, call, answer;
} floods[] = {
    {"unknown numbers", "\xa0\x06\x01", 3, CM_CODEC_TOO_COMPLEX, CM_CODEC_TOO_COMPLEX, CM_CODEC_TOO_COMPLEX},
    {"unknown empty bytes", "\xa2\x06\x00", 3, CM_CODEC_TOO_COMPLEX, CM_CODEC_TOO_COMPLEX,
     CM_CODEC_TOO_COMPLEX},
    {"the request id", "\x08\x01", 2, CM_CODEC_TOO_COMPLEX, CM_CODEC_TOO_COMPLEX, CM_CODEC_TOO_COMPLEX},
    {"lengths, unpacked", "\x48\x01", 2, CM_CODEC_TOO_COMPLEX, CM_CODEC_TOO_COMPLEX, CM_CODEC_TOO_COMPLEX},
    {"lengths, empty columns", "\x4a\x00", 2, CM_CODEC_TOO_COMPLEX, CM_CODEC_TOO_COMPLEX,
     CM_CODEC_TOO_COMPLEX},
    {"IVs", "\x5a\x01\x01", 3, CM_CODEC_TOO_COMPLEX, CM_CODEC_TOO_COMPLEX, CM_CODEC_TOO_COMPLEX},
    {"open_key or key_handle", "\x82\x01\x00", 3, CM_CODEC_TOO_COMPLEX, CM_CODEC_TOO_COMPLEX,
     CM_CODEC_TOO_COMPLEX},
    /* A key_list with an empty key inside: as a call this is cancel_operation with a string for a number. */
    {"key lists", "\x92\x01\x02\x0a\x00", 5, CM_CODEC_TOO_COMPLEX, CM_CODEC_TOO_COMPLEX,
     CM_CODEC_TOO_COMPLEX},
    {"zeros", "\x00\x00", 2, CM_CODEC_MALFORMED, CM_CODEC_MALFORMED, CM_CODEC_MALFORMED},
    {"ones", "\xff\xff", 2, CM_CODEC_MALFORMED, CM_CODEC_MALFORMED, CM_CODEC_MALFORMED},
    {"groups", "\x0b\x0c", 2, CM_CODEC_MALFORMED, CM_CODEC_MALFORMED, CM_CODEC_MALFORMED},
};

START_TEST(test_flood)
{
    reset();
    fill(floods[_i].pattern, floods[_i].length);
    ck_assert_msg(get_batch(NULL) == floods[_i].batch, "batch: %s", floods[_i].what);
    ck_assert_msg(get_call() == floods[_i].call, "call: %s", floods[_i].what);
    ck_assert_msg(get_answer() == floods[_i].answer, "answer: %s", floods[_i].what);
}
END_TEST

/* One column that fills the header is no attack by itself: it is decoded, and fits. */
START_TEST(test_one_column_of_64_kib)
{
    static uint8_t content[CM_HEADER_LIMIT - 8];
    uint64_t request_id;

    reset();
    wire_number(&wire, 1, 5);
    wire_bytes(&wire, 9, content, sizeof content - 3);
    wire_bytes(&wire, 10, content, 1);
    ck_assert_uint_ge(wire.length, CM_HEADER_LIMIT - 2);
    ck_assert_int_eq(get_batch(&request_id), CM_CODEC_OK);
    ck_assert_uint_eq(request_id, 5);
}
END_TEST

START_TEST(test_header_over_the_limit)
{
    static uint8_t longer[CM_HEADER_LIMIT + 1];
    struct cm_batch batch = {.request_id = 7};
    struct cm_arena arena;

    cm_arena_init(&arena, memory, CM_ARENA_BYTES);
    ck_assert_int_eq(cm_codec_get_batch(&arena, longer, sizeof longer, &batch), CM_CODEC_TOO_COMPLEX);
    ck_assert_uint_eq(batch.request_id, 0);
    ck_assert_uint_eq(arena.used, 0);
}
END_TEST

START_TEST(test_empty_header)
{
    struct cm_hello hello = {.client = "x"};
    struct cm_batch batch;
    struct cm_arena arena;

    cm_arena_init(&arena, memory, CM_ARENA_BYTES);
    ck_assert_int_eq(cm_codec_get_hello(&arena, NULL, 0, &hello), CM_CODEC_OK);
    ck_assert_str_eq(hello.client, "");
    ck_assert_int_eq(cm_codec_get_batch(&arena, NULL, 0, &batch), CM_CODEC_OK);
    ck_assert_uint_eq(batch.request_id, 0);
    ck_assert_uint_eq(batch.count, 0);
}
END_TEST

/* Lists with many members: the arena is what bounds them. */
START_TEST(test_answers_are_bounded_by_the_arena)
{
    static uint8_t content[60000];

    for (size_t i = 0; i < sizeof content; i += 2) { /* 30,000 empty keys */
        content[i] = 0x0a;
        content[i + 1] = 0;
    }
    reset();
    wire_bytes(&wire, 18, content, sizeof content);
    ck_assert_int_eq(get_answer(), CM_CODEC_TOO_COMPLEX);
    reset();
    wire_bytes(&wire, 18, content, 2000);
    ck_assert_int_eq(get_answer(), CM_CODEC_OK);
}
END_TEST

/* --- What is malformed --- */

START_TEST(test_malformed)
{
    static const struct {
        const char *bytes;
        size_t length;
        uint64_t request_id;
    } cases[] = {
        {"\x08", 1, 0},                                                  /* a number without its value */
        {"\x08\x80", 2, 0},                                              /* ends inside the value */
        {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12, 0},     /* a varint of eleven bytes */
        {"\x08\x05\x4a\x02\x01", 5, 5},                                  /* a column longer than the header */
        {"\x08\x05\x4a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 13, 5}, /* … of 2^64 - 1 bytes */
        {"\x08\x05\x4a\x01\x80", 5, 5},                      /* a column that ends inside a value */
        {"\x08\x05\x4d\x01\x02\x03", 6, 5},                  /* 32 bits, of which 24 are there */
        {"\x08\x05\x4d\x01\x02\x03\x04", 7, 5},              /* lengths as 32 bits */
        {"\x08\x05\x49\x01\x02\x03\x04\x05\x06\x07", 10, 5}, /* 64 bits, of which 56 are there */
        {"\x08\x05\x58\x01", 4, 5},                          /* IVs as a number */
        {"\x08\x05\x0a\x01\x01", 5, 5},                      /* the request id as bytes */
        {"\x08\x05\x00\x01", 4, 5},                          /* field number 0 */
        {"\x08\x05\x08\x06\x02\x00", 6, 6},                  /* … with a length; the last id counts */
        {"\x08\x05\x4b", 3, 5},                              /* a group begins */
        {"\x08\x05\x4c", 3, 5},                              /* a group ends */
        {"\x08\x05\x4e", 3, 5},                              /* wire type 6 */
        {"\x08\x05\x4f", 3, 5},                              /* wire type 7 */
        {"\x08\x05\xf8\xff\xff\xff\x1f\x01", 8, 5},          /* a field number of 30 bits */
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t request_id;

        reset();
        memcpy(wire.bytes, cases[i].bytes, cases[i].length);
        wire.length = cases[i].length;
        ck_assert_msg(get_batch(&request_id) == CM_CODEC_MALFORMED, "case %zu", i);
        ck_assert_uint_eq(request_id, cases[i].request_id);
    }
}
END_TEST

START_TEST(test_strings_with_a_zero_inside)
{
    static const char *const names[] = {"\x0a\x03"
                                        "a\0b",
                                        "\x0a\x03"
                                        "ab\0",
                                        "\x0a\x03"
                                        "abc"};
    struct cm_hello hello;
    struct cm_arena arena;

    for (int i = 0; i < 3; i++) {
        reset();
        wire_bytes(&wire, 16, names[i], 5);
        ck_assert_int_eq(get_call(), i < 2 ? CM_CODEC_MALFORMED : CM_CODEC_OK);
    }
    reset();
    wire_bytes(&wire, 5, "x\0y", 3);
    cm_arena_init(&arena, memory, CM_ARENA_BYTES);
    ck_assert_int_eq(cm_codec_get_hello(&arena, wire.bytes, wire.length, &hello), CM_CODEC_MALFORMED);
}
END_TEST

START_TEST(test_lengths_of_tokens_and_ids)
{
    static const uint8_t bytes[17] = {1};

    for (size_t length = 0; length <= 17; length++) {
        bool none = length == 0, right = length == 16;
        struct cm_hello hello;
        struct cm_welcome welcome;
        struct cm_arena arena;

        cm_arena_init(&arena, memory, CM_ARENA_BYTES);
        reset();
        wire_bytes(&wire, 2, bytes, length);
        ck_assert_int_eq(get_call(), none || right ? CM_CODEC_OK : CM_CODEC_MALFORMED);
        reset();
        wire_bytes(&wire, 4, bytes, length);
        ck_assert_int_eq(cm_codec_get_hello(&arena, wire.bytes, wire.length, &hello),
                         none || right ? CM_CODEC_OK : CM_CODEC_MALFORMED);
        reset();
        wire_bytes(&wire, 3, bytes, length);
        ck_assert_int_eq(cm_codec_get_welcome(&arena, wire.bytes, wire.length, &welcome), CM_CODEC_MALFORMED);
        wire_bytes(&wire, 4, "", 0); /* now with limits */
        ck_assert_int_eq(cm_codec_get_welcome(&arena, wire.bytes, wire.length, &welcome),
                         right ? CM_CODEC_OK : CM_CODEC_MALFORMED);
    }
}
END_TEST

START_TEST(test_keys_in_answers)
{
    reset();
    wire_bytes(&wire, 16, "\x08\x01", 2); /* a handle without its key */
    ck_assert_int_eq(get_answer(), CM_CODEC_MALFORMED);
    reset();
    wire_bytes(&wire, 16, "\x08\x01\x12\x00", 4);
    ck_assert_int_eq(get_answer(), CM_CODEC_OK);
    reset();
    wire_bytes(&wire, 17, "\x12\x02id", 4); /* an id of two bytes */
    ck_assert_int_eq(get_answer(), CM_CODEC_MALFORMED);
}
END_TEST

START_TEST(test_unknown_call)
{
    struct cm_call call;
    struct cm_arena arena;

    reset();
    wire_number(&wire, 1, 8);
    wire_bytes(&wire, 99, "\x0a\x01x", 3);
    cm_arena_init(&arena, memory, CM_ARENA_BYTES);
    ck_assert_int_eq(cm_codec_get_call(&arena, wire.bytes, wire.length, &call), CM_CODEC_OK);
    ck_assert_uint_eq(call.request_id, 8);
    ck_assert_int_eq(call.kind, CM_CALL_NONE);
    ck_assert_str_eq(call.name, "");
    /* Of two kinds the last one counts. */
    wire_bytes(&wire, 16, "\x0a\x01x", 3);
    wire_bytes(&wire, 35, "\x0a\x01y", 3);
    ck_assert_int_eq(cm_codec_get_call(&arena, wire.bytes, wire.length, &call), CM_CODEC_OK);
    ck_assert_int_eq(call.kind, CM_CALL_DESTROY_KEY);
    ck_assert_str_eq(call.name, "y");
}
END_TEST

START_TEST(test_unpacked_columns_are_read)
{
    struct cm_batch batch;
    struct cm_arena arena;

    reset();
    wire_number(&wire, 9, 70000);
    wire_bytes(&wire, 9, "\x01\x02", 2);
    wire_number(&wire, 9, 3);
    cm_arena_init(&arena, memory, CM_ARENA_BYTES);
    ck_assert_int_eq(cm_codec_get_batch(&arena, wire.bytes, wire.length, &batch), CM_CODEC_OK);
    ck_assert_uint_eq(batch.count, 4);
    ck_assert_uint_eq(batch.lengths[0], 70000);
    ck_assert_uint_eq(batch.lengths[1], 1);
    ck_assert_uint_eq(batch.lengths[2], 2);
    ck_assert_uint_eq(batch.lengths[3], 3);
}
END_TEST

static void add(TCase *test_case)
{
    tcase_add_test(test_case, test_field_limit);
    tcase_add_test(test_case, test_field_limit_counts_inner_fields);
    tcase_add_loop_test(test_case, test_flood, 0, (int)(sizeof floods / sizeof floods[0]));
    tcase_add_test(test_case, test_one_column_of_64_kib);
    tcase_add_test(test_case, test_header_over_the_limit);
    tcase_add_test(test_case, test_empty_header);
    tcase_add_test(test_case, test_answers_are_bounded_by_the_arena);
    tcase_add_test(test_case, test_malformed);
    tcase_add_test(test_case, test_strings_with_a_zero_inside);
    tcase_add_test(test_case, test_lengths_of_tokens_and_ids);
    tcase_add_test(test_case, test_keys_in_answers);
    tcase_add_test(test_case, test_unknown_call);
    tcase_add_test(test_case, test_unpacked_columns_are_read);
}

int main(void)
{
    return run_suite("codec_scan", add);
}
