/* SPDX-License-Identifier: Apache-2.0 */
/* Makes keys in the daemon's store. */
#include "key_make.h"
#include "connect.h"
#include "key_show.h"
#include "report.h"
#include "text.h"
#include <string.h>

void key_make_fill(struct option rows[KEY_MAKE_OPTIONS], struct key_make *make)
{
    const struct option table[KEY_MAKE_OPTIONS] = {
        {"algorithm", "NAME", "aes-128, aes-192 or aes-256", OPTION_TEXT, &make->algorithm, 0, 0},
        {"modes", "LIST", "what the key is for: gcm (the default), xts, or some of ecb,cbc,ctr", OPTION_TEXT,
         &make->modes, 0, 0},
        {"mode", "MODE", "the same, for one mode", OPTION_TEXT, &make->modes, 0, 0},
        {"caller-iv", NULL, "whoever encrypts may give the IV; without this only the daemon makes it",
         OPTION_FLAG, &make->caller_iv, 0, 0},
        {"tag-length", "N", "GCM: bytes of the tag: 4, 8, 12 to 16 (16)", OPTION_NUMBER, &make->tag_length, 4,
         16},
        {"unsafe-mixed-modes", NULL,
         "allow gcm together with ecb, cbc or ctr. This breaks GCM: ECB of a zero block\n"
         "is its authentication key",
         OPTION_FLAG, &make->unsafe_mixed_modes, 0, 0},
    };
    memcpy(rows, table, sizeof table);
}

int key_make_settle(struct key_make *make, const char *command)
{
    static const struct {
        const char *name;
        uint32_t bits;
    } algorithms[] = {{"aes-128", 128}, {"aes-192", 192}, {"aes-256", 256}};
    cm_key_options options = CM_KEY_OPTIONS_INIT;

    if (make->algorithm == NULL)
        return report_usage(command, "which algorithm? --algorithm aes-128, aes-192 or aes-256");
    for (size_t i = 0; i < sizeof algorithms / sizeof algorithms[0]; i++) {
        if (strcmp(make->algorithm, algorithms[i].name) == 0)
            make->key_bits = algorithms[i].bits;
    }
    if (make->key_bits == 0)
        return report_usage(command, "--algorithm is aes-128, aes-192 or aes-256, not '%s'", make->algorithm);
    if (make->modes != NULL && text_parse_modes(make->modes, &options.modes) != TEXT_OK)
        return report_usage(
            command, "--modes is gcm, xts, or a list of ecb, cbc and ctr with commas, not '%s'", make->modes);
    if (make->key_bits == 192 && (options.modes & CM_MODE_BIT(CM_XTS)) != 0)
        return report_usage(command, "XTS is for aes-128 and aes-256, not aes-192");
    options.caller_iv = make->caller_iv;
    options.tag_length = (uint32_t)make->tag_length;
    options.unsafe_mixed_modes = make->unsafe_mixed_modes;
    make->options = options;
    return CODE_OK;
}

/* Shows the key as the daemon has it now. The key exists by then: failing to look at it is not failing. */
static void show(const struct cli *cli, cm_client *client, const char *name, bool imported)
{
    cm_key_details *keys = NULL;
    cm_error error = CM_ERROR_INIT;
    char modes[TEXT_MODES_MAX];
    struct json json;
    size_t count = 0;

    if (cm_key_list(client, name, &keys, &count, &error) != 0 || count != 1) {
        report_error(CODE_OK, "key %s is made, but asking for its details failed: %s", name, error.text);
    } else if (cli->json) {
        json_init(&json, stdout);
        key_show_json(&json, &keys[0]);
        json_done(&json);
    } else if (!cli->quiet) {
        text_format_modes(keys[0].modes, modes);
        printf("%s key %s: aes-%u, %s\n", imported ? "imported" : "created", keys[0].name, keys[0].key_bits,
               modes);
    }
    cm_keys_free(keys, count);
}

int key_make_run(const struct cli *cli, const struct key_make *make, const char *name, const uint8_t *bytes)
{
    cm_client *client = NULL;
    cm_error error = CM_ERROR_INIT;
    int code = connect_open(cli, 0, &client);

    if (code != CODE_OK)
        return code;
    if (cm_key_create(client, name, make->key_bits, bytes, &make->options, &error) != 0)
        code = report_failure(&error, "can't %s key %s", bytes != NULL ? "import" : "create", name);
    else
        show(cli, client, name, bytes != NULL);
    cm_close(client);
    return code;
}
