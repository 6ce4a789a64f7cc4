/* SPDX-License-Identifier: Apache-2.0 */
/* ciphermill, the command: the table of sub-commands and what surrounds a run of one. */
#include "commands.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

const struct command commands[] = {
    {"encrypt", "encrypt a file or a pipe with a key of the daemon's", cmd_encrypt},
    {"decrypt", "decrypt a file or a pipe", cmd_decrypt},
    {"key", "create, import, list, describe and destroy keys", cmd_key},
    {"implementations", "which AES implementations the daemon has and uses", cmd_implementations},
    {"status", "the daemon's version, load, and who it takes you for", cmd_status},
    {"bench", "load test: throughput and latency, every answer verified", cmd_bench},
    {"version", "the version of this command and its library", cmd_version},
    {"help", "help on a command", cmd_help},
};
const size_t command_count = sizeof commands / sizeof commands[0];

void print_program_help(void)
{
    puts("Usage: ciphermill [--endpoint URI] COMMAND [arguments]\n\n"
         "Encrypts and decrypts with AES keys that a ciphermill daemon holds, administers these keys and "
         "looks at\n"
         "the daemon. The keys never leave the daemon.\n\nCommands:");
    command_print(commands, command_count);
    putchar('\n');
    options_print_global();
    puts("\nExamples:\n"
         "  ciphermill status\n"
         "  sudo ciphermill key create orders --algorithm aes-256\n"
         "  ciphermill encrypt --key orders --in a.db --out a.db.cm\n"
         "  ciphermill decrypt --key orders --in a.db.cm --out a.db\n"
         "  ciphermill bench --quick\n");
    report_print_codes();
    puts("\n'ciphermill COMMAND --help' has the options of a command, with examples.");
}

/* What was printed has to have arrived: `ciphermill key list > /dev/full` is a failure. */
static int close_output(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    if (errno == EPIPE)
        return code == CODE_OK ? CODE_FAILED : code; /* whoever read it has seen enough */
    return report_error(code == CODE_OK ? CODE_FAILED : code, "can't write standard output: %s",
                        strerror(errno));
}

int main(int argc, char **argv)
{
    struct cli cli = {0};
    const struct command *command;
    const char *name;
    int next = 1;
    int code = CODE_OK;

    if (!options_read_global(&cli, argc, argv, &next, &code))
        return code;
    if (next == argc)
        return report_usage("", "which command?");
    name = argv[next];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    else if (strcmp(name, "--version") == 0)
        name = "version";
    command = command_need(commands, command_count, "", name);
    if (command == NULL)
        return CODE_USAGE;
    return close_output(command->run(&cli, argc - next, argv + next));
}
