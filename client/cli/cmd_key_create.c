/* SPDX-License-Identifier: Apache-2.0 */
/* ciphermill key create: the daemon makes a key. */
#include "commands.h"
#include "key_make.h"

int cmd_key_create(struct cli *cli, int argc, char **argv)
{
    struct key_make make = {0};
    struct option options[KEY_MAKE_OPTIONS];
    const struct form form = {
        .command = "key create",
        .arguments = "NAME --algorithm aes-128|aes-192|aes-256 [options]",
        .text = "Lets the daemon make a key from its random source and keep it under NAME: 1 to 128 of a-z "
                "A-Z 0-9\n"
                ". _ -, not starting with . or -. The bytes of the key never leave the daemon.\n\n"
                "A key is for one family of modes for life: gcm, xts, or some of ecb, cbc and ctr.\n",
        .examples = "  ciphermill key create orders --algorithm aes-256\n"
                    "  ciphermill key create backup --algorithm aes-256 --modes cbc,ctr\n"
                    "  ciphermill key create disk --algorithm aes-256 --modes xts\n",
        .options = options,
        .option_count = KEY_MAKE_OPTIONS,
        .words_least = 1,
        .words_most = 1,
    };
    const char *words[OPTIONS_WORDS_MAX];
    int code;

    key_make_fill(options, &make);
    if (!options_read(&form, cli, argc, argv, words, &code))
        return code;
    code = key_make_settle(&make, form.command);
    return code != CODE_OK ? code : key_make_run(cli, &make, words[0], NULL);
}
