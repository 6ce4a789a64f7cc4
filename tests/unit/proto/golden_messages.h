/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of the golden frames as plain structs: what tests/golden/golden.py writes as bytes. */
#ifndef CM_TEST_GOLDEN_MESSAGES_H
#define CM_TEST_GOLDEN_MESSAGES_H

#include "message.h"

#define U32(...) ((const uint32_t[]){__VA_ARGS__})
#define U8(...) ((const uint8_t[]){__VA_ARGS__})
#define BYTES(...)                                                                                           \
    {                                                                                                        \
        .data = U8(__VA_ARGS__), .length = sizeof U8(__VA_ARGS__)                                            \
    }
/* Sixteen bytes, counting up. */
#define RUN4(n) (n), (n) + 1, (n) + 2, (n) + 3
#define RUN16(n) RUN4(n), RUN4((n) + 4), RUN4((n) + 8), RUN4((n) + 12)
#define ZERO4 0, 0, 0, 0

static const struct cm_hello golden_hello = {.version_min = 1, .version_max = 1, .client = "golden"};

static const struct cm_hello golden_hello_join = {
    .version_min = 1,
    .version_max = 3,
    .features = UINT64_C(1) << 40 | 5,
    .session_token = BYTES(RUN16(0xa0)),
    .client = "golden",
};

static const struct cm_welcome golden_welcome = {
    .version = 1,
    .features = 9,
    .session_token = BYTES(RUN16(0xa0)),
    .limits = {.header_bytes = 65536,
               .frame_bytes = 16777216,
               .batch_items = 1024,
               .item_bytes = 8388608,
               .inflight_bytes = 33554432,
               .operations = 64,
               .session_keys = 1024},
    .server = "ciphermilld 0.1.0",
    .identity = "uid:1000",
    .may_administer = true,
};

static const struct cm_refusal golden_refusal = {
    .status = 4, .text = "upgrade the client", .version_min = 2, .version_max = 3};

static const struct cm_goodbye golden_goodbye = {.last_request_id = 300, .reason = "draining"};

static const struct cm_batch golden_batch_cbc = {
    .request_id = 2,
    .key_handle = 1,
    .mode = CM_WIRE_CBC,
    .direction = CM_WIRE_ENCRYPT,
    .padding = true,
    .count = 2,
    .lengths = U32(5, 16),
    .iv_lengths = U32(16, 16),
    .ivs = BYTES(RUN16(0x10), RUN16(0x20)),
};

static const struct cm_batch golden_batch_gcm = {
    .request_id = 3,
    .key_handle = 7,
    .key_version = 1,
    .mode = CM_WIRE_GCM,
    .direction = CM_WIRE_DECRYPT,
    .slot_align = 64,
    .slot_gap = 32,
    .count = 3,
    .lengths = U32(20, 0, 65),
    .iv_lengths = U32(12, 16, 12),
    .aad_lengths = U32(3, 0, 5),
    .ivs = BYTES(RUN16(1), RUN16(17), RUN4(33), RUN4(37)),
    .tags = BYTES(RUN16(0x80), RUN16(0x90), RUN4(0xa0)),
};

static const struct cm_batch golden_batch_parts = {
    .request_id = 4,
    .key_handle = 7,
    .mode = CM_WIRE_CTR,
    .direction = CM_WIRE_ENCRYPT,
    .count = 4,
    .lengths = U32(16, 32, 7, 1),
    .parts = U8(CM_WIRE_FIRST, CM_WIRE_MIDDLE, CM_WIRE_LAST, CM_WIRE_SINGLE),
    .operations = U32(70000, 5, 6, 0),
};

static const struct cm_batch golden_batch_xts = {
    .request_id = 8,
    .key_handle = 7,
    .mode = CM_WIRE_XTS,
    .direction = CM_WIRE_ENCRYPT,
    .count = 2,
    .lengths = U32(32, 17),
    .iv_lengths = U32(16, 16),
    .ivs = BYTES(0x39, 0x05, 0, 0, ZERO4, ZERO4, ZERO4, 0x3a, 0x05, 0, 0, ZERO4, ZERO4, ZERO4),
};

static const struct cm_batch golden_batch_empty = {
    .request_id = 5, .key_handle = 7, .mode = CM_WIRE_ECB, .direction = CM_WIRE_ENCRYPT};

static const struct cm_batch_reply golden_batch_reply_cbc = {
    .request_id = 2, .key_version = 1, .count = 2, .lengths = U32(16, 32)};

static const struct cm_batch_reply golden_batch_reply_gcm = {
    .request_id = 6,
    .key_version = 2,
    .count = 3,
    .lengths = U32(1, 0, 300),
    .statuses = U32(0, 7, 0),
    .iv_length = 12,
    .tag_length = 16,
    .ivs = U8(RUN4(0), RUN4(4), RUN4(8), ZERO4, ZERO4, ZERO4, RUN4(12), RUN4(16), RUN4(20)),
    .tags = U8(RUN16(0x20), ZERO4, ZERO4, ZERO4, ZERO4, RUN16(0x30)),
};

static const struct cm_batch_reply golden_batch_reply_failed = {
    .request_id = 7, .status = 10, .text = "no such handle"};

#define BLOCK_MODES                                                                                          \
    {                                                                                                        \
        .modes = 14, .encrypt = true, .decrypt = true, .caller_iv = true                                     \
    }

static const struct cm_call golden_call_open_key = {
    .request_id = 10, .kind = CM_CALL_OPEN_KEY, .name = "orders"};
static const struct cm_call golden_call_ephemeral_key = {
    .request_id = 11, .kind = CM_CALL_EPHEMERAL_KEY, .key_bits = 128, .attributes = BLOCK_MODES};
static const struct cm_call golden_call_close_key = {
    .request_id = 12, .kind = CM_CALL_CLOSE_KEY, .number = 7};
static const struct cm_call golden_call_cancel_operation = {
    .request_id = 13, .kind = CM_CALL_CANCEL_OPERATION, .number = 70000};
static const struct cm_call golden_call_get_status = {.request_id = 14, .kind = CM_CALL_GET_STATUS};
static const struct cm_call golden_call_get_implementations = {.request_id = 15,
                                                               .kind = CM_CALL_GET_IMPLEMENTATIONS};
static const struct cm_call golden_call_create_key = {
    .request_id = 16,
    .operation_id = BYTES(RUN16(0x70)),
    .kind = CM_CALL_CREATE_KEY,
    .name = "mixed",
    .key_bits = 256,
    .attributes = {.modes = 31, .encrypt = true, .decrypt = true},
    .unsafe_mixed_modes = true,
};
static const struct cm_call golden_call_import_key = {
    .request_id = 20,
    .operation_id = BYTES(RUN16(0x70)),
    .kind = CM_CALL_CREATE_KEY,
    .name = "plain",
    .key_bits = 256,
    .attributes = BLOCK_MODES,
    .import = true,
};
static const struct cm_call golden_call_import_xts = {
    .request_id = 21,
    .operation_id = BYTES(RUN16(0x70)),
    .kind = CM_CALL_CREATE_KEY,
    .name = "disk",
    .key_bits = 128,
    .attributes = {.modes = 32, .encrypt = true, .decrypt = true},
    .import = true,
};
static const struct cm_call golden_call_list_keys = {
    .request_id = 17, .kind = CM_CALL_LIST_KEYS, .name = "orders", .number = 100};
static const struct cm_call golden_call_describe_key = {
    .request_id = 18, .kind = CM_CALL_DESCRIBE_KEY, .name = "orders"};
static const struct cm_call golden_call_destroy_key = {
    .request_id = 19, .operation_id = BYTES(RUN16(0x70)), .kind = CM_CALL_DESTROY_KEY, .name = "orders"};

static const struct cm_key_info golden_keys[] = {
    {.name = "orders",
     .id = BYTES(RUN16(0x40)),
     .key_bits = 256,
     .attributes = {.modes = 16, .encrypt = true, .tag_length = 12},
     .version_count = 2,
     .versions = (const struct cm_key_version_info[]){{1, CM_WIRE_KEY_DECRYPT_ONLY, 1700000000},
                                                      {2, CM_WIRE_KEY_ENABLED, 1800000000}}},
    {.name = "plain",
     .id = BYTES(RUN16(0x50)),
     .key_bits = 128,
     .attributes = {.modes = 6, .decrypt = true},
     .version_count = 1,
     .versions = (const struct cm_key_version_info[]){{1, CM_WIRE_KEY_ENABLED, 1750000000}}},
};

static const struct cm_answer golden_answer_done = {.request_id = 12};
static const struct cm_answer golden_answer_failed = {
    .request_id = 16, .status = 15, .text = "a key of that name exists"};
static const struct cm_answer golden_answer_key_handle = {
    .request_id = 10, .kind = CM_ANSWER_KEY_HANDLE, .handle = 7, .key_count = 1, .keys = golden_keys};
static const struct cm_answer golden_answer_key = {
    .request_id = 18, .kind = CM_ANSWER_KEY, .key_count = 1, .keys = golden_keys};
static const struct cm_answer golden_answer_key_list = {
    .request_id = 17, .kind = CM_ANSWER_KEY_LIST, .key_count = 2, .keys = golden_keys, .more = true};
static const struct cm_answer golden_answer_implementations = {
    .request_id = 15,
    .kind = CM_ANSWER_IMPLEMENTATIONS,
    .implementation_count = 3,
    .implementations =
        (const struct cm_implementation_info[]){
            {CM_WIRE_ECB, CM_WIRE_DECRYPT, "first", true, true, true, 0, ""},
            {CM_WIRE_ECB, CM_WIRE_DECRYPT, "second", true, true, false, 0, "another one is faster"},
            {CM_WIRE_GCM, CM_WIRE_ENCRYPT, "third", true, false, false, 0, "processor lacks it"}},
};
static const struct cm_answer golden_answer_size_classes = {
    .request_id = 15,
    .kind = CM_ANSWER_IMPLEMENTATIONS,
    .implementation_count = 2,
    .implementations = (const struct cm_implementation_info[]){
        {CM_WIRE_XTS, CM_WIRE_ENCRYPT, "first", true, true, false, CM_WIRE_USED_SHORT, ""},
        {CM_WIRE_XTS, CM_WIRE_ENCRYPT, "second", true, true, true, CM_WIRE_USED_LONG, ""}}};
static const struct cm_answer golden_answer_server_status = {
    .request_id = 14,
    .kind = CM_ANSWER_SERVER_STATUS,
    .server = {.server = "ciphermilld 0.1.0",
               .identity = "uid:1000",
               .draining = true,
               .uptime_ms = 123456789,
               .inflight_bytes = UINT64_C(1) << 33,
               .inflight_limit_bytes = UINT64_C(1) << 34,
               .workers = 2,
               .connections = 17,
               .keys = 3},
};

#endif
