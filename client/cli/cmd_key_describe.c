/* SPDX-License-Identifier: Apache-2.0 */
/* ciphermill key describe: one key with its versions. */
#include "commands.h"
#include "connect.h"
#include "key_show.h"

static const struct form form = {
    .command = "key describe",
    .arguments = "NAME [--json]",
    .text = "Shows what a key is for and its versions with their states: enabled; decrypt-only; disabled; "
            "destroyed.\n",
    .examples = "  ciphermill key describe orders\n",
    .words_least = 1,
    .words_most = 1,
};

int cmd_key_describe(struct cli *cli, int argc, char **argv)
{
    const char *words[OPTIONS_WORDS_MAX];
    cm_client *client = NULL;
    cm_key_details *keys = NULL;
    cm_error error = CM_ERROR_INIT;
    struct json json;
    size_t count = 0;
    int code;

    if (!options_read(&form, cli, argc, argv, words, &code))
        return code;
    code = connect_open(cli, 0, &client);
    if (code != CODE_OK)
        return code;
    if (cm_key_list(client, words[0], &keys, &count, &error) != 0) {
        code = report_failure(&error, "can't describe key %s", words[0]);
    } else if (count == 0) {
        code = report_error(CODE_FAILED, "there is no key %s", words[0]);
    } else if (cli->json) {
        json_init(&json, stdout);
        key_show_json(&json, &keys[0]);
        json_done(&json);
    } else {
        key_show_one(&keys[0]);
    }
    cm_keys_free(keys, count);
    cm_close(client);
    return code;
}
