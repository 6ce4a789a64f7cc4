/* SPDX-License-Identifier: Apache-2.0 */
/* The status table, by number. */
#include "status.h"

#include <stddef.h>

/* Words are the names in small letters, spelled out because the preprocessor can't make them. */
static const char *const words[] = {
    [CM_STATUS_OK] = "ok",
    [CM_STATUS_BAD_REQUEST] = "bad_request",
    [CM_STATUS_UNSUPPORTED] = "unsupported",
    [CM_STATUS_TOO_LARGE] = "too_large",
    [CM_STATUS_VERSION_MISMATCH] = "version_mismatch",
    [CM_STATUS_BAD_TAG] = "bad_tag",
    [CM_STATUS_BAD_PADDING] = "bad_padding",
    [CM_STATUS_BAD_LENGTH] = "bad_length",
    [CM_STATUS_BAD_IV] = "bad_iv",
    [CM_STATUS_IV_NOT_ALLOWED] = "iv_not_allowed",
    [CM_STATUS_NO_SUCH_KEY] = "no_such_key",
    [CM_STATUS_KEY_UNUSABLE] = "key_unusable",
    [CM_STATUS_NOT_PERMITTED] = "not_permitted",
    [CM_STATUS_ACCESS_DENIED] = "access_denied",
    [CM_STATUS_NO_SUCH_OPERATION] = "no_such_operation",
    [CM_STATUS_EXISTS] = "exists",
    [CM_STATUS_OVERLOADED] = "overloaded",
    [CM_STATUS_GOING_AWAY] = "going_away",
    [CM_STATUS_STORE_FAILED] = "store_failed",
    [CM_STATUS_INTERNAL] = "internal",
    [CM_STATUS_NO_SUCH_SESSION] = "no_such_session",
    [CM_STATUS_BAD_NAME] = "bad_name",
    [CM_STATUS_BAD_ATTRIBUTES] = "bad_attributes",
    [CM_STATUS_SESSION_FULL] = "session_full",
};

#define TEXT(name, number, retry, text) [number] = (text),
static const char *const texts[] = {CM_STATUS_TABLE(TEXT)};
#undef TEXT

#define RETRY(name, number, retry, text) [number] = (uint8_t)CM_RETRY_CLASS_##retry,
static const uint8_t classes[] = {CM_STATUS_TABLE(RETRY)};
#undef RETRY

enum { WORDS = sizeof words / sizeof words[0], TEXTS = sizeof texts / sizeof texts[0] };
_Static_assert((int)WORDS == (int)TEXTS, "a status lacks its word");

const char *cm_wire_status_word(uint32_t status)
{
    return status < WORDS && words[status] != NULL ? words[status] : "unknown";
}

const char *cm_wire_status_text(uint32_t status)
{
    return status < TEXTS && texts[status] != NULL ? texts[status] : "unknown";
}

enum cm_retry_class cm_wire_status_retry(uint32_t status)
{
    if (status >= TEXTS || texts[status] == NULL)
        return CM_RETRY_CLASS_UNKNOWN;
    return (enum cm_retry_class)classes[status];
}
