/* SPDX-License-Identifier: Apache-2.0 */
/* Reads key bytes from a file or a pipe, leaving no copies behind. */
#ifndef KEY_FILE_H
#define KEY_FILE_H

#include <stdbool.h>
#include <stdint.h>

/* Reads exactly key_bits / 8 bytes, for XTS twice as many, from the file ("-": standard input), which holds
 * hex digits, with white space or newlines anywhere between them, or the raw bytes. CODE_OK, or an exit code,
 * having said why; the caller wipes `out`. */
int key_file_read(const char *path, bool hex, uint32_t key_bits, bool xts, uint8_t *out);

#endif
