/* SPDX-License-Identifier: Apache-2.0 */
/* The second opinion: the same modes computed by OpenSSL. */
#ifndef CM_TEST_CRYPTO_REFERENCE_H
#define CM_TEST_CRYPTO_REFERENCE_H

#include "harness.h"

/* Encrypts `message` into `output` (room for the padding) and, in GCM, its tag into `ret_tag` (16 bytes
 * room). IVs of GCM may have 1 to 128 bytes here. Returns the length of the output. Fails the test on any
 * error. */
size_t reference_encrypt(enum cm_aes_mode mode, enum cm_aes_padding padding, const uint8_t *key,
                         size_t key_length, const struct harness_message *message, uint8_t *output,
                         uint8_t *ret_tag);

#endif
