/* SPDX-License-Identifier: Apache-2.0 */
/* libciphermill: AES done by a ciphermill daemon, in batches, with keys that the program never holds.
 *
 * Threads. A cm_client may be used by any number of threads at once for the blocking calls; each of them
 * takes a connection of the client's pool (cm_options.connections) for the time of the call, or waits for
 * one. The asynchronous calls (cm_submit, cm_poll, cm_fd) and a cm_operation belong to one thread at a time.
 * cm_close, cm_key_close and cm_operation_close must not race with other calls on the same object.
 *
 * Fork. After fork() every call on an object of the parent's gives CM_ERR_FORKED in the child, until the
 * child connects anew; the closing calls free the child's memory and do not disturb the parent.
 *
 * Errors. A function that returns int gives 0 or a negative CM_ERR_ value; cm_encrypt, cm_decrypt and the
 * operations also give a positive number, of items that failed, each with its own status. A cm_error, which
 * may be NULL, gets a text for people and the retry class, of the first failed item if the call gave a
 * positive number. The library prints nothing, never exits, installs no signal handler and raises no SIGPIPE.
 *
 * Repeating. A blocking call whose connection turns out to have ended while it lay idle is repeated by the
 * library, once, on a new connection. Everything else is left to the caller, who finds in the retry class
 * whether the daemon may have executed the call. */
#ifndef CIPHERMILL_H
#define CIPHERMILL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define CM_API __attribute__((visibility("default")))
#define CM_MUST_USE __attribute__((warn_unused_result))
#else
#define CM_API
#define CM_MUST_USE
#endif

#define CM_VERSION_MAJOR 0
#define CM_VERSION_MINOR 1
#define CM_VERSION_PATCH 0

/* Where the daemon listens unless told otherwise. CIPHERMILL_ENDPOINT in the environment goes before it. */
#define CM_DEFAULT_ENDPOINT "unix:/run/ciphermill/ciphermill.sock"

/* Statuses of calls and of items. CM_ERR_ values of -1 to -99 are the daemon's answers (PROTOCOL.md,
 * "Statuses"), those from -100 on are made by this library. */
enum {
    CM_OK = 0,
    CM_ERR_BAD_REQUEST = -1,
    CM_ERR_UNSUPPORTED = -2,
    CM_ERR_TOO_LARGE = -3,
    CM_ERR_VERSION_MISMATCH = -4,
    CM_ERR_BAD_TAG = -5,
    CM_ERR_BAD_PADDING = -6,
    CM_ERR_BAD_LENGTH = -7,
    CM_ERR_BAD_IV = -8,
    CM_ERR_IV_NOT_ALLOWED = -9,
    CM_ERR_NO_SUCH_KEY = -10,
    CM_ERR_KEY_UNUSABLE = -11,
    CM_ERR_NOT_PERMITTED = -12,
    CM_ERR_ACCESS_DENIED = -13,
    CM_ERR_NO_SUCH_OPERATION = -14,
    CM_ERR_EXISTS = -15,
    CM_ERR_OVERLOADED = -16,
    CM_ERR_GOING_AWAY = -17,
    CM_ERR_STORE_FAILED = -18,
    CM_ERR_INTERNAL = -19,
    CM_ERR_NO_SUCH_SESSION = -20,
    CM_ERR_BAD_NAME = -21,
    CM_ERR_BAD_ATTRIBUTES = -22,
    CM_ERR_SESSION_FULL = -23,

    CM_ERR_ARGUMENT = -100, /* the call itself is wrong: a NULL, an unknown mode, a buffer too small */
    CM_ERR_NO_MEMORY = -101,
    CM_ERR_ENDPOINT = -102,  /* the URI can't be understood */
    CM_ERR_NOT_FOUND = -103, /* connecting: no such socket, host or port; nobody listens */
    CM_ERR_NO_ACCESS = -104, /* connecting: permission denied; the text names uid, gid and the socket's */
    CM_ERR_NOT_CIPHERMILL = -105,  /* connecting: whoever answered speaks another protocol */
    CM_ERR_CONNECT_TIMEOUT = -106, /* connecting: no greeting in time */
    CM_ERR_TIMEOUT = -107,         /* sent, but no reply in time: class unknown */
    CM_ERR_DISCONNECTED = -108,    /* the connection broke: the retry class says what is known */
    CM_ERR_FORKED = -109,
    CM_ERR_PROTOCOL = -110, /* the daemon's answer breaks the protocol */
    CM_ERR_BUSY = -111,     /* cm_submit: as many batches are in flight as may be; call cm_poll */
    CM_ERR_ROOM = -112,     /* an item: out_capacity is too small; nothing was sent for the batch */
    CM_ERR_NOT_SENT = -113  /* an item: its batch failed before it was sent or answered */
};

/* May the call be repeated? */
enum {
    CM_RETRY_NONE = 0,         /* nothing failed */
    CM_RETRY_NOT_EXECUTED = 1, /* nothing was done: safe to repeat */
    CM_RETRY_UNKNOWN = 2,      /* it may or may not have been done */
    CM_RETRY_FINAL = 3         /* the same call fails again */
};

/* Modes. ECB, CBC and CTR as in SP 800-38A, GCM as in SP 800-38D, XTS as in SP 800-38E and IEEE Std 1619.
 *
 * XTS is for storage. An item is a data unit, such as a sector, of 16 bytes to 2^24 (SP 800-38E, section 4),
 * not always whole blocks; the output is as long. Its tweak stands in `iv`, 16 bytes, and is always the
 * caller's, also when encrypting, and without cm_key_options.caller_iv: cm_xts_tweak makes it of the unit's
 * number. No two units under one key may share a tweak. XTS detects no alterations. */
enum { CM_ECB = 1, CM_CBC = 2, CM_CTR = 3, CM_GCM = 4, CM_XTS = 5 };

/* Flags of a batch. */
enum {
    CM_NO_PADDING = 1 /* ECB, CBC: whole blocks only; without it PKCS#7 is added and removed */
};

typedef struct cm_client cm_client;       /* connections to one daemon, one session */
typedef struct cm_key cm_key;             /* a handle to a key in the daemon */
typedef struct cm_operation cm_operation; /* one long message in parts */

typedef struct cm_error {
    int code;  /* the CM_ERR_ value */
    int retry; /* CM_RETRY_ */
    char text[248];
} cm_error;
/* clang-format off */
#define CM_ERROR_INIT {0, 0, {0}}
/* clang-format on */

/* One message of a batch. Zero what you don't use. `in` and `out` are the caller's; they may be the same
 * buffer, or must not overlap. An item that was encrypted holds all that decrypting it takes: IV and tag. So
 * set iv_length to 0 again before you encrypt with the same item and want a new IV from the daemon. An item
 * that failed by its own status leaves `out` as it was. */
typedef struct cm_item {
    const void *in;
    size_t in_length;
    void *out;
    size_t out_capacity; /* in_length is enough; encrypting with padding takes up to 16 bytes more */
    size_t out_length;   /* result */
    const void *aad;     /* GCM: additional data, authenticated and not encrypted */
    size_t aad_length;
    const void *long_iv; /* GCM: an IV of more than 16 bytes, in place of `iv` */
    size_t long_iv_length;
    uint8_t iv[16];      /* encrypting with iv_length 0: the daemon makes the IV and it is written here, but
                          * not in XTS, where it is the tweak */
    uint8_t tag[16];     /* GCM: written when encrypting, read when decrypting */
    uint32_t iv_length;  /* CBC, CTR, XTS: 16. GCM: 12 from the daemon */
    uint32_t tag_length; /* GCM: written when encrypting; when decrypting, the key's tag length */
    int status;          /* result: CM_OK or CM_ERR_ */
    uint32_t reserved[5];
} cm_item;

/* Options begin with their own size, so that they can grow: cm_options options = CM_OPTIONS_INIT; */
typedef struct cm_options {
    size_t size;
    uint32_t connect_timeout_ms; /* 0: 5,000 */
    uint32_t request_timeout_ms; /* 0: 30,000 */
    uint32_t connections;  /* pool size; 0: 1; at most 256. The asynchronous calls have one of their own */
    uint32_t inflight;     /* asynchronous batches at most; 0: 64; at most 4,096 */
    uint32_t no_reconnect; /* non-zero: a broken connection stays broken */
    const char *program;   /* a name for the daemon's log, at most 200 bytes; NULL: none */
    uint32_t slot_align;   /* where items begin in a frame: a power of two of 16 to 4,096; 0: 16 */
    uint32_t slot_gap;     /* bytes left free behind each item there, at most 65,536 */
} cm_options;
/* clang-format off */
#define CM_OPTIONS_INIT {sizeof(cm_options), 0, 0, 0, 0, 0, NULL, 0, 0}
/* clang-format on */

/* --- Connecting --- */

/* Connects and greets. `endpoint` is "unix:/path" or "tcp://host:port"; NULL takes CIPHERMILL_ENDPOINT or
 * CM_DEFAULT_ENDPOINT. `options` may be NULL. A connection that breaks later is made anew by the next call,
 * with the same keys by name; ephemeral keys are gone with their session (CM_ERR_NO_SUCH_KEY). The connect
 * timeout is over connection and greeting; what the system takes to look up a host's name comes on top. */
CM_API int cm_connect(cm_client **ret_client, const char *endpoint, const cm_options *options,
                      cm_error *error) CM_MUST_USE;
CM_API void cm_close(cm_client *client); /* NULL is fine; close its keys and operations first */

/* --- Keys --- */

/* A named key. */
CM_API int cm_key_open(cm_key **ret_key, cm_client *client, const char *name, cm_error *error) CM_MUST_USE;

/* What a key may do. A named key made without attributes is GCM, both directions, daemon-made nonces. */
typedef struct cm_key_options {
    size_t size;
    uint32_t modes;      /* CM_MODE_BIT(CM_CBC) | …; 0: GCM. GCM and XTS each want a key of their own */
    uint32_t caller_iv;  /* non-zero: the caller may give IVs when encrypting */
    uint32_t tag_length; /* GCM: 0 is 16 */
    uint32_t unsafe_mixed_modes;
} cm_key_options;
/* clang-format off */
#define CM_KEY_OPTIONS_INIT {sizeof(cm_key_options), 0, 0, 0, 0}
/* clang-format on */
#define CM_MODE_BIT(mode) (1U << (mode))

/* A key that lives as long as this client's session: made by the daemon (bytes NULL), or the caller's own
 * bytes (never over plain TCP). key_bits is the size of the AES key: 128, 192 or 256, and in XTS 128 or
 * 256. The bytes are key_bits / 8, in XTS twice as many: the key of the data, then that of the tweak, which
 * must differ (IEEE Std 1619, section 5.1: an "XTS-AES-128" key has 256 bits). */
CM_API int cm_key_ephemeral(cm_key **ret_key, cm_client *client, uint32_t key_bits, const void *bytes,
                            const cm_key_options *options, cm_error *error) CM_MUST_USE;
/* Waits for nothing; NULL is fine. No batch of the key may be in flight. */
CM_API void cm_key_close(cm_key *key);

/* What the daemon said of the key when it was opened: its size, its modes, whether the caller may give IVs,
 * its tag length. Set ret_options->size first; a field that the daemon does not tell is 0. Asks nobody, so it
 * works for peers that may use the key and not administer it. */
CM_API int cm_key_get_options(const cm_key *key, uint32_t *ret_key_bits, cm_key_options *ret_options,
                              cm_error *error) CM_MUST_USE;

/* The version that the last successful encryption with this handle used; 0 before. */
CM_API uint32_t cm_key_version(const cm_key *key);
/* Decrypt with this version from now on; 0: the newest. */
CM_API void cm_key_use_version(cm_key *key, uint32_t version);

/* --- Batches, blocking --- */

/* 0: every item is well. > 0: so many items failed, see their status. < 0: the batch failed. Any number of
 * items of any size within the daemon's item limit: a large batch is sent in several frames. If one of those
 * fails, the items say what became of each: CM_OK done, CM_ERR_NOT_SENT certainly not done, another CM_ERR_
 * as that code's class says; the class of the whole is "unknown" if anything was or may have been done. The
 * request timeout is for each frame. */
CM_API int cm_encrypt(cm_key *key, int mode, cm_item *items, size_t count, cm_error *error) CM_MUST_USE;
CM_API int cm_decrypt(cm_key *key, int mode, cm_item *items, size_t count, cm_error *error) CM_MUST_USE;
CM_API int cm_encrypt_flags(cm_key *key, int mode, unsigned flags, cm_item *items, size_t count,
                            cm_error *error) CM_MUST_USE;
CM_API int cm_decrypt_flags(cm_key *key, int mode, unsigned flags, cm_item *items, size_t count,
                            cm_error *error) CM_MUST_USE;

/* The tweak of data unit `number`: 16 bytes, little-endian (IEEE Std 1619, section 5.1). For an item's `iv`.
 */
CM_API void cm_xts_tweak(uint64_t number, uint8_t ret_tweak[16]);

/* --- Batches, asynchronous --- */

enum { CM_ENCRYPT = 1, CM_DECRYPT = 2 };

/* Starts a batch of one item or more, and returns without waiting; items, buffers and key stay the library's
 * until its completion is collected. After an error nothing was started, and there will be no completion.
 * `tag` is the caller's and comes back with it. The batch has to fit one frame, whose items all give an IV or
 * none, and have tags of one length (CM_ERR_TOO_LARGE otherwise). Only the first batch, and the first after a
 * broken connection, may wait: for a connection, and for the key in a new session. */
CM_API int cm_submit(cm_key *key, int mode, int direction, unsigned flags, cm_item *items, size_t count,
                     void *tag, cm_error *error) CM_MUST_USE;

typedef struct cm_completion {
    void *tag;
    cm_item *items;
    size_t count;
    int result;     /* as cm_encrypt's */
    cm_error error; /* of the batch, or of the first failed item */
} cm_completion;

/* A descriptor to wait on for reading; when readable, call cm_poll, which may find that nothing was finished
 * yet. It wakes for deadlines too, and stays the same for the client's life. Or a negative CM_ERR_. */
CM_API int cm_fd(cm_client *client) CM_MUST_USE;

/* Moves data both ways and collects up to `max` finished batches. Waits up to timeout_ms for the first one: 0
 * not at all, < 0 for as long as it takes. Returns how many, in the order of their submission, 0 at once when
 * nothing is in flight, or a negative error of the client as a whole; a broken connection still completes
 * every batch that was in flight, with its retry class. */
CM_API int cm_poll(cm_client *client, cm_completion *completions, size_t max, int timeout_ms,
                   cm_error *error) CM_MUST_USE;

/* --- One long message in parts --- */

/* ECB, CBC, CTR in both directions; GCM encryption only (plaintext never leaves before its tag is right), so
 * that opening for GCM decryption is CM_ERR_UNSUPPORTED, as it is for XTS, whose data units are items. Parts
 * but the last are multiples of 16 bytes and give as many; the last may be empty, but not where padding is to
 * be removed, and alone gets or loses padding. The first part's item gives IV and additional data, or gets
 * the daemon's IV; those of later ones are ignored. Memory in the daemon and here is constant. Opening asks
 * nobody. The operation lives in the connection on which its first part travelled, which others may use
 * between its parts, and ends with it. Close it before its key. */
CM_API int cm_operation_open(cm_operation **ret_operation, cm_key *key, int mode, int direction,
                             unsigned flags, cm_error *error) CM_MUST_USE;
/* With `last` non-zero the part ends the message, and in GCM item->tag is written. 0 or < 0: the item's or
 * the call's code. A failed part ends the operation, and what it gave out so far is good for nothing. */
CM_API int cm_operation_part(cm_operation *operation, cm_item *item, int last, cm_error *error) CM_MUST_USE;
/* Several parts on their way at once, which is what makes a long message fast: as cm_operation_part for each
 * item in turn, the last one ending the message if `last` is non-zero. */
CM_API int cm_operation_parts(cm_operation *operation, cm_item *items, size_t count, int last,
                              cm_error *error) CM_MUST_USE;
CM_API void cm_operation_close(cm_operation *operation); /* cancels it if it has not ended; NULL is fine */

/* --- What the daemon is and may do --- */

typedef struct cm_limits_info {
    size_t size; /* set it first */
    uint32_t frame_bytes, batch_items, item_bytes;
    uint64_t inflight_bytes;
} cm_limits_info;
CM_API int cm_get_limits(cm_client *client, cm_limits_info *ret_limits, cm_error *error) CM_MUST_USE;

CM_API const char *cm_status_name(int status); /* "ok", "bad_tag", …; never NULL */
CM_API const char *cm_status_description(int status);
CM_API int cm_status_retry(int status);
CM_API const char *cm_retry_name(int retry); /* "not executed", "unknown", "final" */
CM_API const char *cm_version(void);         /* the library's, "0.1.0" */

#ifdef __cplusplus
}
#endif

#endif
