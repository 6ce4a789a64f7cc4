/* SPDX-License-Identifier: Apache-2.0 */
/* The arena, and the way through protobuf-c that every message takes. */
#include "codec.h"
#include "codec_wire.h"

#include <assert.h>
#include <string.h>

enum { ARENA_ALIGN = 16 };

void cm_arena_init(struct cm_arena *arena, void *memory, size_t capacity)
{
    arena->memory = memory;
    arena->capacity = capacity;
    arena->used = 0;
}

void cm_arena_reset(struct cm_arena *arena)
{
    arena->used = 0;
}

void *cm_arena_take(struct cm_arena *arena, size_t length)
{
    /* Aligned by address, so that any block will do. */
    size_t skip = (size_t)(-((uintptr_t)arena->memory + arena->used) % ARENA_ALIGN);
    size_t left = arena->capacity - arena->used;
    void *taken;

    if (skip > left || length > left - skip)
        return NULL;
    taken = arena->memory + arena->used + skip;
    arena->used += skip + length;
    return taken;
}

/* protobuf-c gives NULL for a fault and for want of memory alike; `full` tells them apart. */
struct arena_allocator {
    struct cm_arena *arena;
    bool full;
};

static void *allocator_take(void *data, size_t length)
{
    struct arena_allocator *allocator = data;
    void *taken = cm_arena_take(allocator->arena, length);

    if (taken == NULL)
        allocator->full = true;
    return taken;
}

static void allocator_free(void *data, void *pointer)
{
    (void)data;
    (void)pointer;
}

void *cm_codec_unpack(struct cm_arena *arena, const ProtobufCMessageDescriptor *descriptor,
                      const uint8_t *header, size_t length, uint32_t fields_max, uint64_t *ret_first,
                      int *ret_error)
{
    struct arena_allocator state = {.arena = arena, .full = false};
    ProtobufCAllocator allocator = {
        .alloc = allocator_take, .free = allocator_free, .allocator_data = &state};
    uint64_t first = 0;
    ProtobufCMessage *message = NULL;
    int rc = cm_codec_scan(descriptor, header, length, fields_max, &first);

    if (ret_first != NULL)
        *ret_first = first;
    if (rc == CM_CODEC_OK) {
        message = protobuf_c_message_unpack(descriptor, &allocator, length, header);
        if (message == NULL)
            rc = state.full ? CM_CODEC_TOO_COMPLEX : CM_CODEC_MALFORMED;
    }
    *ret_error = rc;
    return message;
}

int cm_codec_pack(const ProtobufCMessage *message, enum cm_frame_type type, uint32_t body_length,
                  size_t header_bound, uint8_t *buffer, size_t capacity, size_t *ret_length)
{
    struct cm_frame frame = {
        .version = CM_PROTOCOL_VERSION, .type = (uint8_t)type, .body_length = body_length};
    size_t offset, packed;

    /* Measuring costs nearly as much as packing, so it is left out where any outcome fits. */
    if (header_bound > CM_HEADER_LIMIT || cm_frame_body_offset((uint32_t)header_bound) > capacity)
        header_bound = protobuf_c_message_get_packed_size(message);
    if (header_bound > CM_HEADER_LIMIT || cm_frame_body_offset((uint32_t)header_bound) > capacity)
        return CM_CODEC_NO_ROOM;
    packed = protobuf_c_message_pack(message, buffer + CM_FRAME_PREFIX_BYTES);
    assert(packed <= header_bound);
    frame.header_length = (uint32_t)packed;
    offset = cm_frame_body_offset(frame.header_length);
    cm_frame_put(&frame, buffer);
    memset(buffer + CM_FRAME_PREFIX_BYTES + packed, 0, offset - CM_FRAME_PREFIX_BYTES - packed);
    *ret_length = offset;
    return CM_CODEC_OK;
}
