/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSSL's EVP as a reference of bench-kernels. */
#include "reference.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

struct bench_openssl {
    EVP_CIPHER_CTX *context;
    enum cm_aes_mode mode;
    enum cm_aes_direction direction;
    bool resets, finishes; /* before and after each message */
};

static const EVP_CIPHER *cipher_of(enum cm_aes_mode mode, size_t key_bits)
{
    typedef const EVP_CIPHER *getter(void);
    static getter *const getters[CM_AES_MODE_COUNT][3] = {
        [CM_AES_ECB] = {EVP_aes_128_ecb, EVP_aes_192_ecb, EVP_aes_256_ecb},
        [CM_AES_CBC] = {EVP_aes_128_cbc, EVP_aes_192_cbc, EVP_aes_256_cbc},
        [CM_AES_CTR] = {EVP_aes_128_ctr, EVP_aes_192_ctr, EVP_aes_256_ctr},
        [CM_AES_GCM] = {EVP_aes_128_gcm, EVP_aes_192_gcm, EVP_aes_256_gcm},
        [CM_AES_XTS] = {EVP_aes_128_xts, NULL, EVP_aes_256_xts},
    };
    return getters[mode][key_bits / 64 - 2]();
}

struct bench_openssl *bench_openssl_new(const struct bench_cell *cell, const uint8_t *key)
{
    static const uint8_t iv[16];
    bool pads = cell->padding == CM_AES_PKCS7;
    struct bench_openssl *openssl = malloc(sizeof *openssl);
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    if (openssl == NULL || context == NULL ||
        EVP_CipherInit_ex(context, cipher_of(cell->mode->mode, cell->key_bits), NULL, key, iv,
                          cell->mode->direction == CM_AES_ENCRYPT) != 1) {
        (void)fprintf(stderr, "bench-kernels: OpenSSL takes no key for %s\n", cell->mode->name);
        exit(2);
    }
    EVP_CIPHER_CTX_set_padding(context, pads);
    *openssl = (struct bench_openssl){.context = context,
                                      .mode = cell->mode->mode,
                                      .direction = cell->mode->direction,
                                      .resets = cell->mode->mode != CM_AES_ECB || pads,
                                      .finishes = cell->mode->mode == CM_AES_GCM || pads};
    return openssl;
}

void bench_openssl_free(struct bench_openssl *openssl)
{
    EVP_CIPHER_CTX_free(openssl->context);
    free(openssl);
}

bool bench_openssl_run(struct bench_openssl *openssl, struct cm_aes_item *items, size_t count)
{
    EVP_CIPHER_CTX *context = openssl->context;
    bool gcm = openssl->mode == CM_AES_GCM, encrypt = openssl->direction == CM_AES_ENCRYPT;
    bool good = true;
    for (size_t i = 0; i < count; i++) {
        struct cm_aes_item *item = &items[i];
        int written = 0, ended;
        if (openssl->resets)
            good &= EVP_CipherInit_ex(context, NULL, NULL, NULL, item->iv, -1) == 1;
        good &= EVP_CipherUpdate(context, item->destination, &written, item->source, (int)item->length) == 1;
        if (gcm && !encrypt)
            good &= EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, 16, item->tag) == 1;
        if (openssl->finishes)
            good &= EVP_CipherFinal_ex(context, item->destination + written, &ended) == 1;
        if (gcm && encrypt)
            good &= EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, item->tag) == 1;
    }
    return good;
}
