/* SPDX-License-Identifier: Apache-2.0 */
/* The prefix: its bytes, what is refused, and both limits at their edges. */
#include "frame.h"
#include "suite.h"

#include <string.h>

enum { HEADER_LIMIT = 1000, FRAME_LIMIT = 100000 };

static const uint8_t prefix[CM_FRAME_PREFIX_BYTES] = {'C',  'M',  'I',  'L',  1,    3,    0,    0,
                                                      0x21, 0x03, 0x00, 0x00, 0x04, 0x03, 0x01, 0x00};
static const struct cm_frame untouched = {.version = 99, .type = 98, .header_length = 97, .body_length = 96};

static void expect_untouched(const struct cm_frame *frame)
{
    ck_assert_uint_eq(frame->version, untouched.version);
    ck_assert_uint_eq(frame->type, untouched.type);
    ck_assert_uint_eq(frame->header_length, untouched.header_length);
    ck_assert_uint_eq(frame->body_length, untouched.body_length);
}

static int parse(const uint8_t *bytes, struct cm_frame *ret_frame)
{
    return cm_frame_parse(bytes, CM_FRAME_PREFIX_BYTES, HEADER_LIMIT, FRAME_LIMIT, ret_frame);
}

START_TEST(test_put)
{
    struct cm_frame frame = {.version = 1, .type = 3, .header_length = 0x321, .body_length = 0x10304};
    uint8_t bytes[CM_FRAME_PREFIX_BYTES + 1];

    memset(bytes, 0xee, sizeof bytes);
    cm_frame_put(&frame, bytes);
    ck_assert_mem_eq(bytes, prefix, sizeof prefix);
    ck_assert_uint_eq(bytes[CM_FRAME_PREFIX_BYTES], 0xee);
    frame.version = 0xfb;
    frame.type = 0xfa;
    frame.header_length = 0xfffefdfc;
    frame.body_length = 0x80706050;
    cm_frame_put(&frame, bytes);
    ck_assert_mem_eq(bytes + 4, "\xfb\xfa\0\0", 4);
    ck_assert_mem_eq(bytes + 8, "\xfc\xfd\xfe\xff\x50\x60\x70\x80", 8);
}
END_TEST

START_TEST(test_parse)
{
    struct cm_frame frame = untouched;

    ck_assert_int_eq(parse(prefix, &frame), CM_FRAME_OK);
    ck_assert_uint_eq(frame.version, 1);
    ck_assert_uint_eq(frame.type, 3);
    ck_assert_uint_eq(frame.header_length, 0x321);
    ck_assert_uint_eq(frame.body_length, 0x10304);
}
END_TEST

START_TEST(test_every_short_read_asks_for_more)
{
    struct cm_frame frame = untouched;

    for (size_t available = 0; available < CM_FRAME_PREFIX_BYTES; available++)
        ck_assert_int_eq(cm_frame_parse(prefix, available, HEADER_LIMIT, FRAME_LIMIT, &frame), CM_FRAME_MORE);
    expect_untouched(&frame);
}
END_TEST

START_TEST(test_every_magic_byte_counts)
{
    for (int i = 0; i < 4; i++) {
        struct cm_frame frame = untouched;
        uint8_t bytes[CM_FRAME_PREFIX_BYTES];

        memcpy(bytes, prefix, sizeof bytes);
        bytes[i] ^= 0x20;
        ck_assert_int_eq(parse(bytes, &frame), CM_FRAME_BAD_MAGIC);
        expect_untouched(&frame);
    }
}
END_TEST

START_TEST(test_every_reserved_byte_is_zero)
{
    for (int i = 6; i < 8; i++) {
        for (int bit = 0; bit < 8; bit++) {
            struct cm_frame frame = untouched;
            uint8_t bytes[CM_FRAME_PREFIX_BYTES];

            memcpy(bytes, prefix, sizeof bytes);
            bytes[i] = (uint8_t)(1 << bit);
            ck_assert_int_eq(parse(bytes, &frame), CM_FRAME_BAD_RESERVED);
            expect_untouched(&frame);
        }
    }
}
END_TEST

START_TEST(test_another_version_is_named)
{
    for (int version = 0; version < 256; version++) {
        struct cm_frame frame = untouched;
        uint8_t bytes[CM_FRAME_PREFIX_BYTES];

        memcpy(bytes, prefix, sizeof bytes);
        bytes[4] = (uint8_t)version;
        /* What another version makes of the reserved bytes and how long its frames are is its own business.
         */
        bytes[6] = version == CM_PROTOCOL_VERSION ? 0 : 0xff;
        bytes[15] = version == CM_PROTOCOL_VERSION ? 0 : 0xff;
        ck_assert_int_eq(parse(bytes, &frame),
                         version == CM_PROTOCOL_VERSION ? CM_FRAME_OK : CM_FRAME_BAD_VERSION);
        ck_assert_int_eq(frame.version, version);
        ck_assert_uint_eq(frame.type, 3);
    }
}
END_TEST

/* What a frame of these lengths comes to. */
static int judge(uint32_t header_length, uint32_t body_length, uint32_t header_limit, size_t frame_limit)
{
    struct cm_frame frame = {.version = CM_PROTOCOL_VERSION,
                             .type = CM_FRAME_BATCH,
                             .header_length = header_length,
                             .body_length = body_length};
    uint8_t bytes[CM_FRAME_PREFIX_BYTES];

    cm_frame_put(&frame, bytes);
    frame = untouched;
    int rc = cm_frame_parse(bytes, sizeof bytes, header_limit, frame_limit, &frame);
    ck_assert_uint_eq(frame.header_length, header_length);
    return rc;
}

START_TEST(test_header_limit)
{
    ck_assert_int_eq(judge(HEADER_LIMIT - 1, 0, HEADER_LIMIT, FRAME_LIMIT), CM_FRAME_OK);
    ck_assert_int_eq(judge(HEADER_LIMIT, 0, HEADER_LIMIT, FRAME_LIMIT), CM_FRAME_OK);
    ck_assert_int_eq(judge(HEADER_LIMIT + 1, 0, HEADER_LIMIT, FRAME_LIMIT), CM_FRAME_TOO_LARGE);
    ck_assert_int_eq(judge(UINT32_MAX, 0, HEADER_LIMIT, SIZE_MAX), CM_FRAME_TOO_LARGE);
    ck_assert_int_eq(judge(CM_HEADER_LIMIT, 0, CM_HEADER_LIMIT, SIZE_MAX), CM_FRAME_OK);
}
END_TEST

START_TEST(test_frame_limit)
{
    /* A header of 49 bytes puts the body at 128, one of 48 at 64. */
    ck_assert_int_eq(judge(49, FRAME_LIMIT - 128 - 1, HEADER_LIMIT, FRAME_LIMIT), CM_FRAME_OK);
    ck_assert_int_eq(judge(49, FRAME_LIMIT - 128, HEADER_LIMIT, FRAME_LIMIT), CM_FRAME_OK);
    ck_assert_int_eq(judge(49, FRAME_LIMIT - 128 + 1, HEADER_LIMIT, FRAME_LIMIT), CM_FRAME_TOO_LARGE);
    ck_assert_int_eq(judge(48, FRAME_LIMIT - 64, HEADER_LIMIT, FRAME_LIMIT), CM_FRAME_OK);
    ck_assert_int_eq(judge(48, FRAME_LIMIT - 64 + 1, HEADER_LIMIT, FRAME_LIMIT), CM_FRAME_TOO_LARGE);
    ck_assert_int_eq(judge(0, UINT32_MAX, HEADER_LIMIT, FRAME_LIMIT), CM_FRAME_TOO_LARGE);
    ck_assert_int_eq(judge(UINT32_MAX, UINT32_MAX, UINT32_MAX, FRAME_LIMIT), CM_FRAME_TOO_LARGE);
}
END_TEST

START_TEST(test_body_offset)
{
    struct cm_frame largest = {.header_length = UINT32_MAX, .body_length = UINT32_MAX};

    ck_assert_uint_eq(cm_frame_body_offset(0), 64);
    ck_assert_uint_eq(cm_frame_body_offset(1), 64);
    ck_assert_uint_eq(cm_frame_body_offset(47), 64);
    ck_assert_uint_eq(cm_frame_body_offset(48), 64);
    ck_assert_uint_eq(cm_frame_body_offset(49), 128);
    ck_assert_uint_eq(cm_frame_body_offset(CM_HEADER_LIMIT), 65600);
    ck_assert_uint_eq(cm_frame_body_offset(UINT32_MAX), UINT64_C(0x100000040));
    ck_assert_uint_eq(cm_frame_total(&largest), UINT64_C(0x20000003f));
}
END_TEST

static void add(TCase *test_case)
{
    tcase_add_test(test_case, test_put);
    tcase_add_test(test_case, test_parse);
    tcase_add_test(test_case, test_every_short_read_asks_for_more);
    tcase_add_test(test_case, test_every_magic_byte_counts);
    tcase_add_test(test_case, test_every_reserved_byte_is_zero);
    tcase_add_test(test_case, test_another_version_is_named);
    tcase_add_test(test_case, test_header_limit);
    tcase_add_test(test_case, test_frame_limit);
    tcase_add_test(test_case, test_body_offset);
}

int main(void)
{
    return run_suite("frame", add);
}
