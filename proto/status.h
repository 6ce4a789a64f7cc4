/* SPDX-License-Identifier: Apache-2.0 */
/* Statuses on the wire: what became of a request or an item, and whether it may be repeated. */
#ifndef CM_STATUS_H
#define CM_STATUS_H

#include <stdint.h>

/* May the request be repeated? */
enum cm_retry_class {
    CM_RETRY_CLASS_NONE = 0,         /* nothing failed */
    CM_RETRY_CLASS_NOT_EXECUTED = 1, /* nothing was done: safe to repeat, here or elsewhere */
    CM_RETRY_CLASS_UNKNOWN = 2,      /* it may or may not have been done */
    CM_RETRY_CLASS_FINAL = 3         /* the same request fails again */
};

/* One line a status: name, number on the wire (never reused), retry class, what it means. */
#define CM_STATUS_TABLE(X)                                                                                   \
    X(OK, 0, NONE, "done")                                                                                   \
    X(BAD_REQUEST, 1, FINAL, "the request is malformed")                                                     \
    X(UNSUPPORTED, 2, FINAL, "the daemon does not know this mode, part or call")                             \
    X(TOO_LARGE, 3, FINAL, "over a limit that the greeting announced")                                       \
    X(VERSION_MISMATCH, 4, FINAL, "client and daemon share no protocol version")                             \
    X(BAD_TAG, 5, FINAL, "authentication failed")                                                            \
    X(BAD_PADDING, 6, FINAL, "the padding is malformed")                                                     \
    X(BAD_LENGTH, 7, FINAL, "the length is not one that the mode takes")                                     \
    X(BAD_IV, 8, FINAL, "the IV is missing or of a wrong length")                                            \
    X(IV_NOT_ALLOWED, 9, FINAL, "the key takes no caller's IV: the daemon makes it")                         \
    X(NO_SUCH_KEY, 10, FINAL, "no such key, handle or key version")                                          \
    X(KEY_UNUSABLE, 11, FINAL, "the key version is disabled or destroyed")                                   \
    X(NOT_PERMITTED, 12, FINAL, "the key's attributes do not allow this mode or direction")                  \
    X(ACCESS_DENIED, 13, FINAL, "this peer may not do that")                                                 \
    X(NO_SUCH_OPERATION, 14, FINAL, "no such multi-part operation: it failed, ended or timed out")           \
    X(EXISTS, 15, FINAL, "a key of that name or with these bytes exists")                                    \
    X(OVERLOADED, 16, NOT_EXECUTED, "the daemon is at a limit; repeat later")                                \
    X(GOING_AWAY, 17, NOT_EXECUTED, "the daemon is going away; not processed, safe to repeat")               \
    X(STORE_FAILED, 18, UNKNOWN, "the key store failed")                                                     \
    X(INTERNAL, 19, UNKNOWN, "internal error")                                                               \
    X(NO_SUCH_SESSION, 20, FINAL, "no such session, or it is another identity's")                            \
    X(BAD_NAME, 21, FINAL,                                                                                   \
      "a key name has 1 to 128 characters of a-z A-Z 0-9 . _ - and starts with none of . -")                 \
    X(BAD_ATTRIBUTES, 22, FINAL, "these key attributes do not go together")                                  \
    X(SESSION_FULL, 23, FINAL, "the session holds as many keys as it may")

enum cm_status {
#define CM_STATUS_ENUM(name, number, retry, text) CM_STATUS_##name = (number),
    CM_STATUS_TABLE(CM_STATUS_ENUM)
#undef CM_STATUS_ENUM
};

/* Static strings and never NULL; an unknown number gives "unknown", class CM_RETRY_CLASS_UNKNOWN. */
const char *cm_wire_status_word(uint32_t status); /* "bad_tag": stable, for metrics and --json */
const char *cm_wire_status_text(uint32_t status);
enum cm_retry_class cm_wire_status_retry(uint32_t status);

#endif
