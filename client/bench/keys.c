/* SPDX-License-Identifier: Apache-2.0 */
/* Ephemeral keys over a Unix socket; named ones where raw key bytes may not travel. */
#include "keys.h"
#include "connect.h"
#include "key_file.h"
#include "report.h"
#include "text.h"
#include <openssl/rand.h>
#include <stdio.h>
#include <string.h>

static const uint32_t block_modes = CM_MODE_BIT(CM_ECB) | CM_MODE_BIT(CM_CBC) | CM_MODE_BIT(CM_CTR);

static const char *const family_words[KEYS_FAMILIES] = {
    [KEYS_BLOCK] = "block", [KEYS_GCM] = "gcm", [KEYS_XTS] = "xts"};

enum keys_family keys_family_of(int mode)
{
    return mode == CM_GCM ? KEYS_GCM : mode == CM_XTS ? KEYS_XTS : KEYS_BLOCK;
}

static uint32_t family_modes(enum keys_family family)
{
    return family == KEYS_GCM ? CM_MODE_BIT(CM_GCM) : family == KEYS_XTS ? CM_MODE_BIT(CM_XTS) : block_modes;
}

static cm_key_options options_of(enum keys_family family)
{
    cm_key_options options = CM_KEY_OPTIONS_INIT;

    options.modes = family_modes(family);
    options.caller_iv = 1;
    return options;
}

static int admin_connect(const struct keys *keys, const struct plan *plan, cm_client **ret_client)
{
    struct cli admin = *plan->cli;

    admin.endpoint = keys->admin_endpoint;
    return connect_open(&admin, 0, ret_client);
}

static int import_temporary(struct keys *keys, const struct plan *plan)
{
    cm_client *client = NULL;
    cm_error error = CM_ERROR_INIT;
    uint8_t random[8];
    char hex[2 * sizeof random + 1];
    int code = admin_connect(keys, plan, &client);

    if (code != CODE_OK)
        return code;
    if (RAND_bytes(random, sizeof random) != 1)
        code = report_error(CODE_FAILED, "no random bytes from OpenSSL");
    for (int family = 0; family < KEYS_FAMILIES && code == CODE_OK; family++) {
        cm_key_options options = options_of((enum keys_family)family);

        if ((keys->modes & family_modes((enum keys_family)family)) == 0)
            continue;
        text_format_hex(random, sizeof random, hex);
        snprintf(keys->names[family], sizeof keys->names[family], "bench-%s-%s", hex, family_words[family]);
        if (cm_key_create(client, keys->names[family], keys->key_bits, keys->bytes[family], &options,
                          &error) != 0)
            code = report_failure(&error, "can't import a temporary key over %s", keys->admin_endpoint);
        else
            keys->made[family] = true;
    }
    cm_close(client);
    return code;
}

static int read_named(struct keys *keys, const struct keys_source *source)
{
    bool xts = (keys->modes & CM_MODE_BIT(CM_XTS)) != 0;
    int code;

    if (source->name == NULL || source->hex == NULL)
        return report_usage("bench",
                            "--key and --key-hex go together: the bench has to know the key's bytes to "
                            "verify the answers");
    if (strlen(source->name) >= sizeof keys->names[0])
        return report_usage("bench", "--key: the name is too long");
    if (xts && keys->modes != CM_MODE_BIT(CM_XTS))
        return report_usage("bench", "--key: a key for XTS is for XTS alone");
    code = key_file_read(source->hex, true, keys->key_bits, xts, keys->bytes[0]);
    for (int family = 1; family < KEYS_FAMILIES; family++)
        memcpy(keys->bytes[family], keys->bytes[0], sizeof keys->bytes[0]);
    for (int family = 0; family < KEYS_FAMILIES; family++)
        snprintf(keys->names[family], sizeof keys->names[family], "%s", source->name);
    return code;
}

int keys_prepare(struct keys *keys, const struct plan *plan, const struct keys_source *source)
{
    *keys = (struct keys){.key_bits = plan->key_bits, .modes = plan->modes};
    if (source->name != NULL || source->hex != NULL)
        return read_named(keys, source);
    if (RAND_priv_bytes(keys->bytes[0], sizeof keys->bytes) != 1)
        return report_error(CODE_FAILED, "no random bytes from OpenSSL");
    keys->admin_endpoint = source->admin_endpoint;
    if (source->admin_endpoint != NULL)
        return import_temporary(keys, plan);
    if (strncmp(connect_endpoint(plan->cli), "tcp:", 4) == 0)
        return report_usage("bench",
                            "raw key bytes don't travel over plain TCP: add --admin-endpoint unix:/path, "
                            "where a temporary key can be imported, or --key NAME --key-hex FILE");
    return CODE_OK;
}

static int open_named(const struct keys *keys, const char *name, cm_client *client, cm_key **ret_key,
                      uint32_t *ret_tag_length)
{
    cm_key_options options = CM_KEY_OPTIONS_INIT;
    cm_error error = CM_ERROR_INIT;
    uint32_t key_bits = 0;

    if (cm_key_open(ret_key, client, name, &error) != 0)
        return report_failure(&error, "can't open key %s", name);
    if (cm_key_get_options(*ret_key, &key_bits, &options, &error) != 0)
        return report_failure(&error, "can't look at key %s", name);
    if (key_bits != keys->key_bits)
        return report_error(CODE_FAILED, "key %s has %u bits: say --bits %u", name, key_bits, key_bits);
    if (options.tag_length != 0)
        *ret_tag_length = options.tag_length;
    return CODE_OK;
}

int keys_open(const struct keys *keys, const struct plan *plan, cm_client *client,
              cm_key *ret_keys[KEYS_FAMILIES], uint32_t *ret_tag_length)
{
    int code = CODE_OK;

    *ret_tag_length = 16;
    for (int family = 0; family < KEYS_FAMILIES && code == CODE_OK; family++) {
        cm_key_options options = options_of((enum keys_family)family);
        cm_error error = CM_ERROR_INIT;

        if ((plan->modes & options.modes) == 0)
            continue;
        if (keys->names[family][0] != '\0')
            code = open_named(keys, keys->names[family], client, &ret_keys[family], ret_tag_length);
        else if (cm_key_ephemeral(&ret_keys[family], client, keys->key_bits, keys->bytes[family], &options,
                                  &error) != 0)
            code = report_failure(&error, "can't bring an ephemeral key");
    }
    return code;
}

void keys_done(struct keys *keys, const struct plan *plan)
{
    bool made = false;
    cm_client *client = NULL;
    cm_error error = CM_ERROR_INIT;

    for (int family = 0; family < KEYS_FAMILIES; family++)
        made |= keys->made[family];
    if (made && admin_connect(keys, plan, &client) == CODE_OK) {
        for (int family = 0; family < KEYS_FAMILIES; family++) {
            if (keys->made[family] && cm_key_destroy(client, keys->names[family], &error) != 0)
                report_failure(&error, "can't destroy the temporary key %s", keys->names[family]);
        }
    }
    cm_close(client);
    explicit_bzero(keys, sizeof *keys);
}
