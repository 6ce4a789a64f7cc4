/* SPDX-License-Identifier: Apache-2.0 */
/* What the JSON writer writes, character by character. */
#include "json.h"
#include "suite.h"
#include <math.h>
#include <stdlib.h>

static char *text;
static size_t length;
static FILE *stream;
static struct json json;

static void begin(void)
{
    stream = open_memstream(&text, &length);
    ck_assert_ptr_nonnull(stream);
    json_init(&json, stream);
}

static void expect(const char *expected)
{
    ck_assert_int_eq(fclose(stream), 0);
    ck_assert_str_eq(text, expected);
    free(text);
}

START_TEST(test_nesting)
{
    begin();
    json_object_begin(&json, NULL);
    json_uint(&json, "n", UINT64_MAX);
    json_array_begin(&json, "a");
    json_array_end(&json);
    json_array_begin(&json, "b");
    json_bool(&json, NULL, true);
    json_object_begin(&json, NULL);
    json_object_end(&json);
    json_object_begin(&json, NULL);
    json_real(&json, "x", 1.25, 1);
    json_object_end(&json);
    json_array_end(&json);
    json_real(&json, "bad", NAN, 3);
    json_object_end(&json);
    json_done(&json);
    expect("{\"n\": 18446744073709551615, \"a\": [], \"b\": [true, {}, {\"x\": 1.2}], \"bad\": null}\n");
}
END_TEST

START_TEST(test_strings)
{
    begin();
    json_array_begin(&json, NULL);
    json_string(&json, NULL, "a\"b\\c\n\x01\x7f");
    json_string(&json, NULL, "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80");
    /* A stray byte, an overlong form, a surrogate, a cut-off sequence. */
    json_string(&json, NULL, "\xff|\xc0\x80|\xed\xa0\x80|\xe2\x82");
    json_array_end(&json);
    expect("[\"a\\\"b\\\\c\\u000a\\u0001\\u007f\", \"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80\", "
           "\"\\ufffd|\\ufffd\\ufffd|\\ufffd\\ufffd\\ufffd|\\ufffd\\ufffd\"]");
}
END_TEST

static void add(TCase *test_case)
{
    tcase_add_test(test_case, test_nesting);
    tcase_add_test(test_case, test_strings);
}

int main(void)
{
    return run_suite("cli_json", add);
}
