/* SPDX-License-Identifier: Apache-2.0 */
/* What people type and read on a command line: hex digits, sizes, numbers, names of modes. Pure functions. */
#ifndef TEXT_H
#define TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TEXT_MODES_MAX = 64, TEXT_BYTES_MAX = 24 };

/* Results of the parsers. */
enum text_result {
    TEXT_OK = 0,
    TEXT_NOT_THAT = -1, /* not of this form at all */
    TEXT_ODD = -2,      /* hex: half a byte is left over */
    TEXT_TOO_MUCH = -3  /* more than the capacity, or than the type can hold */
};

/* `length` characters of hex digits in either case; white space between them is passed over. Writes at most
 * `capacity` bytes; `out` is wiped on failure. */
enum text_result text_parse_hex(const char *hex, size_t length, uint8_t *out, size_t capacity,
                                size_t *ret_length);
/* Lower-case digits and a terminator: out has room for 2 * length + 1. */
void text_format_hex(const uint8_t *bytes, size_t length, char *out);

/* A whole number in decimal. */
enum text_result text_parse_number(const char *text, uint64_t *ret_number);
/* A number of bytes: "4096", "4K", "4KiB", "1M", "2GiB"; always powers of 1,024. */
enum text_result text_parse_size(const char *text, uint64_t *ret_bytes);
/* A size, or two with a dash: "64-4KiB". *ret_min <= *ret_max. */
enum text_result text_parse_range(const char *text, uint64_t *ret_min, uint64_t *ret_max);
/* Seconds, with decimals if need be: "5", "0.25", "5s"; 0 to 1,000,000. */
enum text_result text_parse_seconds(const char *text, double *ret_seconds);

/* "1.5 GiB". out has room for TEXT_BYTES_MAX. */
void text_format_bytes(double bytes, char *out);

/* "gcm" to CM_GCM; 0 if there is no such mode. */
int text_mode_number(const char *name);
const char *text_mode_name(int mode); /* "?" for a number that is none */
/* "ecb,cbc" to a mask of CM_MODE_BIT; TEXT_NOT_THAT for an empty list or an unknown name. */
enum text_result text_parse_modes(const char *list, uint32_t *ret_modes);
/* The reverse, with ", " between. out has room for TEXT_MODES_MAX. */
void text_format_modes(uint32_t modes, char *out);
/* The number of modes in a mask, and the lowest one. */
int text_modes_count(uint32_t modes);
int text_modes_first(uint32_t modes);

/* Whether `word` is so near to `candidate` that one may have been meant for the other. */
bool text_is_near(const char *word, const char *candidate);

#endif
