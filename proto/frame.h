/* SPDX-License-Identifier: Apache-2.0 */
/* The frame: 16 fixed bytes, a header, a body. PROTOCOL.md, "Frame". */
#ifndef CM_FRAME_H
#define CM_FRAME_H

#include <stddef.h>
#include <stdint.h>

enum {
    CM_FRAME_PREFIX_BYTES = 16,
    CM_FRAME_BODY_ALIGN = 64, /* the body starts at a multiple of this, counted from the frame's first byte */
    CM_PROTOCOL_VERSION = 1,
    CM_HEADER_LIMIT = 65536 /* longest header, without its zero padding */
};

enum cm_frame_type {
    CM_FRAME_HELLO = 1,
    CM_FRAME_WELCOME = 2,
    CM_FRAME_BATCH = 3,
    CM_FRAME_BATCH_REPLY = 4,
    CM_FRAME_CALL = 5,
    CM_FRAME_ANSWER = 6,
    CM_FRAME_GOODBYE = 7,
    CM_FRAME_REFUSAL = 8
};

/* Byte offsets: 0 magic "CMIL", 4 version, 5 type, 6 reserved (2, zero), 8 header length, 12 body length;
 * both lengths 32-bit little-endian, the header's without its padding. */
struct cm_frame {
    uint8_t version;
    uint8_t type;
    uint32_t header_length;
    uint32_t body_length;
};

enum cm_frame_error {
    CM_FRAME_OK = 0,
    CM_FRAME_MORE = -1,         /* fewer than 16 bytes are there */
    CM_FRAME_BAD_MAGIC = -2,    /* not this protocol at all */
    CM_FRAME_BAD_VERSION = -3,  /* *ret_frame is filled, so that an answer can name the version */
    CM_FRAME_BAD_RESERVED = -4, /* a reserved byte is not zero */
    CM_FRAME_TOO_LARGE = -5     /* over `header_limit` or `frame_limit` */
};

/* Where the body starts: 16 + header_length, rounded up to 64. Lengths are below 2^32: nothing overflows. */
size_t cm_frame_body_offset(uint32_t header_length);
size_t cm_frame_total(const struct cm_frame *frame);

/* Writes the 16 bytes. */
void cm_frame_put(const struct cm_frame *frame, uint8_t ret_prefix[CM_FRAME_PREFIX_BYTES]);

/* Reads the 16 bytes, `available` of which are there. Returns enum cm_frame_error; *ret_frame is untouched on
 * CM_FRAME_MORE, CM_FRAME_BAD_MAGIC and CM_FRAME_BAD_RESERVED. Magic is judged first, then the version, since
 * another version may give reserved bytes a meaning; then these, then the limits. `frame_limit` bounds
 * cm_frame_total. */
int cm_frame_parse(const uint8_t *bytes, size_t available, uint32_t header_limit, size_t frame_limit,
                   struct cm_frame *ret_frame) __attribute__((warn_unused_result));

#endif
