/* SPDX-License-Identifier: Apache-2.0 */
/* Names, descriptions and retry classes of every code, and the filling of cm_error. */
#include "error.h"
#include "message.h"
#include "status.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define CHECK_STATUS(name, number, retry, text)                                                              \
    _Static_assert(CM_##name##_CODE == -(int)CM_STATUS_##name, "public code of " #name);
enum {
    CM_OK_CODE = CM_OK,
#define PUBLIC_CODE(name) CM_##name##_CODE = CM_ERR_##name
    PUBLIC_CODE(BAD_REQUEST),
    PUBLIC_CODE(UNSUPPORTED),
    PUBLIC_CODE(TOO_LARGE),
    PUBLIC_CODE(VERSION_MISMATCH),
    PUBLIC_CODE(BAD_TAG),
    PUBLIC_CODE(BAD_PADDING),
    PUBLIC_CODE(BAD_LENGTH),
    PUBLIC_CODE(BAD_IV),
    PUBLIC_CODE(IV_NOT_ALLOWED),
    PUBLIC_CODE(NO_SUCH_KEY),
    PUBLIC_CODE(KEY_UNUSABLE),
    PUBLIC_CODE(NOT_PERMITTED),
    PUBLIC_CODE(ACCESS_DENIED),
    PUBLIC_CODE(NO_SUCH_OPERATION),
    PUBLIC_CODE(EXISTS),
    PUBLIC_CODE(OVERLOADED),
    PUBLIC_CODE(GOING_AWAY),
    PUBLIC_CODE(STORE_FAILED),
    PUBLIC_CODE(INTERNAL),
    PUBLIC_CODE(NO_SUCH_SESSION),
    PUBLIC_CODE(BAD_NAME),
    PUBLIC_CODE(BAD_ATTRIBUTES),
    PUBLIC_CODE(SESSION_FULL)
#undef PUBLIC_CODE
};
CM_STATUS_TABLE(CHECK_STATUS)

_Static_assert((int)CM_RETRY_NONE == (int)CM_RETRY_CLASS_NONE, "retry class");
_Static_assert((int)CM_RETRY_NOT_EXECUTED == (int)CM_RETRY_CLASS_NOT_EXECUTED, "retry class");
_Static_assert((int)CM_RETRY_UNKNOWN == (int)CM_RETRY_CLASS_UNKNOWN, "retry class");
_Static_assert((int)CM_RETRY_FINAL == (int)CM_RETRY_CLASS_FINAL, "retry class");
_Static_assert((int)CM_ECB == (int)CM_WIRE_ECB && (int)CM_CBC == (int)CM_WIRE_CBC, "mode");
_Static_assert((int)CM_CTR == (int)CM_WIRE_CTR && (int)CM_GCM == (int)CM_WIRE_GCM, "mode");
_Static_assert((int)CM_XTS == (int)CM_WIRE_XTS && (int)CM_XTS == (int)CM_WIRE_MODE_LAST, "mode");
_Static_assert((int)CM_ENCRYPT == (int)CM_WIRE_ENCRYPT && (int)CM_DECRYPT == (int)CM_WIRE_DECRYPT,
               "direction");

/* The codes that this library makes itself. */
static const struct local_code {
    int code, retry;
    const char *name, *description;
} local_codes[] = {
    {CM_ERR_ARGUMENT, CM_RETRY_FINAL, "argument", "the call itself is wrong"},
    {CM_ERR_NO_MEMORY, CM_RETRY_NOT_EXECUTED, "no_memory", "out of memory"},
    {CM_ERR_ENDPOINT, CM_RETRY_FINAL, "endpoint", "the endpoint can't be understood"},
    {CM_ERR_NOT_FOUND, CM_RETRY_NOT_EXECUTED, "not_found", "nobody listens at the endpoint"},
    {CM_ERR_NO_ACCESS, CM_RETRY_FINAL, "no_access", "no permission to connect to the endpoint"},
    {CM_ERR_NOT_CIPHERMILL, CM_RETRY_FINAL, "not_ciphermill",
     "whoever answers there speaks another protocol"},
    {CM_ERR_CONNECT_TIMEOUT, CM_RETRY_NOT_EXECUTED, "connect_timeout", "no greeting in time"},
    {CM_ERR_TIMEOUT, CM_RETRY_UNKNOWN, "timeout", "no reply in time"},
    {CM_ERR_DISCONNECTED, CM_RETRY_UNKNOWN, "disconnected", "the connection broke"},
    {CM_ERR_FORKED, CM_RETRY_FINAL, "forked", "the object belongs to the parent process; connect anew"},
    {CM_ERR_PROTOCOL, CM_RETRY_UNKNOWN, "protocol", "the daemon's answer breaks the protocol"},
    {CM_ERR_BUSY, CM_RETRY_NOT_EXECUTED, "busy", "as many batches are in flight as may be"},
    {CM_ERR_ROOM, CM_RETRY_FINAL, "room", "an output buffer is too small"},
    {CM_ERR_NOT_SENT, CM_RETRY_NOT_EXECUTED, "not_sent", "the item was not sent, since its batch failed"},
};

static const struct local_code *local_code(int code)
{
    for (size_t i = 0; i < sizeof local_codes / sizeof local_codes[0]; i++)
        if (local_codes[i].code == code)
            return &local_codes[i];
    return NULL;
}

const char *cm_status_name(int status)
{
    const struct local_code *local = local_code(status);
    if (local != NULL)
        return local->name;
    return status > 0 ? "unknown" : cm_wire_status_word((uint32_t) - (int64_t)status);
}

const char *cm_status_description(int status)
{
    const struct local_code *local = local_code(status);
    if (local != NULL)
        return local->description;
    return status > 0 ? "unknown" : cm_wire_status_text((uint32_t) - (int64_t)status);
}

int cm_status_retry(int status)
{
    const struct local_code *local = local_code(status);
    if (local != NULL)
        return local->retry;
    return status > 0 ? CM_RETRY_UNKNOWN : (int)cm_wire_status_retry((uint32_t) - (int64_t)status);
}

const char *cm_retry_name(int retry)
{
    switch (retry) {
    case CM_RETRY_NONE:
        return "none";
    case CM_RETRY_NOT_EXECUTED:
        return "not executed";
    case CM_RETRY_FINAL:
        return "final";
    default:
        return "unknown";
    }
}

int cm_code_of_status(uint32_t status)
{
    return status < 100 ? -(int)status : CM_ERR_PROTOCOL;
}

void cm_text_clean(char *text)
{
    for (; *text != 0; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
}

__attribute__((format(printf, 4, 0))) static int fail(cm_error *error, int code, int retry,
                                                      const char *format, va_list arguments)
{
    if (error != NULL) {
        error->code = code;
        error->retry = retry;
        (void)vsnprintf(error->text, sizeof error->text, format, arguments);
        cm_text_clean(error->text);
    }
    return code;
}

int cm_fail(cm_error *error, int code, int retry, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(error, code, retry, format, arguments);
    va_end(arguments);
    return code;
}

int cm_fail_code(cm_error *error, int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(error, code, cm_status_retry(code), format, arguments);
    va_end(arguments);
    return code;
}

int cm_fail_memory(cm_error *error, const char *what)
{
    return cm_fail_code(error, CM_ERR_NO_MEMORY, "out of memory for %s", what);
}

int cm_fail_copy(cm_error *error, const cm_error *from)
{
    if (error != NULL && error != from)
        *error = *from;
    return from->code;
}

void cm_error_clear(cm_error *error)
{
    if (error != NULL) {
        error->code = CM_OK;
        error->retry = CM_RETRY_NONE;
        error->text[0] = 0;
    }
}

const char *cm_errno_text(int number, char *buffer, size_t capacity)
{
    return strerror_r(number, buffer, capacity);
}
