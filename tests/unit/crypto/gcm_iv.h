/* SPDX-License-Identifier: Apache-2.0 */
/* IVs of GCM that lead to a chosen counter block, by going GHASH backwards. */
#ifndef CM_TEST_CRYPTO_GCM_IV_H
#define CM_TEST_CRYPTO_GCM_IV_H

#include <stddef.h>
#include <stdint.h>

struct gcm_iv {
    uint8_t inverse_of_h[16];
};
void gcm_iv_init(struct gcm_iv *gcm_iv, const uint8_t *key, size_t key_length);

/* The 16-byte IV for which J0 (SP 800-38D, section 7.1) is `first_counter`. */
void gcm_iv_for_counter(const struct gcm_iv *gcm_iv, const uint8_t first_counter[16], uint8_t ret_iv[16]);

#endif
