/* SPDX-License-Identifier: Apache-2.0 */
/* AES-NI and PCLMULQDQ on 128-bit registers: full-message kernels for every mode, eight blocks in flight.
 *
 * Prototypes, in words: each kernel takes the key, the array of items and their number, and computes every
 * item whose status is good (cm_run_fn); `gcm_part` computes one part of one message (cm_part_fn).
 *
 * Blocks in flight. AESENC takes 4 cycles and two can start in each (Zen 3 and 4; Intel since Ice Lake has
 * 3 and 2, older ones 4 to 7 and 1), so eight independent blocks keep the unit busy, and eight leave half of
 * the sixteen registers for the rest. What is left after the last eight goes in one step of exactly its
 * width.
 *
 * Registers. Always: x[0..7], the blocks in flight. Round keys are read from memory, one load for up to eight
 * uses. CBC decryption reads the ciphertext again for the chaining (a load costs less than a register). CTR:
 * the counter lives in two integer registers. GCM: the counter, the running hash, three sums of partial
 * products, two temporaries. So nothing secret needs to be spilled; what the compiler spills all the same is
 * wiped with the stack, once a batch, and the registers are cleared by `forget` at the end of each kernel. */
#include "impl.h"

#include "block.h"
#include "cpu.h"

enum { WIDTH = 8 };

struct form {
    block round_key[15]; /* in the order of use */
};

/* What a kernel needs of a key. */
struct cipher {
    const block *round_key;
    unsigned rounds;
};

INLINE struct cipher cipher_of(const struct cm_kernel_key *key)
{
    return (struct cipher){((const struct form *)(const void *)key->form)->round_key, key->rounds};
}

/* Calls step(n) with a constant for n in 1 to 7; nothing for 0. */
#define TAIL(n, step)                                                                                        \
    switch (n) {                                                                                             \
    case 7:                                                                                                  \
        step(7);                                                                                             \
        break;                                                                                               \
    case 6:                                                                                                  \
        step(6);                                                                                             \
        break;                                                                                               \
    case 5:                                                                                                  \
        step(5);                                                                                             \
        break;                                                                                               \
    case 4:                                                                                                  \
        step(4);                                                                                             \
        break;                                                                                               \
    case 3:                                                                                                  \
        step(3);                                                                                             \
        break;                                                                                               \
    case 2:                                                                                                  \
        step(2);                                                                                             \
        break;                                                                                               \
    case 1:                                                                                                  \
        step(1);                                                                                             \
        break;                                                                                               \
    default:                                                                                                 \
        break;                                                                                               \
    }

/* --- The cipher ----------------------------------------------------------------------------------------- */

INLINE void whiten(block *x, int n, block round_key)
{
#pragma GCC unroll 8
    for (int i = 0; i < n; i++)
        x[i] = _mm_xor_si128(x[i], round_key);
}

INLINE void round_of(block *x, int n, block round_key, bool decrypt)
{
#pragma GCC unroll 8
    for (int i = 0; i < n; i++)
        x[i] = decrypt ? _mm_aesdec_si128(x[i], round_key) : _mm_aesenc_si128(x[i], round_key);
}

/* Rounds 10 to 13, which only the longer keys have, and the last. */
INLINE void last_rounds(block *x, int n, struct cipher cipher, bool decrypt)
{
    const block *k = cipher.round_key;
    if (cipher.rounds > 10) {
        round_of(x, n, k[10], decrypt);
        round_of(x, n, k[11], decrypt);
        if (cipher.rounds > 12) {
            round_of(x, n, k[12], decrypt);
            round_of(x, n, k[13], decrypt);
        }
    }
    block last = k[cipher.rounds];
#pragma GCC unroll 8
    for (int i = 0; i < n; i++)
        x[i] = decrypt ? _mm_aesdeclast_si128(x[i], last) : _mm_aesenclast_si128(x[i], last);
}

/* n is a constant wherever this is expanded. */
INLINE void run_cipher(block *x, int n, struct cipher cipher, bool decrypt)
{
    whiten(x, n, cipher.round_key[0]);
#pragma GCC unroll 9
    for (int round = 1; round < 10; round++)
        round_of(x, n, cipher.round_key[round], decrypt);
    last_rounds(x, n, cipher, decrypt);
}

static uint32_t sub_word(uint32_t word)
{
    block x = _mm_set1_epi32((int)word);
    return (uint32_t)_mm_cvtsi128_si32(_mm_aeskeygenassist_si128(x, 0));
}

static void expand_encrypt(void *form, const uint8_t *key, size_t key_length)
{
    alignas(16) uint32_t words[CM_ROUND_KEY_WORDS];
    unsigned rounds = cm_key_expand(words, key, key_length, sub_word);
    memcpy(((struct form *)form)->round_key, words, 16 * (rounds + 1));
    cm_aes_wipe(words, sizeof words);
}

/* FIPS 197, section 5.3.5: the equivalent inverse cipher, its keys in the order of use. */
static void expand_decrypt(void *form, const uint8_t *key, size_t key_length)
{
    block *k = ((struct form *)form)->round_key;
    size_t rounds = key_length / 4 + 6;
    expand_encrypt(form, key, key_length);
    for (size_t i = 0; i < rounds - i; i++) {
        block first = k[i];
        k[i] = k[rounds - i];
        k[rounds - i] = first;
    }
    for (size_t i = 1; i < rounds; i++)
        k[i] = _mm_aesimc_si128(k[i]);
}

/* --- ECB ------------------------------------------------------------------------------------------------ */

INLINE void ecb_step(struct cipher cipher, const uint8_t *source, uint8_t *destination, int n, bool decrypt)
{
    block x[WIDTH];
#pragma GCC unroll 8
    for (int i = 0; i < n; i++)
        x[i] = load(source + 16 * i);
    run_cipher(x, n, cipher, decrypt);
#pragma GCC unroll 8
    for (int i = 0; i < n; i++)
        store(destination + 16 * i, x[i]);
}

INLINE void ecb_blocks(struct cipher cipher, const uint8_t *source, uint8_t *destination, size_t blocks,
                       bool decrypt)
{
    for (; blocks >= WIDTH; blocks -= WIDTH, source += 16 * WIDTH, destination += 16 * WIDTH)
        ecb_step(cipher, source, destination, WIDTH, decrypt);
#define STEP(n) ecb_step(cipher, source, destination, n, decrypt)
    TAIL(blocks, STEP)
#undef STEP
}

static void ecb_encrypt(const struct cm_kernel_key *key, struct cm_aes_item *items, size_t count)
{
    struct cipher cipher = cipher_of(key);
    for (size_t i = 0; i < count; i++) {
        const struct cm_aes_item *item = &items[i];
        if (item->ret_status != CM_AES_OK)
            continue;
        size_t whole = item->length / 16 * 16;
        bool padded = item->ret_length > whole;
        if (padded && item->source == item->destination) {
            ecb_blocks(cipher, item->source, item->destination, whole / 16 + 1, false);
            continue;
        }
        ecb_blocks(cipher, item->source, item->destination, whole / 16, false);
        if (padded)
            ecb_step(cipher, item->destination + whole, item->destination + whole, 1, false);
    }
    forget();
}

static void ecb_decrypt(const struct cm_kernel_key *key, struct cm_aes_item *items, size_t count)
{
    struct cipher cipher = cipher_of(key);
    for (size_t i = 0; i < count; i++)
        if (items[i].ret_status == CM_AES_OK)
            ecb_blocks(cipher, items[i].source, items[i].destination, items[i].length / 16, true);
    forget();
}

/* --- CBC decryption ------------------------------------------------------------------------------------- */

/* All of the source is read before the destination is written, so that they may be the same. */
INLINE block cbc_decrypt_step(struct cipher cipher, block chain, const uint8_t *source, uint8_t *destination,
                              int n)
{
    block x[WIDTH];
#pragma GCC unroll 8
    for (int i = 0; i < n; i++)
        x[i] = load(source + 16 * i);
    run_cipher(x, n, cipher, true);
    /* Keeps the compiler from holding eight ciphertext blocks over the rounds. */
    __asm__ volatile("" : : : "memory");
    x[0] = _mm_xor_si128(x[0], chain);
#pragma GCC unroll 8
    for (int i = 1; i < n; i++)
        x[i] = _mm_xor_si128(x[i], load(source + 16 * (i - 1)));
    chain = load(source + 16 * (n - 1));
#pragma GCC unroll 8
    for (int i = 0; i < n; i++)
        store(destination + 16 * i, x[i]);
    return chain;
}

static void cbc_decrypt(const struct cm_kernel_key *key, struct cm_aes_item *items, size_t count)
{
    struct cipher cipher = cipher_of(key);
    for (size_t i = 0; i < count; i++) {
        if (items[i].ret_status != CM_AES_OK)
            continue;
        const uint8_t *source = items[i].source;
        uint8_t *destination = items[i].destination;
        size_t blocks = items[i].length / 16;
        block chain = load(items[i].iv);
        for (; blocks >= WIDTH; blocks -= WIDTH, source += 16 * WIDTH, destination += 16 * WIDTH)
            chain = cbc_decrypt_step(cipher, chain, source, destination, WIDTH);
#define STEP(n) cbc_decrypt_step(cipher, chain, source, destination, n)
        TAIL(blocks, STEP)
#undef STEP
    }
    forget();
}

/* --- CBC encryption: one message a lane ------------------------------------------------------------------
 */

struct lanes {
    const uint8_t *source[WIDTH];
    uint8_t *destination[WIDTH];
    size_t left[WIDTH]; /* blocks that can run before the lane needs attention */
    bool padded[WIDTH]; /* one more block, in the destination */
    block chain[WIDTH];
};

/* Gives lane i its next message; false if there is none. */
INLINE bool lane_fill(struct lanes *lanes, int i, struct cm_aes_item **next, const struct cm_aes_item *end)
{
    for (; *next < end; (*next)++) {
        const struct cm_aes_item *item = *next;
        if (item->ret_status != CM_AES_OK || item->ret_length == 0)
            continue;
        size_t whole = item->length / 16;
        bool padded = item->ret_length > 16 * whole;
        bool in_place = item->source == item->destination || whole == 0;
        lanes->source[i] = whole == 0 ? item->destination : item->source;
        lanes->destination[i] = item->destination;
        lanes->left[i] = padded && in_place ? whole + 1 : whole;
        lanes->padded[i] = padded && !in_place;
        lanes->chain[i] = load(item->iv);
        (*next)++;
        return true;
    }
    return false;
}

/* `blocks` blocks of each of n lanes, n a constant. */
INLINE void lanes_run(struct cipher cipher, struct lanes *lanes, int n, size_t blocks)
{
    block x[WIDTH];
    const uint8_t *source[WIDTH];
    uint8_t *destination[WIDTH];
#pragma GCC unroll 8
    for (int i = 0; i < n; i++) {
        x[i] = lanes->chain[i];
        source[i] = lanes->source[i];
        destination[i] = lanes->destination[i];
    }
    for (size_t at = 0; at < 16 * blocks; at += 16) {
#pragma GCC unroll 8
        for (int i = 0; i < n; i++)
            x[i] = _mm_xor_si128(x[i], load(source[i] + at));
        run_cipher(x, n, cipher, false);
#pragma GCC unroll 8
        for (int i = 0; i < n; i++)
            store(destination[i] + at, x[i]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < n; i++) {
        lanes->chain[i] = x[i];
        lanes->source[i] += 16 * blocks;
        lanes->destination[i] += 16 * blocks;
        lanes->left[i] -= blocks;
    }
}

/* Turns lanes that have come to an end to their padded block or to the next message; closes the gaps that are
 * left. Returns how many lanes go on. */
static int lanes_renew(struct lanes *lanes, int used, struct cm_aes_item **next,
                       const struct cm_aes_item *end)
{
    for (int i = 0; i < used;) {
        if (lanes->left[i] == 0 && lanes->padded[i]) {
            lanes->padded[i] = false;
            lanes->source[i] = lanes->destination[i];
            lanes->left[i] = 1;
        } else if (lanes->left[i] == 0 && !lane_fill(lanes, i, next, end)) {
            used--;
            lanes->source[i] = lanes->source[used];
            lanes->destination[i] = lanes->destination[used];
            lanes->left[i] = lanes->left[used];
            lanes->padded[i] = lanes->padded[used];
            lanes->chain[i] = lanes->chain[used];
            continue;
        }
        i++;
    }
    return used;
}

/* Lanes whose messages lie a multiple of 4 KiB apart would all use the same few sets of the first-level
 * cache, and, worked on apart, miss it all the time. Where the first two long messages lie so, each lane
 * starts one cache line behind the one before it, and keeps that distance (bench-kernels --stride both).
 * Returns the number of blocks to run before the next lane starts; 0: all start at once. */
static size_t lanes_pace(const struct cm_aes_item *items, size_t count)
{
    if (count < 2 || items[0].length < 2048 || items[0].source == items[0].destination)
        return 0;
    uintptr_t distance = (uintptr_t)items[1].source - (uintptr_t)items[0].source;
    return (distance + 64) % 4096 < 128 ? 4 : 0;
}

static void cbc_encrypt(const struct cm_kernel_key *key, struct cm_aes_item *items, size_t count)
{
    struct cipher cipher = cipher_of(key);
    struct cm_aes_item *next = items, *end = items + count;
    struct lanes lanes;
    size_t pace = lanes_pace(items, count);
    int used = 0;
    for (;;) {
        while (used < WIDTH && lane_fill(&lanes, used, &next, end)) {
            used++;
            if (pace > 0)
                break;
        }
        if (used == 0)
            break;
        size_t blocks = lanes.left[0];
        for (int i = 1; i < used; i++)
            blocks = lanes.left[i] < blocks ? lanes.left[i] : blocks;
        if (pace > 0 && used < WIDTH && next < end && blocks > pace)
            blocks = pace;
#define STEP(n) lanes_run(cipher, &lanes, n, blocks)
        if (used == WIDTH)
            STEP(WIDTH);
        else
            TAIL(used, STEP)
#undef STEP
        used = lanes_renew(&lanes, used, &next, end);
    }
    forget();
}

/* --- CTR ------------------------------------------------------------------------------------------------ */

struct counter {
    uint64_t high, low;
};

/* The next n counter blocks. The low word carries within eight blocks once in 2^61 steps, unless a caller
 * starts just below. */
INLINE void counter_blocks(block *x, int n, struct counter *counter)
{
    uint64_t low = counter->low + (uint64_t)n;
    if (__builtin_expect(low >= (uint64_t)n, 1)) {
        block first = _mm_set_epi64x((long long)counter->high, (long long)counter->low);
#pragma GCC unroll 8
        for (int i = 0; i < n; i++)
            x[i] = reverse_bytes(_mm_add_epi64(first, _mm_set_epi64x(0, i)));
    } else {
#pragma GCC unroll 8
        for (int i = 0; i < n; i++) {
            uint64_t here = counter->low + (uint64_t)i;
            uint64_t high = counter->high + (here < counter->low);
            x[i] = reverse_bytes(_mm_set_epi64x((long long)high, (long long)here));
        }
        counter->high++;
    }
    counter->low = low;
}

/* n blocks, of which the last has 16 bytes, or 1 to 15 if that is what `partial` says. */
INLINE void ctr_step(struct cipher cipher, struct counter *counter, const uint8_t *source,
                     uint8_t *destination, int n, size_t partial)
{
    block x[WIDTH];
    counter_blocks(x, n, counter);
    run_cipher(x, n, cipher, false);
#pragma GCC unroll 8
    for (int i = 0; i < n - 1; i++)
        store(destination + 16 * i, _mm_xor_si128(x[i], load(source + 16 * i)));
    source += 16 * (n - 1);
    destination += 16 * (n - 1);
    if (partial == 0)
        store(destination, _mm_xor_si128(x[n - 1], load(source)));
    else
        store_partial(destination, _mm_xor_si128(x[n - 1], load_partial(source, partial)), partial);
}

static void ctr(const struct cm_kernel_key *key, struct cm_aes_item *items, size_t count)
{
    struct cipher cipher = cipher_of(key);
    for (size_t i = 0; i < count; i++) {
        if (items[i].ret_status != CM_AES_OK)
            continue;
        const uint8_t *source = items[i].source;
        uint8_t *destination = items[i].destination;
        size_t length = items[i].length;
        struct counter counter = {cm_load64_be(items[i].iv), cm_load64_be(items[i].iv + 8)};
        for (; length >= 16 * WIDTH; length -= 16 * WIDTH, source += 16 * WIDTH, destination += 16 * WIDTH)
            ctr_step(cipher, &counter, source, destination, WIDTH, 0);
        size_t blocks = (length + 15) / 16, partial = length % 16;
#define STEP(n) ctr_step(cipher, &counter, source, destination, n, partial)
        if (blocks == WIDTH)
            STEP(WIDTH);
        else
            TAIL(blocks, STEP)
#undef STEP
    }
    forget();
}

/* Needs the cipher above. */
#include "aesni_gcm.h"

#include "aesni_xts.h"

/* --- The rows ------------------------------------------------------------------------------------------- */

/* The lanes of CBC encryption are the largest frame; spills of the others take less. */
enum { STACK_BYTES = 1024 };

#define ROW(the_mode, the_direction, the_form, the_expand, the_run, the_part)                                \
    {                                                                                                        \
        .name = "aesni", .mode = (the_mode), .direction = (the_direction), .form_size = sizeof(the_form),    \
        .stack_bytes = STACK_BYTES, .expand = (the_expand), .run = (the_run), .part = (the_part)             \
    }

const struct cm_implementation cm_aesni =
    {
        .needs = CM_CPU_SSSE3 | CM_CPU_SSE41 | CM_CPU_AESNI | CM_CPU_PCLMUL,
        .lacks = "processor lacks AES-NI, PCLMULQDQ or SSE4.1",
        .kernels =
            {
                [CM_AES_ECB] = {ROW(CM_AES_ECB, CM_AES_ENCRYPT, struct form, expand_encrypt, ecb_encrypt,
                                    NULL),
                                ROW(CM_AES_ECB, CM_AES_DECRYPT, struct form, expand_decrypt, ecb_decrypt,
                                    NULL)},
                [CM_AES_CBC] = {ROW(CM_AES_CBC, CM_AES_ENCRYPT, struct form, expand_encrypt, cbc_encrypt,
                                    NULL),
                                ROW(CM_AES_CBC, CM_AES_DECRYPT, struct form, expand_decrypt, cbc_decrypt,
                                    NULL)},
                [CM_AES_CTR] = {ROW(CM_AES_CTR, CM_AES_ENCRYPT, struct form, expand_encrypt, ctr, NULL),
                                ROW(CM_AES_CTR, CM_AES_DECRYPT, struct form, expand_encrypt, ctr, NULL)},
                [CM_AES_GCM] = {ROW(CM_AES_GCM, CM_AES_ENCRYPT, struct gcm_form, expand_gcm, gcm_encrypt,
                                    gcm_part),
                                ROW(CM_AES_GCM, CM_AES_DECRYPT, struct gcm_form, expand_gcm, gcm_decrypt,
                                    gcm_part)},
                [CM_AES_XTS] = {ROW(CM_AES_XTS, CM_AES_ENCRYPT, struct xts_form,
                                    expand_xts_encrypt, xts_encrypt, NULL),
                                ROW(CM_AES_XTS, CM_AES_DECRYPT, struct xts_form,
                                    expand_xts_decrypt, xts_decrypt, NULL)},
            },
};
