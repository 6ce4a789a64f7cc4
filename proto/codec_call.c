/* SPDX-License-Identifier: Apache-2.0 */
/* Codec: calls, which are everything that is not a batch. */
#include "codec_wire.h"

void cm_codec_attributes_from(struct cm_key_attributes *ret_attributes,
                              const Ciphermill__Wire__KeyAttributes *wire)
{
    *ret_attributes = (struct cm_key_attributes){0};
    if (wire == NULL)
        return;
    ret_attributes->modes = wire->modes;
    ret_attributes->encrypt = wire->encrypt;
    ret_attributes->decrypt = wire->decrypt;
    ret_attributes->caller_iv = wire->caller_iv;
    ret_attributes->tag_length = wire->tag_length;
}

void cm_codec_attributes_to(Ciphermill__Wire__KeyAttributes *ret_wire,
                            const struct cm_key_attributes *attributes)
{
    ciphermill__wire__key_attributes__init(ret_wire);
    ret_wire->modes = attributes->modes;
    ret_wire->encrypt = attributes->encrypt;
    ret_wire->decrypt = attributes->decrypt;
    ret_wire->caller_iv = attributes->caller_iv;
    ret_wire->tag_length = attributes->tag_length;
}

static void get_ephemeral_key(struct cm_call *call, const Ciphermill__Wire__EphemeralKey *wire)
{
    call->kind = CM_CALL_EPHEMERAL_KEY;
    call->key_bits = wire->key_bits;
    cm_codec_attributes_from(&call->attributes, wire->attributes);
}

static void get_create_key(struct cm_call *call, const Ciphermill__Wire__CreateKey *wire)
{
    call->kind = CM_CALL_CREATE_KEY;
    call->name = wire->name;
    call->key_bits = wire->key_bits;
    cm_codec_attributes_from(&call->attributes, wire->attributes);
    call->unsafe_mixed_modes = wire->unsafe_mixed_modes;
    call->import = wire->import;
}

static void get_kind(struct cm_call *call, const Ciphermill__Wire__Call *wire)
{
    switch (wire->call_case) {
    case CIPHERMILL__WIRE__CALL__CALL_OPEN_KEY:
        call->kind = CM_CALL_OPEN_KEY;
        call->name = wire->open_key->name;
        break;
    case CIPHERMILL__WIRE__CALL__CALL_EPHEMERAL_KEY:
        get_ephemeral_key(call, wire->ephemeral_key);
        break;
    case CIPHERMILL__WIRE__CALL__CALL_CLOSE_KEY:
        call->kind = CM_CALL_CLOSE_KEY;
        call->number = wire->close_key->handle;
        break;
    case CIPHERMILL__WIRE__CALL__CALL_CANCEL_OPERATION:
        call->kind = CM_CALL_CANCEL_OPERATION;
        call->number = wire->cancel_operation->operation;
        break;
    case CIPHERMILL__WIRE__CALL__CALL_GET_STATUS:
        call->kind = CM_CALL_GET_STATUS;
        break;
    case CIPHERMILL__WIRE__CALL__CALL_GET_IMPLEMENTATIONS:
        call->kind = CM_CALL_GET_IMPLEMENTATIONS;
        break;
    case CIPHERMILL__WIRE__CALL__CALL_CREATE_KEY:
        get_create_key(call, wire->create_key);
        break;
    case CIPHERMILL__WIRE__CALL__CALL_LIST_KEYS:
        call->kind = CM_CALL_LIST_KEYS;
        call->name = wire->list_keys->after;
        call->number = wire->list_keys->max;
        break;
    case CIPHERMILL__WIRE__CALL__CALL_DESCRIBE_KEY:
        call->kind = CM_CALL_DESCRIBE_KEY;
        call->name = wire->describe_key->name;
        break;
    case CIPHERMILL__WIRE__CALL__CALL_DESTROY_KEY:
        call->kind = CM_CALL_DESTROY_KEY;
        call->name = wire->destroy_key->name;
        break;
    default: /* none that this side knows */
        call->kind = CM_CALL_NONE;
        break;
    }
}

int cm_codec_get_call(struct cm_arena *arena, const uint8_t *header, size_t length, struct cm_call *ret_call)
{
    int rc;
    Ciphermill__Wire__Call *wire = cm_codec_unpack(arena, &ciphermill__wire__call__descriptor, header, length,
                                                   CM_HEADER_FIELDS_MAX, &ret_call->request_id, &rc);

    if (wire == NULL)
        return rc;
    if (wire->operation_id.len != 0 && wire->operation_id.len != CM_OPERATION_ID_BYTES)
        return CM_CODEC_MALFORMED;
    *ret_call = (struct cm_call){.request_id = wire->request_id,
                                 .operation_id = cm_codec_bytes(wire->operation_id),
                                 .name = protobuf_c_empty_string};
    get_kind(ret_call, wire);
    return CM_CODEC_OK;
}

/* The message inside a call, of whichever kind: one of them is used. */
union call_content {
    Ciphermill__Wire__OpenKey open_key;
    Ciphermill__Wire__EphemeralKey ephemeral_key;
    Ciphermill__Wire__CloseKey close_key;
    Ciphermill__Wire__CancelOperation cancel_operation;
    Ciphermill__Wire__GetStatus get_status;
    Ciphermill__Wire__GetImplementations get_implementations;
    Ciphermill__Wire__CreateKey create_key;
    Ciphermill__Wire__ListKeys list_keys;
    Ciphermill__Wire__DescribeKey describe_key;
    Ciphermill__Wire__DestroyKey destroy_key;
};

#define USE(CASE, field)                                                                                     \
    do {                                                                                                     \
        ciphermill__wire__##field##__init(&content->field);                                                  \
        wire->call_case = CIPHERMILL__WIRE__CALL__CALL_##CASE;                                               \
        wire->field = &content->field;                                                                       \
    } while (0)

static int put_kind(Ciphermill__Wire__Call *wire, union call_content *content, const struct cm_call *call,
                    Ciphermill__Wire__KeyAttributes *attributes)
{
    switch (call->kind) {
    case CM_CALL_OPEN_KEY:
        USE(OPEN_KEY, open_key);
        content->open_key.name = cm_codec_text(call->name);
        return CM_CODEC_OK;
    case CM_CALL_EPHEMERAL_KEY:
        USE(EPHEMERAL_KEY, ephemeral_key);
        content->ephemeral_key.key_bits = call->key_bits;
        content->ephemeral_key.attributes = attributes;
        return CM_CODEC_OK;
    case CM_CALL_CLOSE_KEY:
        USE(CLOSE_KEY, close_key);
        content->close_key.handle = call->number;
        return CM_CODEC_OK;
    case CM_CALL_CANCEL_OPERATION:
        USE(CANCEL_OPERATION, cancel_operation);
        content->cancel_operation.operation = call->number;
        return CM_CODEC_OK;
    case CM_CALL_GET_STATUS:
        USE(GET_STATUS, get_status);
        return CM_CODEC_OK;
    case CM_CALL_GET_IMPLEMENTATIONS:
        USE(GET_IMPLEMENTATIONS, get_implementations);
        return CM_CODEC_OK;
    case CM_CALL_CREATE_KEY:
        USE(CREATE_KEY, create_key);
        content->create_key.name = cm_codec_text(call->name);
        content->create_key.key_bits = call->key_bits;
        content->create_key.attributes = attributes;
        content->create_key.unsafe_mixed_modes = call->unsafe_mixed_modes;
        content->create_key.import = call->import;
        return CM_CODEC_OK;
    case CM_CALL_LIST_KEYS:
        USE(LIST_KEYS, list_keys);
        content->list_keys.after = cm_codec_text(call->name);
        content->list_keys.max = call->number;
        return CM_CODEC_OK;
    case CM_CALL_DESCRIBE_KEY:
        USE(DESCRIBE_KEY, describe_key);
        content->describe_key.name = cm_codec_text(call->name);
        return CM_CODEC_OK;
    case CM_CALL_DESTROY_KEY:
        USE(DESTROY_KEY, destroy_key);
        content->destroy_key.name = cm_codec_text(call->name);
        return CM_CODEC_OK;
    case CM_CALL_NONE:
        break;
    }
    return CM_CODEC_MALFORMED;
}

#undef USE

int cm_codec_put_call(struct cm_arena *arena, const struct cm_call *call, uint32_t body_length,
                      uint8_t *buffer, size_t capacity, size_t *ret_length)
{
    Ciphermill__Wire__Call wire = CIPHERMILL__WIRE__CALL__INIT;
    Ciphermill__Wire__KeyAttributes attributes;
    union call_content content;
    int rc;

    (void)arena;
    if (call->operation_id.length != 0 && call->operation_id.length != CM_OPERATION_ID_BYTES)
        return CM_CODEC_MALFORMED;
    wire.request_id = call->request_id;
    wire.operation_id = cm_codec_binary(call->operation_id);
    cm_codec_attributes_to(&attributes, &call->attributes);
    rc = put_kind(&wire, &content, call, &attributes);
    if (rc != CM_CODEC_OK)
        return rc;
    return cm_codec_pack(&wire.base, CM_FRAME_CALL, body_length, SIZE_MAX, buffer, capacity, ret_length);
}
