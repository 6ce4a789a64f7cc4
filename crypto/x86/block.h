/* SPDX-License-Identifier: Apache-2.0 */
/* 128-bit registers: loads, stores, a message's last bytes, forgetting; for the x86 kernels alone. */
#ifndef CM_X86_BLOCK_H
#define CM_X86_BLOCK_H

#include "bytes.h"

#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))

typedef __m128i block;

INLINE block load(const uint8_t *bytes)
{
    return _mm_loadu_si128((const block *)(const void *)bytes);
}

INLINE void store(uint8_t *bytes, block x)
{
    _mm_storeu_si128((block *)(void *)bytes, x);
}

INLINE block reverse_bytes(block x)
{
    return _mm_shuffle_epi8(x, _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}

/* Clears the vector registers; the integer ones hold addresses, lengths and counters. */
INLINE void forget(void)
{
    __asm__ volatile("pxor %%xmm0, %%xmm0\n\tpxor %%xmm1, %%xmm1\n\tpxor %%xmm2, %%xmm2\n\t"
                     "pxor %%xmm3, %%xmm3\n\tpxor %%xmm4, %%xmm4\n\tpxor %%xmm5, %%xmm5\n\t"
                     "pxor %%xmm6, %%xmm6\n\tpxor %%xmm7, %%xmm7\n\tpxor %%xmm8, %%xmm8\n\t"
                     "pxor %%xmm9, %%xmm9\n\tpxor %%xmm10, %%xmm10\n\tpxor %%xmm11, %%xmm11\n\t"
                     "pxor %%xmm12, %%xmm12\n\tpxor %%xmm13, %%xmm13\n\tpxor %%xmm14, %%xmm14\n\t"
                     "pxor %%xmm15, %%xmm15"
                     :
                     :
                     : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
                       "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}

/* 1 to 15 bytes, zeroes above them, by overlapping loads inside the range. */
INLINE block load_partial(const uint8_t *bytes, size_t n)
{
    uint64_t low, high = 0;
    if (n >= 8) {
        low = cm_load64_le(bytes);
        if (n > 8)
            high = cm_load64_le(bytes + n - 8) >> (8 * (16 - n));
    } else if (n >= 4) {
        low = cm_load32_le(bytes) | (uint64_t)cm_load32_le(bytes + n - 4) << (8 * (n - 4));
    } else {
        low = bytes[0] | (uint64_t)bytes[n / 2] << (8 * (n / 2)) | (uint64_t)bytes[n - 1] << (8 * (n - 1));
    }
    return _mm_set_epi64x((long long)high, (long long)low);
}

/* The first 1 to 15 bytes of x, by overlapping stores inside the range. */
INLINE void store_partial(uint8_t *bytes, block x, size_t n)
{
    uint64_t low = (uint64_t)_mm_cvtsi128_si64(x);
    if (n >= 8) {
        cm_store64_le(bytes, low);
        if (n > 8) {
            uint64_t high = (uint64_t)_mm_extract_epi64(x, 1);
            cm_store64_le(bytes + n - 8, low >> (8 * (n - 8)) | high << (8 * (16 - n)));
        }
    } else if (n >= 4) {
        uint32_t first = (uint32_t)low, second = (uint32_t)(low >> (8 * (n - 4)));
        memcpy(bytes, &first, 4);
        memcpy(bytes + n - 4, &second, 4);
    } else {
        bytes[0] = (uint8_t)low;
        bytes[n / 2] = (uint8_t)(low >> (8 * (n / 2)));
        bytes[n - 1] = (uint8_t)(low >> (8 * (n - 1)));
    }
}

/* The first n bytes, 1 to 15, and zeroes. */
INLINE block keep_bytes(block x, size_t n)
{
    static const uint8_t edge[32] = {255, 255, 255, 255, 255, 255, 255, 255,
                                     255, 255, 255, 255, 255, 255, 255, 255};
    return _mm_and_si128(x, load(edge + 16 - n));
}

#endif
