/* SPDX-License-Identifier: Apache-2.0 */
/* What messages say between their lines: how long a key is, and where the items of a batch stand. */
#include "message.h"

enum { BLOCK_BYTES = 16 };

uint32_t cm_key_bytes(const struct cm_key_attributes *attributes, uint32_t key_bits)
{
    return key_bits / 8 * ((attributes->modes & UINT32_C(1) << CM_WIRE_XTS) != 0 ? 2 : 1);
}

/* Padding makes an item grow only where a message ends: in a single item or in the last part. */
static bool grows(uint8_t mode, uint8_t direction, bool padding, uint8_t part)
{
    return padding && direction == CM_WIRE_ENCRYPT && (mode == CM_WIRE_ECB || mode == CM_WIRE_CBC) &&
           (part == CM_WIRE_SINGLE || part == CM_WIRE_LAST);
}

static uint64_t padded(uint32_t length)
{
    return (uint64_t)length - length % BLOCK_BYTES + BLOCK_BYTES;
}

static bool layout_is_allowed(const struct cm_batch *batch, uint64_t *ret_align)
{
    uint32_t align = batch->slot_align == 0 ? CM_SLOT_ALIGN_DEFAULT : batch->slot_align;

    if (align < CM_SLOT_ALIGN_DEFAULT || align > CM_SLOT_ALIGN_MAX || (align & (align - 1)) != 0)
        return false;
    if (batch->slot_gap > CM_SLOT_GAP_MAX)
        return false;
    *ret_align = align;
    return true;
}

static uint64_t stride(const struct cm_batch *batch, uint32_t item, uint64_t align)
{
    uint8_t part = batch->parts == NULL ? CM_WIRE_SINGLE : batch->parts[item];
    uint64_t bytes = batch->lengths[item];

    if (grows(batch->mode, batch->direction, batch->padding, part))
        bytes = padded(batch->lengths[item]);
    return ((bytes + align - 1) & ~(align - 1)) + batch->slot_gap;
}

uint32_t cm_slot_output(uint8_t mode, uint8_t direction, bool padding, uint8_t part, uint32_t length)
{
    uint64_t bytes = length;

    if (grows(mode, direction, padding, part))
        bytes = padded(length);
    return bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes;
}

uint64_t cm_slot_stride(const struct cm_batch *batch, uint32_t item)
{
    uint64_t align;

    if (!layout_is_allowed(batch, &align))
        return UINT64_MAX;
    return stride(batch, item, align);
}

uint64_t cm_slot_total(const struct cm_batch *batch)
{
    uint64_t align, total = 0;

    if (!layout_is_allowed(batch, &align))
        return UINT64_MAX;
    for (uint32_t i = 0; i < batch->count; i++)
        if (__builtin_add_overflow(total, stride(batch, i, align), &total))
            return UINT64_MAX;
    return total;
}
