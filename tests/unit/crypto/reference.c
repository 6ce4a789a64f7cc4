/* SPDX-License-Identifier: Apache-2.0 */
/* The second opinion: the same modes computed by OpenSSL. */
#include "reference.h"

#include <openssl/evp.h>

static const EVP_CIPHER *cipher_for(enum cm_aes_mode mode, size_t key_length)
{
    typedef const EVP_CIPHER *(*getter)(void);
    static const getter getters[CM_AES_MODE_COUNT][3] = {
        {EVP_aes_128_ecb, EVP_aes_192_ecb, EVP_aes_256_ecb},
        {EVP_aes_128_cbc, EVP_aes_192_cbc, EVP_aes_256_cbc},
        {EVP_aes_128_ctr, EVP_aes_192_ctr, EVP_aes_256_ctr},
        {EVP_aes_128_gcm, EVP_aes_192_gcm, EVP_aes_256_gcm},
        {EVP_aes_128_xts, NULL, EVP_aes_256_xts},
    };
    return getters[mode][(mode == CM_AES_XTS ? key_length / 2 : key_length) / 8 - 2]();
}

size_t reference_encrypt(enum cm_aes_mode mode, enum cm_aes_padding padding, const uint8_t *key,
                         size_t key_length, const struct harness_message *message, uint8_t *output,
                         uint8_t *ret_tag)
{
    static const uint8_t nothing[1];
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    int good = context != NULL;
    int written = 0, ended = 0, ignored = 0;
    good = good && EVP_EncryptInit_ex(context, cipher_for(mode, key_length), NULL, NULL, NULL) == 1;
    if (mode == CM_AES_GCM)
        good =
            good && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_SET_IVLEN, (int)message->iv_length, NULL) == 1;
    good = good && EVP_EncryptInit_ex(context, NULL, NULL, key, mode == CM_AES_ECB ? NULL : message->iv) == 1;
    good = good && EVP_CIPHER_CTX_set_padding(context, padding == CM_AES_PKCS7) == 1;
    if (mode == CM_AES_GCM && message->aad_length > 0)
        good =
            good && EVP_EncryptUpdate(context, NULL, &ignored, message->aad, (int)message->aad_length) == 1;
    good = good && EVP_EncryptUpdate(context, output, &written, message->length > 0 ? message->text : nothing,
                                     (int)message->length) == 1;
    good = good && EVP_EncryptFinal_ex(context, output + written, &ended) == 1;
    if (mode == CM_AES_GCM)
        good = good && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, 16, ret_tag) == 1;
    EVP_CIPHER_CTX_free(context);
    require(good, "OpenSSL refused %s of %zu bytes, IV of %zu", harness_mode_name(mode), message->length,
            message->iv_length);
    return (size_t)(written + ended);
}
