/* SPDX-License-Identifier: Apache-2.0 */
/* What the codec's own files share. Together they are the only ones that know protobuf-c. */
#ifndef CM_CODEC_WIRE_H
#define CM_CODEC_WIRE_H

#include "ciphermill.pb-c.h"
#include "codec.h"

/* Walks a header by its descriptor before protobuf-c sees it, without taking memory: refuses what is no
 * message (CM_CODEC_MALFORMED; also field number 0, groups, and strings with a zero byte inside, which C
 * would cut short), and what has more than `fields_max` fields on all levels together (CM_CODEC_TOO_COMPLEX).
 * Fills *ret_first with field 1 of the outermost message if that is a number and was reached before the
 * fault. */
int cm_codec_scan(const ProtobufCMessageDescriptor *descriptor, const uint8_t *header, size_t length,
                  uint32_t fields_max, uint64_t *ret_first);

/* Scans and unpacks into the arena: a message of the descriptor's type, never to be freed, or NULL.
 * *ret_error says which. `ret_first` as cm_codec_scan's, or NULL. */
void *cm_codec_unpack(struct cm_arena *arena, const ProtobufCMessageDescriptor *descriptor,
                      const uint8_t *header, size_t length, uint32_t fields_max, uint64_t *ret_first,
                      int *ret_error);

/* Writes prefix, header and zero padding. `header_bound`: the header is surely not longer than this; SIZE_MAX
 * for don't know. */
int cm_codec_pack(const ProtobufCMessage *message, enum cm_frame_type type, uint32_t body_length,
                  size_t header_bound, uint8_t *buffer, size_t capacity, size_t *ret_length);

/* protobuf-c's structs have no const; packing only reads. */
static inline char *cm_codec_text(const char *text)
{
    return text == NULL ? (char *)protobuf_c_empty_string : (char *)text;
}

static inline ProtobufCBinaryData cm_codec_binary(struct cm_bytes bytes)
{
    return (ProtobufCBinaryData){.len = bytes.length, .data = (uint8_t *)bytes.data};
}

static inline struct cm_bytes cm_codec_bytes(ProtobufCBinaryData data)
{
    return (struct cm_bytes){.data = data.data, .length = data.len};
}

/* An enum value that does not fit the plain structs' byte is as unknown as 255; cutting it could make it
 * known. */
static inline uint8_t cm_codec_enum_byte(int value)
{
    return value < 0 || value > 255 ? 255 : (uint8_t)value;
}

void cm_codec_attributes_from(struct cm_key_attributes *ret_attributes,
                              const Ciphermill__Wire__KeyAttributes *wire);
void cm_codec_attributes_to(Ciphermill__Wire__KeyAttributes *ret_wire,
                            const struct cm_key_attributes *attributes);

#endif
