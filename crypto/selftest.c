/* SPDX-License-Identifier: Apache-2.0 */
/* The self-test of one kernel: known answers in every key size, then agreement with another implementation.
 */
#include "selftest_data.h"

#include "impl.h"

#include <string.h>

/* Copies of one message, more than any kernel has lanes, so that whole passes and tails both run. */
enum { COPIES = 19, MAX_TEXT_BYTES = 64 };

/* Messages to compare, of unlike lengths, the longest beyond four strides of eight blocks. */
enum { MESSAGES = 13, MAX_BLOCKS = 40, POOL_BYTES = MESSAGES * MAX_BLOCKS * 16 };

struct key_room {
    struct cm_aes_row row;
    alignas(CM_AES_KEY_ALIGN) unsigned char bytes[CM_AES_KEY_MAX_SIZE];
};

static const struct cm_kernel *key_kernel(const struct cm_aes_key *key)
{
    return cm_key_for(key, CM_AES_LONG)->kernel;
}

static struct cm_aes_key *key_make(struct key_room *room, const struct cm_kernel *kernel, const uint8_t *key,
                                   size_t length)
{
    cm_row_init_uniform(&room->row, kernel);
    struct cm_aes_key *made = (struct cm_aes_key *)(void *)room->bytes;
    return cm_aes_key_init(made, &room->row, key, length) == CM_AES_OK ? made : NULL;
}

static unsigned hex_digit(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static size_t hex_decode(const char *text, uint8_t *bytes)
{
    size_t n = 0;
    for (; text[2 * n] != '\0'; n++)
        bytes[n] = (uint8_t)(hex_digit(text[2 * n]) << 4 | hex_digit(text[2 * n + 1]));
    return n;
}

/* A known answer, decoded. */
struct answer {
    uint8_t key[CM_AES_MAX_KEY_BYTES], iv[64], aad[32], plain[MAX_TEXT_BYTES], cipher[MAX_TEXT_BYTES + 16];
    size_t key_length, iv_length, aad_length, length;
};

/* Runs copies of the message in one batch, in place, and wants the right bytes and tag from each. */
static bool answers(const struct cm_kernel *kernel, const struct answer *answer)
{
    struct key_room room;
    struct cm_aes_item items[COPIES];
    uint8_t texts[COPIES][MAX_TEXT_BYTES], tags[COPIES][16];
    bool encrypt = kernel->direction == CM_AES_ENCRYPT;
    struct cm_aes_key *key = key_make(&room, kernel, answer->key, answer->key_length);
    if (key == NULL)
        return false;
    memset(items, 0, sizeof items);
    memset(tags, 0, sizeof tags);
    for (size_t i = 0; i < COPIES; i++) {
        memcpy(texts[i], encrypt ? answer->plain : answer->cipher, answer->length);
        if (!encrypt)
            memcpy(tags[i], answer->cipher + answer->length, 16);
        items[i] = (struct cm_aes_item){.source = texts[i],
                                        .destination = texts[i],
                                        .length = answer->length,
                                        .iv = answer->iv,
                                        .iv_length = answer->iv_length,
                                        .aad = answer->aad,
                                        .aad_length = answer->aad_length,
                                        .tag = tags[i],
                                        .tag_length = 16};
    }
    bool right = cm_aes_batch(key, CM_AES_NO_PADDING, items, COPIES) == 0;
    for (size_t i = 0; i < COPIES; i++) {
        right &= memcmp(texts[i], encrypt ? answer->cipher : answer->plain, answer->length) == 0;
        if (kernel->mode == CM_AES_GCM)
            right &= memcmp(tags[i], answer->cipher + answer->length, 16) == 0;
    }
    if (kernel->mode == CM_AES_GCM && !encrypt) {
        memcpy(texts[0], answer->cipher, answer->length);
        tags[0][15] ^= 1;
        right &= cm_aes_batch(key, CM_AES_NO_PADDING, items, 1) == 1;
        right &= items[0].ret_status == CM_AES_BAD_TAG && texts[0][0] == 0;
    }
    cm_aes_key_done(key);
    return right;
}

/* `size` 0 is XTS-AES-128, 1 XTS-AES-256. */
static bool known_xts_answers(const struct cm_kernel *kernel, size_t size)
{
    struct answer answer = {.length = 0};
    bool right = true;
    for (size_t i = 0; i < 2; i++) {
        answer.key_length = hex_decode(xts_answer[size][i].key, answer.key);
        answer.iv_length = hex_decode(xts_answer[size][i].tweak, answer.iv);
        answer.length = hex_decode(xts_answer[size][i].text, answer.plain);
        hex_decode(xts_answer[size][i].answer, answer.cipher);
        right &= answers(kernel, &answer);
    }
    return right;
}

static bool known_answers(const struct cm_kernel *kernel, size_t size)
{
    struct answer answer = {.length = 0};
    bool right = true;
    if (kernel->mode == CM_AES_XTS)
        return known_xts_answers(kernel, size / 2);
    if (kernel->mode == CM_AES_GCM) {
        hex_decode(gcm_key, answer.key);
        answer.key_length = 16 + 8 * size;
        answer.aad_length = hex_decode(gcm_aad, answer.aad);
        answer.length = hex_decode(gcm_text, answer.plain);
        for (size_t i = 0; i < 3; i++) {
            answer.iv_length = hex_decode(gcm_iv[i], answer.iv);
            hex_decode(gcm_answer[size][i], answer.cipher);
            right &= answers(kernel, &answer);
        }
        return right;
    }
    if (kernel->mode == CM_AES_ECB) {
        hex_decode(fips197_key, answer.key);
        answer.key_length = 16 + 8 * size;
        answer.length = hex_decode(fips197_text, answer.plain);
        hex_decode(fips197_answer[size], answer.cipher);
        right &= answers(kernel, &answer);
    }
    answer.key_length = hex_decode(sp800_38a_key[size], answer.key);
    answer.iv_length = hex_decode(kernel->mode == CM_AES_CTR ? sp800_38a_counter : sp800_38a_iv, answer.iv);
    answer.length = hex_decode(sp800_38a_text, answer.plain);
    hex_decode(sp800_38a_answer[kernel->mode][size], answer.cipher);
    return right && answers(kernel, &answer);
}

/* Bytes without any pattern that matters. */
static void fill(uint8_t *bytes, size_t length, uint32_t seed)
{
    for (size_t i = 0; i < length; i++) {
        seed = seed * 1664525 + 1013904223;
        bytes[i] = (uint8_t)(seed >> 24);
    }
}

/* The reference's answer to one item. For GCM the bare kernel's, which makes the tag in both directions. */
static bool refer(const struct cm_aes_key *key, struct cm_aes_item *item)
{
    if (key_kernel(key)->mode != CM_AES_GCM)
        return cm_aes_batch(key, CM_AES_NO_PADDING, item, 1) == 0;
    struct cm_aes_parts state = {.aad_bytes = item->aad_length, .text_bytes = item->length};
    key_kernel(key)->part(cm_key_for(key, CM_AES_LONG), &state, item, true, true, item->tag);
    cm_aes_parts_done(&state);
    return true;
}

/* A message in two parts, for which GCM has kernels of its own. The first is cut so that it is long enough
 * for the widest step, and the last is ragged. `whole->destination` gets the result. */
static bool parts_agree(const struct cm_aes_key *key, const struct cm_aes_item *whole, const uint8_t *want,
                        const uint8_t want_tag[16])
{
    struct cm_aes_parts state = {.begun = false};
    struct cm_aes_item first = *whole, last = *whole;
    uint8_t tag[16] = {0};
    first.length = whole->length / 16 * 16 - (whole->length >= 64 ? 48 : 0);
    last.source += first.length;
    last.destination += first.length;
    last.length -= first.length;
    last.tag = tag;
    if (key_kernel(key)->direction == CM_AES_DECRYPT)
        memcpy(tag, want_tag, sizeof tag);
    bool right = cm_aes_part(key, CM_AES_NO_PADDING, &state, &first, false) == CM_AES_OK &&
                 cm_aes_part(key, CM_AES_NO_PADDING, &state, &last, true) == CM_AES_OK;
    cm_aes_parts_done(&state);
    return right && memcmp(whole->destination, want, whole->length) == 0 &&
           memcmp(tag, want_tag, sizeof tag) == 0;
}

/* All messages in one batch on `kernel`, one by one on `reference`. The counter starts so high that it
 * carries through all its bytes. */
static bool agrees(const struct cm_kernel *kernel, const struct cm_kernel *reference, size_t size)
{
    struct key_room room, reference_room;
    struct cm_aes_item items[MESSAGES];
    uint8_t source[POOL_BYTES], got[POOL_BYTES], want[POOL_BYTES], secret[CM_AES_MAX_KEY_BYTES], iv[16],
        aad[300];
    uint8_t tags[MESSAGES][16] = {{0}}, want_tags[MESSAGES][16] = {{0}};
    bool whole = kernel->mode == CM_AES_ECB || kernel->mode == CM_AES_CBC;
    size_t least = kernel->mode == CM_AES_XTS ? CM_AES_XTS_MIN_BYTES : 0;
    size_t key_length = (16 + 8 * size) * (kernel->mode == CM_AES_XTS ? 2 : 1);
    bool right = true;
    fill(source, sizeof source, 1);
    fill(secret, sizeof secret, 2);
    fill(aad, sizeof aad, 3);
    memset(iv, 0xff, sizeof iv);
    memset(got, 0, sizeof got);
    memset(want, 0, sizeof want);
    struct cm_aes_key *key = key_make(&room, kernel, secret, key_length);
    struct cm_aes_key *other = key_make(&reference_room, reference, secret, key_length);
    if (key == NULL || other == NULL)
        return false;
    for (size_t i = 0; i < MESSAGES; i++) {
        size_t at = i * 16 * MAX_BLOCKS;
        struct cm_aes_item item = {.source = source + at,
                                   .destination = want + at,
                                   .length = least + 16 * 3 * i + (whole ? 0 : i),
                                   .iv = iv,
                                   .iv_length = kernel->mode == CM_AES_GCM && i % 2 == 0 ? 12 : 16,
                                   .aad = aad,
                                   .aad_length = 23 * i,
                                   .tag = want_tags[i],
                                   .tag_length = 16};
        right &= refer(other, &item);
        item.destination = got + at;
        item.tag = kernel->direction == CM_AES_ENCRYPT ? tags[i] : want_tags[i];
        items[i] = item;
    }
    right &= cm_aes_batch(key, CM_AES_NO_PADDING, items, MESSAGES) == 0;
    right &= memcmp(got, want, sizeof got) == 0;
    if (kernel->mode == CM_AES_GCM && kernel->direction == CM_AES_ENCRYPT)
        right &= memcmp(tags, want_tags, sizeof tags) == 0;
    memset(got, 0, sizeof got);
    for (size_t i = 0; kernel->mode == CM_AES_GCM && i < MESSAGES; i++)
        right &= parts_agree(key, &items[i], want + i * 16 * MAX_BLOCKS, want_tags[i]);
    cm_aes_key_done(key);
    cm_aes_key_done(other);
    return right;
}

const char *cm_selftest(const struct cm_kernel *kernel, const struct cm_kernel *reference)
{
    static const char *const known[3] = {"known answer, 128-bit key", "known answer, 192-bit key",
                                         "known answer, 256-bit key"};
    static const char *const differs[3] = {"differs from portable, 128-bit key",
                                           "differs from portable, 192-bit key",
                                           "differs from portable, 256-bit key"};
    for (size_t size = 0; size < 3; size++) {
        if (kernel->mode == CM_AES_XTS && size == 1)
            continue; /* there is no XTS-AES-192 */
        if (!known_answers(kernel, size))
            return known[size];
        if (reference != NULL && !agrees(kernel, reference, size))
            return differs[size];
    }
    return NULL;
}
