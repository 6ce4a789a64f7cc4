/* SPDX-License-Identifier: Apache-2.0 */
/* The table of sub-commands: a new command is one file and one row. */
#ifndef COMMANDS_H
#define COMMANDS_H

#include "options.h"
#include "report.h"

struct command {
    const char *name;
    const char *summary; /* one line */
    /* argv[0] is the command's name. Returns an exit code, having said what went wrong. */
    int (*run)(struct cli *cli, int argc, char **argv);
};

/* The row of that name, or NULL. */
const struct command *command_find(const struct command *table, size_t count, const char *name);
/* The row of that name; without one says so, with the nearest name, and returns NULL. `parent` is "" or
 * "key". */
const struct command *command_need(const struct command *table, size_t count, const char *parent,
                                   const char *name);
/* Name and summary of every row. */
void command_print(const struct command *table, size_t count);

/* The program's own table; its rows stand in main.c. */
extern const struct command commands[];
extern const size_t command_count;
void print_program_help(void);

int cmd_encrypt(struct cli *cli, int argc, char **argv);
int cmd_decrypt(struct cli *cli, int argc, char **argv);
int cmd_key(struct cli *cli, int argc, char **argv);
int cmd_key_create(struct cli *cli, int argc, char **argv);
int cmd_key_import(struct cli *cli, int argc, char **argv);
int cmd_key_list(struct cli *cli, int argc, char **argv);
int cmd_key_describe(struct cli *cli, int argc, char **argv);
int cmd_key_destroy(struct cli *cli, int argc, char **argv);
int cmd_implementations(struct cli *cli, int argc, char **argv);
int cmd_status(struct cli *cli, int argc, char **argv);
int cmd_bench(struct cli *cli, int argc, char **argv);
int cmd_version(struct cli *cli, int argc, char **argv);
int cmd_help(struct cli *cli, int argc, char **argv);

#endif
