/* SPDX-License-Identifier: Apache-2.0 */
/* ciphermill key destroy: ends a key for good. */
#include "commands.h"
#include "connect.h"
#include <ciphermill/admin.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* At a terminal the name has to be typed once more; scripts have said what they mean. */
static bool confirmed(const char *name)
{
    char answer[160] = "";

    fprintf(stderr,
            "Everything that was encrypted with key %s will be lost. Type its name to destroy it: ", name);
    if (fgets(answer, sizeof answer, stdin) == NULL)
        return false;
    answer[strcspn(answer, "\n")] = '\0';
    return strcmp(answer, name) == 0;
}

int cmd_key_destroy(struct cli *cli, int argc, char **argv)
{
    bool yes = false;
    const struct option options[] = {
        {"yes", NULL, "ask nothing, even at a terminal", OPTION_FLAG, &yes, 0, 0},
    };
    const struct form form = {
        .command = "key destroy",
        .arguments = "NAME [--yes]",
        .text = "Destroys a key and all its versions. What was encrypted with it can't be decrypted any "
                "more. At a\n"
                "terminal the name is asked for once more.\n",
        .examples = "  ciphermill key destroy orders\n",
        .options = options,
        .option_count = sizeof options / sizeof options[0],
        .words_least = 1,
        .words_most = 1,
    };
    const char *words[OPTIONS_WORDS_MAX];
    cm_client *client = NULL;
    cm_error error = CM_ERROR_INIT;
    int code;

    if (!options_read(&form, cli, argc, argv, words, &code))
        return code;
    if (!yes && isatty(STDIN_FILENO) == 1 && !confirmed(words[0]))
        return report_error(CODE_FAILED, "key %s was not destroyed", words[0]);
    code = connect_open(cli, 0, &client);
    if (code != CODE_OK)
        return code;
    if (cm_key_destroy(client, words[0], &error) != 0)
        code = report_failure(&error, "can't destroy key %s", words[0]);
    else if (!cli->quiet && !cli->json)
        printf("destroyed key %s\n", words[0]);
    cm_close(client);
    return code;
}
