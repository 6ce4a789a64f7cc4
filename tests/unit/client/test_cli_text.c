/* SPDX-License-Identifier: Apache-2.0 */
/* Hex, numbers, sizes, ranges, seconds, modes and near misses, as typed on a command line. */
#include "suite.h"
#include "text.h"
#include <ciphermill/ciphermill.h>
#include <string.h>

static enum text_result hex(const char *text, uint8_t *out, size_t capacity, size_t *length)
{
    return text_parse_hex(text, strlen(text), out, capacity, length);
}

START_TEST(test_hex)
{
    uint8_t out[4] = {9, 9, 9, 9};
    size_t length = 77;

    ck_assert_int_eq(hex("00ffA5", out, sizeof out, &length), TEXT_OK);
    ck_assert_uint_eq(length, 3);
    ck_assert_mem_eq(out, "\x00\xff\xa5", 3);
    ck_assert_int_eq(hex(" 0 1\n02\t03\r\n04 ", out, sizeof out, &length), TEXT_OK);
    ck_assert_uint_eq(length, 4);
    ck_assert_mem_eq(out, "\x01\x02\x03\x04", 4);
    ck_assert_int_eq(hex("", out, sizeof out, &length), TEXT_OK);
    ck_assert_uint_eq(length, 0);
}
END_TEST

START_TEST(test_bad_hex_is_wiped)
{
    static const struct {
        const char *text;
        enum text_result result;
    } rows[] = {{"01020", TEXT_ODD},        {"0102030405", TEXT_TOO_MUCH}, {"010203040", TEXT_TOO_MUCH},
                {"01 0g", TEXT_NOT_THAT},   {"0x01", TEXT_NOT_THAT},       {"0102-03", TEXT_NOT_THAT},
                {"\xc3\xa4", TEXT_NOT_THAT}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t out[4] = {9, 9, 9, 9};
        size_t length = 77;

        ck_assert_int_eq(hex(rows[i].text, out, sizeof out, &length), rows[i].result);
        ck_assert_uint_eq(length, 77);
        ck_assert_mem_eq(out, "\0\0\0\0", 4);
    }
}
END_TEST

START_TEST(test_hex_there_and_back)
{
    uint8_t bytes[256];
    uint8_t back[256];
    char text[513];
    size_t length;

    for (int i = 0; i < 256; i++)
        bytes[i] = (uint8_t)i;
    text_format_hex(bytes, sizeof bytes, text);
    ck_assert_uint_eq(strlen(text), 512);
    ck_assert_int_eq(strncmp(text, "000102", 6), 0);
    ck_assert_int_eq(hex(text, back, sizeof back, &length), TEXT_OK);
    ck_assert_mem_eq(back, bytes, sizeof bytes);
}
END_TEST

START_TEST(test_number)
{
    uint64_t number = 5;

    ck_assert_int_eq(text_parse_number("18446744073709551615", &number), TEXT_OK);
    ck_assert_uint_eq(number, UINT64_MAX);
    ck_assert_int_eq(text_parse_number("18446744073709551616", &number), TEXT_TOO_MUCH);
    ck_assert_int_eq(text_parse_number("-1", &number), TEXT_NOT_THAT);
    ck_assert_int_eq(text_parse_number("+1", &number), TEXT_NOT_THAT);
    ck_assert_int_eq(text_parse_number(" 1", &number), TEXT_NOT_THAT);
    ck_assert_int_eq(text_parse_number("1x", &number), TEXT_NOT_THAT);
    ck_assert_int_eq(text_parse_number("", &number), TEXT_NOT_THAT);
    ck_assert_uint_eq(number, UINT64_MAX);
}
END_TEST

START_TEST(test_size)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } rows[] = {{"0", 0},
                {"4096", 4096},
                {"4K", 4096},
                {"4k", 4096},
                {"4KiB", 4096},
                {"1M", 1 << 20},
                {"2GiB", 2ULL << 30},
                {"1T", 1ULL << 40},
                {"16777215T", 16777215ULL << 40}};
    static const char *const bad[] = {"", "K", "4KB", "4Ki", "4 K", "-4", "4.5K", "4X", "4KiBB"};
    uint64_t bytes = 3;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_int_eq(text_parse_size(bad[i], &bytes), TEXT_NOT_THAT);
    ck_assert_int_eq(text_parse_size("16777216T", &bytes), TEXT_TOO_MUCH);
    ck_assert_uint_eq(bytes, 3);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ck_assert_int_eq(text_parse_size(rows[i].text, &bytes), TEXT_OK);
        ck_assert_uint_eq(bytes, rows[i].bytes);
    }
}
END_TEST

START_TEST(test_range)
{
    uint64_t least;
    uint64_t most;

    ck_assert_int_eq(text_parse_range("64-4KiB", &least, &most), TEXT_OK);
    ck_assert_uint_eq(least, 64);
    ck_assert_uint_eq(most, 4096);
    ck_assert_int_eq(text_parse_range("1K", &least, &most), TEXT_OK);
    ck_assert_uint_eq(least, 1024);
    ck_assert_uint_eq(most, 1024);
    ck_assert_int_eq(text_parse_range("1K-1K", &least, &most), TEXT_OK);
    ck_assert_int_eq(text_parse_range("2K-1K", &least, &most), TEXT_NOT_THAT);
    ck_assert_int_eq(text_parse_range("2K-", &least, &most), TEXT_NOT_THAT);
    ck_assert_int_eq(text_parse_range("-2K", &least, &most), TEXT_NOT_THAT);
    ck_assert_int_eq(text_parse_range("1-2-3", &least, &most), TEXT_NOT_THAT);
    ck_assert_uint_eq(least, 1024);
}
END_TEST

START_TEST(test_seconds)
{
    static const char *const bad[] = {"", "s", ".", "1e3", "0x10", "inf", "nan", "-1", "1m", "1s2", "1ss"};
    double seconds = -1;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_int_eq(text_parse_seconds(bad[i], &seconds), TEXT_NOT_THAT);
    ck_assert_int_eq(text_parse_seconds("1000001", &seconds), TEXT_TOO_MUCH);
    ck_assert_double_eq(seconds, -1);
    ck_assert_int_eq(text_parse_seconds("0.25", &seconds), TEXT_OK);
    ck_assert_double_eq(seconds, 0.25);
    ck_assert_int_eq(text_parse_seconds("5s", &seconds), TEXT_OK);
    ck_assert_double_eq(seconds, 5);
}
END_TEST

START_TEST(test_bytes)
{
    char text[TEXT_BYTES_MAX];

    text_format_bytes(1023, text);
    ck_assert_str_eq(text, "1023 B");
    text_format_bytes(1536, text);
    ck_assert_str_eq(text, "1.5 KiB");
    text_format_bytes(8.0 * 1024 * 1024, text);
    ck_assert_str_eq(text, "8.0 MiB");
    text_format_bytes(1e30, text); /* must not overflow, whatever it says */
    ck_assert_uint_lt(strlen(text), TEXT_BYTES_MAX);
}
END_TEST

START_TEST(test_modes)
{
    char text[TEXT_MODES_MAX];
    uint32_t modes = 0;

    ck_assert_int_eq(text_mode_number("gcm"), CM_GCM);
    ck_assert_int_eq(text_mode_number("xts"), CM_XTS);
    ck_assert_str_eq(text_mode_name(CM_XTS), "xts");
    ck_assert_str_eq(text_mode_name(CM_XTS + 1), "?");
    ck_assert_int_eq(text_mode_number("GCM"), 0);
    ck_assert_str_eq(text_mode_name(CM_CBC), "cbc");
    ck_assert_str_eq(text_mode_name(99), "?");
    ck_assert_int_eq(text_parse_modes("ecb,cbc,ctr", &modes), TEXT_OK);
    ck_assert_uint_eq(modes, CM_MODE_BIT(CM_ECB) | CM_MODE_BIT(CM_CBC) | CM_MODE_BIT(CM_CTR));
    ck_assert_int_eq(text_modes_count(modes), 3);
    ck_assert_int_eq(text_modes_first(modes), CM_ECB);
    text_format_modes(modes, text);
    ck_assert_str_eq(text, "ecb, cbc, ctr");
    ck_assert_int_eq(text_parse_modes("", &modes), TEXT_NOT_THAT);
    ck_assert_int_eq(text_parse_modes("ecb,", &modes), TEXT_NOT_THAT);
    ck_assert_int_eq(text_parse_modes("ecb cbc", &modes), TEXT_NOT_THAT);
    ck_assert_int_eq(text_parse_modes("averyverylongname", &modes), TEXT_NOT_THAT);
}
END_TEST

START_TEST(test_near)
{
    ck_assert(text_is_near("mod", "mode"));
    ck_assert(text_is_near("moed", "mode"));
    ck_assert(text_is_near("implem", "implementations"));
    ck_assert(text_is_near("encript", "encrypt"));
    ck_assert(!text_is_near("key", "help"));
    ck_assert(!text_is_near("", "in"));
    ck_assert(!text_is_near("x", "in"));
}
END_TEST

static void add(TCase *test_case)
{
    tcase_add_test(test_case, test_hex);
    tcase_add_test(test_case, test_bad_hex_is_wiped);
    tcase_add_test(test_case, test_hex_there_and_back);
    tcase_add_test(test_case, test_number);
    tcase_add_test(test_case, test_size);
    tcase_add_test(test_case, test_range);
    tcase_add_test(test_case, test_seconds);
    tcase_add_test(test_case, test_bytes);
    tcase_add_test(test_case, test_modes);
    tcase_add_test(test_case, test_near);
}

int main(void)
{
    return run_suite("cli_text", add);
}
