/* SPDX-License-Identifier: Apache-2.0 */
/* GHASH with VPCLMULQDQ at either vector width: sums of products, their reduction, a key's powers of H.
 *
 * GHASH's representation and reduction are derived in aesni_gcm.h. Powers of H are laid out descending and
 * with zeroes behind H^1, so that a vector loaded at H^e has H^e, H^(e-1), ... and stops after H^1: the last
 * vector of a message may have blocks that are not there. */
#ifndef CM_X86_VAES_GHASH_H
#define CM_X86_VAES_GHASH_H

#include "vaes_template.h"

/* A step's blocks; and one vector more for additional data and lengths of a short message. */
enum { POWERS = (WIDTH + 2) * LANES };

/* The factors of a step: of vector u, and folded of vectors 2u and 2u + 1, the second in the high halves. */
struct step_powers {
    vector power[WIDTH], folded[WIDTH / 2];
};

struct gcm_form {
    struct form aes;
    struct step_powers every, last;
    block power[POWERS + LANES];  /* H^(POWERS-i) / x, then zeroes */
    block folded[POWERS + LANES]; /* in both halves: high half + low half of that */
    /* [2 + b]: a block of zeroes that ends with byte b, after the first round. Counters of the usual J0 start
     * with 2, and so at a vector's boundary. */
    block counted[2 + 256];
};

/* A sum of products that has not been reduced; `middle` still lacks `low` and `high` (Karatsuba). */
struct product {
    vector low, middle, high;
};

INLINE struct product product_zero(void)
{
    vector zero = v_zero();
    return (struct product){zero, zero, zero};
}

INLINE void product_add_by(struct product *sum, vector x, vector h, vector folded_h)
{
    vector folded = v_xor(x, v_swap_halves(x));
    sum->low = v_xor(sum->low, v_multiply(x, h, 0x00));
    sum->high = v_xor(sum->high, v_multiply(x, h, 0x11));
    sum->middle = v_xor(sum->middle, v_multiply(folded, folded_h, 0x00));
}

/* The first lane times H^power, the second times the power below, ... */
INLINE void product_add(struct product *sum, const struct gcm_form *form, vector x, size_t power)
{
    product_add_by(sum, x, v_load(&form->power[POWERS - power]), v_load(&form->folded[POWERS - power]));
}

/* Every lane times H^power. */
INLINE void product_add_same(struct product *sum, const struct gcm_form *form, vector x, size_t power)
{
    product_add_by(sum, x, v_broadcast(form->power[POWERS - power]),
                   v_broadcast(form->folded[POWERS - power]));
}

/* Each lane by itself. The lowest word is folded 64 places up by adding it, and its product with q one place
 * higher, which is where a carry-less product stands anyway; twice. */
INLINE vector product_reduce(struct product sum)
{
    const vector q = v_broadcast(_mm_set_epi64x(0, (long long)0xc200000000000000));
    vector middle = v_xor3(sum.middle, sum.low, sum.high);
    middle = v_xor3(middle, v_swap_halves(sum.low), v_multiply(sum.low, q, 0x00));
    return v_xor3(sum.high, v_swap_halves(middle), v_multiply(middle, q, 0x00));
}

/* All lanes into the first, which alone holds anything in the end; then as product_reduce, on 128 bits. */
INLINE vector product_fold(struct product sum)
{
    const block q = _mm_set_epi64x(0, (long long)0xc200000000000000);
    block low = v_fold(sum.low), high = v_fold(sum.high);
    block middle = _mm_xor_si128(v_fold(sum.middle), _mm_xor_si128(low, high));
    middle = _mm_xor_si128(middle,
                           _mm_xor_si128(_mm_shuffle_epi32(low, 0x4e), _mm_clmulepi64_si128(low, q, 0x00)));
    high = _mm_xor_si128(
        high, _mm_xor_si128(_mm_shuffle_epi32(middle, 0x4e), _mm_clmulepi64_si128(middle, q, 0x00)));
    return v_of_low(high);
}

/* The products of a step; the first vector, to which the hash is added, with H^power. */
INLINE struct product step_products(const struct gcm_form *form, vector hash, const uint8_t *data,
                                    size_t power)
{
    struct product sum = product_zero();
#pragma GCC unroll 8
    for (int u = 0; u < WIDTH; u++) {
        vector x = v_reverse_bytes(v_load(data + VECTOR_BYTES * u));
        product_add(&sum, form, u == 0 ? v_xor(x, hash) : x, power - (size_t)(LANES * u));
    }
    return sum;
}

/* Additional data or an IV, any length but 0; the last block is filled up with zeroes. */
__attribute__((noinline)) static vector ghash_long(const struct gcm_form *form, vector hash,
                                                   const uint8_t *data, size_t length)
{
    for (; length >= STEP_BYTES; length -= STEP_BYTES, data += STEP_BYTES)
        hash = product_fold(step_products(form, hash, data, LANES * WIDTH));
    if (length == 0)
        return hash;
    struct product sum = product_zero();
    size_t power = (length + 15) / 16;
    for (; length >= VECTOR_BYTES; length -= VECTOR_BYTES, data += VECTOR_BYTES, power -= LANES) {
        product_add(&sum, form, v_xor(v_reverse_bytes(v_load(data)), hash), power);
        hash = v_zero();
    }
    if (length > 0)
        product_add(&sum, form, v_xor(v_reverse_bytes(v_load_bytes(data, length)), hash), power);
    return product_fold(sum);
}

INLINE vector ghash(const struct gcm_form *form, vector hash, const uint8_t *data, size_t length)
{
    return length == 0 ? hash : ghash_long(form, hash, data, length);
}

INLINE void expand_step(struct step_powers *powers)
{
    for (int u = 0; u < WIDTH; u += 2)
        powers->folded[u / 2] = v_fold_pair(powers->power[u], powers->power[u + 1]);
}

INLINE vector product_of(vector x, vector h, vector folded_h)
{
    struct product sum = product_zero();
    product_add_by(&sum, x, h, folded_h);
    return product_reduce(sum);
}

static void expand_gcm(void *memory, const uint8_t *key, size_t key_length)
{
    struct gcm_form *form = memory;
    struct cipher cipher = {form->aes.round_key, (unsigned)(key_length / 4 + 6)};
    expand_encrypt(form, key, key_length);
    vector zero = v_zero();
    run_cipher(&zero, 1, cipher, false);
    block h = reverse_bytes(V_LOW(zero));
    /* H / x: shift left over both words, and add the constant where a bit falls out, without a branch. */
    block carries = _mm_srli_epi64(h, 63);
    block out = _mm_sub_epi32(_mm_setzero_si128(), _mm_shuffle_epi32(carries, 0xaa));
    block c = _mm_and_si128(out, _mm_set_epi64x((long long)0xc200000000000000, 1));
    h = _mm_or_si128(_mm_slli_epi64(h, 1), _mm_slli_si128(carries, 8));
    h = _mm_xor_si128(h, c);
    /* H^1 to H^LANES one after the other, the others LANES at once. */
    memset(form->power, 0, sizeof form->power);
    memset(form->folded, 0, sizeof form->folded);
    vector by = v_broadcast(h), powers = v_of_low(h);
    vector folded_by = v_xor(by, v_swap_halves(by));
    for (int i = POWERS - 1; i >= POWERS - LANES; i--) {
        form->power[i] = V_LOW(powers);
        if (i > POWERS - LANES)
            powers = product_of(powers, by, folded_by);
    }
    by = v_broadcast(V_LOW(powers));
    folded_by = v_xor(by, v_swap_halves(by));
    powers = v_load(&form->power[POWERS - LANES]);
    for (int i = POWERS - LANES; i >= 0; i -= LANES) {
        v_store((uint8_t *)&form->power[i], powers);
        v_store((uint8_t *)&form->folded[i], v_xor(powers, v_swap_halves(powers)));
        powers = product_of(powers, by, folded_by);
    }
    for (int u = 0; u < WIDTH; u++) {
        form->every.power[u] = v_broadcast(form->power[POWERS - LANES * (WIDTH - u)]);
        form->last.power[u] = v_load(&form->power[POWERS - LANES * (WIDTH - u)]);
    }
    expand_step(&form->every);
    expand_step(&form->last);
    form->counted[0] = form->counted[1] = _mm_setzero_si128();
    for (int i = 0; i < 256; i += LANES) {
        vector x = v_xor(v_last_bytes(i), form->aes.round_key[0]);
        v_store((uint8_t *)&form->counted[2 + i], V(aesenc_epi128)(x, form->aes.round_key[1]));
    }
    v_forget();
}

/* J0 of an IV of 12 bytes, in the order of memory: SP 800-38D, section 7.1, step 2. */
INLINE block first_counter_short(const uint8_t *iv)
{
    return _mm_or_si128(load_twelve(iv), _mm_set_epi32(0x01000000, 0, 0, 0));
}

INLINE block lengths_block(uint64_t aad_bytes, uint64_t text_bytes)
{
    return _mm_set_epi64x((long long)(aad_bytes * 8), (long long)(text_bytes * 8));
}

#endif
