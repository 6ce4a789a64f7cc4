/* SPDX-License-Identifier: Apache-2.0 */
/* Keys as tables, as text and as JSON. */
#include "key_show.h"
#include "text.h"
#include <string.h>
#include <time.h>

enum { TIME_MAX = 32 };

static const char *state_name(uint32_t state)
{
    static const char *const names[] = {"unknown", "enabled", "decrypt-only", "disabled", "destroyed"};

    return state < sizeof names / sizeof names[0] ? names[state] : names[0];
}

static void format_time(uint64_t unix_s, char *out)
{
    time_t time = (time_t)unix_s;
    struct tm fields;

    if (gmtime_r(&time, &fields) == NULL || strftime(out, TIME_MAX, "%Y-%m-%dT%H:%M:%SZ", &fields) == 0)
        snprintf(out, TIME_MAX, "?");
}

/* The newest version that is left, or the newest one of all; NULL if the daemon told of none. */
static const cm_key_version_details *newest(const cm_key_details *key)
{
    const cm_key_version_details *best = NULL;

    for (uint32_t i = 0; i < key->version_count; i++) {
        const cm_key_version_details *version = &key->versions[i];
        if (best == NULL || (version->state == CM_KEY_ENABLED) > (best->state == CM_KEY_ENABLED) ||
            ((version->state == CM_KEY_ENABLED) == (best->state == CM_KEY_ENABLED) &&
             version->version > best->version))
            best = version;
    }
    return best;
}

static const char *iv_rule(const cm_key_details *key)
{
    if (key->modes == CM_MODE_BIT(CM_XTS))
        return "caller"; /* the tweak */
    return key->caller_iv != 0 ? "caller or daemon" : "daemon";
}

void key_show_table(const cm_key_details *keys, size_t count)
{
    size_t width = 4;

    for (size_t i = 0; i < count; i++)
        width = strlen(keys[i].name) > width ? strlen(keys[i].name) : width;
    printf("%-*s  %-9s  %-15s  %-16s  %7s  %-12s  %s\n", (int)width, "NAME", "ALGORITHM", "MODES", "IV FROM",
           "VERSION", "STATE", "CREATED");
    for (size_t i = 0; i < count; i++) {
        const cm_key_version_details *version = newest(&keys[i]);
        char modes[TEXT_MODES_MAX];
        char created[TIME_MAX] = "-";

        text_format_modes(keys[i].modes, modes);
        if (version != NULL)
            format_time(version->created_unix_s, created);
        printf("%-*s  aes-%-5u  %-15s  %-16s  %7u  %-12s  %s\n", (int)width, keys[i].name, keys[i].key_bits,
               modes, iv_rule(&keys[i]), version == NULL ? 0 : version->version,
               version == NULL ? "-" : state_name(version->state), created);
    }
}

void key_show_one(const cm_key_details *key)
{
    char modes[TEXT_MODES_MAX];
    char id[2 * sizeof key->id + 1];
    char created[TIME_MAX];

    text_format_modes(key->modes, modes);
    text_format_hex(key->id, sizeof key->id, id);
    printf("name        %s\nid          %s\nalgorithm   aes-%u\nmodes       %s\n", key->name, id,
           key->key_bits, modes);
    printf("may         %s%s%s\nIV from     %s\n", key->may_encrypt != 0 ? "encrypt" : "",
           key->may_encrypt != 0 && key->may_decrypt != 0 ? ", " : "", key->may_decrypt != 0 ? "decrypt" : "",
           iv_rule(key));
    if ((key->modes & CM_MODE_BIT(CM_GCM)) != 0)
        printf("tag length  %u bytes\n", key->tag_length == 0 ? 16 : key->tag_length);
    for (uint32_t i = 0; i < key->version_count; i++) {
        format_time(key->versions[i].created_unix_s, created);
        printf("version %-3u %s, created %s\n", key->versions[i].version, state_name(key->versions[i].state),
               created);
    }
}

static void show_versions(struct json *json, const cm_key_details *key)
{
    char created[TIME_MAX];

    json_array_begin(json, "versions");
    for (uint32_t i = 0; i < key->version_count; i++) {
        format_time(key->versions[i].created_unix_s, created);
        json_object_begin(json, NULL);
        json_uint(json, "version", key->versions[i].version);
        json_string(json, "state", state_name(key->versions[i].state));
        json_string(json, "created", created);
        json_object_end(json);
    }
    json_array_end(json);
}

void key_show_json(struct json *json, const cm_key_details *key)
{
    char text[2 * sizeof key->id + 1];

    json_object_begin(json, NULL);
    json_string(json, "name", key->name);
    text_format_hex(key->id, sizeof key->id, text);
    json_string(json, "id", text);
    snprintf(text, sizeof text, "aes-%u", key->key_bits);
    json_string(json, "algorithm", text);
    json_uint(json, "key_bits", key->key_bits);
    json_array_begin(json, "modes");
    for (int mode = CM_ECB; mode <= CM_XTS; mode++) {
        if ((key->modes & CM_MODE_BIT(mode)) != 0)
            json_string(json, NULL, text_mode_name(mode));
    }
    json_array_end(json);
    json_bool(json, "encrypt", key->may_encrypt != 0);
    json_bool(json, "decrypt", key->may_decrypt != 0);
    json_bool(json, "caller_iv", key->caller_iv != 0);
    if ((key->modes & CM_MODE_BIT(CM_GCM)) != 0)
        json_uint(json, "tag_length", key->tag_length == 0 ? 16 : key->tag_length);
    show_versions(json, key);
    json_object_end(json);
}
