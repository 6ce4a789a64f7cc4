/* SPDX-License-Identifier: Apache-2.0 */
/* ciphermill key: the table of what can be done with keys. */
#include "commands.h"
#include <stdio.h>
#include <string.h>

static const struct command actions[] = {
    {"create", "let the daemon make a key", cmd_key_create},
    {"import", "bring key bytes from a file or a pipe", cmd_key_import},
    {"list", "all keys", cmd_key_list},
    {"describe", "one key, with its versions", cmd_key_describe},
    {"destroy", "destroy a key for good", cmd_key_destroy},
};
enum { ACTION_COUNT = sizeof actions / sizeof actions[0] };

static void print_help(void)
{
    puts("Usage: ciphermill key ACTION [arguments]\n\n"
         "Administers the keys in the daemon's store. This takes root or the daemon's own user, over a Unix\n"
         "socket that allows it.\n\nActions:");
    command_print(actions, ACTION_COUNT);
    putchar('\n');
    options_print_global();
    puts("\nExamples:\n"
         "  ciphermill key create orders --algorithm aes-256\n"
         "  ciphermill key list\n");
    report_print_codes();
    puts("\n'ciphermill key ACTION --help' has the options of an action, with examples.");
}

int cmd_key(struct cli *cli, int argc, char **argv)
{
    const struct command *action;
    int next = 1;
    int code = CODE_OK;

    if (!options_read_global(cli, argc, argv, &next, &code))
        return code;
    if (next == argc)
        return report_usage("key", "what shall be done? create, import, list, describe or destroy");
    if (argv[next][0] == '-') {
        print_help();
        return CODE_OK;
    }
    action = command_need(actions, ACTION_COUNT, "key", argv[next]);
    if (action == NULL)
        return CODE_USAGE;
    return action->run(cli, argc - next, argv + next);
}
