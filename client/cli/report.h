/* SPDX-License-Identifier: Apache-2.0 */
/* How the command says that something went wrong: one line on standard error and an exit code. */
#ifndef REPORT_H
#define REPORT_H

#include <ciphermill/ciphermill.h>

/* Exit codes. A table of them with texts is printed by report_print_codes. */
enum report_code {
    CODE_OK = 0,
    CODE_FAILED = 1,      /* final: the same call fails again */
    CODE_USAGE = 2,       /* the command line is wrong; nothing was done */
    CODE_UNREACHABLE = 3, /* no ciphermill daemon answers at the endpoint */
    CODE_REFUSED = 4,     /* access, permission, or the key's attributes */
    CODE_REPEAT = 5,      /* not executed: safe to repeat */
    CODE_UNKNOWN = 6      /* sent, and it is not known whether it was done */
};

/* Prints "ciphermill: " and the text, and gives `code` back, so that a failing function can return it. */
int report_error(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A wrong command line: adds "(try 'ciphermill COMMAND --help')". `command` may be "". Returns CODE_USAGE. */
int report_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A failure that the library reported: what was tried (the format), the library's text, a remedy where one is
 * known, status and retry class. Returns the exit code that belongs to it. */
int report_failure(const cm_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The exit code of a status of the library with its retry class. */
int report_code_of(int status, int retry);

/* The exit codes, a line each, on standard output. */
void report_print_codes(void);

#endif
