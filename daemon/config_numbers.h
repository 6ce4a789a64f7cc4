/* SPDX-License-Identifier: Apache-2.0 */
/* Every number of the configuration: its name, unit, range and default, in one table. */
#ifndef CM_CONFIG_NUMBERS_H
#define CM_CONFIG_NUMBERS_H

#include "config.h"

enum cm_number_unit {
    CM_NUMBER_COUNT,
    CM_NUMBER_SIZE, /* bytes; "64KiB", "16MiB", "1GiB" */
    CM_NUMBER_TIME  /* milliseconds; "500ms", "10s", "2min" */
};

struct cm_number {
    const char *section; /* NULL: at the top */
    const char *name;
    enum cm_number_unit unit;
    size_t offset, width; /* in struct cm_config; 4 or 8 bytes */
    uint64_t least, most, standard;
};

extern const struct cm_number cm_numbers[];
extern const size_t cm_number_count;

const struct cm_number *cm_number_find(const char *section, const char *name);
uint64_t cm_number_get(const struct cm_number *number, const struct cm_config *config);
void cm_number_set(const struct cm_number *number, struct cm_config *config, uint64_t value);
/* Reads a value with its unit and checks the range. 0, or -1 with a text that names what is expected. */
int cm_number_parse(const struct cm_number *number, const char *text, uint64_t *ret_value, char *ret_text,
                    size_t text_capacity);
/* The value as the file would have it. */
void cm_number_print(const struct cm_number *number, uint64_t value, char *ret_text, size_t text_capacity);

#endif
