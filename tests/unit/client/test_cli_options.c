/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines, right and wrong. */
#include "options.h"
#include "report.h"
#include "suite.h"
#include <string.h>

static bool flag;
static const char *word;
static uint64_t number;
static struct cli cli;
static const char *words[OPTIONS_WORDS_MAX];
static int code;

static const struct option rows[] = {
    {"flag", NULL, "a flag", OPTION_FLAG, &flag, 0, 0},
    {"text", "TEXT", "a text", OPTION_TEXT, &word, 0, 0},
    {"number", "N", "a number", OPTION_NUMBER, &number, 2, 5},
};
static const struct form form = {.command = "test",
                                 .arguments = "NAME",
                                 .text = "A test.\n",
                                 .examples = "",
                                 .options = rows,
                                 .option_count = 3,
                                 .words_least = 1,
                                 .words_most = 2};

enum { MOST = 12 };

/* Splits a line at spaces and reads it. */
static bool read_line(const char *line)
{
    static char copy[256];
    char *argv[MOST];
    int argc = 0;

    flag = false;
    word = NULL;
    number = 0;
    cli = (struct cli){0};
    code = 77;
    ck_assert_uint_lt(strlen(line), sizeof copy);
    strcpy(copy, line);
    for (char *next = strtok(copy, " "); next != NULL && argc < MOST; next = strtok(NULL, " "))
        argv[argc++] = next; /* what is read points into it */
    return options_read(&form, &cli, argc, argv, words, &code);
}

START_TEST(test_right)
{
    ck_assert(read_line("test one --flag --text=a=b --number 5 two --json --endpoint unix:/x --timeout 0.5"));
    ck_assert_int_eq(code, CODE_OK);
    ck_assert(flag);
    ck_assert_str_eq(word, "a=b");
    ck_assert_uint_eq(number, 5);
    ck_assert_str_eq(words[0], "one");
    ck_assert_str_eq(words[1], "two");
    ck_assert_ptr_null(words[2]);
    ck_assert(cli.json);
    ck_assert_str_eq(cli.endpoint, "unix:/x");
    ck_assert_double_eq(cli.timeout_s, 0.5);
    ck_assert(read_line("test -- --flag"));
    ck_assert(!flag);
    ck_assert_str_eq(words[0], "--flag");
    ck_assert(read_line("test -"));
    ck_assert_str_eq(words[0], "-");
}
END_TEST

START_TEST(test_wrong)
{
    static const char *const lines[] = {
        "test",
        "test a b c",
        "test a --nonsense",
        "test a --fla",
        "test a -x",
        "test a --flag=1",
        "test a --text",
        "test a --number 1",
        "test a --number 6",
        "test a --number x",
        "test a --number=",
        "test a --timeout x",
    };

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        ck_assert_msg(!read_line(lines[i]), "%s", lines[i]);
        ck_assert_int_eq(code, CODE_USAGE);
    }
}
END_TEST

START_TEST(test_help)
{
    ck_assert(!read_line("test --help"));
    ck_assert_int_eq(code, CODE_OK);
    ck_assert(!read_line("test a --number 3 -h"));
    ck_assert_int_eq(code, CODE_OK);
}
END_TEST

START_TEST(test_global)
{
    char *argv[] = {"ciphermill", "--endpoint", "unix:/x", "--json", "key", "--json", NULL};
    char *wrong[] = {"ciphermill", "--flag", "key", NULL};
    char *help[] = {"ciphermill", "--help", NULL};
    int next = 0;

    cli = (struct cli){0};
    ck_assert(options_read_global(&cli, 6, argv, &next, &code));
    ck_assert_int_eq(next, 4);
    ck_assert_str_eq(cli.endpoint, "unix:/x");
    ck_assert(!options_read_global(&cli, 3, wrong, &next, &code));
    ck_assert_int_eq(code, CODE_USAGE);
    ck_assert(options_read_global(&cli, 2, help, &next, &code));
    ck_assert_int_eq(next, 1);
}
END_TEST

static void add(TCase *test_case)
{
    tcase_add_test(test_case, test_right);
    tcase_add_test(test_case, test_wrong);
    tcase_add_test(test_case, test_help);
    tcase_add_test(test_case, test_global);
}

int main(void)
{
    return run_suite("cli_options", add);
}
