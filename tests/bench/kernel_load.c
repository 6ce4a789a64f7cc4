/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of messages for bench-kernels, and what OpenSSL makes of them. */
#include "kernel_load.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct kernel_mode kernel_modes[] = {
    {"ecb-encrypt", CM_AES_ECB, CM_AES_ENCRYPT}, {"ecb-decrypt", CM_AES_ECB, CM_AES_DECRYPT},
    {"cbc-encrypt", CM_AES_CBC, CM_AES_ENCRYPT}, {"cbc-decrypt", CM_AES_CBC, CM_AES_DECRYPT},
    {"ctr", CM_AES_CTR, CM_AES_ENCRYPT},         {"gcm-seal", CM_AES_GCM, CM_AES_ENCRYPT},
    {"gcm-open", CM_AES_GCM, CM_AES_DECRYPT},
};
const size_t kernel_mode_count = sizeof kernel_modes / sizeof *kernel_modes;

static const struct kernel_mode sealing[CM_AES_MODE_COUNT] = {
    {"", CM_AES_ECB, CM_AES_ENCRYPT},
    {"", CM_AES_CBC, CM_AES_ENCRYPT},
    {"", CM_AES_CTR, CM_AES_ENCRYPT},
    {"", CM_AES_GCM, CM_AES_ENCRYPT},
    {"", CM_AES_XTS, CM_AES_ENCRYPT},
};

static void die(const char *what)
{
    (void)fprintf(stderr, "bench-kernels: %s\n", what);
    exit(1);
}

static void fill(uint8_t *bytes, size_t length, uint64_t *state)
{
    for (size_t i = 0; i < length; i++) {
        *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        bytes[i] = (uint8_t)(*state >> 56);
    }
}

static uint8_t *pages(size_t length)
{
    enum { HUGE_PAGE = 2 * 1024 * 1024 };
    uint8_t *memory = aligned_alloc(HUGE_PAGE, (length + HUGE_PAGE) / HUGE_PAGE * HUGE_PAGE);
    if (memory == NULL)
        die("out of memory");
    memset(memory, 0, length);
    return memory;
}

static size_t some_length(const struct kernel_mode *mode, struct kernel_lengths lengths, uint64_t *state)
{
    size_t length = lengths.low;
    if (lengths.high > lengths.low) {
        uint8_t random[8];
        uint64_t number;
        fill(random, sizeof random, state);
        memcpy(&number, random, sizeof number);
        length += (size_t)(number % (lengths.high - lengths.low + 1));
    }
    return mode->mode == CM_AES_ECB || mode->mode == CM_AES_CBC ? length / 16 * 16 : length;
}

/* What is to be decrypted has to be made first: the answer's place serves as the other text meanwhile. */
static void make_ciphertext(struct kernel_load *load)
{
    struct kernel_evp *evp = kernel_evp_new(&sealing[load->mode->mode], load->key, load->key_length);
    for (size_t i = 0; i < load->count; i++)
        load->items[i].destination = (uint8_t *)(uintptr_t)load->items[i].source;
    if (!kernel_evp_run(evp, load->items, load->count))
        die("OpenSSL does not make the ciphertext");
    for (size_t i = 0; i < load->count; i++)
        load->items[i].destination = load->destination + (load->items[i].source - load->source);
    kernel_evp_free(evp);
}

void kernel_load_init(struct kernel_load *load, const struct kernel_mode *mode, size_t key_length,
                      size_t count, struct kernel_lengths lengths, bool padded)
{
    enum { PAD_BYTES = 192 };
    uint64_t state = 1;
    load->mode = mode;
    load->key_length = key_length;
    load->count = count;
    load->bytes = 0;
    load->extent = 0;
    fill(load->key, sizeof load->key, &state);
    for (size_t i = 0; i < count; i++) {
        load->items[i] = (struct cm_aes_item){.length = some_length(mode, lengths, &state)};
        load->bytes += load->items[i].length;
        load->extent += (load->items[i].length + 15) / 16 * 16 + (padded ? PAD_BYTES : 0);
    }
    load->source = pages(load->extent);
    load->destination = pages(load->extent);
    load->answer = pages(load->extent);
    load->ivs = pages(16 * count);
    load->tags = pages(16 * count);
    load->answer_tags = pages(16 * count);
    fill(load->source, load->extent, &state);
    fill(load->ivs, 16 * count, &state);
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        struct cm_aes_item *item = &load->items[i];
        item->source = load->source + at;
        item->destination = load->destination + at;
        item->iv = load->ivs + 16 * i;
        item->iv_length = mode->mode == CM_AES_GCM ? 12 : 16;
        item->tag = load->tags + 16 * i;
        item->tag_length = mode->mode == CM_AES_GCM ? 16 : 0;
        at += (item->length + 15) / 16 * 16 + (padded ? PAD_BYTES : 0);
    }
    if (mode->direction == CM_AES_DECRYPT)
        make_ciphertext(load);
    struct kernel_evp *evp = kernel_evp_new(mode, load->key, key_length);
    if (!kernel_evp_run(evp, load->items, count))
        die("OpenSSL refuses the batch");
    kernel_evp_free(evp);
    memcpy(load->answer, load->destination, load->extent);
    memcpy(load->answer_tags, load->tags, 16 * count);
}

void kernel_load_done(struct kernel_load *load)
{
    free(load->source);
    free(load->destination);
    free(load->answer);
    free(load->ivs);
    free(load->tags);
    free(load->answer_tags);
}

void kernel_load_spoil(struct kernel_load *load)
{
    for (size_t i = 0; i < load->count; i++)
        for (size_t j = 0; j < load->items[i].length; j++)
            load->items[i].destination[j] = 0xa5;
    if (load->mode->direction == CM_AES_ENCRYPT)
        memset(load->tags, 0, 16 * load->count);
}

bool kernel_load_is_right(const struct kernel_load *load)
{
    return memcmp(load->answer, load->destination, load->extent) == 0 &&
           memcmp(load->answer_tags, load->tags, 16 * load->count) == 0;
}

/* --- OpenSSL ----------------------------------------------------------------------------------------------
 */

struct kernel_evp {
    EVP_CIPHER_CTX *context;
    const struct kernel_mode *mode;
};

struct kernel_evp *kernel_evp_new(const struct kernel_mode *mode, const uint8_t *key, size_t key_length)
{
    typedef const EVP_CIPHER *getter(void);
    static getter *const getters[CM_AES_MODE_COUNT][3] = {
        {EVP_aes_128_ecb, EVP_aes_192_ecb, EVP_aes_256_ecb},
        {EVP_aes_128_cbc, EVP_aes_192_cbc, EVP_aes_256_cbc},
        {EVP_aes_128_ctr, EVP_aes_192_ctr, EVP_aes_256_ctr},
        {EVP_aes_128_gcm, EVP_aes_192_gcm, EVP_aes_256_gcm},
        {EVP_aes_128_xts, NULL, EVP_aes_256_xts},
    };
    static const uint8_t iv[16];
    struct kernel_evp *evp = malloc(sizeof *evp);
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    if (evp == NULL || context == NULL ||
        EVP_CipherInit_ex(context, getters[mode->mode][key_length / 8 - 2](), NULL, key, iv,
                          mode->direction == CM_AES_ENCRYPT) != 1)
        die("OpenSSL takes no key");
    EVP_CIPHER_CTX_set_padding(context, 0);
    *evp = (struct kernel_evp){context, mode};
    return evp;
}

void kernel_evp_free(struct kernel_evp *evp)
{
    EVP_CIPHER_CTX_free(evp->context);
    free(evp);
}

bool kernel_evp_run(struct kernel_evp *evp, struct cm_aes_item *items, size_t count)
{
    EVP_CIPHER_CTX *context = evp->context;
    bool gcm = evp->mode->mode == CM_AES_GCM, encrypt = evp->mode->direction == CM_AES_ENCRYPT;
    bool good = true;
    for (size_t i = 0; i < count; i++) {
        struct cm_aes_item *item = &items[i];
        int written, ended;
        if (evp->mode->mode != CM_AES_ECB)
            good &= EVP_CipherInit_ex(context, NULL, NULL, NULL, item->iv, -1) == 1;
        good &= EVP_CipherUpdate(context, item->destination, &written, item->source, (int)item->length) == 1;
        if (gcm && !encrypt)
            good &= EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, 16, item->tag) == 1;
        if (gcm)
            good &= EVP_CipherFinal_ex(context, item->destination + item->length, &ended) == 1;
        if (gcm && encrypt)
            good &= EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, item->tag) == 1;
    }
    return good;
}
