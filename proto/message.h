/* SPDX-License-Identifier: Apache-2.0 */
/* Plain structs of every message: what a frame's header says, without protobuf. The same structs will come
 * from a shared-memory ring. Pointers lead into the arena or the decoded buffer and live as long as it. */
#ifndef CM_MESSAGE_H
#define CM_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CM_TOKEN_BYTES = 16, CM_OPERATION_ID_BYTES = 16, CM_KEY_ID_BYTES = 16, CM_KEY_NAME_MAX = 128 };

enum cm_wire_mode { CM_WIRE_ECB = 1, CM_WIRE_CBC = 2, CM_WIRE_CTR = 3, CM_WIRE_GCM = 4, CM_WIRE_XTS = 5 };
enum { CM_WIRE_MODE_LAST = CM_WIRE_XTS };
enum cm_wire_direction { CM_WIRE_ENCRYPT = 1, CM_WIRE_DECRYPT = 2 };
enum cm_wire_part { CM_WIRE_SINGLE = 0, CM_WIRE_FIRST = 1, CM_WIRE_MIDDLE = 2, CM_WIRE_LAST = 3 };
enum cm_wire_key_state {
    CM_WIRE_KEY_ENABLED = 1,
    CM_WIRE_KEY_DECRYPT_ONLY = 2,
    CM_WIRE_KEY_DISABLED = 3,
    CM_WIRE_KEY_DESTROYED = 4
};

/* A run of bytes inside the arena or the received header; not terminated. */
struct cm_bytes {
    const uint8_t *data;
    size_t length;
};

struct cm_limits {
    uint32_t header_bytes, frame_bytes, batch_items, item_bytes;
    uint64_t inflight_bytes;
    uint32_t operations, session_keys;
};

struct cm_hello {
    uint32_t version_min, version_max;
    uint64_t features;
    struct cm_bytes session_token; /* 0 or 16 bytes */
    const char *client;
};

struct cm_welcome {
    uint32_t version;
    uint64_t features;
    struct cm_bytes session_token;
    struct cm_limits limits;
    const char *server, *identity;
    bool may_administer;
};

struct cm_refusal {
    uint32_t status;
    const char *text;
    uint32_t version_min, version_max;
};

struct cm_goodbye {
    uint64_t last_request_id;
    const char *reason;
};

/* A batch in columns. Every column that is not NULL has `count` entries, whatever form the wire had. */
struct cm_batch {
    uint64_t request_id;
    uint32_t key_handle, key_version;
    uint8_t mode, direction; /* enum cm_wire_mode, cm_wire_direction: as received, maybe unknown */
    bool padding;
    uint32_t slot_align; /* as received; 0 means 16 */
    uint32_t slot_gap;
    uint32_t count;
    const uint32_t *lengths;     /* input bytes */
    const uint32_t *iv_lengths;  /* NULL: the caller gives no IVs */
    const uint32_t *aad_lengths; /* NULL: no additional data */
    struct cm_bytes ivs;         /* concatenated; decoding checks that it is exactly the sum of iv_lengths */
    struct cm_bytes tags;        /* decryption; decoding checks that its length is a multiple of `count` */
    const uint8_t *parts;        /* enum cm_wire_part; NULL: all single */
    const uint32_t *operations;  /* NULL when `parts` is */
};

struct cm_batch_reply {
    uint64_t request_id;
    uint32_t status;
    const char *text; /* never NULL after decoding */
    uint32_t key_version;
    uint32_t count;
    const uint32_t *lengths;  /* output bytes; 0 for a failed item */
    const uint32_t *statuses; /* NULL: every item is well */
    uint32_t iv_length, tag_length;
    const uint8_t *ivs;  /* count * iv_length bytes; NULL when iv_length is 0 */
    const uint8_t *tags; /* count * tag_length bytes */
};

struct cm_key_attributes {
    uint32_t modes; /* bit (1 << enum cm_wire_mode) */
    bool encrypt, decrypt, caller_iv;
    uint32_t tag_length; /* GCM; 0 means 16 */
};

struct cm_key_version_info {
    uint32_t version, state;
    uint64_t created_unix_s;
};

struct cm_key_info {
    const char *name;
    struct cm_bytes id;
    uint32_t key_bits; /* of AES; see cm_key_bytes */
    struct cm_key_attributes attributes;
    uint32_t version_count;
    const struct cm_key_version_info *versions;
};

enum cm_call_kind {
    CM_CALL_NONE = 0, /* a call that this side does not know: answer CM_STATUS_UNSUPPORTED */
    CM_CALL_OPEN_KEY,
    CM_CALL_EPHEMERAL_KEY,
    CM_CALL_CLOSE_KEY,
    CM_CALL_CANCEL_OPERATION,
    CM_CALL_GET_STATUS,
    CM_CALL_GET_IMPLEMENTATIONS,
    CM_CALL_CREATE_KEY,
    CM_CALL_LIST_KEYS,
    CM_CALL_DESCRIBE_KEY,
    CM_CALL_DESTROY_KEY
};

struct cm_call {
    uint64_t request_id;
    struct cm_bytes operation_id; /* 0 or 16 bytes */
    enum cm_call_kind kind;
    const char *name;  /* key name; `after` of a list */
    uint32_t number;   /* handle, operation, or `max` of a list */
    uint32_t key_bits; /* ephemeral, create */
    struct cm_key_attributes attributes;
    bool unsafe_mixed_modes, import;
    /* Raw key bytes travel in the body, which the transport holds; never here. */
};

/* Which size classes of batches an implementation serves. 0 in a row that is `used` comes from a daemon that
 * does not tell them apart. */
enum { CM_WIRE_USED_SHORT = 1, CM_WIRE_USED_LONG = 2, CM_WIRE_USED_SMALL = 4 };

struct cm_implementation_info {
    uint8_t mode, direction;
    const char *implementation;
    bool compiled, available;
    bool used;        /* for long batches */
    uint8_t used_for; /* bits, CM_WIRE_USED_ */
    const char *reason;
};

struct cm_server_status {
    const char *server, *identity;
    bool may_administer, draining;
    uint64_t uptime_ms, inflight_bytes, inflight_limit_bytes;
    uint32_t workers, connections, keys;
};

enum cm_answer_kind {
    CM_ANSWER_NONE = 0,
    CM_ANSWER_KEY_HANDLE, /* handle and keys[0] */
    CM_ANSWER_KEY,        /* keys[0] */
    CM_ANSWER_KEY_LIST,   /* keys[0..key_count), more */
    CM_ANSWER_IMPLEMENTATIONS,
    CM_ANSWER_SERVER_STATUS
};

struct cm_answer {
    uint64_t request_id;
    uint32_t status;
    const char *text;
    enum cm_answer_kind kind;
    uint32_t handle;
    uint32_t key_count;
    const struct cm_key_info *keys;
    bool more;
    uint32_t implementation_count;
    const struct cm_implementation_info *implementations;
    struct cm_server_status server;
};

/* Bytes of a key: key_bits / 8, and twice as many for XTS, which takes one AES key for the data and one for
 * the tweak (IEEE Std 1619, section 5.1). */
uint32_t cm_key_bytes(const struct cm_key_attributes *attributes, uint32_t key_bits);

/* --- Slots: where the items of a batch stand in its body. PROTOCOL.md, "Slots" --- */

enum { CM_SLOT_ALIGN_DEFAULT = 16, CM_SLOT_ALIGN_MAX = 4096, CM_SLOT_GAP_MAX = 65536 };

/* Longest output of an item: PKCS#7 encryption of a single or last part adds 1 to 16 bytes, nothing else
 * grows. UINT32_MAX where that is more than 32 bits hold. */
uint32_t cm_slot_output(uint8_t mode, uint8_t direction, bool padding, uint8_t part, uint32_t length);

/* Bytes from one slot's start to the next one's: the larger of input and output, rounded up to `slot_align`
 * (a power of two of 16 to 4096; 0 is 16), plus `slot_gap`. UINT64_MAX as below. */
uint64_t cm_slot_stride(const struct cm_batch *batch, uint32_t item);

/* Total bytes of all slots, the gap behind the last one included; the additional data, concatenated, follows
 * right behind in a request. UINT64_MAX if slot_align or slot_gap is not one that the protocol allows. */
uint64_t cm_slot_total(const struct cm_batch *batch);

#endif
