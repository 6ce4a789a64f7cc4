/* SPDX-License-Identifier: Apache-2.0 */
/* Parses command lines and prints help from a form's table. */
#include "options.h"
#include "report.h"
#include "text.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Rows of the global options; the targets lie in the given struct. */
enum { GLOBAL_COUNT = 4 };
static void fill_global(struct option rows[GLOBAL_COUNT], struct cli *cli)
{
    const struct option table[GLOBAL_COUNT] = {
        {"endpoint", "URI",
         "the daemon: unix:/path or tcp://host:port; without it CIPHERMILL_ENDPOINT in the\n"
         "environment, then " CM_DEFAULT_ENDPOINT,
         OPTION_TEXT, &cli->endpoint, 0, 0},
        {"json", NULL, "print data as JSON", OPTION_FLAG, &cli->json, 0, 0},
        {"quiet", NULL, "no progress bar, no remarks; errors are still printed", OPTION_FLAG, &cli->quiet, 0,
         0},
        {"timeout", "SECONDS", "how long to wait for an answer (30)", OPTION_SECONDS, &cli->timeout_s, 0, 0},
    };
    memcpy(rows, table, sizeof table);
}

/* The arguments that are left to read, and the tables to read them by. */
struct reader {
    const char *command;
    const struct option *tables[2]; /* own, global */
    size_t counts[2];
    char **argv;
    int argc, next;
};

static void print_rows(const struct option *rows, size_t count)
{
    enum { COLUMN = 24 };

    for (size_t i = 0; i < count; i++) {
        int used = printf("  --%s%s%s", rows[i].name, rows[i].argument != NULL ? " " : "",
                          rows[i].argument != NULL ? rows[i].argument : "");

        if (used < 0 || used >= COLUMN)
            printf("\n%*s", COLUMN, "");
        else
            printf("%*s", COLUMN - used, "");
        for (const char *text = rows[i].help; *text != '\0'; text++) {
            putchar(*text);
            if (*text == '\n')
                printf("%*s", COLUMN, "");
        }
        putchar('\n');
    }
}

void options_print_global(void)
{
    struct cli none;
    struct option rows[GLOBAL_COUNT];

    fill_global(rows, &none);
    puts("Options of every command, before or after its name:");
    print_rows(rows, GLOBAL_COUNT);
    puts("  --help                this text");
}

void options_print_help(const struct form *form)
{
    printf("Usage: ciphermill %s%s%s\n\n%s", form->command, form->arguments[0] == '\0' ? "" : " ",
           form->arguments, form->text);
    if (form->option_count > 0)
        puts("\nOptions:");
    print_rows(form->options, form->option_count);
    putchar('\n');
    options_print_global();
    if (form->examples[0] != '\0')
        printf("\nExamples:\n%s", form->examples);
    putchar('\n');
    report_print_codes();
}

static const struct option *find(const struct reader *reader, const char *name, size_t length)
{
    for (size_t t = 0; t < 2; t++) {
        for (size_t i = 0; i < reader->counts[t]; i++) {
            const struct option *row = &reader->tables[t][i];
            if (strlen(row->name) == length && memcmp(row->name, name, length) == 0)
                return row;
        }
    }
    return NULL;
}

static int unknown_option(const struct reader *reader, const char *argument, size_t length)
{
    char name[40] = "";

    if (length < sizeof name && strncmp(argument, "--", 2) == 0)
        memcpy(name, argument + 2, length - 2);
    for (size_t t = 0; t < 2; t++) {
        for (size_t i = 0; i < reader->counts[t]; i++) {
            if (text_is_near(name, reader->tables[t][i].name))
                return report_usage(reader->command, "unknown option %.*s: did you mean --%s?", (int)length,
                                    argument, reader->tables[t][i].name);
        }
    }
    return report_usage(reader->command, "unknown option %.*s", (int)length, argument);
}

static int set_number(const struct reader *reader, const struct option *row, const char *value)
{
    uint64_t number;

    if (text_parse_number(value, &number) != TEXT_OK || number < row->least || number > row->most)
        return report_usage(reader->command,
                            "--%s takes a whole number of %" PRIu64 " to %" PRIu64 ", not '%s'", row->name,
                            row->least, row->most, value);
    *(uint64_t *)row->target = number;
    return CODE_OK;
}

static int set_value(const struct reader *reader, const struct option *row, const char *value)
{
    switch (row->kind) {
    case OPTION_FLAG:
        *(bool *)row->target = true;
        return CODE_OK;
    case OPTION_TEXT:
        *(const char **)row->target = value;
        return CODE_OK;
    case OPTION_NUMBER:
        return set_number(reader, row, value);
    case OPTION_SECONDS:
        if (text_parse_seconds(value, row->target) != TEXT_OK)
            return report_usage(reader->command, "--%s takes seconds, such as 5 or 0.5, not '%s'", row->name,
                                value);
        return CODE_OK;
    }
    return CODE_USAGE;
}

/* Reads the option at reader->next and its value. */
static int read_option(struct reader *reader)
{
    const char *argument = reader->argv[reader->next++];
    size_t length = strcspn(argument, "=");
    const char *value = argument[length] == '=' ? argument + length + 1 : NULL;
    const struct option *row = NULL;

    if (strncmp(argument, "--", 2) == 0)
        row = find(reader, argument + 2, length - 2);
    if (row == NULL)
        return unknown_option(reader, argument, length);
    if (row->kind == OPTION_FLAG && value != NULL)
        return report_usage(reader->command, "--%s takes no value", row->name);
    if (row->kind != OPTION_FLAG && value == NULL) {
        if (reader->next >= reader->argc)
            return report_usage(reader->command, "--%s needs a value: %s", row->name, row->argument);
        value = reader->argv[reader->next++];
    }
    return set_value(reader, row, value);
}

static bool asks_for_help(const char *argument)
{
    return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

bool options_read_global(struct cli *cli, int argc, char **argv, int *ret_next, int *ret_code)
{
    struct option rows[GLOBAL_COUNT];
    struct reader reader = {.command = "", .tables = {rows, rows}, .argv = argv, .argc = argc, .next = 1};

    fill_global(rows, cli);
    reader.counts[0] = GLOBAL_COUNT;
    while (reader.next < argc && argv[reader.next][0] == '-' && !asks_for_help(argv[reader.next]) &&
           strcmp(argv[reader.next], "--version") != 0) {
        *ret_code = read_option(&reader);
        if (*ret_code != CODE_OK)
            return false;
    }
    *ret_next = reader.next;
    return true;
}

bool options_read(const struct form *form, struct cli *cli, int argc, char **argv,
                  const char *words[OPTIONS_WORDS_MAX], int *ret_code)
{
    struct option rows[GLOBAL_COUNT];
    struct reader reader = {.command = form->command,
                            .tables = {form->options, rows},
                            .counts = {form->option_count, GLOBAL_COUNT},
                            .argv = argv,
                            .argc = argc,
                            .next = 1};
    bool only_words = false;
    size_t count = 0;

    fill_global(rows, cli);
    memset(words, 0, OPTIONS_WORDS_MAX * sizeof words[0]);
    *ret_code = CODE_OK;
    while (reader.next < argc && *ret_code == CODE_OK) {
        const char *argument = argv[reader.next];

        if (!only_words && asks_for_help(argument)) {
            options_print_help(form);
            return false;
        }
        if (!only_words && strcmp(argument, "--") == 0) {
            only_words = true;
            reader.next++;
        } else if (!only_words && argument[0] == '-' && argument[1] != '\0') {
            *ret_code = read_option(&reader);
        } else if (count == form->words_most) {
            *ret_code = report_usage(form->command, "'%s' is one argument too many", argument);
        } else {
            words[count++] = argument;
            reader.next++;
        }
    }
    if (*ret_code == CODE_OK && count < form->words_least)
        *ret_code = report_usage(form->command, "an argument is missing: ciphermill %s %.*s", form->command,
                                 (int)strcspn(form->arguments, "\n"), form->arguments);
    return *ret_code == CODE_OK;
}
