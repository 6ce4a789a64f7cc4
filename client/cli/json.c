/* SPDX-License-Identifier: Apache-2.0 */
/* A small JSON writer. */
#include "json.h"
#include <inttypes.h>
#include <math.h>

/* Length of the well-formed UTF-8 sequence at `text`, 0 if it is none. */
static size_t utf8_length(const unsigned char *text)
{
    size_t length;

    if (text[0] < 0x80)
        return 1;
    if (text[0] < 0xc2 || text[0] > 0xf4)
        return 0;
    length = text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0; /* the terminator ends here, too */
    }
    if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f))
        return 0; /* overlong, surrogates */
    if ((text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f))
        return 0;
    return length;
}

static void put_string(FILE *stream, const char *value)
{
    const unsigned char *text = (const unsigned char *)value;

    fputc('"', stream);
    while (*text != '\0') {
        size_t length = utf8_length(text);

        if (length == 0) {
            fputs("\\ufffd", stream);
            text++;
            continue;
        }
        if (*text == '"' || *text == '\\')
            fprintf(stream, "\\%c", *text);
        else if (*text < 0x20 || *text == 0x7f)
            fprintf(stream, "\\u%04x", *text);
        else
            fwrite(text, 1, length, stream);
        text += length;
    }
    fputc('"', stream);
}

static void begin_value(struct json *json, const char *key)
{
    if (!json->first)
        fputs(", ", json->stream);
    json->first = false;
    if (key != NULL) {
        put_string(json->stream, key);
        fputs(": ", json->stream);
    }
}

void json_init(struct json *json, FILE *stream)
{
    *json = (struct json){.stream = stream, .first = true};
}

void json_done(struct json *json)
{
    fputc('\n', json->stream);
}

void json_object_begin(struct json *json, const char *key)
{
    begin_value(json, key);
    fputc('{', json->stream);
    json->first = true;
}

void json_object_end(struct json *json)
{
    fputc('}', json->stream);
    json->first = false;
}

void json_array_begin(struct json *json, const char *key)
{
    begin_value(json, key);
    fputc('[', json->stream);
    json->first = true;
}

void json_array_end(struct json *json)
{
    fputc(']', json->stream);
    json->first = false;
}

void json_string(struct json *json, const char *key, const char *value)
{
    begin_value(json, key);
    put_string(json->stream, value);
}

void json_uint(struct json *json, const char *key, uint64_t value)
{
    begin_value(json, key);
    fprintf(json->stream, "%" PRIu64, value);
}

void json_bool(struct json *json, const char *key, bool value)
{
    begin_value(json, key);
    fputs(value ? "true" : "false", json->stream);
}

void json_real(struct json *json, const char *key, double value, int decimals)
{
    begin_value(json, key);
    if (isfinite(value))
        fprintf(json->stream, "%.*f", decimals, value);
    else
        fputs("null", json->stream);
}
