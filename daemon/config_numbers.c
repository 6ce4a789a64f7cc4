/* SPDX-License-Identifier: Apache-2.0 */
/* Every number of the configuration: its name, unit, range and default, in one table. */
#include "config_numbers.h"

#include "frame.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(member) offsetof(struct cm_config, member), sizeof(((struct cm_config *)0)->member)
#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

/* A header of CM_HEADER_LIMIT bytes holds the columns of 1,024 items in their longest form (about 48 bytes an
 * item: length, IV and its length, tag, additional data's length, part, operation), not of many more. */
const struct cm_number cm_numbers[] = {
    {NULL, "workers", CM_NUMBER_COUNT, FIELD(workers), 0, 256, 0},
    {NULL, "greeting-timeout", CM_NUMBER_TIME, FIELD(greeting_timeout_ms), 100, 3600000, 10000},
    {NULL, "stall-timeout", CM_NUMBER_TIME, FIELD(stall_timeout_ms), 100, 86400000, 30000},
    {NULL, "operation-timeout", CM_NUMBER_TIME, FIELD(operation_timeout_ms), 1000, 86400000, 60000},
    {NULL, "drain-timeout", CM_NUMBER_TIME, FIELD(drain_timeout_ms), 0, 3600000, 10000},
    {"limits", "header", CM_NUMBER_SIZE, FIELD(limits.header_bytes), 4 * KIB, CM_HEADER_LIMIT,
     CM_HEADER_LIMIT},
    {"limits", "frame", CM_NUMBER_SIZE, FIELD(limits.frame_bytes), 128 * KIB, 256 * MIB, 16 * MIB},
    {"limits", "batch-items", CM_NUMBER_COUNT, FIELD(limits.batch_items), 1, 1024, 1024},
    {"limits", "item", CM_NUMBER_SIZE, FIELD(limits.item_bytes), 4 * KIB, 128 * MIB, 8 * MIB},
    {"limits", "inflight-per-connection", CM_NUMBER_SIZE, FIELD(limits.inflight_bytes), MIB, 16 * GIB,
     32 * MIB},
    {"limits", "inflight", CM_NUMBER_SIZE, FIELD(inflight_bytes), MIB, 1024 * GIB, 512 * MIB},
    {"limits", "operations", CM_NUMBER_COUNT, FIELD(limits.operations), 1, 65536, 64},
    {"limits", "session-keys", CM_NUMBER_COUNT, FIELD(limits.session_keys), 1, 65536, 1024},
    {"limits", "connections", CM_NUMBER_COUNT, FIELD(connections), 1, 1000000, 4096},
    {"limits", "connections-per-peer", CM_NUMBER_COUNT, FIELD(connections_per_peer), 1, 1000000, 2048},
};
const size_t cm_number_count = sizeof cm_numbers / sizeof cm_numbers[0];

static const struct {
    enum cm_number_unit unit;
    const char *suffix;
    uint64_t factor;
} units[] = {
    /* Of one unit the largest first: printing takes the first that divides. */
    {CM_NUMBER_COUNT, "", 1},     {CM_NUMBER_SIZE, "GiB", GIB}, {CM_NUMBER_SIZE, "MiB", MIB},
    {CM_NUMBER_SIZE, "KiB", KIB}, {CM_NUMBER_SIZE, "", 1},      {CM_NUMBER_TIME, "min", 60000},
    {CM_NUMBER_TIME, "s", 1000},  {CM_NUMBER_TIME, "ms", 1},
};
static const char *const examples[] = {"a whole number", "a size such as 64KiB or 16MiB",
                                       "a time such as 500ms, 10s or 2min"};

const struct cm_number *cm_number_find(const char *section, const char *name)
{
    for (size_t i = 0; i < cm_number_count; i++) {
        const struct cm_number *number = &cm_numbers[i];
        bool same = number->section == NULL ? section == NULL
                                            : section != NULL && strcmp(number->section, section) == 0;
        if (same && strcmp(number->name, name) == 0)
            return number;
    }
    return NULL;
}

uint64_t cm_number_get(const struct cm_number *number, const struct cm_config *config)
{
    const char *field = (const char *)config + number->offset;
    uint32_t narrow;
    uint64_t wide;
    if (number->width == sizeof wide) {
        memcpy(&wide, field, sizeof wide);
        return wide;
    }
    memcpy(&narrow, field, sizeof narrow);
    return narrow;
}

void cm_number_set(const struct cm_number *number, struct cm_config *config, uint64_t value)
{
    char *field = (char *)config + number->offset;
    uint32_t narrow = (uint32_t)value;
    if (number->width == sizeof value)
        memcpy(field, &value, sizeof value);
    else
        memcpy(field, &narrow, sizeof narrow);
}

int cm_number_parse(const struct cm_number *number, const char *text, uint64_t *ret_value, char *ret_text,
                    size_t text_capacity)
{
    char *suffix = NULL;
    char least[32], most[32];
    errno = 0;
    uint64_t value = isdigit((unsigned char)text[0]) ? strtoull(text, &suffix, 10) : 0;
    for (size_t i = 0; suffix != NULL && errno == 0 && i < sizeof units / sizeof units[0]; i++) {
        if (units[i].unit != number->unit || strcmp(units[i].suffix, suffix) != 0)
            continue;
        if (value > UINT64_MAX / units[i].factor)
            break;
        value *= units[i].factor;
        if (value >= number->least && value <= number->most) {
            *ret_value = value;
            return 0;
        }
        cm_number_print(number, number->least, least, sizeof least);
        cm_number_print(number, number->most, most, sizeof most);
        snprintf(ret_text, text_capacity, "%s = %s is out of range: %s to %s", number->name, text, least,
                 most);
        return -1;
    }
    snprintf(ret_text, text_capacity, "%s = %s: expected %s", number->name, text, examples[number->unit]);
    return -1;
}

void cm_number_print(const struct cm_number *number, uint64_t value, char *ret_text, size_t text_capacity)
{
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        bool divides = value % units[i].factor == 0 && (value != 0 || units[i].factor == 1);
        if (units[i].unit == number->unit && divides) {
            snprintf(ret_text, text_capacity, "%" PRIu64 "%s", value / units[i].factor, units[i].suffix);
            return;
        }
    }
}
