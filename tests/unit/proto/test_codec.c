/* SPDX-License-Identifier: Apache-2.0 */
/* The codec's arena, and buffers and headers at their edge. */
#include "codec.h"
#include "suite.h"

enum { BUFFER_BYTES = 80000 };

static uint8_t arena_memory[CM_ARENA_BYTES];
static uint8_t buffer[BUFFER_BYTES];
static struct cm_arena arena;

static void reset(void)
{
    cm_arena_init(&arena, arena_memory, sizeof arena_memory);
}

/* --- The arena --- */

START_TEST(test_arena)
{
    uint8_t block[112];
    struct cm_arena small;

    for (size_t offset = 0; offset < 16; offset++) {
        uint8_t *first, *second;

        cm_arena_init(&small, block + offset, 96);
        first = cm_arena_take(&small, 1);
        ck_assert_ptr_nonnull(first);
        ck_assert_uint_eq((uintptr_t)first % 16, 0);
        second = cm_arena_take(&small, 17);
        ck_assert_ptr_eq(second, first + 16);
        ck_assert_ptr_null(cm_arena_take(&small, 96));
        ck_assert_ptr_null(cm_arena_take(&small, SIZE_MAX));
        ck_assert_ptr_null(cm_arena_take(&small, SIZE_MAX - 15));
        ck_assert_ptr_eq(cm_arena_take(&small, 1), first + 48);
        cm_arena_reset(&small);
        ck_assert_ptr_eq(cm_arena_take(&small, 1), first);
    }
    cm_arena_init(&small, block, 0);
    ck_assert_ptr_null(cm_arena_take(&small, 1));
}
END_TEST

START_TEST(test_arena_is_used_to_the_last_byte)
{
    static _Alignas(16) uint8_t block[64];
    struct cm_arena small;

    cm_arena_init(&small, block, sizeof block);
    ck_assert_ptr_eq(cm_arena_take(&small, 48), block);
    ck_assert_ptr_null(cm_arena_take(&small, 17));
    ck_assert_ptr_eq(cm_arena_take(&small, 16), block + 48);
    ck_assert_ptr_null(cm_arena_take(&small, 1));
}
END_TEST

/* --- Room --- */

/* The longest header: one length costs one byte, the tag and length of the column four. */
enum { LONGEST_COUNT = CM_HEADER_LIMIT - 4 };

START_TEST(test_header_limit)
{
    uint32_t *lengths = calloc(LONGEST_COUNT + 1, sizeof *lengths);
    struct cm_batch batch = {.count = LONGEST_COUNT - 1, .lengths = lengths}, back;
    struct cm_frame frame;
    size_t length;

    ck_assert_ptr_nonnull(lengths);
    for (; batch.count <= LONGEST_COUNT; batch.count++) {
        reset();
        ck_assert_int_eq(cm_codec_put_batch(&arena, &batch, 0, buffer, sizeof buffer, &length), CM_CODEC_OK);
        ck_assert_int_eq(cm_frame_parse(buffer, length, CM_HEADER_LIMIT, SIZE_MAX, &frame), CM_FRAME_OK);
        ck_assert_uint_eq(frame.header_length, batch.count + 4);
        ck_assert_int_eq(cm_codec_get_batch(&arena, buffer + 16, frame.header_length, &back), CM_CODEC_OK);
        ck_assert_uint_eq(back.count, batch.count);
    }
    ck_assert_int_eq(cm_codec_put_batch(&arena, &batch, 0, buffer, sizeof buffer, &length), CM_CODEC_NO_ROOM);
    free(lengths);
}
END_TEST

START_TEST(test_buffer_of_just_the_size)
{
    static const uint32_t lengths[40] = {0};
    struct cm_batch batch = {.count = 40, .lengths = lengths}; /* 42 bytes of header */
    size_t length = 55;

    reset();
    memset(buffer, 0xee, 200);
    ck_assert_int_eq(cm_codec_put_batch(&arena, &batch, 0, buffer, 63, &length), CM_CODEC_NO_ROOM);
    ck_assert_int_eq(cm_codec_put_batch(&arena, &batch, 0, buffer, 0, &length), CM_CODEC_NO_ROOM);
    ck_assert_uint_eq(length, 55);
    ck_assert_uint_eq(buffer[0], 0xee);
    ck_assert_int_eq(cm_codec_put_batch(&arena, &batch, 0, buffer, 64, &length), CM_CODEC_OK);
    ck_assert_uint_eq(length, 64);
    ck_assert_uint_eq(buffer[64], 0xee);
}
END_TEST

START_TEST(test_encoding_leaves_the_arena)
{
    static const uint32_t lengths[4] = {0}, operations[4] = {1, 2, 3, 4};
    static const uint8_t parts[4] = {1, 1, 1, 1};
    struct cm_batch batch = {.count = 4, .lengths = lengths, .parts = parts, .operations = operations};
    struct cm_arena small;
    uint8_t block[24];
    size_t length;

    reset();
    ck_assert_ptr_nonnull(cm_arena_take(&arena, 100));
    ck_assert_int_eq(cm_codec_put_batch(&arena, &batch, 0, buffer, sizeof buffer, &length), CM_CODEC_OK);
    ck_assert_uint_eq(arena.used, 100);
    /* Parts need scratch; where there is none, it says so. */
    cm_arena_init(&small, block, 8);
    ck_assert_int_eq(cm_codec_put_batch(&small, &batch, 0, buffer, sizeof buffer, &length), CM_CODEC_NO_ROOM);
    ck_assert_uint_eq(small.used, 0);
}
END_TEST

START_TEST(test_decoding_in_too_small_an_arena)
{
    static const uint32_t lengths[100] = {0}, operations[100] = {0}, iv_lengths[100] = {0};
    static const uint8_t parts[100] = {0};
    const struct cm_batch batch = {.request_id = 6,
                                   .count = 100,
                                   .lengths = lengths,
                                   .iv_lengths = iv_lengths,
                                   .parts = parts,
                                   .operations = operations};
    struct cm_frame frame;
    size_t length, needed;
    struct cm_batch back;

    reset();
    ck_assert_int_eq(cm_codec_put_batch(&arena, &batch, 0, buffer, sizeof buffer, &length), CM_CODEC_OK);
    ck_assert_int_eq(cm_frame_parse(buffer, length, CM_HEADER_LIMIT, SIZE_MAX, &frame), CM_FRAME_OK);
    ck_assert_int_eq(cm_codec_get_batch(&arena, buffer + 16, frame.header_length, &back), CM_CODEC_OK);
    needed = arena.used;
    ck_assert_uint_gt(needed, 4 * 100 * sizeof(uint32_t));
    for (size_t capacity = 0; capacity < needed; capacity++) {
        cm_arena_init(&arena, arena_memory, capacity);
        back.request_id = 0;
        ck_assert_int_eq(cm_codec_get_batch(&arena, buffer + 16, frame.header_length, &back),
                         CM_CODEC_TOO_COMPLEX);
        ck_assert_uint_eq(back.request_id, 6);
        ck_assert_uint_le(arena.used, capacity);
    }
    cm_arena_init(&arena, arena_memory, needed);
    ck_assert_int_eq(cm_codec_get_batch(&arena, buffer + 16, frame.header_length, &back), CM_CODEC_OK);
}
END_TEST

static void add(TCase *test_case)
{
    tcase_add_test(test_case, test_arena);
    tcase_add_test(test_case, test_arena_is_used_to_the_last_byte);
    tcase_add_test(test_case, test_header_limit);
    tcase_add_test(test_case, test_buffer_of_just_the_size);
    tcase_add_test(test_case, test_encoding_leaves_the_arena);
    tcase_add_test(test_case, test_decoding_in_too_small_an_arena);
}

int main(void)
{
    return run_suite("codec", add);
}
