/* SPDX-License-Identifier: Apache-2.0 */
/* Registers of VECTOR_BITS bits, 256 or 512, as lanes of 128: what the VAES kernels do with them.
 *
 * The including file sets VECTOR_BITS. At 512 the last bytes of a message are loaded and stored under a mask;
 * at 256, where AVX2 has no masks for bytes, through the partial loads and stores of block.h. */
#ifndef CM_X86_VECTOR_H
#define CM_X86_VECTOR_H

#include "block.h"

enum { VECTOR_BYTES = VECTOR_BITS / 8, LANES = VECTOR_BITS / 128 };

#if VECTOR_BITS == 512

typedef __m512i vector;
#define V(name) _mm512_##name
#define V_SI(name) _mm512_##name##_si512
#define V_LOW(x) _mm512_castsi512_si128(x)
#define ANY_VECTOR_REGISTER "v"
/* Each half of a lane by n bits; n is a constant. */
#define v_bits_up(x, n) _mm512_slli_epi64(x, (unsigned)(n))
#define v_bits_down(x, n) _mm512_srli_epi64(x, (unsigned)(n))

INLINE vector v_broadcast(block x)
{
    return _mm512_broadcast_i32x4(x);
}

INLINE vector v_of_low(block x)
{
    return _mm512_zextsi128_si512(x);
}

/* 1 to VECTOR_BYTES bytes and zeroes above them. */
INLINE vector v_load_bytes(const uint8_t *bytes, size_t n)
{
    return _mm512_maskz_loadu_epi8(UINT64_MAX >> (64 - n), bytes);
}

INLINE void v_store_bytes(uint8_t *bytes, vector x, size_t n)
{
    _mm512_mask_storeu_epi8(bytes, UINT64_MAX >> (64 - n), x);
}

/* 1 to 4 blocks. A masked store costs more than a branch and narrower ones. */
INLINE void v_store_blocks(uint8_t *bytes, vector x, size_t n)
{
    block end = _mm512_castsi512_si128(x);
    if (n >= 32) {
        if (n == 64) {
            _mm512_storeu_si512((vector *)(void *)bytes, x);
            return;
        }
        _mm256_storeu_si256((__m256i *)(void *)bytes, _mm512_castsi512_si256(x));
        if (n == 32)
            return;
        end = _mm512_extracti32x4_epi32(x, 2);
        bytes += 32;
    }
    store(bytes, end);
}

INLINE vector v_keep_bytes(vector x, size_t n)
{
    return _mm512_maskz_mov_epi8(UINT64_MAX >> (64 - n), x);
}

/* An IV, and zeroes. */
INLINE block load_twelve(const uint8_t *bytes)
{
    return _mm_maskz_loadu_epi32(7, bytes);
}

/* By halves, since moving lanes within 256 bits costs less. */
INLINE vector v_gather(const uint8_t *const from[LANES])
{
    __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(load(from[0])), load(from[1]), 1);
    __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(load(from[2])), load(from[3]), 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

INLINE void v_scatter(uint8_t *const to[LANES], vector x)
{
    __m256i low = _mm512_castsi512_si256(x), high = _mm512_extracti64x4_epi64(x, 1);
    store(to[0], _mm256_castsi256_si128(low));
    store(to[1], _mm256_extracti128_si256(low, 1));
    store(to[2], _mm256_castsi256_si128(high));
    store(to[3], _mm256_extracti128_si256(high, 1));
}

INLINE vector v_of_lanes(const block x[LANES])
{
    __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(x[0]), x[1], 1);
    __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(x[2]), x[3], 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

/* The last lane of `before`, then all of x but its last lane. */
INLINE vector v_shift_in(vector before, vector x)
{
    return _mm512_alignr_epi64(x, before, 6);
}

/* The sum of all lanes. */
INLINE block v_fold(vector x)
{
    __m256i half = _mm256_xor_si256(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
    return _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

/* Lane i of the result is the sum of all lanes of x[i]. */
INLINE vector v_fold_each(const vector x[LANES])
{
    vector a =
        _mm512_xor_si512(_mm512_shuffle_i32x4(x[0], x[1], 0x88), _mm512_shuffle_i32x4(x[0], x[1], 0xdd));
    vector b =
        _mm512_xor_si512(_mm512_shuffle_i32x4(x[2], x[3], 0x88), _mm512_shuffle_i32x4(x[2], x[3], 0xdd));
    return _mm512_xor_si512(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd));
}

/* Lane i of x[l] and lane l of x[i] change places. */
INLINE void v_transpose(vector x[LANES])
{
    vector a = _mm512_shuffle_i32x4(x[0], x[1], 0x44), b = _mm512_shuffle_i32x4(x[0], x[1], 0xee);
    vector c = _mm512_shuffle_i32x4(x[2], x[3], 0x44), d = _mm512_shuffle_i32x4(x[2], x[3], 0xee);
    x[0] = _mm512_shuffle_i32x4(a, c, 0x88);
    x[1] = _mm512_shuffle_i32x4(a, c, 0xdd);
    x[2] = _mm512_shuffle_i32x4(b, d, 0x88);
    x[3] = _mm512_shuffle_i32x4(b, d, 0xdd);
}

/* Lane i, a constant, in every lane. */
INLINE vector v_lane(vector x, int i)
{
    return i == 0   ? _mm512_shuffle_i32x4(x, x, 0x00)
           : i == 1 ? _mm512_shuffle_i32x4(x, x, 0x55)
           : i == 2 ? _mm512_shuffle_i32x4(x, x, 0xaa)
                    : _mm512_shuffle_i32x4(x, x, 0xff);
}

/* 0, 1, 2, 3: one number a lane, in its low 32 or 64 bits. */
INLINE vector v_lane_numbers(void)
{
    return _mm512_set_epi64(0, 3, 0, 2, 0, 1, 0, 0);
}

/* The same in both halves of a lane. */
INLINE vector v_pair_numbers(void)
{
    return _mm512_set_epi64(3, 3, 2, 2, 1, 1, 0, 0);
}

INLINE vector v_xor3(vector a, vector b, vector c)
{
    return _mm512_ternarylogic_epi64(a, b, c, 0x96);
}

/* a | (b ^ c) */
INLINE vector v_or_xor(vector a, vector b, vector c)
{
    return _mm512_ternarylogic_epi64(a, b, c, 0xf6);
}

/* Whether a bit is set in both. */
INLINE bool v_have_common(vector a, vector b)
{
    return _mm512_test_epi64_mask(a, b) != 0;
}

/* Vector u of eight words. */
INLINE vector v_of_words(const uint64_t words[8], int u)
{
    const long long *w = (const long long *)words + 8 * u;
    return _mm512_set_epi64(w[7], w[6], w[5], w[4], w[3], w[2], w[1], w[0]);
}

/* A bit for each word of 64 bits, the first one lowest. */
INLINE unsigned v_different_words(vector a, vector b)
{
    return _mm512_cmpneq_epi64_mask(a, b);
}

/* Clears all 32 registers. */
INLINE void v_forget(void)
{
    __asm__ volatile("vzeroall\n\t"
                     "vpxord %%xmm16, %%xmm16, %%xmm16\n\tvpxord %%xmm17, %%xmm17, %%xmm17\n\t"
                     "vpxord %%xmm18, %%xmm18, %%xmm18\n\tvpxord %%xmm19, %%xmm19, %%xmm19\n\t"
                     "vpxord %%xmm20, %%xmm20, %%xmm20\n\tvpxord %%xmm21, %%xmm21, %%xmm21\n\t"
                     "vpxord %%xmm22, %%xmm22, %%xmm22\n\tvpxord %%xmm23, %%xmm23, %%xmm23\n\t"
                     "vpxord %%xmm24, %%xmm24, %%xmm24\n\tvpxord %%xmm25, %%xmm25, %%xmm25\n\t"
                     "vpxord %%xmm26, %%xmm26, %%xmm26\n\tvpxord %%xmm27, %%xmm27, %%xmm27\n\t"
                     "vpxord %%xmm28, %%xmm28, %%xmm28\n\tvpxord %%xmm29, %%xmm29, %%xmm29\n\t"
                     "vpxord %%xmm30, %%xmm30, %%xmm30\n\tvpxord %%xmm31, %%xmm31, %%xmm31"
                     :
                     :
                     : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
                       "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "xmm16", "xmm17", "xmm18",
                       "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27",
                       "xmm28", "xmm29", "xmm30", "xmm31");
}

#elif VECTOR_BITS == 256

typedef __m256i vector;
#define V(name) _mm256_##name
#define V_SI(name) _mm256_##name##_si256
#define V_LOW(x) _mm256_castsi256_si128(x)
#define ANY_VECTOR_REGISTER "x"
#define v_bits_up(x, n) _mm256_slli_epi64(x, n)
#define v_bits_down(x, n) _mm256_srli_epi64(x, n)

INLINE vector v_broadcast(block x)
{
    return _mm256_broadcastsi128_si256(x);
}

INLINE vector v_of_low(block x)
{
    return _mm256_zextsi128_si256(x);
}

INLINE vector v_load_bytes(const uint8_t *bytes, size_t n)
{
    if (n < 16)
        return v_of_low(load_partial(bytes, n));
    if (n == 32)
        return _mm256_loadu_si256((const vector *)(const void *)bytes);
    vector x = v_of_low(load(bytes));
    return n == 16 ? x : _mm256_inserti128_si256(x, load_partial(bytes + 16, n - 16), 1);
}

INLINE void v_store_bytes(uint8_t *bytes, vector x, size_t n)
{
    if (n < 16) {
        store_partial(bytes, _mm256_castsi256_si128(x), n);
    } else if (n == 32) {
        _mm256_storeu_si256((vector *)(void *)bytes, x);
    } else {
        store(bytes, _mm256_castsi256_si128(x));
        if (n > 16)
            store_partial(bytes + 16, _mm256_extracti128_si256(x, 1), n - 16);
    }
}

/* 1 or 2 blocks. */
INLINE void v_store_blocks(uint8_t *bytes, vector x, size_t n)
{
    if (n == 16)
        store(bytes, _mm256_castsi256_si128(x));
    else
        _mm256_storeu_si256((vector *)(void *)bytes, x);
}

INLINE vector v_keep_bytes(vector x, size_t n)
{
    static const uint8_t edge[64] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
                                     255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
                                     255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    return _mm256_and_si256(x, _mm256_loadu_si256((const vector *)(const void *)(edge + 32 - n)));
}

INLINE block load_twelve(const uint8_t *bytes)
{
    return _mm_maskload_epi32((const int *)(const void *)bytes, _mm_set_epi32(0, -1, -1, -1));
}

INLINE vector v_gather(const uint8_t *const from[LANES])
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load(from[0])), load(from[1]), 1);
}

INLINE void v_scatter(uint8_t *const to[LANES], vector x)
{
    store(to[0], _mm256_castsi256_si128(x));
    store(to[1], _mm256_extracti128_si256(x, 1));
}

INLINE vector v_of_lanes(const block x[LANES])
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(x[0]), x[1], 1);
}

INLINE vector v_shift_in(vector before, vector x)
{
    return _mm256_permute2x128_si256(before, x, 0x21);
}

INLINE block v_fold(vector x)
{
    return _mm_xor_si128(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
}

INLINE vector v_fold_each(const vector x[LANES])
{
    return _mm256_xor_si256(_mm256_permute2x128_si256(x[0], x[1], 0x20),
                            _mm256_permute2x128_si256(x[0], x[1], 0x31));
}

INLINE void v_transpose(vector x[LANES])
{
    vector low = _mm256_permute2x128_si256(x[0], x[1], 0x20);
    x[1] = _mm256_permute2x128_si256(x[0], x[1], 0x31);
    x[0] = low;
}

INLINE vector v_lane(vector x, int i)
{
    return i == 0 ? _mm256_permute2x128_si256(x, x, 0x00) : _mm256_permute2x128_si256(x, x, 0x11);
}

INLINE vector v_lane_numbers(void)
{
    return _mm256_set_epi64x(0, 1, 0, 0);
}

INLINE vector v_pair_numbers(void)
{
    return _mm256_set_epi64x(1, 1, 0, 0);
}

INLINE vector v_xor3(vector a, vector b, vector c)
{
    return _mm256_xor_si256(_mm256_xor_si256(a, b), c);
}

INLINE vector v_or_xor(vector a, vector b, vector c)
{
    return _mm256_or_si256(a, _mm256_xor_si256(b, c));
}

INLINE bool v_have_common(vector a, vector b)
{
    return !_mm256_testz_si256(a, b);
}

INLINE vector v_of_words(const uint64_t words[8], int u)
{
    const long long *w = (const long long *)words + 4 * u;
    return _mm256_set_epi64x(w[3], w[2], w[1], w[0]);
}

INLINE unsigned v_different_words(vector a, vector b)
{
    return 15u ^ (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(a, b)));
}

INLINE void v_forget(void)
{
    __asm__ volatile("vzeroall"
                     :
                     :
                     : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
                       "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}

#endif

/* --- The same at both widths ------------------------------------------------------------------------------
 */

INLINE vector v_zero(void)
{
    return V_SI(setzero)();
}

INLINE vector v_load(const void *bytes)
{
    return V_SI(loadu)((const vector *)bytes);
}

INLINE void v_store(uint8_t *bytes, vector x)
{
    V_SI(storeu)((vector *)(void *)bytes, x);
}

INLINE vector v_xor(vector a, vector b)
{
    return V_SI(xor)(a, b);
}

INLINE vector v_reverse_bytes(vector x)
{
    return V(shuffle_epi8)(x,
                           v_broadcast(_mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)));
}

/* first, first + 1, ...: one number a lane, in its last byte. */
INLINE vector v_last_bytes(int first)
{
    vector numbers = V(bslli_epi128)(v_lane_numbers(), 15);
    return V(add_epi8)(numbers, v_broadcast(_mm_set_epi32((int)((unsigned)first << 24), 0, 0, 0)));
}

INLINE vector v_swap_halves(vector x)
{
    return V(shuffle_epi32)(x, 0x4e);
}

/* high half + low half: of a's lanes in the low halves, of b's in the high ones. */
INLINE vector v_fold_pair(vector a, vector b)
{
    return v_xor(V(unpacklo_epi64)(a, b), V(unpackhi_epi64)(a, b));
}

/* Each lane as a little-endian number, by n bytes towards higher or lower places; n is a constant. */
#define v_bytes_up(x, n) V(bslli_epi128)(x, n)
#define v_bytes_down(x, n) V(bsrli_epi128)(x, n)

/* Which halves: 0x10 the high one of y, 0x01 the high one of x. */
#define v_multiply(x, y, halves) V(clmulepi64_epi128)(x, y, halves)

#endif
