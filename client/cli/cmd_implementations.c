/* SPDX-License-Identifier: Apache-2.0 */
/* ciphermill implementations: which AES implementations the daemon has, which of them it uses, and why. */
#include "commands.h"
#include "connect.h"
#include "json.h"
#include "text.h"
#include <ciphermill/admin.h>
#include <stdlib.h>

static const struct form form = {
    .command = "implementations",
    .arguments = "[--json]",
    .text =
        "Shows, for each mode and direction, the implementations of AES that the daemon knows: whether its "
        "build\n"
        "contains them, whether its processor can run them, for which batches it uses them, and why one is "
        "not\n"
        "available. A short batch has at most 2 items with at most 128 bytes together; a small one items of "
        "at "
        "most\n"
        "224 bytes on average; all others are long.\n"
        "CIPHERMILL_CPU in the daemon's environment limits what it uses.\n",
    .examples = "  ciphermill implementations\n"
                "  ciphermill implementations --json | jq '.[] | select(.used)'\n",
};

static const char *direction_name(int direction)
{
    return direction == CM_ENCRYPT ? "encrypt" : direction == CM_DECRYPT ? "decrypt" : "?";
}

/* By the bits of `used`. */
static const struct {
    uint32_t bit;
    const char *word;
} uses[] = {{CM_USED_SHORT, "short"}, {CM_USED_SMALL, "small"}, {CM_USED_LONG, "long"}};
enum { USES = sizeof uses / sizeof *uses };

/* For which batches a row is used: "short,small". */
static const char *used_for(const cm_implementation_details *row, char text[32])
{
    size_t length = 0, count = 0;

    text[0] = '\0';
    for (int i = 0; i < USES; i++)
        if ((row->used & uses[i].bit) != 0) {
            length +=
                (size_t)snprintf(text + length, 32 - length, "%s%s", count == 0 ? "" : ",", uses[i].word);
            count++;
        }
    return count == 0 ? "-" : count == USES ? "all" : text;
}

static void print_json(const cm_implementation_details *rows, size_t count)
{
    struct json json;

    json_init(&json, stdout);
    json_array_begin(&json, NULL);
    for (size_t i = 0; i < count; i++) {
        json_object_begin(&json, NULL);
        json_string(&json, "mode", text_mode_name(rows[i].mode));
        json_string(&json, "direction", direction_name(rows[i].direction));
        json_string(&json, "implementation", rows[i].implementation);
        json_bool(&json, "compiled", rows[i].compiled != 0);
        json_bool(&json, "available", rows[i].available != 0);
        json_bool(&json, "used", rows[i].used != 0);
        json_array_begin(&json, "used_for");
        for (int use = 0; use < USES; use++)
            if ((rows[i].used & uses[use].bit) != 0)
                json_string(&json, NULL, uses[use].word);
        json_array_end(&json);
        json_string(&json, "reason", rows[i].reason);
        json_object_end(&json);
    }
    json_array_end(&json);
    json_done(&json);
}

static void print_table(const cm_implementation_details *rows, size_t count)
{
    printf("%-4s  %-9s  %-14s  %-8s  %-9s  %-11s  %s\n", "MODE", "DIRECTION", "IMPLEMENTATION", "COMPILED",
           "AVAILABLE", "USED FOR", "REASON");
    for (size_t i = 0; i < count; i++) {
        char text[32];
        printf("%-4s  %-9s  %-14s  %-8s  %-9s  %-11s  %s\n", text_mode_name(rows[i].mode),
               direction_name(rows[i].direction), rows[i].implementation,
               rows[i].compiled != 0 ? "yes" : "no", rows[i].available != 0 ? "yes" : "no",
               used_for(&rows[i], text), rows[i].reason);
    }
}

int cmd_implementations(struct cli *cli, int argc, char **argv)
{
    const char *words[OPTIONS_WORDS_MAX];
    cm_implementation_details *rows = NULL;
    cm_client *client = NULL;
    cm_error error = CM_ERROR_INIT;
    size_t count = 0;
    int code;

    if (!options_read(&form, cli, argc, argv, words, &code))
        return code;
    code = connect_open(cli, 0, &client);
    if (code != CODE_OK)
        return code;
    if (cm_get_implementations(client, &rows, &count, &error) != 0)
        code = report_failure(&error, "can't ask %s for its implementations", connect_endpoint(cli));
    else if (cli->json)
        print_json(rows, count);
    else
        print_table(rows, count);
    free(rows);
    cm_close(client);
    return code;
}
