/* SPDX-License-Identifier: Apache-2.0 */
/* Key bytes from files: exactly as many as the key has. */
#include "key_file.h"
#include "report.h"
#include "suite.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char path[] = "/tmp/cm-key-XXXXXX";

static int read_text(const char *text, size_t length, bool hex, uint32_t key_bits, uint8_t *out)
{
    FILE *file = fopen(path, "wb");

    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text, 1, length, file), length);
    ck_assert_int_eq(fclose(file), 0);
    return key_file_read(path, hex, key_bits, false, out);
}

#define HEX16 "000102030405060708090a0b0c0d0e0f"

START_TEST(test_hex)
{
    static const char lines[] = "00 01 02 03 04 05 06 07\n08 09 0A 0b 0c 0d 0e 0f\n";
    uint8_t out[32] = {0};

    ck_assert_int_eq(read_text(HEX16 "\n", 33, true, 128, out), CODE_OK);
    for (int i = 0; i < 16; i++)
        ck_assert_uint_eq(out[i], (unsigned)i);
    memset(out, 0, sizeof out);
    ck_assert_int_eq(read_text(lines, strlen(lines), true, 128, out), CODE_OK);
    ck_assert_uint_eq(out[15], 15);
    ck_assert_int_eq(read_text(HEX16 HEX16, 64, true, 256, out), CODE_OK);
    ck_assert_uint_eq(out[31], 15);
}
END_TEST

START_TEST(test_wrong_hex)
{
    static const char *const texts[] = {"",        "\n", "00",        HEX16 "00",
                                        HEX16 "0", "zz", HEX16 HEX16, "0x000102030405060708090a0b0c0d0e0f"};
    uint8_t out[32];

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        ck_assert_msg(read_text(texts[i], strlen(texts[i]), true, 128, out) == CODE_FAILED, "%s", texts[i]);
    ck_assert_int_eq(read_text(HEX16, 32, true, 192, out), CODE_FAILED);
}
END_TEST

START_TEST(test_raw)
{
    static const char bytes[33] = "0123456789abcdef\n123456789abcdef";
    uint8_t out[32] = {0};

    ck_assert_int_eq(read_text(bytes, 24, false, 192, out), CODE_OK);
    ck_assert_mem_eq(out, bytes, 24);
    ck_assert_int_eq(read_text(bytes, 17, false, 128, out), CODE_FAILED);
    ck_assert_int_eq(read_text(bytes, 15, false, 128, out), CODE_FAILED);
}
END_TEST

START_TEST(test_xts)
{
    static const char bytes[65] = "0123456789abcdef0123456789ABCDEF0123456789abcdef0123456789ABCDEF";
    uint8_t out[64] = {0};

    for (uint32_t bits = 128; bits <= 256; bits += 128) {
        ck_assert_int_eq(read_text(bytes, bits / 4, false, bits, out), CODE_FAILED);
        ck_assert_int_eq(key_file_read(path, false, bits, true, out), CODE_OK);
        ck_assert_mem_eq(out, bytes, bits / 4);
        ck_assert_int_eq(key_file_read(path, true, bits, true, out), CODE_FAILED);
        ck_assert_int_eq(read_text(bytes, bits / 8, false, bits, out), CODE_OK);
        ck_assert_int_eq(key_file_read(path, false, bits, true, out), CODE_FAILED);
    }
    ck_assert_int_eq(read_text(bytes, 64, true, 128, out), CODE_FAILED);
    ck_assert_int_eq(key_file_read(path, true, 128, true, out), CODE_OK);
}
END_TEST

static void add(TCase *test_case)
{
    tcase_add_test(test_case, test_hex);
    tcase_add_test(test_case, test_wrong_hex);
    tcase_add_test(test_case, test_raw);
    tcase_add_test(test_case, test_xts);
}

int main(void)
{
    int descriptor = mkstemp(path);
    int code;

    if (descriptor < 0)
        return EXIT_FAILURE;
    close(descriptor);
    code = run_suite("cli_key_file", add);
    unlink(path);
    return code;
}
