/* SPDX-License-Identifier: Apache-2.0 */
/* Filling a caller's cm_error: a code, a retry class and a text of at most 247 bytes. */
#ifndef CM_CLIENT_ERROR_H
#define CM_CLIENT_ERROR_H

#include <ciphermill/ciphermill.h>

/* Fills *error, which may be NULL, and returns `code`. */
int cm_fail(cm_error *error, int code, int retry, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The same with the code's own retry class. */
int cm_fail_code(cm_error *error, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Out of memory while doing `what`: nothing was sent. */
int cm_fail_memory(cm_error *error, const char *what);
/* Hands a stored error on; returns its code. */
int cm_fail_copy(cm_error *error, const cm_error *from);
/* Nothing failed. */
void cm_error_clear(cm_error *error);

/* Puts `?` for every control character: what a daemon says must not steer the terminal that it ends up on.
 * Texts of errors have gone through it. */
void cm_text_clean(char *text);

/* The system's text for an errno value; `buffer` is used or not. */
const char *cm_errno_text(int number, char *buffer, size_t capacity);

/* A status from the wire as a public code: minus the number, or CM_ERR_PROTOCOL for one that has no place. */
int cm_code_of_status(uint32_t status);

#endif
