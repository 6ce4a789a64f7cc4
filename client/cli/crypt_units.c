/* SPDX-License-Identifier: Apache-2.0 */
/* XTS of a file: data units one after the other, a buffer of them as one batch; or the whole as one unit. */
#include "crypt.h"
#include "progress.h"
#include "report.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What is on its way at once: 1 MiB, as a Unix socket carries best, and not so many items that they outweigh
 * it. */
enum { BUFFER = 1024 * 1024, UNITS_MAX = 4096, BLOCK = 16, PAGE = 4096 };

/* A file's units, and the room in which they are done, in place. */
struct units {
    size_t unit_bytes, capacity; /* capacity: whole units */
    uint8_t *buffer;
    cm_item *items;
    uint64_t done; /* bytes */
};

static int too_short(const struct crypt *crypt, uint64_t length)
{
    return report_error(CODE_FAILED, "%s is too short: it holds %" PRIu64 " bytes, XTS takes %d at least",
                        crypt->input.name, length, BLOCK);
}

static int too_large(const struct crypt *crypt, size_t limit)
{
    return report_error(CODE_FAILED,
                        "%s is over the %zu bytes that one data unit may have here: cut it into units with "
                        "--unit and --unit-bytes in place of --tweak",
                        crypt->input.name, limit);
}

/* Whether an input of `length` bytes can be done; all that is known before reading, or a buffer of it. */
static int check_length(const struct crypt *crypt, const struct units *units, uint64_t length)
{
    size_t last = (size_t)(length % units->unit_bytes);
    uint64_t before = units->done / units->unit_bytes;
    uint64_t count = length / units->unit_bytes + (last > 0);

    if (units->done + length < BLOCK)
        return too_short(crypt, units->done + length);
    if (crypt->has_tweak && length > units->unit_bytes)
        return too_large(crypt, units->unit_bytes);
    if (last > 0 && last < BLOCK)
        return report_error(CODE_FAILED,
                            "the last data unit of %s would have %zu bytes, XTS takes %d at least: choose "
                            "another --unit-bytes than %zu, or pad the input",
                            crypt->input.name, last, BLOCK, units->unit_bytes);
    if (!crypt->has_tweak && before + count - 1 > UINT64_MAX - crypt->unit_number)
        return report_error(CODE_FAILED, "the numbers of data units end at 2^64 - 1, those of %s do not fit",
                            crypt->input.name);
    return CODE_OK;
}

/* One unit an item, under its number, or under the tweak that was given. Returns how many. */
static size_t cut(const struct crypt *crypt, struct units *units, size_t length)
{
    size_t count = (length + units->unit_bytes - 1) / units->unit_bytes;
    uint64_t number = crypt->unit_number + units->done / units->unit_bytes;

    for (size_t i = 0; i < count; i++) {
        cm_item *item = &units->items[i];
        size_t offset = i * units->unit_bytes;

        *item = (cm_item){.in = units->buffer + offset, .out = units->buffer + offset, .iv_length = BLOCK};
        item->in_length = i + 1 < count ? units->unit_bytes : length - offset;
        item->out_capacity = item->in_length;
        if (crypt->has_tweak)
            memcpy(item->iv, crypt->tweak, BLOCK);
        else
            cm_xts_tweak(number + i, item->iv);
    }
    return count;
}

static int run_buffer(struct crypt *crypt, struct units *units, size_t length)
{
    cm_error error = CM_ERROR_INIT;
    size_t count = cut(crypt, units, length);
    int code = CODE_OK;
    int rc;

    if (crypt->direction == CM_ENCRYPT)
        rc = cm_encrypt(crypt->key, CM_XTS, units->items, count, &error);
    else
        rc = cm_decrypt(crypt->key, CM_XTS, units->items, count, &error);
    if (rc != 0)
        return crypt_failed(crypt, &error);
    if (units->done == 0)
        code = crypt_check_version(crypt);
    if (code == CODE_OK)
        code = output_write(&crypt->output, units->buffer, length);
    units->done += length;
    return code;
}

static int run_units(struct crypt *crypt, struct units *units)
{
    struct progress progress;
    int code;

    progress_init(&progress, crypt->input.size, crypt->quiet);
    do {
        size_t length;

        code = input_fill(&crypt->input, units->buffer, units->capacity, &length);
        if (code == CODE_OK && crypt->has_tweak && !crypt->input.ended)
            code = too_large(crypt, units->unit_bytes);
        if (code == CODE_OK)
            code = check_length(crypt, units, length);
        if (code == CODE_OK)
            code = run_buffer(crypt, units, length);
        progress_update(&progress, units->done);
    } while (code == CODE_OK && !crypt->input.ended);
    progress_done(&progress);
    return code;
}

/* How long a unit is, and that it fits the daemon's limits. */
static int settle_unit(const struct crypt *crypt, size_t *ret_unit_bytes)
{
    cm_limits_info limits = {.size = sizeof limits};
    cm_error error = CM_ERROR_INIT;

    if (cm_get_limits(crypt->client, &limits, &error) != 0)
        return report_failure(&error, "can't ask for the daemon's limits");
    if (crypt->has_tweak)
        *ret_unit_bytes = limits.item_bytes < CRYPT_UNIT_MAX ? limits.item_bytes : CRYPT_UNIT_MAX;
    else if (crypt->unit_bytes > limits.item_bytes)
        return report_error(CODE_FAILED, "data units of %zu bytes are over the daemon's item limit of %u",
                            crypt->unit_bytes, limits.item_bytes);
    else
        *ret_unit_bytes = crypt->unit_bytes;
    return CODE_OK;
}

int crypt_units(struct crypt *crypt)
{
    struct units units = {.unit_bytes = CRYPT_UNIT_DEFAULT};
    size_t count;
    int code = settle_unit(crypt, &units.unit_bytes);

    if (code == CODE_OK && crypt->input.size > 0)
        code = check_length(crypt, &units, crypt->input.size);
    if (code != CODE_OK)
        return code;
    count = units.unit_bytes < BUFFER ? BUFFER / units.unit_bytes : 1;
    if (count > UNITS_MAX)
        count = UNITS_MAX;
    if (crypt->has_tweak)
        count = 1;
    units.capacity = count * units.unit_bytes;
    units.buffer = aligned_alloc(PAGE, (units.capacity + PAGE - 1) / PAGE * PAGE);
    units.items = calloc(count, sizeof units.items[0]);
    if (units.buffer == NULL || units.items == NULL)
        code = report_error(CODE_FAILED, "no memory for a buffer of %zu bytes", units.capacity);
    else
        code = run_units(crypt, &units);
    if (units.buffer != NULL)
        explicit_bzero(units.buffer, units.capacity);
    free(units.buffer);
    free(units.items);
    return code;
}
