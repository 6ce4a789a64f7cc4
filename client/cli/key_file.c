/* SPDX-License-Identifier: Apache-2.0 */
/* Key bytes from files. read() and one buffer that is wiped: stdio would keep its own copy. */
#include "key_file.h"
#include "input.h"
#include "report.h"
#include "text.h"
#include <string.h>

static int parse(const char *name, bool hex, const uint8_t *bytes, size_t length, uint32_t key_bits, bool xts,
                 uint8_t *out)
{
    size_t wanted = key_bits / 8 * (xts ? 2 : 1);
    const char *in = xts ? " in xts" : "";
    size_t got = length;
    enum text_result result = TEXT_OK;

    if (hex)
        result = text_parse_hex((const char *)bytes, length, out, wanted, &got);
    if (result == TEXT_ODD)
        return report_error(CODE_FAILED, "%s: an odd number of hex digits", name);
    if (result == TEXT_NOT_THAT)
        return report_error(CODE_FAILED, "%s holds something else than hex digits and white space", name);
    if (result == TEXT_TOO_MUCH || got > wanted)
        return report_error(CODE_FAILED, "%s is too long: a key of aes-%u%s has %zu bytes (%zu hex digits)",
                            name, key_bits, in, wanted, 2 * wanted);
    if (got != wanted)
        return report_error(CODE_FAILED, "%s holds %zu bytes: a key of aes-%u%s has %zu (%zu hex digits)",
                            name, got, key_bits, in, wanted, 2 * wanted);
    if (!hex)
        memcpy(out, bytes, wanted);
    return CODE_OK;
}

int key_file_read(const char *path, bool hex, uint32_t key_bits, bool xts, uint8_t *out)
{
    uint8_t bytes[4096];
    struct input input;
    size_t length = 0;
    int code = input_open(&input, path);

    if (code == CODE_OK)
        code = input_fill(&input, bytes, sizeof bytes, &length);
    if (code == CODE_OK)
        code = parse(input.name, hex, bytes, length, key_bits, xts, out);
    input_close(&input);
    explicit_bzero(bytes, sizeof bytes);
    return code;
}
