/* SPDX-License-Identifier: Apache-2.0 */
/* XTS written down once more, block by block over OpenSSL's ECB, for keys and tweaks that OpenSSL won't take.
 */
#include "xts_model.h"

#include "reference.h"

#include <string.h>

void xts_model_double(uint8_t tweak[16])
{
    unsigned carry = 0;
    for (size_t i = 0; i < 16; i++) {
        unsigned doubled = 2u * tweak[i] + carry;
        tweak[i] = (uint8_t)doubled;
        carry = doubled >> 8;
    }
    if (carry != 0)
        tweak[0] ^= 0x87;
}

static void encrypt_block(const uint8_t *key, size_t key_length, const uint8_t block[16],
                          uint8_t ret_block[16])
{
    uint8_t unused[16], copy[16];
    memcpy(copy, block, 16);
    struct harness_message message = {.text = copy, .length = 16};
    reference_encrypt(CM_AES_ECB, CM_AES_NO_PADDING, key, key_length, &message, ret_block, unused);
}

static void encrypt_between(const uint8_t *key, size_t key_length, const uint8_t tweak[16],
                            const uint8_t block[16], uint8_t ret_block[16])
{
    uint8_t masked[16];
    for (size_t i = 0; i < 16; i++)
        masked[i] = block[i] ^ tweak[i];
    encrypt_block(key, key_length, masked, masked);
    for (size_t i = 0; i < 16; i++)
        ret_block[i] = masked[i] ^ tweak[i];
}

void xts_model_encrypt(const uint8_t *key, size_t key_length, const uint8_t iv[16], const uint8_t *text,
                       size_t length, uint8_t *ret_cipher)
{
    size_t half = key_length / 2, rest = length % 16, at = 0;
    uint8_t tweak[16], last[16];
    encrypt_block(key + half, half, iv, tweak);
    for (; at + 16 <= length; at += 16) {
        encrypt_between(key, half, tweak, text + at, ret_cipher + at);
        xts_model_double(tweak);
    }
    if (rest == 0)
        return;
    memcpy(last, ret_cipher + at - 16, 16);
    memcpy(ret_cipher + at, last, rest);
    memcpy(last, text + at, rest);
    encrypt_between(key, half, tweak, last, ret_cipher + at - 16);
}

void xts_model_iv_for(const uint8_t *key, size_t key_length, const uint8_t tweak[16], uint8_t ret_iv[16])
{
    size_t half = key_length / 2;
    struct harness_key memory;
    struct cm_aes_key *ecb =
        harness_key_init(&memory, "portable", CM_AES_ECB, CM_AES_DECRYPT, key + half, half);
    struct cm_aes_item item = {.source = tweak, .destination = ret_iv, .length = 16};
    uint8_t back[16];
    require(cm_aes_batch(ecb, CM_AES_NO_PADDING, &item, 1) == 0, "no IV");
    cm_aes_key_done(ecb);
    encrypt_block(key + half, half, ret_iv, back);
    require(memcmp(back, tweak, 16) == 0, "the IV does not give the tweak");
}
