/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of messages for bench-kernels. */
#include "load.h"
#include "reference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct bench_mode bench_modes[] = {
    {"ecb-encrypt", CM_AES_ECB, CM_AES_ENCRYPT}, {"ecb-decrypt", CM_AES_ECB, CM_AES_DECRYPT},
    {"cbc-encrypt", CM_AES_CBC, CM_AES_ENCRYPT}, {"cbc-decrypt", CM_AES_CBC, CM_AES_DECRYPT},
    {"ctr", CM_AES_CTR, CM_AES_ENCRYPT},         {"gcm-seal", CM_AES_GCM, CM_AES_ENCRYPT},
    {"gcm-open", CM_AES_GCM, CM_AES_DECRYPT},    {"xts-encrypt", CM_AES_XTS, CM_AES_ENCRYPT},
    {"xts-decrypt", CM_AES_XTS, CM_AES_DECRYPT},
};
const size_t bench_mode_count = sizeof bench_modes / sizeof *bench_modes;

const struct bench_mode *bench_mode_named(const char *name)
{
    for (size_t i = 0; i < bench_mode_count; i++)
        if (strcmp(bench_modes[i].name, name) == 0)
            return &bench_modes[i];
    return NULL;
}

static void die(const char *what)
{
    (void)fprintf(stderr, "bench-kernels: %s\n", what);
    exit(2);
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

static bool whole_blocks(const struct bench_cell *cell)
{
    return (cell->mode->mode == CM_AES_ECB || cell->mode->mode == CM_AES_CBC) &&
           cell->padding == CM_AES_NO_PADDING;
}

static size_t some_length(const struct bench_cell *cell, uint64_t *state)
{
    size_t length = cell->lengths.low;
    if (cell->lengths.high > cell->lengths.low) {
        uint8_t random[8];
        uint64_t number;
        fill(random, sizeof random, state);
        memcpy(&number, random, sizeof number);
        length += (size_t)(number % (cell->lengths.high - cell->lengths.low + 1));
    }
    if (cell->mode->mode == CM_AES_XTS && length < CM_AES_XTS_MIN_BYTES)
        return CM_AES_XTS_MIN_BYTES;
    return whole_blocks(cell) ? length / 16 * 16 : length;
}

/* With room for what padding adds. */
static size_t slot_bytes(const struct bench_cell *cell, size_t length)
{
    enum { PAD_BYTES = 192 };
    return (length + 15) / 16 * 16 + (cell->padding == CM_AES_PKCS7 ? 16 : 0) +
           (cell->padded ? PAD_BYTES : 0);
}

/* What is to be decrypted has to be made first, in the place of the text. */
static void make_ciphertext(struct bench_load *load)
{
    struct bench_mode sealing = *load->cell.mode;
    struct bench_cell cell = load->cell;
    sealing.direction = CM_AES_ENCRYPT;
    cell.mode = &sealing;
    struct bench_openssl *openssl = bench_openssl_new(&cell, load->key);
    for (size_t i = 0; i < cell.batch; i++)
        load->items[i].destination = load->source + (load->items[i].source - load->source);
    if (!bench_openssl_run(openssl, load->items, cell.batch))
        die("OpenSSL does not make the ciphertext");
    for (size_t i = 0; i < cell.batch; i++) {
        struct cm_aes_item *item = &load->items[i];
        item->destination = load->destination + (item->source - load->source);
        item->length = cm_aes_output_bound(CM_AES_ENCRYPT, cell.padding, item->length);
    }
    bench_openssl_free(openssl);
}

static void lay_out(struct bench_load *load)
{
    const struct bench_cell *cell = &load->cell;
    size_t at = 0;
    for (size_t i = 0; i < cell->batch; i++) {
        struct cm_aes_item *item = &load->items[i];
        item->source = load->source + at;
        item->destination = load->destination + at;
        item->iv = load->ivs + 16 * i;
        item->iv_length = cell->mode->mode == CM_AES_GCM ? 12 : 16;
        item->tag = load->tags + 16 * i;
        item->tag_length = cell->mode->mode == CM_AES_GCM ? 16 : 0;
        at += slot_bytes(cell, item->length);
    }
}

void bench_load_init(struct bench_load *load, const struct bench_cell *cell)
{
    uint64_t state = 1;
    load->cell = *cell;
    load->key_length = cell->key_bits / 8 * (cell->mode->mode == CM_AES_XTS ? 2 : 1);
    load->bytes = 0;
    load->extent = 0;
    fill(load->key, sizeof load->key, &state);
    for (size_t i = 0; i < cell->batch; i++) {
        size_t length = some_length(cell, &state);
        load->items[i] = (struct cm_aes_item){.length = length};
        load->outputs[i] = cell->mode->direction == CM_AES_ENCRYPT
                               ? cm_aes_output_bound(CM_AES_ENCRYPT, cell->padding, length)
                               : length;
        load->bytes += length;
        load->extent += slot_bytes(cell, length);
    }
    load->source = pages(load->extent);
    load->destination = pages(load->extent);
    load->answer = pages(load->extent);
    load->ivs = pages(16 * cell->batch);
    load->tags = pages(16 * cell->batch);
    load->answer_tags = pages(16 * cell->batch);
    fill(load->source, load->extent, &state);
    fill(load->ivs, 16 * cell->batch, &state);
    lay_out(load);
    if (cell->mode->direction == CM_AES_DECRYPT)
        make_ciphertext(load);
    struct bench_openssl *openssl = bench_openssl_new(cell, load->key);
    if (!bench_openssl_run(openssl, load->items, cell->batch))
        die("OpenSSL refuses the batch");
    bench_openssl_free(openssl);
    memcpy(load->answer, load->destination, load->extent);
    memcpy(load->answer_tags, load->tags, 16 * cell->batch);
}

void bench_load_done(struct bench_load *load)
{
    free(load->source);
    free(load->destination);
    free(load->answer);
    free(load->ivs);
    free(load->tags);
    free(load->answer_tags);
}

void bench_load_spoil(struct bench_load *load)
{
    for (size_t i = 0; i < load->cell.batch; i++)
        memset(load->items[i].destination, 0xa5, load->outputs[i]);
    if (load->cell.mode->direction == CM_AES_ENCRYPT)
        memset(load->tags, 0, 16 * load->cell.batch);
}

bool bench_load_is_right(const struct bench_load *load)
{
    for (size_t i = 0; i < load->cell.batch; i++) {
        const uint8_t *output = load->items[i].destination;
        if (memcmp(load->answer + (output - load->destination), output, load->outputs[i]) != 0)
            return false;
    }
    return memcmp(load->answer_tags, load->tags, 16 * load->cell.batch) == 0;
}
