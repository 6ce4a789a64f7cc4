/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON to a stdio stream, value by value; commas and quoting are its own affair.
 *
 * `key` is the member's name inside an object and NULL inside an array or at the top. */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *stream;
    bool first; /* nothing yet in the innermost object or array */
};

void json_init(struct json *json, FILE *stream);
void json_done(struct json *json); /* ends the line */

void json_object_begin(struct json *json, const char *key);
void json_object_end(struct json *json);
void json_array_begin(struct json *json, const char *key);
void json_array_end(struct json *json);

/* Bytes that are no UTF-8 are written as U+FFFD. */
void json_string(struct json *json, const char *key, const char *value);
void json_uint(struct json *json, const char *key, uint64_t value);
void json_bool(struct json *json, const char *key, bool value);
/* With `decimals` digits behind the point; a value that is not finite is written as null. */
void json_real(struct json *json, const char *key, double value, int decimals);

#endif
