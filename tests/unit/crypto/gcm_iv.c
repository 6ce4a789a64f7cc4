/* SPDX-License-Identifier: Apache-2.0 */
/* IVs of GCM that lead to a chosen counter block, by going GHASH backwards. */
#include "gcm_iv.h"

#include "reference.h"

#include <string.h>

/* Product in GHASH's field, SP 800-38D, 6.3, bit by bit: slow and plain. */
static void multiply(const uint8_t x[16], const uint8_t y[16], uint8_t ret_product[16])
{
    uint8_t product[16] = {0}, shifted[16];
    memcpy(shifted, y, 16);
    for (unsigned i = 0; i < 128; i++) {
        if (x[i / 8] >> (7 - i % 8) & 1)
            for (size_t j = 0; j < 16; j++)
                product[j] ^= shifted[j];
        uint8_t out = shifted[15] & 1;
        for (size_t j = 15; j > 0; j--)
            shifted[j] = (uint8_t)(shifted[j] >> 1 | shifted[j - 1] << 7);
        shifted[0] = (uint8_t)(shifted[0] >> 1 ^ (out ? 0xe1 : 0));
    }
    memcpy(ret_product, product, 16);
}

/* x to the power 2^128 - 2: its inverse. */
static void invert(const uint8_t x[16], uint8_t ret_inverse[16])
{
    uint8_t square[16], inverse[16] = {0x80};
    memcpy(square, x, 16);
    for (int i = 1; i < 128; i++) {
        multiply(square, square, square);
        multiply(inverse, square, inverse);
    }
    memcpy(ret_inverse, inverse, 16);
}

void gcm_iv_init(struct gcm_iv *gcm_iv, const uint8_t *key, size_t key_length)
{
    static const uint8_t zero[16];
    uint8_t h[16], unused[16];
    struct harness_message hash_key = {.text = zero, .length = 16};
    reference_encrypt(CM_AES_ECB, CM_AES_NO_PADDING, key, key_length, &hash_key, h, unused);
    invert(h, gcm_iv->inverse_of_h);
}

void gcm_iv_for_counter(const struct gcm_iv *gcm_iv, const uint8_t first_counter[16], uint8_t ret_iv[16])
{
    multiply(first_counter, gcm_iv->inverse_of_h, ret_iv);
    ret_iv[15] ^= 128; /* the length block: 128 bits of IV */
    multiply(ret_iv, gcm_iv->inverse_of_h, ret_iv);
}
