/* SPDX-License-Identifier: Apache-2.0 */
/* Checking a caller's items, and cutting them into frames that keep every limit. */
#include "codec.h"
#include "conn.h"
#include "error.h"
#include "request.h"

/* What a frame's header takes beside the items: every scalar field at its longest, and each column's own tag
 * and length. */
enum { HEADER_FIXED_BYTES = 192 };

/* Lengths travel in 32 bits; below this the slot's rounding can't overflow them. */
#define LENGTH_MAX (UINT32_MAX - 2U * CM_SLOT_ALIGN_MAX)

static size_t varint_bytes(uint64_t value)
{
    size_t bytes = 1;
    while (value >>= 7)
        bytes++;
    return bytes;
}

/* Bytes of the request's header for this item. */
static size_t header_bytes(const struct cm_shape *shape, const cm_item *item)
{
    const uint8_t *bytes;
    size_t iv = cm_shape_iv(shape, item, &bytes);
    return varint_bytes(item->in_length) + varint_bytes(item->aad_length) + varint_bytes(iv) + iv +
           (shape->direction == CM_DECRYPT ? item->tag_length : 0);
}

/* The same of the reply's, at most: length, status, the daemon's IV, tag. */
static size_t reply_header_bytes(const struct cm_shape *shape, const cm_item *item)
{
    const uint8_t *iv;
    size_t bytes = varint_bytes(cm_shape_output(shape, item->in_length)) + 2;
    if (shape->direction == CM_ENCRYPT)
        bytes += (shape->mode == CM_GCM ? 16U : 0U) + (cm_shape_iv(shape, item, &iv) == 0 ? 16U : 0U);
    return bytes;
}

static bool same_columns(const struct cm_shape *shape, const cm_item *a, const cm_item *b)
{
    const uint8_t *iv;
    if ((cm_shape_iv(shape, a, &iv) == 0) != (cm_shape_iv(shape, b, &iv) == 0))
        return false;
    return shape->mode != CM_GCM || shape->direction != CM_DECRYPT || a->tag_length == b->tag_length;
}

static int fail_first(const struct cm_limits *limits, const struct cm_shape *shape, const cm_item *item,
                      cm_error *error)
{
    if (item->in_length > limits->item_bytes)
        return cm_fail_code(error, CM_ERR_TOO_LARGE,
                            "an item of %zu bytes is over the daemon's item limit of %u; %s", item->in_length,
                            limits->item_bytes,
                            shape->mode == CM_XTS ? "use smaller data units" : "use a multi-part operation");
    if (item->long_iv_length > limits->header_bytes / 2)
        return cm_fail_code(error, CM_ERR_TOO_LARGE,
                            "an IV of %zu bytes is over the daemon's header limit of %u",
                            item->long_iv_length, limits->header_bytes);
    return cm_fail_code(
        error, CM_ERR_TOO_LARGE,
        "an item of %zu bytes with %zu of additional data is over the daemon's frame limit of %u",
        item->in_length, item->aad_length, limits->frame_bytes);
}

int cm_frame_plan(const struct cm_limits *limits, const struct cm_shape *shape, const cm_item *items,
                  size_t count, uint64_t soft_bytes, size_t *ret_count, cm_error *error)
{
    uint64_t body = 0;
    size_t header = HEADER_FIXED_BYTES, reply = HEADER_FIXED_BYTES, taken = 0;
    for (; taken < count && taken < limits->batch_items; taken++) {
        const cm_item *item = &items[taken];
        if (item->in_length > limits->item_bytes || item->aad_length > limits->frame_bytes ||
            item->long_iv_length > limits->header_bytes)
            break;
        uint64_t more = cm_shape_stride(shape, item->in_length) + cm_shape_aad(shape, item);
        header += header_bytes(shape, item);
        reply += reply_header_bytes(shape, item);
        size_t longer = header > reply ? header : reply;
        if (longer > limits->header_bytes ||
            cm_frame_body_offset((uint32_t)longer) + body + more > limits->frame_bytes)
            break;
        if (taken > 0 && (body + more > soft_bytes || !same_columns(shape, items, item)))
            break;
        body += more;
    }
    if (taken == 0)
        return fail_first(limits, shape, items, error);
    *ret_count = taken;
    return 0;
}

/* NULL, or what is wrong with the item. */
static const char *fault(const struct cm_shape *shape, const cm_item *item)
{
    if ((item->in == NULL && item->in_length > 0) || (item->aad == NULL && item->aad_length > 0) ||
        (item->long_iv == NULL && item->long_iv_length > 0))
        return "a NULL with a length";
    if (item->out == NULL && item->out_capacity > 0)
        return "out is NULL";
    if (item->in_length > LENGTH_MAX || item->aad_length > LENGTH_MAX || item->long_iv_length > LENGTH_MAX)
        return "a length near or over 4 GiB";
    if (item->iv_length > sizeof item->iv)
        return "iv_length over 16; a longer IV goes into long_iv";
    if (item->tag_length > sizeof item->tag)
        return "tag_length over 16";
    if (shape->mode != CM_GCM && (item->aad_length > 0 || item->long_iv_length > 0))
        return "additional data or a long IV outside GCM";
    return NULL;
}

int cm_items_check(const struct cm_shape *shape, cm_item *items, size_t count, cm_error *error)
{
    for (size_t i = 0; i < count; i++) {
        items[i].status = CM_ERR_NOT_SENT;
        items[i].out_length = 0;
    }
    for (size_t i = 0; i < count; i++) {
        const char *text = fault(shape, &items[i]);
        if (text != NULL) {
            items[i].status = CM_ERR_ARGUMENT;
            return cm_fail_code(error, CM_ERR_ARGUMENT, "item %zu: %s", i, text);
        }
        size_t need = cm_shape_output(shape, items[i].in_length);
        if (items[i].out_capacity < need) {
            items[i].status = CM_ERR_ROOM;
            return cm_fail_code(error, CM_ERR_ROOM, "item %zu: out_capacity is %zu, %zu bytes are needed", i,
                                items[i].out_capacity, need);
        }
    }
    return 0;
}
