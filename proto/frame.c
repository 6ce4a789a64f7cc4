/* SPDX-License-Identifier: Apache-2.0 */
/* The 16-byte prefix: writing, reading, and the limits that it is held to. */
#include "frame.h"

#include <string.h>

static const uint8_t magic[4] = {'C', 'M', 'I', 'L'};

static void put_u32(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> (8 * i));
}

static uint32_t get_u32(const uint8_t *from)
{
    return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

size_t cm_frame_body_offset(uint32_t header_length)
{
    size_t end = CM_FRAME_PREFIX_BYTES + (size_t)header_length;

    return (end + CM_FRAME_BODY_ALIGN - 1) / CM_FRAME_BODY_ALIGN * CM_FRAME_BODY_ALIGN;
}

size_t cm_frame_total(const struct cm_frame *frame)
{
    return cm_frame_body_offset(frame->header_length) + frame->body_length;
}

void cm_frame_put(const struct cm_frame *frame, uint8_t ret_prefix[CM_FRAME_PREFIX_BYTES])
{
    memcpy(ret_prefix, magic, sizeof magic);
    ret_prefix[4] = frame->version;
    ret_prefix[5] = frame->type;
    ret_prefix[6] = 0;
    ret_prefix[7] = 0;
    put_u32(ret_prefix + 8, frame->header_length);
    put_u32(ret_prefix + 12, frame->body_length);
}

int cm_frame_parse(const uint8_t *bytes, size_t available, uint32_t header_limit, size_t frame_limit,
                   struct cm_frame *ret_frame)
{
    struct cm_frame frame;

    if (available < CM_FRAME_PREFIX_BYTES)
        return CM_FRAME_MORE;
    if (memcmp(bytes, magic, sizeof magic) != 0)
        return CM_FRAME_BAD_MAGIC;
    frame.version = bytes[4];
    frame.type = bytes[5];
    frame.header_length = get_u32(bytes + 8);
    frame.body_length = get_u32(bytes + 12);
    /* The version goes first: another version may give the reserved bytes a meaning. */
    if (frame.version != CM_PROTOCOL_VERSION) {
        *ret_frame = frame;
        return CM_FRAME_BAD_VERSION;
    }
    if (bytes[6] != 0 || bytes[7] != 0)
        return CM_FRAME_BAD_RESERVED;
    *ret_frame = frame;
    if (frame.header_length > header_limit || cm_frame_total(&frame) > frame_limit)
        return CM_FRAME_TOO_LARGE;
    return CM_FRAME_OK;
}
