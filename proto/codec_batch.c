/* SPDX-License-Identifier: Apache-2.0 */
/* Codec: batches and their replies, whose columns are checked against one another here and nowhere else. */
#include "codec_wire.h"

#include <string.h>

static uint64_t sum(const uint32_t *column, size_t count)
{
    uint64_t total = 0;

    for (size_t i = 0; i < count; i++)
        total += column[i];
    return total;
}

static bool all_alike(const uint32_t *column, uint32_t count)
{
    return memcmp(column, column + 1, (count - 1) * sizeof *column) == 0;
}

/* Bounds on a header, for cm_codec_pack: numbers and the tags and lengths of columns, each at its longest;
 * then five bytes for every number in a column. */
enum { NUMBER_BYTES = 5, FIXED_BYTES_MAX = 160 };

/* `iv_lengths` in its three forms: none, one for all, one an item. */
static int get_iv_lengths(struct cm_arena *arena, const Ciphermill__Wire__Batch *wire, struct cm_batch *batch)
{
    uint32_t *column;

    if (wire->n_iv_lengths == 0) {
        batch->iv_lengths = NULL;
        return wire->ivs.len == 0 ? CM_CODEC_OK : CM_CODEC_MALFORMED;
    }
    if (wire->n_iv_lengths == batch->count) {
        if (sum(wire->iv_lengths, batch->count) != wire->ivs.len)
            return CM_CODEC_MALFORMED;
        batch->iv_lengths = wire->iv_lengths;
        return CM_CODEC_OK;
    }
    if (wire->n_iv_lengths != 1 || (uint64_t)wire->iv_lengths[0] * batch->count != wire->ivs.len)
        return CM_CODEC_MALFORMED;
    column = cm_arena_take(arena, batch->count * sizeof *column);
    if (column == NULL)
        return CM_CODEC_TOO_COMPLEX;
    for (uint32_t i = 0; i < batch->count; i++)
        column[i] = wire->iv_lengths[0];
    batch->iv_lengths = column;
    return CM_CODEC_OK;
}

static int get_parts(struct cm_arena *arena, const Ciphermill__Wire__Batch *wire, struct cm_batch *batch)
{
    uint8_t *column;

    if (wire->n_operations != wire->n_parts || (wire->n_parts != 0 && wire->n_parts != batch->count))
        return CM_CODEC_MALFORMED;
    batch->parts = NULL;
    batch->operations = NULL;
    if (wire->n_parts == 0)
        return CM_CODEC_OK;
    column = cm_arena_take(arena, wire->n_parts);
    if (column == NULL)
        return CM_CODEC_TOO_COMPLEX;
    for (size_t i = 0; i < wire->n_parts; i++) {
        int part = (int)wire->parts[i];

        if (part < CM_WIRE_SINGLE || part > CM_WIRE_LAST)
            return CM_CODEC_MALFORMED;
        column[i] = (uint8_t)part;
    }
    batch->parts = column;
    batch->operations = wire->operations;
    return CM_CODEC_OK;
}

int cm_codec_get_batch(struct cm_arena *arena, const uint8_t *header, size_t length,
                       struct cm_batch *ret_batch)
{
    struct cm_batch batch;
    int rc;
    Ciphermill__Wire__Batch *wire =
        cm_codec_unpack(arena, &ciphermill__wire__batch__descriptor, header, length, CM_HEADER_FIELDS_MAX,
                        &ret_batch->request_id, &rc);

    if (wire == NULL)
        return rc;
    batch = (struct cm_batch){.request_id = wire->request_id,
                              .key_handle = wire->key_handle,
                              .key_version = wire->key_version,
                              .mode = cm_codec_enum_byte((int)wire->mode),
                              .direction = cm_codec_enum_byte((int)wire->direction),
                              .padding = wire->padding,
                              .slot_align = wire->slot_align,
                              .slot_gap = wire->slot_gap,
                              .count = (uint32_t)wire->n_lengths,
                              .lengths = wire->lengths,
                              .aad_lengths = wire->n_aad_lengths == 0 ? NULL : wire->aad_lengths,
                              .ivs = cm_codec_bytes(wire->ivs),
                              .tags = cm_codec_bytes(wire->tags)};
    if (wire->n_aad_lengths != 0 && wire->n_aad_lengths != batch.count)
        return CM_CODEC_MALFORMED;
    if (batch.tags.length != 0 && (batch.count == 0 || batch.tags.length % batch.count != 0))
        return CM_CODEC_MALFORMED;
    rc = get_iv_lengths(arena, wire, &batch);
    if (rc == CM_CODEC_OK)
        rc = get_parts(arena, wire, &batch);
    if (rc == CM_CODEC_OK)
        *ret_batch = batch;
    return rc;
}

static int put_iv_lengths(const struct cm_batch *batch, Ciphermill__Wire__Batch *wire)
{
    uint64_t total;

    if (batch->iv_lengths == NULL || batch->count == 0)
        return batch->ivs.length == 0 ? CM_CODEC_OK : CM_CODEC_MALFORMED;
    wire->iv_lengths = (uint32_t *)batch->iv_lengths;
    wire->ivs = cm_codec_binary(batch->ivs);
    if (all_alike(batch->iv_lengths, batch->count)) {
        wire->n_iv_lengths = 1;
        total = (uint64_t)batch->iv_lengths[0] * batch->count;
    } else {
        wire->n_iv_lengths = batch->count;
        total = sum(batch->iv_lengths, batch->count);
    }
    return total == batch->ivs.length ? CM_CODEC_OK : CM_CODEC_MALFORMED;
}

static int put_parts(struct cm_arena *arena, const struct cm_batch *batch, Ciphermill__Wire__Batch *wire)
{
    if ((batch->parts == NULL) != (batch->operations == NULL))
        return CM_CODEC_MALFORMED;
    if (batch->parts == NULL || batch->count == 0)
        return CM_CODEC_OK;
    wire->parts = cm_arena_take(arena, batch->count * sizeof *wire->parts);
    if (wire->parts == NULL)
        return CM_CODEC_NO_ROOM;
    for (uint32_t i = 0; i < batch->count; i++) {
        if (batch->parts[i] > CM_WIRE_LAST)
            return CM_CODEC_MALFORMED;
        wire->parts[i] = (Ciphermill__Wire__Part)batch->parts[i];
    }
    wire->n_parts = batch->count;
    wire->operations = (uint32_t *)batch->operations;
    wire->n_operations = batch->count;
    return CM_CODEC_OK;
}

static size_t batch_bound(const Ciphermill__Wire__Batch *wire)
{
    return FIXED_BYTES_MAX + wire->ivs.len + wire->tags.len +
           NUMBER_BYTES * (wire->n_lengths + wire->n_iv_lengths + wire->n_aad_lengths + wire->n_operations) +
           wire->n_parts;
}

int cm_codec_put_batch(struct cm_arena *arena, const struct cm_batch *batch, uint32_t body_length,
                       uint8_t *buffer, size_t capacity, size_t *ret_length)
{
    Ciphermill__Wire__Batch wire = CIPHERMILL__WIRE__BATCH__INIT;
    size_t found = arena->used;
    int rc;

    wire.request_id = batch->request_id;
    wire.key_handle = batch->key_handle;
    wire.key_version = batch->key_version;
    wire.mode = (Ciphermill__Wire__Mode)batch->mode;
    wire.direction = (Ciphermill__Wire__Direction)batch->direction;
    wire.padding = batch->padding;
    wire.slot_align = batch->slot_align;
    wire.slot_gap = batch->slot_gap;
    wire.n_lengths = batch->count;
    wire.lengths = (uint32_t *)batch->lengths;
    if (batch->aad_lengths != NULL) {
        wire.n_aad_lengths = batch->count;
        wire.aad_lengths = (uint32_t *)batch->aad_lengths;
    }
    wire.tags = cm_codec_binary(batch->tags);
    if (batch->tags.length != 0 && (batch->count == 0 || batch->tags.length % batch->count != 0))
        return CM_CODEC_MALFORMED;
    rc = put_iv_lengths(batch, &wire);
    if (rc == CM_CODEC_OK)
        rc = put_parts(arena, batch, &wire);
    if (rc == CM_CODEC_OK)
        rc = cm_codec_pack(&wire.base, CM_FRAME_BATCH, body_length, batch_bound(&wire), buffer, capacity,
                           ret_length);
    arena->used = found;
    return rc;
}

int cm_codec_get_batch_reply(struct cm_arena *arena, const uint8_t *header, size_t length,
                             struct cm_batch_reply *ret_reply)
{
    int rc;
    Ciphermill__Wire__BatchReply *wire =
        cm_codec_unpack(arena, &ciphermill__wire__batch_reply__descriptor, header, length,
                        CM_HEADER_FIELDS_MAX, &ret_reply->request_id, &rc);

    if (wire == NULL)
        return rc;
    if ((wire->n_statuses != 0 && wire->n_statuses != wire->n_lengths) ||
        (uint64_t)wire->iv_length * wire->n_lengths != wire->ivs.len ||
        (uint64_t)wire->tag_length * wire->n_lengths != wire->tags.len)
        return CM_CODEC_MALFORMED;
    *ret_reply = (struct cm_batch_reply){.request_id = wire->request_id,
                                         .status = wire->status,
                                         .text = wire->text,
                                         .key_version = wire->key_version,
                                         .count = (uint32_t)wire->n_lengths,
                                         .lengths = wire->lengths,
                                         .statuses = wire->n_statuses == 0 ? NULL : wire->statuses,
                                         .iv_length = wire->iv_length,
                                         .tag_length = wire->tag_length,
                                         .ivs = wire->ivs.data,
                                         .tags = wire->tags.data};
    return CM_CODEC_OK;
}

int cm_codec_put_batch_reply(struct cm_arena *arena, const struct cm_batch_reply *reply, uint32_t body_length,
                             uint8_t *buffer, size_t capacity, size_t *ret_length)
{
    Ciphermill__Wire__BatchReply wire = CIPHERMILL__WIRE__BATCH_REPLY__INIT;
    size_t bound;

    (void)arena;
    wire.request_id = reply->request_id;
    wire.status = reply->status;
    wire.text = cm_codec_text(reply->text);
    wire.key_version = reply->key_version;
    wire.n_lengths = reply->count;
    wire.lengths = (uint32_t *)reply->lengths;
    if (reply->statuses != NULL) {
        wire.n_statuses = reply->count;
        wire.statuses = (uint32_t *)reply->statuses;
    }
    wire.iv_length = reply->iv_length;
    wire.ivs.len = (size_t)reply->count * reply->iv_length;
    wire.ivs.data = (uint8_t *)reply->ivs;
    wire.tag_length = reply->tag_length;
    wire.tags.len = (size_t)reply->count * reply->tag_length;
    wire.tags.data = (uint8_t *)reply->tags;
    bound = FIXED_BYTES_MAX + strlen(wire.text) + wire.ivs.len + wire.tags.len +
            NUMBER_BYTES * (wire.n_lengths + wire.n_statuses);
    return cm_codec_pack(&wire.base, CM_FRAME_BATCH_REPLY, body_length, bound, buffer, capacity, ret_length);
}
