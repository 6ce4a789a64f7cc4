/* SPDX-License-Identifier: Apache-2.0 */
/* The look at a header before protobuf-c sees it: bounds its work and refuses what it would let pass. */
#include "codec_wire.h"

#include <string.h>

enum { VARINT_BYTES_MAX = 10, DEPTH_MAX = 8 };

enum wire_type { WIRE_VARINT = 0, WIRE_64BIT = 1, WIRE_LENGTH = 2, WIRE_32BIT = 5 };

struct cursor {
    const uint8_t *at, *end;
};

static bool take_varint(struct cursor *cursor, uint64_t *ret_value)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < VARINT_BYTES_MAX && cursor->at < cursor->end; i++) {
        uint8_t byte = *cursor->at++;

        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

static bool skip(struct cursor *cursor, uint64_t length)
{
    if (length > (uint64_t)(cursor->end - cursor->at))
        return false;
    cursor->at += length;
    return true;
}

static int scan_message(const ProtobufCMessageDescriptor *descriptor, struct cursor cursor, unsigned depth,
                        uint32_t *fields_left, uint64_t *ret_first);

/* A field with a length in front, which the cursor has just passed: `content` is what it holds. */
static int scan_content(const ProtobufCMessageDescriptor *descriptor, unsigned number, struct cursor content,
                        unsigned depth, uint32_t *fields_left)
{
    const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(descriptor, number);

    if (field == NULL || content.at == content.end)
        return CM_CODEC_OK;
    if (field->type == PROTOBUF_C_TYPE_STRING)
        return memchr(content.at, 0, (size_t)(content.end - content.at)) == NULL ? CM_CODEC_OK
                                                                                 : CM_CODEC_MALFORMED;
    if (field->type == PROTOBUF_C_TYPE_MESSAGE)
        return scan_message(field->descriptor, content, depth + 1, fields_left, NULL);
    return CM_CODEC_OK;
}

static int scan_field(const ProtobufCMessageDescriptor *descriptor, struct cursor *cursor, unsigned depth,
                      uint32_t *fields_left, uint64_t *ret_first)
{
    struct cursor content;
    uint64_t tag, value;

    if (!take_varint(cursor, &tag) || tag > UINT32_MAX || tag >> 3 == 0)
        return CM_CODEC_MALFORMED;
    switch (tag & 7) {
    case WIRE_VARINT:
        if (!take_varint(cursor, &value))
            return CM_CODEC_MALFORMED;
        if (tag >> 3 == 1 && ret_first != NULL)
            *ret_first = value;
        return CM_CODEC_OK;
    case WIRE_64BIT:
        return skip(cursor, 8) ? CM_CODEC_OK : CM_CODEC_MALFORMED;
    case WIRE_32BIT:
        return skip(cursor, 4) ? CM_CODEC_OK : CM_CODEC_MALFORMED;
    case WIRE_LENGTH:
        if (!take_varint(cursor, &value))
            return CM_CODEC_MALFORMED;
        content.at = cursor->at;
        if (!skip(cursor, value))
            return CM_CODEC_MALFORMED;
        content.end = cursor->at;
        return scan_content(descriptor, (unsigned)(tag >> 3), content, depth, fields_left);
    default: /* groups, which proto3 does not have */
        return CM_CODEC_MALFORMED;
    }
}

static int scan_message(const ProtobufCMessageDescriptor *descriptor, struct cursor cursor, unsigned depth,
                        uint32_t *fields_left, uint64_t *ret_first)
{
    /* No message contains itself, so that this can only happen if somebody makes one that does. */
    if (depth > DEPTH_MAX)
        return CM_CODEC_TOO_COMPLEX;
    while (cursor.at < cursor.end) {
        int rc;

        if (*fields_left == 0)
            return CM_CODEC_TOO_COMPLEX;
        --*fields_left;
        rc = scan_field(descriptor, &cursor, depth, fields_left, ret_first);
        if (rc != CM_CODEC_OK)
            return rc;
    }
    return CM_CODEC_OK;
}

int cm_codec_scan(const ProtobufCMessageDescriptor *descriptor, const uint8_t *header, size_t length,
                  uint32_t fields_max, uint64_t *ret_first)
{
    if (length > CM_HEADER_LIMIT)
        return CM_CODEC_TOO_COMPLEX;
    if (length == 0) /* `header` may be NULL then */
        return CM_CODEC_OK;
    return scan_message(descriptor, (struct cursor){.at = header, .end = header + length}, 0, &fields_max,
                        ret_first);
}
