/* SPDX-License-Identifier: Apache-2.0 */
/* ciphermill help: the program's help, or a command's. */
#include "commands.h"
#include <string.h>

int cmd_help(struct cli *cli, int argc, char **argv)
{
    char ask[] = "--help";
    const struct command *command;

    if (argc < 2 || argv[1][0] == '-') {
        print_program_help();
        return CODE_OK;
    }
    command = command_need(commands, command_count, "", argv[1]);
    if (command == NULL)
        return CODE_USAGE;
    if (command->run == cmd_help) {
        print_program_help();
        return CODE_OK;
    }
    /* "help key create" becomes "key create --help". The word "help" has made room for the new last one. */
    memmove(&argv[0], &argv[1], (size_t)(argc - 1) * sizeof argv[0]);
    argv[argc - 1] = ask;
    return command->run(cli, argc, argv);
}
