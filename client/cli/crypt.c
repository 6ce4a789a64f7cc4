/* SPDX-License-Identifier: Apache-2.0 */
/* encrypt and decrypt: from the command line to an open key, an open input and an open output. */
#include "crypt.h"
#include "connect.h"
#include "report.h"
#include "text.h"
#include <stdlib.h>
#include <string.h>

/* The command line, as far as it needs more than a table. */
struct arguments {
    const char *key, *mode, *iv, *aad, *unit, *unit_bytes, *tweak, *in, *out;
    bool no_padding;
    uint64_t key_version;
};

int crypt_failed(const struct crypt *crypt, const cm_error *error)
{
    return report_failure(error, "can't %s %s with key %s in mode %s",
                          crypt->direction == CM_ENCRYPT ? "encrypt" : "decrypt", crypt->input.name,
                          crypt->key_name, text_mode_name(crypt->mode));
}

int crypt_check_version(const struct crypt *crypt)
{
    uint32_t used = cm_key_version(crypt->key);

    if (crypt->direction == CM_DECRYPT || crypt->key_version == 0 || crypt->key_version == used)
        return CODE_OK;
    return report_error(CODE_FAILED,
                        "encrypting uses the newest version of key %s, which is %u, not %u; nothing "
                        "was written",
                        crypt->key_name, used, (unsigned)crypt->key_version);
}

static bool read_arguments(struct cli *cli, int argc, char **argv, const struct crypt_command *command,
                           struct arguments *arguments, int *ret_code)
{
    bool encrypts = command->direction == CM_ENCRYPT;
    const struct option options[] = {
        {"key", "NAME", "the key to use", OPTION_TEXT, &arguments->key, 0, 0},
        {"mode", "MODE", "ecb, cbc, ctr, gcm or xts; without it gcm, or the only mode that the key allows",
         OPTION_TEXT, &arguments->mode, 0, 0},
        {"iv", "HEX",
         encrypts ? "use this IV (16 bytes in CBC and CTR; any length in GCM, best 12)"
                  : "the IV, which then is not in the input",
         OPTION_TEXT, &arguments->iv, 0, 0},
        {"aad", "HEX", "GCM: additional data, authenticated but not part of the output", OPTION_TEXT,
         &arguments->aad, 0, 0},
        {"no-padding", NULL, "ECB and CBC: whole 16-byte blocks, without PKCS#7 padding", OPTION_FLAG,
         &arguments->no_padding, 0, 0},
        {"unit", "N",
         "XTS: the number of the first data unit; those after it count on, as a disk's sectors do",
         OPTION_TEXT, &arguments->unit, 0, 0},
        {"unit-bytes", "B", "XTS: bytes of a data unit, 16 to 16MiB (4096)", OPTION_TEXT,
         &arguments->unit_bytes, 0, 0},
        {"tweak", "HEX",
         "XTS, in place of --unit: the whole input is one data unit with this tweak, 16 bytes", OPTION_TEXT,
         &arguments->tweak, 0, 0},
        {"key-version", "N",
         encrypts ? "fail unless N is the newest version of the key, which encrypting uses"
                  : "the version of the key that encrypted (the newest)",
         OPTION_NUMBER, &arguments->key_version, 1, UINT32_MAX},
        {"in", "FILE", "read this file; - is standard input", OPTION_TEXT, &arguments->in, 0, 0},
        {"out", "FILE", "write this file, by renaming a finished one; - is standard output", OPTION_TEXT,
         &arguments->out, 0, 0},
    };
    const struct form form = {
        .command = command->name,
        .arguments = "--key NAME [--mode ecb|cbc|ctr|gcm|xts] [--iv HEX] [--aad HEX]\n"
                     "         [--unit N [--unit-bytes B]|--tweak HEX] [--no-padding] [--key-version N]\n"
                     "         [--in FILE] [--out FILE]",
        .text = command->text,
        .examples = command->examples,
        .options = options,
        .option_count = sizeof options / sizeof options[0],
    };
    const char *words[OPTIONS_WORDS_MAX];

    if (!options_read(&form, cli, argc, argv, words, ret_code))
        return false;
    if (arguments->key == NULL)
        *ret_code = report_usage(form.command, "which key? --key NAME");
    return *ret_code == CODE_OK;
}

/* Hex from the command line into a buffer. */
static int take_hex(const char *command, const char *option, const char *hex, uint8_t *out, size_t capacity,
                    size_t *ret_length)
{
    switch (text_parse_hex(hex, strlen(hex), out, capacity, ret_length)) {
    case TEXT_OK:
        return CODE_OK;
    case TEXT_ODD:
        return report_usage(command, "--%s: an odd number of hex digits", option);
    case TEXT_TOO_MUCH:
        return report_usage(command, "--%s: more than %zu bytes", option, capacity);
    case TEXT_NOT_THAT:
        break;
    }
    return report_usage(command, "--%s takes hex digits", option);
}

/* Where the data stands, for XTS. */
static int take_place(struct crypt *crypt, const struct arguments *arguments, const char *command)
{
    uint64_t bytes = CRYPT_UNIT_DEFAULT;
    size_t length = 0;
    int code;

    crypt->has_unit = arguments->unit != NULL;
    crypt->has_tweak = arguments->tweak != NULL;
    if (crypt->has_unit && crypt->has_tweak)
        return report_usage(command, "--unit or --tweak, not both");
    if (arguments->unit_bytes != NULL && !crypt->has_unit)
        return report_usage(command, "--unit-bytes goes with --unit: without it there is one data unit");
    if (crypt->has_unit && text_parse_number(arguments->unit, &crypt->unit_number) != TEXT_OK)
        return report_usage(command, "--unit is a number of 0 to 2^64 - 1, not '%s'", arguments->unit);
    if (arguments->unit_bytes != NULL && (text_parse_size(arguments->unit_bytes, &bytes) != TEXT_OK ||
                                          bytes < CRYPT_UNIT_MIN || bytes > CRYPT_UNIT_MAX))
        return report_usage(command, "--unit-bytes is a size of 16 to 16MiB, not '%s'",
                            arguments->unit_bytes);
    crypt->unit_bytes = (size_t)bytes;
    if (arguments->tweak == NULL)
        return CODE_OK;
    code = take_hex(command, "tweak", arguments->tweak, crypt->tweak, sizeof crypt->tweak, &length);
    if (code == CODE_OK && length != sizeof crypt->tweak)
        code = report_usage(command, "the tweak is 16 bytes (32 hex digits), not %zu", length);
    return code;
}

/* What can be said without asking the daemon. */
static int fill_from_arguments(struct crypt *crypt, const struct arguments *arguments, const char *command)
{
    int code = CODE_OK;

    crypt->key_name = arguments->key;
    crypt->key_version = arguments->key_version;
    crypt->flags = arguments->no_padding ? CM_NO_PADDING : 0;
    if (arguments->mode != NULL) {
        crypt->mode = text_mode_number(arguments->mode);
        if (crypt->mode == 0)
            return report_usage(command, "--mode is ecb, cbc, ctr, gcm or xts, not '%s'", arguments->mode);
    }
    code = take_place(crypt, arguments, command);
    if (code == CODE_OK && arguments->iv != NULL) {
        code = take_hex(command, "iv", arguments->iv, crypt->iv, sizeof crypt->iv, &crypt->iv_length);
        if (code == CODE_OK && crypt->iv_length == 0)
            code = report_usage(command, "--iv is empty; leave it out for the daemon's own IV");
    }
    if (code == CODE_OK && arguments->aad != NULL) {
        size_t capacity = strlen(arguments->aad) / 2 + 1;

        crypt->aad = malloc(capacity);
        if (crypt->aad == NULL)
            return report_error(CODE_FAILED, "no memory");
        code = take_hex(command, "aad", arguments->aad, crypt->aad, capacity, &crypt->aad_length);
    }
    return code;
}

/* Which mode, and whether the rest goes with it. */
static int settle_mode(struct crypt *crypt, const cm_key_options *key, const char *command)
{
    char modes[TEXT_MODES_MAX];

    if (crypt->mode == 0 && text_modes_count(key->modes) == 1)
        crypt->mode = text_modes_first(key->modes);
    if (crypt->mode == 0 && (key->modes == 0 || (key->modes & CM_MODE_BIT(CM_GCM)) != 0))
        crypt->mode = CM_GCM;
    if (crypt->mode == 0) {
        text_format_modes(key->modes, modes);
        return report_usage(command, "key %s is for %s: say which with --mode", crypt->key_name, modes);
    }
    crypt->tag_length = key->tag_length == 0 ? 16 : key->tag_length;
    /* As openssl enc does, so that a script can give --iv in every mode. */
    if (crypt->mode == CM_ECB && crypt->iv_length != 0) {
        report_error(CODE_OK, "ECB has no IV: --iv is ignored");
        crypt->iv_length = 0;
    }
    if ((crypt->mode == CM_CBC || crypt->mode == CM_CTR) && crypt->iv_length != 0 && crypt->iv_length != 16)
        return report_usage(command, "the IV of %s is 16 bytes (32 hex digits), not %zu",
                            text_mode_name(crypt->mode), crypt->iv_length);
    if (crypt->mode == CM_XTS && crypt->iv_length != 0)
        return report_usage(command, "XTS has no IV but a tweak: --tweak HEX, or --unit N for a number");
    if (crypt->mode == CM_XTS && !crypt->has_unit && !crypt->has_tweak)
        return report_usage(command,
                            "where does the data stand? XTS takes --unit N, the number of the first data "
                            "unit, or --tweak HEX");
    if (crypt->mode != CM_XTS && (crypt->has_unit || crypt->has_tweak))
        return report_usage(command, "only XTS has data units: leave out --%s",
                            crypt->has_unit ? "unit" : "tweak");
    if (crypt->mode != CM_GCM && crypt->aad != NULL)
        return report_usage(command, "only GCM takes additional data: leave out --aad");
    return CODE_OK;
}

static int open_key(struct crypt *crypt, const char *command)
{
    cm_key_options options = CM_KEY_OPTIONS_INIT;
    cm_error error = CM_ERROR_INIT;
    uint32_t key_bits;

    if (cm_key_open(&crypt->key, crypt->client, crypt->key_name, &error) != 0)
        return report_failure(&error, "can't open key %s", crypt->key_name);
    if (cm_key_get_options(crypt->key, &key_bits, &options, &error) != 0)
        return report_failure(&error, "can't look at key %s", crypt->key_name);
    if (crypt->direction == CM_DECRYPT && crypt->key_version != 0)
        cm_key_use_version(crypt->key, (uint32_t)crypt->key_version);
    return settle_mode(crypt, &options, command);
}

static int run(struct crypt *crypt)
{
    switch (crypt->mode) {
    case CM_GCM:
        return crypt_single(crypt);
    case CM_XTS:
        return crypt_units(crypt);
    default:
        return crypt_long(crypt);
    }
}

int crypt_run(struct cli *cli, int argc, char **argv, const struct crypt_command *command)
{
    struct arguments arguments = {0};
    struct crypt crypt = {.direction = command->direction, .input.descriptor = -1, .output.descriptor = -1};
    int code;

    if (!read_arguments(cli, argc, argv, command, &arguments, &code))
        return code;
    crypt.quiet = cli->quiet;
    code = fill_from_arguments(&crypt, &arguments, command->name);
    if (code == CODE_OK)
        code = input_open(&crypt.input, arguments.in);
    if (code == CODE_OK)
        code = connect_open(cli, 0, &crypt.client);
    if (code == CODE_OK)
        code = open_key(&crypt, command->name);
    if (code == CODE_OK)
        code = output_open(&crypt.output, arguments.out);
    if (code == CODE_OK)
        code = run(&crypt);
    if (code == CODE_OK)
        code = output_commit(&crypt.output);
    output_discard(&crypt.output);
    input_close(&crypt.input);
    cm_key_close(crypt.key);
    cm_close(crypt.client);
    free(crypt.aad);
    return code;
}
