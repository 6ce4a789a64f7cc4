/* SPDX-License-Identifier: Apache-2.0 */
/* The form of a command: its options as a table, from which parsing, error texts and --help all come. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_kind {
    OPTION_FLAG,   /* target: bool, set to true */
    OPTION_TEXT,   /* target: const char *, which points into argv */
    OPTION_NUMBER, /* target: uint64_t, within least and most */
    OPTION_SECONDS /* target: double */
};

struct option {
    const char *name;     /* without dashes */
    const char *argument; /* what it takes, for --help: "NAME"; NULL for a flag */
    const char *help;     /* may hold newlines; they are indented */
    enum option_kind kind;
    void *target;
    uint64_t least, most; /* OPTION_NUMBER */
};

struct form {
    const char *command;   /* "key create"; "" for the program itself */
    const char *arguments; /* "NAME [options]": follows the command in the usage line */
    const char *text;      /* a paragraph or more, ending with a newline */
    const char *examples;  /* a command a line, each indented and ending with a newline */
    const struct option *options;
    size_t option_count;
    size_t words_least, words_most; /* how many arguments that are no options */
};

/* What every command understands, before or after its name. */
struct cli {
    const char *endpoint; /* NULL: CIPHERMILL_ENDPOINT or the default */
    bool json, quiet;
    double timeout_s; /* 0: the library's default */
};

enum { OPTIONS_WORDS_MAX = 4 };

/* Reads the global options in argv[1..] up to the first word that is none, --help and --version counting as
 * such, and sets *ret_next to its index (argc if there is none). True: go on. False: the line is wrong and
 * that was said; *ret_code is the exit code. */
bool options_read_global(struct cli *cli, int argc, char **argv, int *ret_next, int *ret_code);

/* Reads a command's own and the global options in argv[1..]; `words` gets the other arguments, the rest NULL.
 * True: go on. False: --help was asked for and printed, or the line is wrong and that was said; *ret_code is
 * the exit code. */
bool options_read(const struct form *form, struct cli *cli, int argc, char **argv,
                  const char *words[OPTIONS_WORDS_MAX], int *ret_code);

/* Prints the whole help of a form on standard output, global options and exit codes included. */
void options_print_help(const struct form *form);
/* The global options as --help prints them. */
void options_print_global(void);

#endif
