/* SPDX-License-Identifier: Apache-2.0 */
/* ciphermill key import: brings the bytes of a key into the daemon's store. */
#include "commands.h"
#include "key_file.h"
#include "key_make.h"
#include <string.h>

static int import(struct cli *cli, struct key_make *make, const char *name, const char *hex, const char *raw)
{
    uint8_t bytes[KEY_BYTES_MAX];
    int code = key_make_settle(make, "key import");

    if (code != CODE_OK)
        return code;
    if ((hex == NULL) == (raw == NULL))
        return report_usage("key import", "where is the key? --hex FILE or --raw FILE, one of them");
    code = key_file_read(hex != NULL ? hex : raw, hex != NULL, make->key_bits,
                         (make->options.modes & CM_MODE_BIT(CM_XTS)) != 0, bytes);
    if (code == CODE_OK)
        code = key_make_run(cli, make, name, bytes);
    explicit_bzero(bytes, sizeof bytes);
    return code;
}

int cmd_key_import(struct cli *cli, int argc, char **argv)
{
    struct key_make make = {0};
    const char *hex = NULL;
    const char *raw = NULL;
    struct option options[KEY_MAKE_OPTIONS + 2] = {
        {"hex", "FILE", "a file that holds the key in hex digits; - is standard input", OPTION_TEXT, &hex, 0,
         0},
        {"raw", "FILE", "a file that holds the bytes themselves; - is standard input", OPTION_TEXT, &raw, 0,
         0},
    };
    const struct form form = {
        .command = "key import",
        .arguments = "NAME --algorithm aes-128|aes-192|aes-256\n         --hex FILE|--raw FILE [options]",
        .text = "Brings a key that exists elsewhere into the daemon's store, under NAME. The bytes come from "
                "a file or\n"
                "standard input, never from the command line, where others could read them. They travel over "
                "the\n"
                "Unix socket alone, and only once: bytes that the store already holds are refused.\n\n"
                "A key is for one family of modes for life: gcm, xts, or some of ecb, cbc and ctr.\n"
                "A key for xts is two keys, the data's before the tweak's, which must differ: 32 bytes with "
                "aes-128, "
                "64 with\n"
                "aes-256.\n",
        .examples =
            "  ciphermill key import legacy --algorithm aes-256 --modes ecb,cbc,ctr --caller-iv "
            "--hex key.hex\n"
            "  openssl rand -hex 64 | ciphermill key import disk --algorithm aes-256 --modes xts --hex -\n"
            "  openssl rand -hex 16 | ciphermill key import fresh --algorithm aes-128 --hex -\n",
        .options = options,
        .option_count = KEY_MAKE_OPTIONS + 2,
        .words_least = 1,
        .words_most = 1,
    };
    const char *words[OPTIONS_WORDS_MAX];
    int code;

    key_make_fill(options + 2, &make);
    if (!options_read(&form, cli, argc, argv, words, &code))
        return code;
    return import(cli, &make, words[0], hex, raw);
}
