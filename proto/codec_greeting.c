/* SPDX-License-Identifier: Apache-2.0 */
/* Codec: the messages that begin and end a connection. */
#include "codec_wire.h"

static bool is_empty_or(size_t expected, size_t length)
{
    return length == 0 || length == expected;
}

int cm_codec_get_hello(struct cm_arena *arena, const uint8_t *header, size_t length,
                       struct cm_hello *ret_hello)
{
    int rc;
    Ciphermill__Wire__Hello *wire = cm_codec_unpack(arena, &ciphermill__wire__hello__descriptor, header,
                                                    length, CM_HEADER_FIELDS_MAX, NULL, &rc);

    if (wire == NULL)
        return rc;
    if (!is_empty_or(CM_TOKEN_BYTES, wire->session_token.len))
        return CM_CODEC_MALFORMED;
    *ret_hello = (struct cm_hello){.version_min = wire->version_min,
                                   .version_max = wire->version_max,
                                   .features = wire->features,
                                   .session_token = cm_codec_bytes(wire->session_token),
                                   .client = wire->client};
    return CM_CODEC_OK;
}

int cm_codec_put_hello(struct cm_arena *arena, const struct cm_hello *hello, uint8_t *buffer, size_t capacity,
                       size_t *ret_length)
{
    Ciphermill__Wire__Hello wire = CIPHERMILL__WIRE__HELLO__INIT;

    (void)arena;
    if (!is_empty_or(CM_TOKEN_BYTES, hello->session_token.length))
        return CM_CODEC_MALFORMED;
    wire.version_min = hello->version_min;
    wire.version_max = hello->version_max;
    wire.features = hello->features;
    wire.session_token = cm_codec_binary(hello->session_token);
    wire.client = cm_codec_text(hello->client);
    return cm_codec_pack(&wire.base, CM_FRAME_HELLO, 0, SIZE_MAX, buffer, capacity, ret_length);
}

int cm_codec_get_welcome(struct cm_arena *arena, const uint8_t *header, size_t length,
                         struct cm_welcome *ret_welcome)
{
    int rc;
    Ciphermill__Wire__Welcome *wire = cm_codec_unpack(arena, &ciphermill__wire__welcome__descriptor, header,
                                                      length, CM_HEADER_FIELDS_MAX, NULL, &rc);

    if (wire == NULL)
        return rc;
    if (wire->session_token.len != CM_TOKEN_BYTES || wire->limits == NULL)
        return CM_CODEC_MALFORMED;
    *ret_welcome = (struct cm_welcome){.version = wire->version,
                                       .features = wire->features,
                                       .session_token = cm_codec_bytes(wire->session_token),
                                       .limits = {.header_bytes = wire->limits->header_bytes,
                                                  .frame_bytes = wire->limits->frame_bytes,
                                                  .batch_items = wire->limits->batch_items,
                                                  .item_bytes = wire->limits->item_bytes,
                                                  .inflight_bytes = wire->limits->inflight_bytes,
                                                  .operations = wire->limits->operations,
                                                  .session_keys = wire->limits->session_keys},
                                       .server = wire->server,
                                       .identity = wire->identity,
                                       .may_administer = wire->may_administer};
    return CM_CODEC_OK;
}

int cm_codec_put_welcome(struct cm_arena *arena, const struct cm_welcome *welcome, uint8_t *buffer,
                         size_t capacity, size_t *ret_length)
{
    Ciphermill__Wire__Welcome wire = CIPHERMILL__WIRE__WELCOME__INIT;
    Ciphermill__Wire__Limits limits = CIPHERMILL__WIRE__LIMITS__INIT;

    (void)arena;
    if (welcome->session_token.length != CM_TOKEN_BYTES)
        return CM_CODEC_MALFORMED;
    limits.header_bytes = welcome->limits.header_bytes;
    limits.frame_bytes = welcome->limits.frame_bytes;
    limits.batch_items = welcome->limits.batch_items;
    limits.item_bytes = welcome->limits.item_bytes;
    limits.inflight_bytes = welcome->limits.inflight_bytes;
    limits.operations = welcome->limits.operations;
    limits.session_keys = welcome->limits.session_keys;
    wire.version = welcome->version;
    wire.features = welcome->features;
    wire.session_token = cm_codec_binary(welcome->session_token);
    wire.limits = &limits;
    wire.server = cm_codec_text(welcome->server);
    wire.identity = cm_codec_text(welcome->identity);
    wire.may_administer = welcome->may_administer;
    return cm_codec_pack(&wire.base, CM_FRAME_WELCOME, 0, SIZE_MAX, buffer, capacity, ret_length);
}

int cm_codec_get_refusal(struct cm_arena *arena, const uint8_t *header, size_t length,
                         struct cm_refusal *ret_refusal)
{
    int rc;
    Ciphermill__Wire__Refusal *wire = cm_codec_unpack(arena, &ciphermill__wire__refusal__descriptor, header,
                                                      length, CM_HEADER_FIELDS_MAX, NULL, &rc);

    if (wire == NULL)
        return rc;
    *ret_refusal = (struct cm_refusal){.status = wire->status,
                                       .text = wire->text,
                                       .version_min = wire->version_min,
                                       .version_max = wire->version_max};
    return CM_CODEC_OK;
}

int cm_codec_put_refusal(struct cm_arena *arena, const struct cm_refusal *refusal, uint8_t *buffer,
                         size_t capacity, size_t *ret_length)
{
    Ciphermill__Wire__Refusal wire = CIPHERMILL__WIRE__REFUSAL__INIT;

    (void)arena;
    wire.status = refusal->status;
    wire.text = cm_codec_text(refusal->text);
    wire.version_min = refusal->version_min;
    wire.version_max = refusal->version_max;
    return cm_codec_pack(&wire.base, CM_FRAME_REFUSAL, 0, SIZE_MAX, buffer, capacity, ret_length);
}

int cm_codec_get_goodbye(struct cm_arena *arena, const uint8_t *header, size_t length,
                         struct cm_goodbye *ret_goodbye)
{
    int rc;
    Ciphermill__Wire__Goodbye *wire = cm_codec_unpack(arena, &ciphermill__wire__goodbye__descriptor, header,
                                                      length, CM_HEADER_FIELDS_MAX, NULL, &rc);

    if (wire == NULL)
        return rc;
    *ret_goodbye = (struct cm_goodbye){.last_request_id = wire->last_request_id, .reason = wire->reason};
    return CM_CODEC_OK;
}

int cm_codec_put_goodbye(struct cm_arena *arena, const struct cm_goodbye *goodbye, uint8_t *buffer,
                         size_t capacity, size_t *ret_length)
{
    Ciphermill__Wire__Goodbye wire = CIPHERMILL__WIRE__GOODBYE__INIT;

    (void)arena;
    wire.last_request_id = goodbye->last_request_id;
    wire.reason = cm_codec_text(goodbye->reason);
    return cm_codec_pack(&wire.base, CM_FRAME_GOODBYE, 0, SIZE_MAX, buffer, capacity, ret_length);
}
