/* SPDX-License-Identifier: Apache-2.0 */
/* Where the bytes of a request and of its reply lie in the caller's buffers. */
#include "request.h"
#include <string.h>

static void batch_of_one(const struct cm_shape *shape, const uint32_t *length, struct cm_batch *ret_batch)
{
    *ret_batch = (struct cm_batch){
        .mode = shape->mode,
        .direction = shape->direction,
        .padding = shape->padding,
        .slot_align = shape->slot_align,
        .slot_gap = shape->slot_gap,
        .count = 1,
        .lengths = length,
        .parts = &shape->part,
    };
}

uint64_t cm_shape_stride(const struct cm_shape *shape, size_t in_length)
{
    uint32_t length = (uint32_t)in_length;
    struct cm_batch batch;
    batch_of_one(shape, &length, &batch);
    return cm_slot_stride(&batch, 0);
}

size_t cm_shape_output(const struct cm_shape *shape, size_t in_length)
{
    return cm_slot_output(shape->mode, shape->direction, shape->padding, shape->part, (uint32_t)in_length);
}

static bool begins_message(const struct cm_shape *shape)
{
    return shape->part == CM_WIRE_SINGLE || shape->part == CM_WIRE_FIRST;
}

size_t cm_shape_iv(const struct cm_shape *shape, const cm_item *item, const uint8_t **ret_iv)
{
    *ret_iv = item->iv;
    if (shape->mode == CM_ECB || !begins_message(shape))
        return 0;
    if (item->long_iv_length == 0)
        return item->iv_length;
    *ret_iv = item->long_iv;
    return item->long_iv_length;
}

size_t cm_shape_aad(const struct cm_shape *shape, const cm_item *item)
{
    return shape->mode == CM_GCM && begins_message(shape) ? item->aad_length : 0;
}

/* The rest of a slot from `offset` on: data up to `length`, filler behind. */
static uint64_t slot_run(const uint8_t *data, size_t length, uint64_t stride, uint64_t offset,
                         const uint8_t **ret_start)
{
    if (offset < length) {
        *ret_start = data + offset;
        return length - offset;
    }
    *ret_start = NULL;
    return stride - offset;
}

uint64_t cm_request_run(const struct cm_request *request, struct cm_position *position,
                        const uint8_t **ret_start)
{
    if (request->call != NULL) {
        *ret_start = (const uint8_t *)request->key_bytes + position->offset;
        return request->key_length - position->offset;
    }
    for (; !position->behind; position->item++, position->offset = 0) {
        if (position->item == request->count) {
            *position = (struct cm_position){.behind = true};
            break;
        }
        const cm_item *item = &request->items[position->item];
        uint64_t stride = cm_shape_stride(&request->shape, item->in_length);
        if (position->offset < stride)
            return slot_run(item->in, item->in_length, stride, position->offset, ret_start);
    }
    for (; position->item < request->count; position->item++, position->offset = 0) {
        const cm_item *item = &request->items[position->item];
        size_t length = cm_shape_aad(&request->shape, item);
        if (position->offset < length) {
            *ret_start = (const uint8_t *)item->aad + position->offset;
            return length - position->offset;
        }
    }
    return 0;
}

uint64_t cm_reply_run(const struct cm_request *request, struct cm_position *position, uint8_t **ret_start)
{
    for (; position->item < request->count; position->item++, position->offset = 0) {
        const cm_item *item = &request->items[position->item];
        uint64_t stride = cm_shape_stride(&request->shape, item->in_length);
        if (position->offset >= stride)
            continue;
        const uint8_t *start;
        uint64_t length = slot_run(item->out, item->out_length, stride, position->offset, &start);
        *ret_start = start != NULL ? (uint8_t *)item->out + position->offset : NULL;
        return length;
    }
    return 0;
}
