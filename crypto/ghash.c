/* SPDX-License-Identifier: Apache-2.0 */
/* GHASH by integer multiplications with holes; no table, no branch on a secret.
 *
 * An element is two big-endian words: the top bit of `high` is the coefficient of x^0, the bottom bit of
 * `low` that of x^127.
 *
 * Carry-less products. Cut both factors into four words each, of which number k keeps the bits at positions
 * 4 * j + k. In an integer product of two such words every sum of at most 15 bit products fits into the hole
 * above it, and its lowest bit is the carry-less sum. Sixteen products can meet only at the highest position
 * of the low 64 bits, whose carry falls out. That gives the low half; the high half is the low half of the
 * product of the bit-reversed factors, reversed, and shifted by one since a product has 127 bits.
 *
 * This takes a multiplication whose time does not depend on its operands, as on every 64-bit processor that
 * this is meant for. */
#include "ghash.h"

#include "bytes.h"
#include "cm_aes.h"

/* Low 64 bits of the carry-less product. */
static inline uint64_t multiply_low(uint64_t x, uint64_t y)
{
    const uint64_t m0 = 0x1111111111111111, m1 = m0 << 1, m2 = m0 << 2, m3 = m0 << 3;
    uint64_t x0 = x & m0, x1 = x & m1, x2 = x & m2, x3 = x & m3;
    uint64_t y0 = y & m0, y1 = y & m1, y2 = y & m2, y3 = y & m3;
    uint64_t z0 = (x0 * y0) ^ (x1 * y3) ^ (x2 * y2) ^ (x3 * y1);
    uint64_t z1 = (x0 * y1) ^ (x1 * y0) ^ (x2 * y3) ^ (x3 * y2);
    uint64_t z2 = (x0 * y2) ^ (x1 * y1) ^ (x2 * y0) ^ (x3 * y3);
    uint64_t z3 = (x0 * y3) ^ (x1 * y2) ^ (x2 * y1) ^ (x3 * y0);
    return (z0 & m0) | (z1 & m1) | (z2 & m2) | (z3 & m3);
}

static inline uint64_t swap_groups(uint64_t x, unsigned shift, uint64_t mask)
{
    return (x & mask) << shift | (x >> shift & mask);
}

static inline uint64_t reverse(uint64_t x)
{
    x = swap_groups(x, 1, 0x5555555555555555);
    x = swap_groups(x, 2, 0x3333333333333333);
    x = swap_groups(x, 4, 0x0f0f0f0f0f0f0f0f);
    return __builtin_bswap64(x);
}

void cm_ghash_key_init(struct cm_ghash_key *key, const uint8_t h[16])
{
    key->high = cm_load64_be(h);
    key->low = cm_load64_be(h + 8);
    key->sum = key->high ^ key->low;
    key->reversed_high = reverse(key->high);
    key->reversed_low = reverse(key->low);
    key->reversed_sum = key->reversed_high ^ key->reversed_low;
}

/* (*high, *low) * H: Karatsuba's three products, each as two halves; one shift, since in this bit order the
 * 255-bit product ends one position too low; then x^128 = x^7 + x^2 + x + 1, the lowest word first. */
static inline void multiply(const struct cm_ghash_key *key, uint64_t *high, uint64_t *low)
{
    uint64_t a = *high, b = *low;
    uint64_t ra = reverse(a), rb = reverse(b);
    uint64_t high_low = multiply_low(a, key->high);
    uint64_t low_low = multiply_low(b, key->low);
    uint64_t sum_low = multiply_low(a ^ b, key->sum) ^ high_low ^ low_low;
    uint64_t high_high = multiply_low(ra, key->reversed_high);
    uint64_t low_high = multiply_low(rb, key->reversed_low);
    uint64_t sum_high = multiply_low(ra ^ rb, key->reversed_sum) ^ high_high ^ low_high;
    high_high = reverse(high_high) >> 1;
    low_high = reverse(low_high) >> 1;
    sum_high = reverse(sum_high) >> 1;

    uint64_t w3 = high_high, w2 = high_low ^ sum_high, w1 = low_high ^ sum_low, w0 = low_low;
    w3 = w3 << 1 | w2 >> 63;
    w2 = w2 << 1 | w1 >> 63;
    w1 = w1 << 1 | w0 >> 63;
    w0 = w0 << 1;

    w2 ^= w0 ^ w0 >> 1 ^ w0 >> 2 ^ w0 >> 7;
    w1 ^= w0 << 63 ^ w0 << 62 ^ w0 << 57;
    w3 ^= w1 ^ w1 >> 1 ^ w1 >> 2 ^ w1 >> 7;
    w2 ^= w1 << 63 ^ w1 << 62 ^ w1 << 57;
    *high = w3;
    *low = w2;
}

void cm_ghash_update(const struct cm_ghash_key *key, uint8_t hash[16], const uint8_t *data, size_t length)
{
    uint64_t high = cm_load64_be(hash), low = cm_load64_be(hash + 8);
    while (length > 0) {
        uint8_t filled[16];
        const uint8_t *block = data;
        size_t bytes = length < 16 ? length : 16;
        if (bytes < 16) {
            memset(filled, 0, sizeof filled);
            memcpy(filled, data, bytes);
            block = filled;
        }
        high ^= cm_load64_be(block);
        low ^= cm_load64_be(block + 8);
        multiply(key, &high, &low);
        data += bytes;
        length -= bytes;
    }
    cm_store64_be(hash, high);
    cm_store64_be(hash + 8, low);
}
