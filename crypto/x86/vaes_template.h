/* SPDX-License-Identifier: Apache-2.0 */
/* The VAES kernels' common body: the cipher, ECB, CBC decryption and CTR at either vector width.
 *
 * Included once by vaes256.c and once by vaes512.c, which set VECTOR_BITS.
 *
 * Prototypes, in words: each kernel takes the key, the array of items and their number, and computes every
 * item whose status is good (cm_run_fn).
 *
 * Blocks in flight. VAESENC has 4 cycles of latency and, on the processors that have it, starts at a rate of
 * 256 bits in half a cycle or a cycle: eight vectors are 16 blocks of which each round takes 4 cycles at 256
 * bits, and 32 blocks and 8 cycles at 512. More than eight would not fit beside what the modes need at 256
 * bits, and gain nothing. What is left after the last eight goes in one step of exactly its width, its last
 * vector in part. Steps of small messages overlap, since nothing in one message depends on another: the
 * processor's window holds several. Only where a message is a single block would most of a vector go to
 * waste: there the lanes are different messages.
 *
 * Registers. x[0..7], the blocks in flight; round keys are read from memory, one load for up to eight uses,
 * and lie there once for each lane, so that no instruction has to spread them. CBC decryption reads the
 * ciphertext again for the chaining, one block further back. CTR: the counter of the first vector.
 *
 * Secrets. Nothing has to be spilled; what a compiler spills all the same (GCC does in places where the
 * step is wide) lies in this file's frames, which the caller wipes once a batch, as deep as `stack_bytes`
 * says. The registers are cleared once a batch by `v_forget`. What a compiler could still leave: integer
 * registers, through which the last bytes of a message go at 256 bits. */
#ifndef CM_X86_VAES_TEMPLATE_H
#define CM_X86_VAES_TEMPLATE_H

#include "impl.h"

#include "vector.h"

enum { WIDTH = 8, STEP_BYTES = WIDTH * VECTOR_BYTES };

struct form {
    vector round_key[15]; /* in the order of use, the same in every lane */
};

/* What a kernel needs of a key. */
struct cipher {
    const vector *round_key;
    unsigned rounds;
};

INLINE struct cipher cipher_of(const struct cm_kernel_key *key)
{
    return (struct cipher){((const struct form *)(const void *)key->form)->round_key, key->rounds};
}

/* Calls step(n) with a constant for n in 1 to 8. */
#define TAIL(n, step)                                                                                        \
    switch (n) {                                                                                             \
    case 1:                                                                                                  \
        step(1);                                                                                             \
        break;                                                                                               \
    case 2:                                                                                                  \
        step(2);                                                                                             \
        break;                                                                                               \
    case 3:                                                                                                  \
        step(3);                                                                                             \
        break;                                                                                               \
    case 4:                                                                                                  \
        step(4);                                                                                             \
        break;                                                                                               \
    case 5:                                                                                                  \
        step(5);                                                                                             \
        break;                                                                                               \
    case 6:                                                                                                  \
        step(6);                                                                                             \
        break;                                                                                               \
    case 7:                                                                                                  \
        step(7);                                                                                             \
        break;                                                                                               \
    case 8:                                                                                                  \
        step(8);                                                                                             \
        break;                                                                                               \
    default:                                                                                                 \
        break;                                                                                               \
    }

/* How `length` bytes end, 1 to STEP_BYTES of them: in so many vectors, the last of so many bytes. */
struct tail {
    size_t vectors, last;
};

INLINE struct tail tail_of(size_t length)
{
    size_t vectors = (length + VECTOR_BYTES - 1) / VECTOR_BYTES;
    return (struct tail){vectors, length - (vectors - 1) * VECTOR_BYTES};
}

/* Vector u of n, of which the last has `last` bytes. */
INLINE vector load_one(const uint8_t *source, int u, int n, size_t last)
{
    if (u < n - 1 || last == VECTOR_BYTES)
        return v_load(source + VECTOR_BYTES * u);
    return v_load_bytes(source + VECTOR_BYTES * u, last);
}

INLINE void store_one(uint8_t *destination, vector x, int u, int n, size_t last)
{
    if (u < n - 1 || last == VECTOR_BYTES)
        v_store(destination + VECTOR_BYTES * u, x);
    else
        v_store_bytes(destination + VECTOR_BYTES * u, x, last);
}

/* As store_one, where `last` is of whole blocks. */
INLINE void store_blocks(uint8_t *destination, vector x, int u, int n, size_t last)
{
    if (u < n - 1)
        v_store(destination + VECTOR_BYTES * u, x);
    else
        v_store_blocks(destination + VECTOR_BYTES * u, x, last);
}

/* --- The cipher ----------------------------------------------------------------------------------------- */

INLINE void whiten(vector *x, int n, vector round_key)
{
#pragma GCC unroll 9
    for (int u = 0; u < n; u++)
        x[u] = v_xor(x[u], round_key);
}

INLINE void round_of(vector *x, int n, vector round_key, bool decrypt)
{
#pragma GCC unroll 9
    for (int u = 0; u < n; u++)
        x[u] = decrypt ? V(aesdec_epi128)(x[u], round_key) : V(aesenc_epi128)(x[u], round_key);
}

/* Rounds 10 to 13, which only the longer keys have. */
INLINE void more_rounds(vector *x, int n, struct cipher cipher, bool decrypt)
{
    const vector *k = cipher.round_key;
    if (cipher.rounds > 10) {
        round_of(x, n, k[10], decrypt);
        round_of(x, n, k[11], decrypt);
        if (cipher.rounds > 12) {
            round_of(x, n, k[12], decrypt);
            round_of(x, n, k[13], decrypt);
        }
    }
}

INLINE void last_round(vector *x, int n, struct cipher cipher, bool decrypt)
{
    vector last = cipher.round_key[cipher.rounds];
#pragma GCC unroll 9
    for (int u = 0; u < n; u++)
        x[u] = decrypt ? V(aesdeclast_epi128)(x[u], last) : V(aesenclast_epi128)(x[u], last);
}

/* n is a constant wherever this is expanded. */
INLINE void run_cipher(vector *x, int n, struct cipher cipher, bool decrypt)
{
    whiten(x, n, cipher.round_key[0]);
#pragma GCC unroll 9
    for (int round = 1; round < 10; round++)
        round_of(x, n, cipher.round_key[round], decrypt);
    more_rounds(x, n, cipher, decrypt);
    last_round(x, n, cipher, decrypt);
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
    for (size_t i = 0; i <= rounds; i++)
        ((struct form *)form)->round_key[i] = v_broadcast(load((const uint8_t *)(words + 4 * i)));
    cm_aes_wipe(words, sizeof words);
    v_forget();
}

/* FIPS 197, section 5.3.5: the equivalent inverse cipher, its keys in the order of use. */
static void expand_decrypt(void *form, const uint8_t *key, size_t key_length)
{
    alignas(16) uint32_t words[CM_ROUND_KEY_WORDS];
    unsigned rounds = cm_key_expand(words, key, key_length, sub_word);
    vector *k = ((struct form *)form)->round_key;
    for (size_t i = 0; i <= rounds; i++) {
        block round_key = load((const uint8_t *)(words + 4 * (rounds - i)));
        k[i] = v_broadcast(i == 0 || i == rounds ? round_key : _mm_aesimc_si128(round_key));
    }
    cm_aes_wipe(words, sizeof words);
    v_forget();
}

/* --- Messages of one block: one a lane --------------------------------------------------------------------
 */

enum kind { KIND_ECB_ENCRYPT, KIND_ECB_DECRYPT, KIND_CBC_ENCRYPT, KIND_CBC_DECRYPT, KIND_CTR };

/* Whether the next n items, at least one of them, write 16 bytes each; in these modes only items whose status
 * is good write anything. */
INLINE bool next_are_single(const struct cm_aes_item *items, size_t count, size_t n)
{
    if (items->ret_length != 16 || count < n)
        return false;
    size_t other = 0;
    for (size_t i = 1; i < n; i++)
        other |= items[i].ret_length ^ 16;
    return other == 0;
}

/* n vectors of messages, n a constant. */
INLINE void singles_step(struct cipher cipher, const struct cm_aes_item *items, int n, enum kind kind)
{
    bool encrypt = kind == KIND_ECB_ENCRYPT || kind == KIND_CBC_ENCRYPT;
    vector x[4], text[4], iv[4];
#pragma GCC unroll 4
    for (int u = 0; u < n; u++) {
        const uint8_t *source[LANES], *ivs[LANES];
#pragma GCC unroll 4
        for (int i = 0; i < LANES; i++) {
            const struct cm_aes_item *item = &items[LANES * u + i];
            /* Less than a block to encrypt stands padded in the destination. */
            source[i] = encrypt && item->length < 16 ? item->destination : item->source;
            ivs[i] = item->iv;
        }
        text[u] = v_gather(source);
        if (kind >= KIND_CBC_ENCRYPT)
            iv[u] = v_gather(ivs);
        x[u] = kind == KIND_CTR ? iv[u] : kind == KIND_CBC_ENCRYPT ? v_xor(text[u], iv[u]) : text[u];
    }
    run_cipher(x, n, cipher, kind == KIND_ECB_DECRYPT || kind == KIND_CBC_DECRYPT);
#pragma GCC unroll 4
    for (int u = 0; u < n; u++) {
        uint8_t *destination[LANES];
#pragma GCC unroll 4
        for (int i = 0; i < LANES; i++)
            destination[i] = items[LANES * u + i].destination;
        if (kind == KIND_CTR)
            x[u] = v_xor(x[u], text[u]);
        else if (kind == KIND_CBC_DECRYPT)
            x[u] = v_xor(x[u], iv[u]);
        v_scatter(destination, x[u]);
    }
}

/* Runs as many of the first items as are of one block and fill vectors; returns their number. */
INLINE size_t singles(struct cipher cipher, const struct cm_aes_item *items, size_t count, enum kind kind)
{
    size_t done = 0;
    for (; done < count && next_are_single(items + done, count - done, 4 * LANES); done += 4 * LANES)
        singles_step(cipher, items + done, 4, kind);
    for (; done < count && next_are_single(items + done, count - done, LANES); done += LANES)
        singles_step(cipher, items + done, 1, kind);
    return done;
}

/* --- Messages of 64 bytes: several a step -----------------------------------------------------------------
 */

/* Taken one by one they would spend more on finding their way than on rounds. */
enum { SMALL_BYTES = 64, SMALL_VECTORS = SMALL_BYTES / VECTOR_BYTES, SMALL_MESSAGES = 4 };

/* Whether the next items fill a step, and none has its padding apart from its source. In CTR the counters
 * must not carry out of their last byte. */
INLINE bool next_are_small(const struct cm_aes_item *items, size_t count, enum kind kind)
{
    if (items->ret_length != SMALL_BYTES || count < SMALL_MESSAGES)
        return false;
    size_t other = 0;
#pragma GCC unroll 4
    for (size_t i = 0; i < SMALL_MESSAGES; i++) {
        other |= (items[i].ret_length ^ SMALL_BYTES) | (items[i].length ^ SMALL_BYTES);
        if (other != 0)
            return false;
        if (kind == KIND_CTR)
            other |= items[i].iv[15] > 256 - SMALL_BYTES / 16;
    }
    return other == 0;
}

INLINE void small_step(struct cipher cipher, const struct cm_aes_item *items, enum kind kind)
{
    vector x[SMALL_MESSAGES * SMALL_VECTORS], first[SMALL_MESSAGES];
#pragma GCC unroll 4
    for (int i = 0; i < SMALL_MESSAGES; i++)
#pragma GCC unroll 2
        for (int u = 0; u < SMALL_VECTORS; u++) {
            vector *y = &x[SMALL_VECTORS * i + u];
            if (kind == KIND_CTR)
                *y = V(add_epi8)(v_broadcast(load(items[i].iv)), v_last_bytes(LANES * u));
            else
                *y = v_load(items[i].source + VECTOR_BYTES * u);
            if (kind == KIND_CBC_DECRYPT && u == 0)
                first[i] = v_shift_in(v_broadcast(load(items[i].iv)), *y);
        }
    run_cipher(x, SMALL_MESSAGES * SMALL_VECTORS, cipher,
               kind == KIND_ECB_DECRYPT || kind == KIND_CBC_DECRYPT);
#pragma GCC unroll 4
    for (int i = 0; i < SMALL_MESSAGES; i++) {
        const uint8_t *source = items[i].source;
        vector *y = &x[SMALL_VECTORS * i];
        /* All of a message's source before any of its destination: they may be the same. */
#pragma GCC unroll 2
        for (int u = 0; u < SMALL_VECTORS; u++) {
            if (kind == KIND_CTR)
                y[u] = v_xor(y[u], v_load(source + VECTOR_BYTES * u));
            else if (kind == KIND_CBC_DECRYPT)
                y[u] = v_xor(y[u], u == 0 ? first[i] : v_load(source + VECTOR_BYTES * u - 16));
        }
#pragma GCC unroll 2
        for (int u = 0; u < SMALL_VECTORS; u++)
            v_store(items[i].destination + VECTOR_BYTES * u, y[u]);
    }
}

/* As `singles`. */
INLINE size_t smalls(struct cipher cipher, const struct cm_aes_item *items, size_t count, enum kind kind)
{
    size_t done = 0;
    for (; done < count && next_are_small(items + done, count - done, kind); done += SMALL_MESSAGES)
        small_step(cipher, items + done, kind);
    return done;
}

/* As `singles`, whatever kind of step fits. */
INLINE size_t several(struct cipher cipher, const struct cm_aes_item *items, size_t count, enum kind kind)
{
    if (items->ret_length == 16)
        return singles(cipher, items, count, kind);
    if (items->ret_length == SMALL_BYTES)
        return smalls(cipher, items, count, kind);
    return 0;
}

/* --- ECB ------------------------------------------------------------------------------------------------ */

INLINE void ecb_step(struct cipher cipher, const uint8_t *source, uint8_t *destination, int n, size_t last,
                     bool decrypt)
{
    vector x[WIDTH];
#pragma GCC unroll 8
    for (int u = 0; u < n; u++)
        x[u] = load_one(source, u, n, last);
    run_cipher(x, n, cipher, decrypt);
#pragma GCC unroll 8
    for (int u = 0; u < n; u++)
        store_blocks(destination, x[u], u, n, last);
}

INLINE void ecb_message(struct cipher cipher, const uint8_t *source, uint8_t *destination, size_t length,
                        bool decrypt)
{
    for (; length >= STEP_BYTES; length -= STEP_BYTES, source += STEP_BYTES, destination += STEP_BYTES)
        ecb_step(cipher, source, destination, WIDTH, VECTOR_BYTES, decrypt);
    if (length == 0)
        return;
    struct tail tail = tail_of(length);
#define STEP(n) ecb_step(cipher, source, destination, n, tail.last, decrypt)
    TAIL(tail.vectors, STEP)
#undef STEP
}

static void ecb_encrypt(const struct cm_kernel_key *key, struct cm_aes_item *items, size_t count)
{
    struct cipher cipher = cipher_of(key);
    for (size_t i = 0; i < count;) {
        size_t run = several(cipher, items + i, count - i, KIND_ECB_ENCRYPT);
        i += run;
        if (run > 0)
            continue;
        const struct cm_aes_item *item = &items[i++];
        size_t length = item->ret_length;
        /* A padded block stands in the destination; the others only if that is the source too. */
        bool apart = length > item->length && item->source != item->destination;
        if (apart && length > 16)
            ecb_message(cipher, item->source, item->destination, length - 16, false);
        if (apart)
            ecb_step(cipher, item->destination + length - 16, item->destination + length - 16, 1, 16, false);
        else
            ecb_message(cipher, item->source, item->destination, length, false);
    }
    v_forget();
}

static void ecb_decrypt(const struct cm_kernel_key *key, struct cm_aes_item *items, size_t count)
{
    struct cipher cipher = cipher_of(key);
    for (size_t i = 0; i < count;) {
        size_t run = several(cipher, items + i, count - i, KIND_ECB_DECRYPT);
        i += run;
        if (run > 0)
            continue;
        ecb_message(cipher, items[i].source, items[i].destination, items[i].ret_length, true);
        i++;
    }
    v_forget();
}

/* --- CBC decryption ------------------------------------------------------------------------------------- */

/* `before` has the block before the step in its last lane; returns the same for the next step. All of the
 * source is read before the destination is written, so that they may be the same. */
INLINE vector cbc_decrypt_step(struct cipher cipher, vector before, const uint8_t *source,
                               uint8_t *destination, int n, size_t last)
{
    vector x[WIDTH];
#pragma GCC unroll 8
    for (int u = 0; u < n; u++)
        x[u] = load_one(source, u, n, last);
    vector first = v_shift_in(before, x[0]);
    run_cipher(x, n, cipher, true);
    /* Keeps the compiler from holding the ciphertext over the rounds. */
    __asm__ volatile("" : : : "memory");
    x[0] = v_xor(x[0], first);
#pragma GCC unroll 8
    for (int u = 1; u < n; u++)
        x[u] = v_xor(x[u], load_one(source - 16, u, n, last));
    if (n == WIDTH)
        before = v_load(source + VECTOR_BYTES * (WIDTH - 1));
#pragma GCC unroll 8
    for (int u = 0; u < n; u++)
        store_blocks(destination, x[u], u, n, last);
    return before;
}

static void cbc_decrypt(const struct cm_kernel_key *key, struct cm_aes_item *items, size_t count)
{
    struct cipher cipher = cipher_of(key);
    for (size_t i = 0; i < count;) {
        size_t run = several(cipher, items + i, count - i, KIND_CBC_DECRYPT);
        i += run;
        if (run > 0)
            continue;
        const struct cm_aes_item *item = &items[i++];
        const uint8_t *source = item->source;
        uint8_t *destination = item->destination;
        size_t length = item->ret_length;
        if (length == 0)
            continue;
        vector before = v_broadcast(load(item->iv));
        for (; length >= STEP_BYTES; length -= STEP_BYTES, source += STEP_BYTES, destination += STEP_BYTES)
            before = cbc_decrypt_step(cipher, before, source, destination, WIDTH, VECTOR_BYTES);
        if (length == 0)
            continue;
        struct tail tail = tail_of(length);
#define STEP(n) cbc_decrypt_step(cipher, before, source, destination, n, tail.last)
        TAIL(tail.vectors, STEP)
#undef STEP
    }
    v_forget();
}

/* --- CTR ------------------------------------------------------------------------------------------------ */

/* `counter` is byte-reversed, so that its low half can be added to; it must not carry into the high one. */
INLINE void ctr_step(struct cipher cipher, vector counter, const uint8_t *source, uint8_t *destination, int n,
                     size_t last)
{
    vector x[WIDTH];
#pragma GCC unroll 8
    for (int u = 0; u < n; u++)
        x[u] = v_reverse_bytes(V(add_epi64)(counter, v_broadcast(_mm_set_epi64x(0, LANES * u))));
    run_cipher(x, n, cipher, false);
#pragma GCC unroll 8
    for (int u = 0; u < n; u++)
        store_one(destination, v_xor(x[u], load_one(source, u, n, last)), u, n, last);
}

/* Blocks whose counters do not carry from the low half into the high one. */
INLINE void ctr_run(struct cipher cipher, block first, const uint8_t *source, uint8_t *destination,
                    size_t length)
{
    vector counter = V(add_epi64)(v_broadcast(reverse_bytes(first)), v_lane_numbers());
    for (; length >= STEP_BYTES; length -= STEP_BYTES, source += STEP_BYTES, destination += STEP_BYTES) {
        ctr_step(cipher, counter, source, destination, WIDTH, VECTOR_BYTES);
        counter = V(add_epi64)(counter, v_broadcast(_mm_set_epi64x(0, LANES * WIDTH)));
    }
    if (length == 0)
        return;
    struct tail tail = tail_of(length);
#define STEP(n) ctr_step(cipher, counter, source, destination, n, tail.last)
    TAIL(tail.vectors, STEP)
#undef STEP
}

/* The part of a message before a carry: rare, so not in line. */
__attribute__((noinline)) static void ctr_before_carry(struct cipher cipher, const uint8_t *iv,
                                                       const uint8_t *source, uint8_t *destination,
                                                       size_t length)
{
    ctr_run(cipher, load(iv), source, destination, length);
}

static void ctr(const struct cm_kernel_key *key, struct cm_aes_item *items, size_t count)
{
    struct cipher cipher = cipher_of(key);
    for (size_t i = 0; i < count;) {
        size_t run = several(cipher, items + i, count - i, KIND_CTR);
        i += run;
        if (run > 0)
            continue;
        const struct cm_aes_item *item = &items[i++];
        const uint8_t *source = item->source;
        uint8_t *destination = item->destination;
        size_t length = item->ret_length;
        if (length == 0)
            continue;
        block first = load(item->iv);
        /* The blocks up to the carry, less one, so that it fits; cut there if the message goes on. */
        uint64_t before_carry = ~cm_load64_be(item->iv + 8);
        if (__builtin_expect((length - 1) / 16 > before_carry, 0)) {
            size_t part = 16 * ((size_t)before_carry + 1);
            uint8_t carried[16] = {0};
            cm_store64_be(carried, cm_load64_be(item->iv) + 1);
            ctr_before_carry(cipher, item->iv, source, destination, part);
            first = load(carried);
            source += part;
            destination += part;
            length -= part;
        }
        ctr_run(cipher, first, source, destination, length);
    }
    v_forget();
}

#endif
