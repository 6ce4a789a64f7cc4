/* SPDX-License-Identifier: Apache-2.0 */
/* XTS written down once more, block by block over OpenSSL's ECB, for keys and tweaks that OpenSSL won't take.
 */
#ifndef CM_TEST_CRYPTO_XTS_MODEL_H
#define CM_TEST_CRYPTO_XTS_MODEL_H

#include "harness.h"

/* The tweak times x: IEEE Std 1619, section 5.2. */
void xts_model_double(uint8_t tweak[16]);

/* Encrypts one data unit of at least 16 bytes: IEEE Std 1619, section 5.3. */
void xts_model_encrypt(const uint8_t *key, size_t key_length, const uint8_t iv[16], const uint8_t *text,
                       size_t length, uint8_t *ret_cipher);

/* The IV that the second half of the key turns into `tweak`. */
void xts_model_iv_for(const uint8_t *key, size_t key_length, const uint8_t tweak[16], uint8_t ret_iv[16]);

#endif
