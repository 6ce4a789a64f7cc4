/* SPDX-License-Identifier: Apache-2.0 */
/* ciphermill version: the version of the command and of the library it runs with. */
#include "commands.h"
#include "json.h"

/* The version of the headers that this was built with. */
#define BUILT_TEXT(major, minor, patch) #major "." #minor "." #patch
#define BUILT(major, minor, patch) BUILT_TEXT(major, minor, patch)
static const char built[] = BUILT(CM_VERSION_MAJOR, CM_VERSION_MINOR, CM_VERSION_PATCH);

static const struct form form = {
    .command = "version",
    .arguments = "[--json]",
    .text = "Prints the version of this command and of the client library that it runs with. The daemon's "
            "version\n"
            "is in 'ciphermill status'.\n",
    .examples = "  ciphermill version\n",
};

int cmd_version(struct cli *cli, int argc, char **argv)
{
    const char *words[OPTIONS_WORDS_MAX];
    struct json json;
    int code;

    if (!options_read(&form, cli, argc, argv, words, &code))
        return code;
    if (!cli->json) {
        printf("ciphermill %s (library %s)\n", built, cm_version());
        return CODE_OK;
    }
    json_init(&json, stdout);
    json_object_begin(&json, NULL);
    json_string(&json, "command", built);
    json_string(&json, "library", cm_version());
    json_object_end(&json);
    json_done(&json);
    return CODE_OK;
}
