/* SPDX-License-Identifier: Apache-2.0 */
/* Error lines and exit codes. */
#include "report.h"
#include <stdarg.h>
#include <stdio.h>

static const struct {
    int code;
    const char *text;
} codes[] = {
    {CODE_OK, "done"},
    {CODE_FAILED, "failed, and the same call will fail again (bad tag, no such key, disk full, ...)"},
    {CODE_USAGE, "wrong command line; nothing was done"},
    {CODE_UNREACHABLE, "no ciphermill daemon answers at the endpoint"},
    {CODE_REFUSED, "refused: access, permission, or what the key's attributes allow"},
    {CODE_REPEAT, "not executed (overload, daemon going away); safe to repeat"},
    {CODE_UNKNOWN, "outcome unknown: sent, but the connection broke or timed out before the answer"},
};

/* What to do about a status. Codes that no retry class decides stand here, too; 0: as the class says. */
static const struct {
    int status;
    int code;
    const char *remedy; /* NULL: none beyond the text */
} remedies[] = {
    {CM_ERR_BAD_TAG, 0,
     "wrong key, key version, additional data or IV, or the input was altered or cut short"},
    {CM_ERR_BAD_PADDING, 0, "wrong key, key version, mode or IV, or the input was altered or cut short"},
    {CM_ERR_BAD_LENGTH, 0, "ECB and CBC take whole 16-byte blocks, except to encrypt with padding"},
    {CM_ERR_IV_NOT_ALLOWED, CODE_REFUSED, "leave out --iv, or use a key made with --caller-iv"},
    {CM_ERR_NO_SUCH_KEY, 0, "'ciphermill key list' shows the keys"},
    {CM_ERR_KEY_UNUSABLE, 0, "'ciphermill key describe NAME' shows the states of its versions"},
    {CM_ERR_NOT_PERMITTED, CODE_REFUSED, "'ciphermill key describe NAME' shows what the key allows"},
    {CM_ERR_ACCESS_DENIED, CODE_REFUSED, "'ciphermill status' shows who the daemon takes you for"},
    {CM_ERR_OVERLOADED, 0, "try again in a moment"},
    {CM_ERR_GOING_AWAY, 0, "try again when the daemon is back"},
    {CM_ERR_STORE_FAILED, 0, "the daemon's log has the cause"},
    {CM_ERR_INTERNAL, 0, "the daemon's log has the cause"},
    {CM_ERR_VERSION_MISMATCH, CODE_UNREACHABLE, NULL},
    {CM_ERR_ENDPOINT, CODE_USAGE, NULL},
    {CM_ERR_NOT_FOUND, CODE_UNREACHABLE, NULL},
    {CM_ERR_NO_ACCESS, CODE_REFUSED, NULL},
    {CM_ERR_NOT_CIPHERMILL, CODE_UNREACHABLE, "check --endpoint"},
    {CM_ERR_CONNECT_TIMEOUT, CODE_UNREACHABLE, "check --endpoint, and whether the daemon hangs"},
    {CM_ERR_TIMEOUT, 0, "the daemon may be overloaded or stopped; --timeout gives it longer"},
};

int report_error(int code, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    flockfile(stderr);
    fputs("ciphermill: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    funlockfile(stderr);
    va_end(arguments);
    return code;
}

int report_usage(const char *command, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    fputs("ciphermill: ", stderr);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, " (try 'ciphermill%s%s --help')\n", command[0] == '\0' ? "" : " ", command);
    va_end(arguments);
    return CODE_USAGE;
}

static size_t remedy_of(int status)
{
    size_t i = 0;

    while (i < sizeof remedies / sizeof remedies[0] && remedies[i].status != status)
        i++;
    return i;
}

int report_code_of(int status, int retry)
{
    size_t row = remedy_of(status);

    if (status == CM_OK)
        return CODE_OK;
    if (row < sizeof remedies / sizeof remedies[0] && remedies[row].code != 0)
        return remedies[row].code;
    if (retry == CM_RETRY_NOT_EXECUTED)
        return CODE_REPEAT;
    return retry == CM_RETRY_UNKNOWN ? CODE_UNKNOWN : CODE_FAILED;
}

int report_failure(const cm_error *error, const char *format, ...)
{
    const char *text = error->text[0] != '\0' ? error->text : cm_status_description(error->code);
    size_t row = remedy_of(error->code);
    va_list arguments;

    va_start(arguments, format);
    flockfile(stderr);
    fputs("ciphermill: ", stderr);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, ": %s", text);
    if (row < sizeof remedies / sizeof remedies[0] && remedies[row].remedy != NULL)
        fprintf(stderr, "; %s", remedies[row].remedy);
    fprintf(stderr, " [%s, retry: %s]\n", cm_status_name(error->code), cm_retry_name(error->retry));
    funlockfile(stderr);
    va_end(arguments);
    return report_code_of(error->code, error->retry);
}

void report_print_codes(void)
{
    puts("Exit codes:");
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        printf("  %d  %s\n", codes[i].code, codes[i].text);
}
