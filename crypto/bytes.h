/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes to words and back, and the arithmetic on counter blocks; inside crypto/. */
#ifndef CM_BYTES_H
#define CM_BYTES_H

#include <stdint.h>
#include <string.h>

static inline uint64_t cm_load64_be(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

static inline void cm_store64_be(uint8_t *bytes, uint64_t word)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    memcpy(bytes, &word, sizeof word);
}

static inline uint32_t cm_load32_be(const uint8_t *bytes)
{
    uint32_t word;
    memcpy(&word, bytes, sizeof word);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    word = __builtin_bswap32(word);
#endif
    return word;
}

static inline void cm_store32_be(uint8_t *bytes, uint32_t word)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    word = __builtin_bswap32(word);
#endif
    memcpy(bytes, &word, sizeof word);
}

static inline uint64_t cm_load64_le(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

static inline void cm_store64_le(uint8_t *bytes, uint64_t word)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    memcpy(bytes, &word, sizeof word);
}

static inline uint32_t cm_load32_le(const uint8_t *bytes)
{
    uint32_t word;
    memcpy(&word, bytes, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap32(word);
#endif
    return word;
}

/* `ret` may be `a` or `b`. */
static inline void cm_xor_block(uint8_t ret[16], const uint8_t a[16], const uint8_t b[16])
{
    uint64_t x[2], y[2];
    memcpy(x, a, sizeof x);
    memcpy(y, b, sizeof y);
    x[0] ^= y[0];
    x[1] ^= y[1];
    memcpy(ret, x, sizeof x);
}

/* Adds to a counter block as one 128-bit big-endian number (CTR). */
static inline void cm_counter_add(uint8_t block[16], uint64_t n)
{
    uint64_t low = cm_load64_be(block + 8) + n;
    cm_store64_be(block + 8, low);
    cm_store64_be(block, cm_load64_be(block) + (low < n));
}

/* Adds to the last four bytes alone, modulo 2^32 (GCM: inc32 of SP 800-38D, section 6.2). */
static inline void cm_counter_add32(uint8_t block[16], uint32_t n)
{
    cm_store32_be(block + 12, cm_load32_be(block + 12) + n);
}

#endif
