/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSSL's EVP, the key set once a context and the IV for each message. */
#include "reference.h"
#include <openssl/evp.h>

static const EVP_CIPHER *cipher_of(int mode, uint32_t key_bits)
{
    const size_t row = key_bits == 128 ? 0 : key_bits == 192 ? 1 : 2;
    const EVP_CIPHER *(*const ciphers[PLAN_MODES][3])(void) = {
        [CM_ECB] = {EVP_aes_128_ecb, EVP_aes_192_ecb, EVP_aes_256_ecb},
        [CM_CBC] = {EVP_aes_128_cbc, EVP_aes_192_cbc, EVP_aes_256_cbc},
        [CM_CTR] = {EVP_aes_128_ctr, EVP_aes_192_ctr, EVP_aes_256_ctr},
        [CM_GCM] = {EVP_aes_128_gcm, EVP_aes_192_gcm, EVP_aes_256_gcm},
        [CM_XTS] = {EVP_aes_128_xts, NULL, EVP_aes_256_xts},
    };

    return ciphers[mode][row] != NULL ? ciphers[mode][row]() : NULL;
}

void reference_init(struct reference *reference, const struct keys *keys)
{
    *reference = (struct reference){.keys = keys};
}

static EVP_CIPHER_CTX *context_of(struct reference *reference, int mode, int direction)
{
    void **slot = &reference->contexts[mode][direction];
    EVP_CIPHER_CTX *context = *slot;

    if (context != NULL)
        return context;
    context = EVP_CIPHER_CTX_new();
    if (context != NULL &&
        EVP_CipherInit_ex(context, cipher_of(mode, reference->keys->key_bits), NULL,
                          reference->keys->bytes[keys_family_of(mode)], NULL, direction == CM_ENCRYPT) != 1) {
        EVP_CIPHER_CTX_free(context);
        context = NULL;
    }
    *slot = context;
    return context;
}

bool reference_run(struct reference *reference, int mode, int direction, bool padding,
                   struct message *message)
{
    EVP_CIPHER_CTX *context = context_of(reference, mode, direction);
    int length = 0;
    int rest = 0;

    if (context == NULL)
        return false;
    if (mode == CM_GCM &&
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, (int)message->iv_length, NULL) != 1)
        return false;
    if (EVP_CipherInit_ex(context, NULL, NULL, NULL, message->iv, -1) != 1 ||
        EVP_CIPHER_CTX_set_padding(context, padding) != 1)
        return false;
    if (mode == CM_GCM && direction == CM_DECRYPT &&
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, (int)message->tag_length, message->tag) != 1)
        return false;
    if (message->in_length > 0 &&
        EVP_CipherUpdate(context, message->out, &length, message->in, (int)message->in_length) != 1)
        return false;
    if (EVP_CipherFinal_ex(context, message->out + length, &rest) != 1)
        return false;
    if (mode == CM_GCM && direction == CM_ENCRYPT &&
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, (int)message->tag_length, message->tag) != 1)
        return false;
    message->out_length = (size_t)length + (size_t)rest;
    return true;
}

void reference_done(struct reference *reference)
{
    for (int mode = 0; mode < PLAN_MODES; mode++) {
        for (int direction = 0; direction < PLAN_DIRECTIONS; direction++)
            EVP_CIPHER_CTX_free(reference->contexts[mode][direction]);
    }
    *reference = (struct reference){0};
}
