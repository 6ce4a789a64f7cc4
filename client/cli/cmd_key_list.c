/* SPDX-License-Identifier: Apache-2.0 */
/* ciphermill key list: all keys, a line each. */
#include "commands.h"
#include "connect.h"
#include "key_show.h"

static const struct form form = {
    .command = "key list",
    .arguments = "[--json]",
    .text = "Lists the keys of the daemon's store by name, with the newest version that is enabled.\n",
    .examples = "  ciphermill key list\n"
                "  ciphermill key list --json | jq -r '.[].name'\n",
};

int cmd_key_list(struct cli *cli, int argc, char **argv)
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
    if (cm_key_list(client, NULL, &keys, &count, &error) != 0) {
        code = report_failure(&error, "can't list the keys");
    } else if (cli->json) {
        json_init(&json, stdout);
        json_array_begin(&json, NULL);
        for (size_t i = 0; i < count; i++)
            key_show_json(&json, &keys[i]);
        json_array_end(&json);
        json_done(&json);
    } else {
        key_show_table(keys, count);
    }
    cm_keys_free(keys, count);
    cm_close(client);
    return code;
}
