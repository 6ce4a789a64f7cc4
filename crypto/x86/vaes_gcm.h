/* SPDX-License-Identifier: Apache-2.0 */
/* GCM with VAES and VPCLMULQDQ at either vector width: a message by itself, parts, and batches.
 *
 * Batches: short messages go in groups (vaes_gcm_short.h), the others one after the other.
 *
 * Long messages: eight vectors in flight, and after every second round the products of two vectors of
 * ciphertext, of the step before when encrypting, of this step when decrypting. GHASH's representation and
 * reduction are derived in aesni_gcm.h. What is scarce are the two pipes that AES runs on, one of which
 * multiplies too, then issue slots as such; hence:
 * - The first round of a counter block depends on its last byte in four bytes only. These are looked up, by a
 *   public index: 256 blocks with their first round done belong to the key, and what the next 256 blocks of a
 *   message have in common is added to them. That is one instruction in place of addition, whitening and a
 *   round. Where J0 is a hash, and so depends on H, nothing is looked up.
 * - Within a message each lane has a hash of its own, of every LANES-th block, multiplied by powers of
 *   H^LANES. Nothing is folded in the loop. The last step's powers differ from lane to lane, and the sum of
 *   the lanes is the hash.
 * - Karatsuba's third factors are formed for two vectors at once, one in the low and one in the high halves.
 * - The text is added to the last round key, not to the key stream.
 * The pair that the running hash is added to comes last, so that the reduction has six rounds to finish.
 *
 * Registers: x[0..7], three sums of products, two temporaries, counter and text. At 256 bits the compiler
 * spills some of them; the frames are wiped as said in vaes_template.h. */
#ifndef CM_X86_VAES_GCM_H
#define CM_X86_VAES_GCM_H

#include "vaes_gcm_short.h"

/* --- Long messages ----------------------------------------------------------------------------------------
 */

/* A message under way. */
struct running {
    vector counter; /* byte-reversed: of the next blocks, one a lane; the last 32 bits count */
    vector hash;    /* byte-reversed: in the first lane, or while there are steps, in all of them */
    vector base;    /* after the first round: the counter blocks, as far as their last byte is not counted */
    block pad;      /* E(K, J0) */
    unsigned last_byte; /* of the first counter; or NOT_COUNTED, where it came from H */
};
enum { NOT_COUNTED = 256 };

INLINE vector counter_plus(vector counter, int blocks)
{
    return V(add_epi32)(counter, v_broadcast(_mm_set_epi32(0, 0, 0, blocks)));
}

INLINE vector counters_from(block first)
{
    return V(add_epi32)(v_broadcast(first), v_lane_numbers());
}

/* J0, byte-reversed. */
INLINE block first_counter(const struct gcm_form *form, const uint8_t *iv, size_t length)
{
    if (length == 12)
        return reverse_bytes(first_counter_short(iv));
    vector hash = ghash(form, v_zero(), iv, length);
    struct product sum = product_zero();
    product_add(&sum, form, v_xor(hash, v_of_low(_mm_set_epi64x(0, (long long)(length * 8)))), 1);
    return V_LOW(product_reduce(sum));
}

/* Compilers would gather all round keys first and sum all products last, and spill both. Nothing crosses
 * this. */
INLINE void stay_in_order(vector x[WIDTH], struct product *sum)
{
    __asm__ volatile(
        ""
        : "+" ANY_VECTOR_REGISTER(x[0]), "+" ANY_VECTOR_REGISTER(x[1]), "+" ANY_VECTOR_REGISTER(x[2]),
          "+" ANY_VECTOR_REGISTER(x[3]), "+" ANY_VECTOR_REGISTER(x[4]), "+" ANY_VECTOR_REGISTER(x[5]),
          "+" ANY_VECTOR_REGISTER(x[6]), "+" ANY_VECTOR_REGISTER(x[7]), "+" ANY_VECTOR_REGISTER(sum->low),
          "+" ANY_VECTOR_REGISTER(sum->middle), "+" ANY_VECTOR_REGISTER(sum->high)
        :
        : "memory");
}

/* What the counter blocks of the next 256 have in common after the first round. */
INLINE vector counters_base(const struct gcm_form *form, vector counter)
{
    const vector *k = form->aes.round_key;
    block x = _mm_andnot_si128(_mm_set_epi32(0, 0, 0, 255), V_LOW(counter));
    x = _mm_aesenc_si128(_mm_xor_si128(reverse_bytes(x), V_LOW(k[0])), V_LOW(k[1]));
    return v_broadcast(_mm_xor_si128(x, form->counted[2]));
}

/* The next step's counter blocks after their first round. As long as the last byte does not carry, that round
 * is known. */
INLINE void step_counters(const struct gcm_form *form, struct running *run, vector x[WIDTH])
{
    if (__builtin_expect(run->last_byte <= 256 - LANES * WIDTH, 1)) {
        const block *counted = &form->counted[2 + run->last_byte];
#pragma GCC unroll 8
        for (int u = 0; u < WIDTH; u++)
            x[u] = v_xor(run->base, v_load(counted + LANES * u));
        run->counter = counter_plus(run->counter, LANES * WIDTH);
        run->last_byte += LANES * WIDTH;
    } else {
#pragma GCC unroll 8
        for (int u = 0; u < WIDTH; u++)
            x[u] = v_reverse_bytes(counter_plus(run->counter, LANES * u));
        whiten(x, WIDTH, form->aes.round_key[0]);
        round_of(x, WIDTH, form->aes.round_key[1], false);
        run->counter = counter_plus(run->counter, LANES * WIDTH);
        if (run->last_byte != NOT_COUNTED) {
            run->last_byte = (run->last_byte + LANES * WIDTH) % 256;
            run->base = counters_base(form, run->counter);
        }
    }
}

/* Vectors u and u + 1 of a step into the sum. */
INLINE void step_pair(struct product *sum, const struct step_powers *powers, const uint8_t *hashed, int u,
                      vector hash)
{
    vector a = v_reverse_bytes(v_load(hashed + VECTOR_BYTES * u));
    vector b = v_reverse_bytes(v_load(hashed + VECTOR_BYTES * (u + 1)));
    if (u == 0)
        a = v_xor(a, hash);
    vector folded = v_fold_pair(a, b), folded_h = powers->folded[u / 2];
    sum->low =
        v_xor3(sum->low, v_multiply(a, powers->power[u], 0x00), v_multiply(b, powers->power[u + 1], 0x00));
    sum->high =
        v_xor3(sum->high, v_multiply(a, powers->power[u], 0x11), v_multiply(b, powers->power[u + 1], 0x11));
    sum->middle = v_xor3(sum->middle, v_multiply(folded, folded_h, 0x00), v_multiply(folded, folded_h, 0x11));
}

/* A step of text, and meanwhile, if `powers` are given, a step of `hashed` into the hash, each lane by
 * itself. The first pair comes last. */
INLINE void gcm_step(const struct gcm_form *form, struct cipher cipher, struct running *run,
                     const uint8_t *source, uint8_t *destination, const uint8_t *hashed,
                     const struct step_powers *powers)
{
    vector x[WIDTH];
    struct product sum = product_zero();
    step_counters(form, run, x);
#pragma GCC unroll 8
    for (int round = 2; round < 10; round++) {
        round_of(x, WIDTH, cipher.round_key[round], false);
        if (powers != NULL && round % 2 == 1)
            step_pair(&sum, powers, hashed, (round - 1) % WIDTH, run->hash);
        stay_in_order(x, &sum);
    }
    if (powers != NULL)
        run->hash = product_reduce(sum);
    more_rounds(x, WIDTH, cipher, false);
    vector last = cipher.round_key[cipher.rounds];
#pragma GCC unroll 8
    for (int u = 0; u < WIDTH; u++) {
        vector text = v_load(source + VECTOR_BYTES * u);
        v_store(destination + VECTOR_BYTES * u, V(aesenclast_epi128)(x[u], v_xor(last, text)));
    }
}

/* The text's last 1 to STEP_BYTES bytes in n vectors, a constant; adds their products, the first with the
 * hash. `power` is that of the first block. J0 goes along. */
INLINE void gcm_tail(const struct gcm_form *form, struct cipher cipher, struct running *run, block j0,
                     const uint8_t *source, uint8_t *destination, int n, size_t last, size_t power,
                     struct product *sum, bool decrypt)
{
    vector x[WIDTH + 1];
#pragma GCC unroll 8
    for (int u = 0; u < n; u++)
        x[u] = v_reverse_bytes(counter_plus(run->counter, LANES * u));
    x[n] = v_of_low(reverse_bytes(j0));
    run_cipher(x, n + 1, cipher, false);
    run->pad = V_LOW(x[n]);
#pragma GCC unroll 8
    for (int u = 0; u < n; u++) {
        vector in = load_one(source, u, n, last);
        vector out = v_xor(in, x[u]);
        store_one(destination, out, u, n, last);
        if (!decrypt && u == n - 1 && last != VECTOR_BYTES)
            out = v_keep_bytes(out, last);
        vector data = v_reverse_bytes(decrypt ? in : out);
        product_add(sum, form, u == 0 ? v_xor(data, run->hash) : data, power - (size_t)(LANES * u));
    }
}

/* E(K, J0) by itself. */
INLINE block pad_alone(struct cipher cipher, block j0)
{
    block x = _mm_xor_si128(reverse_bytes(j0), V_LOW(cipher.round_key[0]));
    for (unsigned round = 1; round < cipher.rounds; round++)
        x = _mm_aesenc_si128(x, V_LOW(cipher.round_key[round]));
    return _mm_aesenclast_si128(x, V_LOW(cipher.round_key[cipher.rounds]));
}

/* One part: its text, and where `lengths` is given, what ends the message. Encryption hashes what the step
 * before has written, decryption what the step is about to read, so that in both the products wait for
 * nothing. */
INLINE void gcm_text(const struct gcm_form *form, struct cipher cipher, struct running *state, block j0,
                     const struct cm_aes_item *item, const block *lengths, bool counted, bool decrypt)
{
    struct running running = *state, *run = &running; /* nothing that is written can be this */
    const uint8_t *source = item->source;
    uint8_t *destination = item->destination;
    size_t length = item->length, ends = lengths != NULL;
    struct product sum = product_zero();
    bool stepped = length >= STEP_BYTES;
    if (stepped) {
        run->last_byte = counted ? (unsigned)_mm_cvtsi128_si32(V_LOW(run->counter)) % 256 : NOT_COUNTED;
        run->base = counters_base(form, run->counter);
    }
    if (!decrypt && stepped) {
        gcm_step(form, cipher, run, source, destination, NULL, NULL);
        source += STEP_BYTES;
        destination += STEP_BYTES;
        for (length -= STEP_BYTES; length >= STEP_BYTES; length -= STEP_BYTES) {
            gcm_step(form, cipher, run, source, destination, destination - STEP_BYTES, &form->every);
            source += STEP_BYTES;
            destination += STEP_BYTES;
        }
        sum =
            step_products(form, run->hash, destination - STEP_BYTES, LANES * WIDTH + (length > 0 ? 0 : ends));
        if (length > 0) {
            run->hash = product_fold(sum);
            sum = product_zero();
        } else {
            run->hash = v_zero();
        }
    }
    if (decrypt && stepped) {
        for (; length >= STEP_BYTES; length -= STEP_BYTES) {
            gcm_step(form, cipher, run, source, destination, source,
                     length >= 2 * STEP_BYTES ? &form->every : &form->last);
            source += STEP_BYTES;
            destination += STEP_BYTES;
        }
        run->hash = v_of_low(v_fold(run->hash));
    }
    size_t blocks = (length + 15) / 16, power = blocks + ends;
    if (length > 0) {
        struct tail tail = tail_of(length);
#define STEP(n) gcm_tail(form, cipher, run, j0, source, destination, n, tail.last, power, &sum, decrypt)
        TAIL(tail.vectors, STEP)
#undef STEP
        run->counter = counter_plus(run->counter, (int)blocks);
    } else {
        run->pad = pad_alone(cipher, j0);
    }
    if (lengths != NULL)
        product_add(&sum, form, length > 0 ? v_of_low(*lengths) : v_xor(v_of_low(*lengths), run->hash), 1);
    if (lengths != NULL || length > 0 || (!decrypt && stepped))
        run->hash = product_fold(sum);
    *state = running;
}

/* Out of line, since parts and messages share them and they are large. */
__attribute__((noinline)) static void gcm_text_encrypt(const struct cm_kernel_key *key, struct running *run,
                                                       block j0, const struct cm_aes_item *item,
                                                       const block *lengths, bool counted)
{
    gcm_text((const struct gcm_form *)(const void *)key->form, cipher_of(key), run, j0, item, lengths,
             counted, false);
}

__attribute__((noinline)) static void gcm_text_decrypt(const struct cm_kernel_key *key, struct running *run,
                                                       block j0, const struct cm_aes_item *item,
                                                       const block *lengths, bool counted)
{
    gcm_text((const struct gcm_form *)(const void *)key->form, cipher_of(key), run, j0, item, lengths,
             counted, true);
}

static void gcm_part(const struct cm_kernel_key *key, struct cm_aes_parts *state,
                     const struct cm_aes_item *item, bool first, bool last, uint8_t ret_tag[16])
{
    const struct gcm_form *form = (const struct gcm_form *)(const void *)key->form;
    struct running run;
    block lengths = lengths_block(state->aad_bytes, state->text_bytes);
    block j0 = _mm_setzero_si128();
    if (first) {
        j0 = first_counter(form, item->iv, item->iv_length);
        run.counter = counter_plus(counters_from(j0), 1);
        run.hash = ghash(form, v_zero(), item->aad, item->aad_length);
    } else {
        run.counter = counters_from(reverse_bytes(load(state->chain)));
        run.hash = v_of_low(reverse_bytes(load(state->hash)));
    }
    /* That J0 ended with 1, as it does if the IV is of 12 bytes. */
    uint32_t blocks_before = (uint32_t)((state->text_bytes - item->length) / 16);
    bool counted = cm_load32_be(state->chain + 12) == blocks_before + 2;
    if (first)
        counted = item->iv_length == 12;
    if (key->kernel->direction == CM_AES_ENCRYPT)
        gcm_text_encrypt(key, &run, j0, item, last ? &lengths : NULL, counted);
    else
        gcm_text_decrypt(key, &run, j0, item, last ? &lengths : NULL, counted);
    if (first)
        store(state->first_pad, run.pad);
    store(state->chain, reverse_bytes(V_LOW(run.counter)));
    store(state->hash, reverse_bytes(V_LOW(run.hash)));
    if (last)
        store(ret_tag, _mm_xor_si128(reverse_bytes(V_LOW(run.hash)), load(state->first_pad)));
    v_forget();
}
/* --- Batches ----------------------------------------------------------------------------------------------
 */

/* A message by itself is a part that is both first and last, without the way through memory. */
INLINE void gcm_message(const struct cm_kernel_key *key, struct cm_aes_item *item, bool decrypt)
{
    const struct gcm_form *form = (const struct gcm_form *)(const void *)key->form;
    struct running run;
    uint8_t tag[16];
    block lengths = lengths_block(item->aad_length, item->length);
    block j0 = first_counter(form, item->iv, item->iv_length);
    run.counter = counter_plus(counters_from(j0), 1);
    run.hash = ghash(form, v_zero(), item->aad, item->aad_length);
    if (decrypt)
        gcm_text_decrypt(key, &run, j0, item, &lengths, item->iv_length == 12);
    else
        gcm_text_encrypt(key, &run, j0, item, &lengths, item->iv_length == 12);
    store(tag, _mm_xor_si128(reverse_bytes(V_LOW(run.hash)), run.pad));
    cm_gcm_tag(decrypt ? CM_AES_DECRYPT : CM_AES_ENCRYPT, item, tag);
}

INLINE void gcm_messages(const struct cm_kernel_key *key, struct cm_aes_item *items, size_t count,
                         bool decrypt)
{
    const struct gcm_form *form = (const struct gcm_form *)(const void *)key->form;
    struct cipher cipher = cipher_of(key);
    for (size_t i = 0; i < count;) {
        struct cm_aes_item *item = &items[i];
        size_t run = gcm_group(form, cipher, item, count - i, decrypt);
        i += run;
        if (run > 0)
            continue;
        i++;
        if (item->ret_status != CM_AES_OK)
            continue;
        gcm_message(key, item, decrypt);
    }
    v_forget();
}

static void gcm_encrypt(const struct cm_kernel_key *key, struct cm_aes_item *items, size_t count)
{
    gcm_messages(key, items, count, false);
}

static void gcm_decrypt(const struct cm_kernel_key *key, struct cm_aes_item *items, size_t count)
{
    gcm_messages(key, items, count, true);
}

#endif
