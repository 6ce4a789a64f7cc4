/* SPDX-License-Identifier: Apache-2.0 */
/* Parsers and formatters for the command line. */
#include "text.h"
#include <ciphermill/ciphermill.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const mode_names[] = {
    [CM_ECB] = "ecb", [CM_CBC] = "cbc", [CM_CTR] = "ctr", [CM_GCM] = "gcm", [CM_XTS] = "xts",
};
enum { MODE_COUNT = sizeof mode_names / sizeof mode_names[0] };

static int hex_digit(unsigned char character)
{
    if (character >= '0' && character <= '9')
        return character - '0';
    if (character >= 'a' && character <= 'f')
        return character - 'a' + 10;
    if (character >= 'A' && character <= 'F')
        return character - 'A' + 10;
    return -1;
}

enum text_result text_parse_hex(const char *hex, size_t length, uint8_t *out, size_t capacity,
                                size_t *ret_length)
{
    enum text_result result = TEXT_OK;
    size_t digits = 0;

    for (size_t i = 0; i < length && result == TEXT_OK; i++) {
        unsigned char character = (unsigned char)hex[i];
        int digit = hex_digit(character);

        if (isspace(character))
            continue;
        if (digit < 0)
            result = TEXT_NOT_THAT;
        else if (digits / 2 >= capacity)
            result = TEXT_TOO_MUCH;
        else if (digits % 2 == 0)
            out[digits / 2] = (uint8_t)(digit << 4);
        else
            out[digits / 2] = (uint8_t)(out[digits / 2] | digit);
        digits++;
    }
    if (result == TEXT_OK && digits % 2 != 0)
        result = TEXT_ODD;
    if (result != TEXT_OK)
        explicit_bzero(out, capacity); /* it may be half a key */
    else
        *ret_length = digits / 2;
    return result;
}

void text_format_hex(const uint8_t *bytes, size_t length, char *out)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < length; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * length] = '\0';
}

/* Reads decimal digits and leaves *rest at what follows them. */
static enum text_result number_begin(const char *text, uint64_t *ret_number, const char **rest)
{
    uint64_t number = 0;

    if (!isdigit((unsigned char)*text))
        return TEXT_NOT_THAT;
    for (; isdigit((unsigned char)*text); text++) {
        unsigned digit = (unsigned)(*text - '0');
        if (number > (UINT64_MAX - digit) / 10)
            return TEXT_TOO_MUCH;
        number = number * 10 + digit;
    }
    *ret_number = number;
    *rest = text;
    return TEXT_OK;
}

enum text_result text_parse_number(const char *text, uint64_t *ret_number)
{
    uint64_t number;
    enum text_result result = number_begin(text, &number, &text);

    if (result == TEXT_OK && *text != '\0')
        result = TEXT_NOT_THAT;
    if (result == TEXT_OK)
        *ret_number = number;
    return result;
}

/* A size that ends at `stop` or at the end of the text. */
static enum text_result size_begin(const char *text, char stop, uint64_t *ret_bytes, const char **rest)
{
    static const char units[] = "KMGT";
    uint64_t bytes;
    enum text_result result = number_begin(text, &bytes, &text);
    const char *unit;

    if (result != TEXT_OK)
        return result;
    unit = *text == '\0' ? NULL : strchr(units, toupper((unsigned char)*text));
    if (unit != NULL) {
        unsigned shift = 10 * (unsigned)(unit - units + 1);
        if (bytes > UINT64_MAX >> shift)
            return TEXT_TOO_MUCH;
        bytes <<= shift;
        text++;
        if (text[0] == 'i' && text[1] == 'B')
            text += 2;
    }
    if (*text != '\0' && *text != stop)
        return TEXT_NOT_THAT;
    *ret_bytes = bytes;
    *rest = text;
    return TEXT_OK;
}

enum text_result text_parse_size(const char *text, uint64_t *ret_bytes)
{
    return size_begin(text, '\0', ret_bytes, &text);
}

enum text_result text_parse_range(const char *text, uint64_t *ret_min, uint64_t *ret_max)
{
    uint64_t least = 0;
    uint64_t most;
    enum text_result result = size_begin(text, '-', &least, &text);

    most = least;
    if (result == TEXT_OK && *text == '-')
        result = text_parse_size(text + 1, &most);
    if (result == TEXT_OK && most < least)
        result = TEXT_NOT_THAT;
    if (result != TEXT_OK)
        return result;
    *ret_min = least;
    *ret_max = most;
    return TEXT_OK;
}

enum text_result text_parse_seconds(const char *text, double *ret_seconds)
{
    char *end;
    double seconds;

    if (!isdigit((unsigned char)*text) && *text != '.')
        return TEXT_NOT_THAT;
    if (text[strspn(text, "0123456789.s")] != '\0')
        return TEXT_NOT_THAT; /* strtod would also take exponents, hex and names */
    seconds = strtod(text, &end);
    if (end == text || (*end != '\0' && strcmp(end, "s") != 0))
        return TEXT_NOT_THAT;
    if (seconds > 1e6)
        return TEXT_TOO_MUCH;
    *ret_seconds = seconds;
    return TEXT_OK;
}

void text_format_bytes(double bytes, char *out)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;

    while (bytes >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
        bytes /= 1024;
        unit++;
    }
    snprintf(out, TEXT_BYTES_MAX, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
}

int text_mode_number(const char *name)
{
    for (int mode = 1; mode < MODE_COUNT; mode++) {
        if (strcmp(name, mode_names[mode]) == 0)
            return mode;
    }
    return 0;
}

const char *text_mode_name(int mode)
{
    return mode > 0 && mode < MODE_COUNT ? mode_names[mode] : "?";
}

enum text_result text_parse_modes(const char *list, uint32_t *ret_modes)
{
    uint32_t modes = 0;

    for (;;) {
        size_t length = strcspn(list, ",");
        char name[8] = "";
        int mode;

        if (length >= sizeof name)
            return TEXT_NOT_THAT;
        memcpy(name, list, length);
        mode = text_mode_number(name);
        if (mode == 0)
            return TEXT_NOT_THAT;
        modes |= CM_MODE_BIT(mode);
        if (list[length] == '\0')
            break;
        list += length + 1;
    }
    *ret_modes = modes;
    return TEXT_OK;
}

void text_format_modes(uint32_t modes, char *out)
{
    size_t used = 0;

    out[0] = '\0';
    for (int mode = 1; mode < MODE_COUNT; mode++) {
        if ((modes & CM_MODE_BIT(mode)) == 0)
            continue;
        used += (size_t)snprintf(out + used, TEXT_MODES_MAX - used, "%s%s", used == 0 ? "" : ", ",
                                 mode_names[mode]);
    }
}

int text_modes_count(uint32_t modes)
{
    return __builtin_popcount(modes);
}

int text_modes_first(uint32_t modes)
{
    return modes == 0 ? 0 : __builtin_ctz(modes);
}

bool text_is_near(const char *word, const char *candidate)
{
    enum { LONGEST = 32, FAR = 2 };
    size_t row[LONGEST + 1];
    size_t word_length = strlen(word);
    size_t length = strlen(candidate);

    if (word_length > LONGEST || length > LONGEST || word_length == 0)
        return false;
    if (word_length >= 3 && strncmp(word, candidate, word_length) == 0)
        return true;
    /* Edit distance, one row at a time. */
    for (size_t j = 0; j <= length; j++)
        row[j] = j;
    for (size_t i = 1; i <= word_length; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= length; j++) {
            size_t best = diagonal + (word[i - 1] != candidate[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[length] <= FAR && row[length] < word_length;
}
