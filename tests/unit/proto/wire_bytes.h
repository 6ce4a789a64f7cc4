/* SPDX-License-Identifier: Apache-2.0 */
/* A header put together by hand, byte by byte, for what no honest encoder would write. */
#ifndef CM_TEST_WIRE_BYTES_H
#define CM_TEST_WIRE_BYTES_H

#include "frame.h"

#include <check.h>
#include <string.h>

struct wire {
    size_t length;
    uint8_t bytes[CM_HEADER_LIMIT];
};

static inline void wire_byte(struct wire *wire, uint8_t byte)
{
    ck_assert_uint_lt(wire->length, sizeof wire->bytes);
    wire->bytes[wire->length++] = byte;
}

static inline void wire_varint(struct wire *wire, uint64_t value)
{
    for (; value > 0x7f; value >>= 7)
        wire_byte(wire, (uint8_t)(value | 0x80));
    wire_byte(wire, (uint8_t)value);
}

static inline void wire_number(struct wire *wire, uint32_t field, uint64_t value)
{
    wire_varint(wire, (uint64_t)field << 3);
    wire_varint(wire, value);
}

static inline void wire_bytes(struct wire *wire, uint32_t field, const void *bytes, size_t length)
{
    wire_varint(wire, (uint64_t)field << 3 | 2);
    wire_varint(wire, length);
    ck_assert_uint_le(length, sizeof wire->bytes - wire->length);
    memcpy(wire->bytes + wire->length, bytes, length);
    wire->length += length;
}

#endif
