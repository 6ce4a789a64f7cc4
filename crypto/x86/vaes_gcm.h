/* SPDX-License-Identifier: Apache-2.0 */
/* GCM with VAES and VPCLMULQDQ at either vector width: long messages alone, short ones one a lane.
 *
 * Long messages: eight vectors in flight, and after every second round the products of two vectors of
 * ciphertext, of the step before when encrypting, of this step when decrypting. GHASH's representation and
 * reduction are derived in aesni.c. What is scarce are the two pipes that AES runs on, one of which
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
 * Short messages, up to SHORT_BYTES: as many as there are lanes form a group. Their J0 are encrypted in one
 * vector. The unreduced products of one message are spread over the lanes; those of the group are summed by a
 * transposition to one message a lane, and reduced all at once, together with the products of their lengths.
 * Messages of one block go one a lane from the start.
 *
 * Powers of H are laid out descending and with zeroes behind H^1, so that a vector loaded at H^e has H^e,
 * H^(e-1), ... and stops after H^1: the last vector of a message may have blocks that are not there.
 *
 * Registers: x[0..7], three sums of products, two temporaries, counter and text. At 256 bits the compiler
 * spills some of them; the frames are wiped as said in vaes_template.h. */
#ifndef CM_X86_VAES_GCM_H
#define CM_X86_VAES_GCM_H

#include "vaes_template.h"

#include "declassify.h"

/* A step's blocks; and one vector more for additional data and lengths of a short message. */
enum { POWERS = (WIDTH + 2) * LANES, SHORT_BYTES = 256, SHORT_VECTORS = SHORT_BYTES / VECTOR_BYTES };

/* Groups of messages of one block that run together. */
enum { SINGLES = 4 };

/* The factors of a step: of vector u, and folded of vectors 2u and 2u + 1, the second in the high halves. */
struct step_powers {
    vector power[WIDTH], folded[WIDTH / 2];
};

struct gcm_form {
    struct form aes;
    struct step_powers every, last;
    block power[POWERS + LANES];  /* H^(POWERS-i) / x, then zeroes */
    block folded[POWERS + LANES]; /* in both halves: high half + low half of that */
    /* [2 + b]: a block of zeroes that ends with byte b, after the first round. Counters of the usual J0 start
     * with 2, and so at a vector's boundary. */
    block counted[2 + 256];
};

/* A sum of products that has not been reduced; `middle` still lacks `low` and `high` (Karatsuba). */
struct product {
    vector low, middle, high;
};

INLINE struct product product_zero(void)
{
    vector zero = v_zero();
    return (struct product){zero, zero, zero};
}

INLINE void product_add_by(struct product *sum, vector x, vector h, vector folded_h)
{
    vector folded = v_xor(x, v_swap_halves(x));
    sum->low = v_xor(sum->low, v_multiply(x, h, 0x00));
    sum->high = v_xor(sum->high, v_multiply(x, h, 0x11));
    sum->middle = v_xor(sum->middle, v_multiply(folded, folded_h, 0x00));
}

/* The first lane times H^power, the second times the power below, ... */
INLINE void product_add(struct product *sum, const struct gcm_form *form, vector x, size_t power)
{
    product_add_by(sum, x, v_load(&form->power[POWERS - power]), v_load(&form->folded[POWERS - power]));
}

/* Every lane times H^power. */
INLINE void product_add_same(struct product *sum, const struct gcm_form *form, vector x, size_t power)
{
    product_add_by(sum, x, v_broadcast(form->power[POWERS - power]),
                   v_broadcast(form->folded[POWERS - power]));
}

/* Each lane by itself. The lowest word is folded 64 places up by adding it, and its product with q one place
 * higher, which is where a carry-less product stands anyway; twice. */
INLINE vector product_reduce(struct product sum)
{
    const vector q = v_broadcast(_mm_set_epi64x(0, (long long)0xc200000000000000));
    vector middle = v_xor3(sum.middle, sum.low, sum.high);
    middle = v_xor3(middle, v_swap_halves(sum.low), v_multiply(sum.low, q, 0x00));
    return v_xor3(sum.high, v_swap_halves(middle), v_multiply(middle, q, 0x00));
}

/* All lanes into the first, which alone holds anything in the end; then as product_reduce, on 128 bits. */
INLINE vector product_fold(struct product sum)
{
    const block q = _mm_set_epi64x(0, (long long)0xc200000000000000);
    block low = v_fold(sum.low), high = v_fold(sum.high);
    block middle = _mm_xor_si128(v_fold(sum.middle), _mm_xor_si128(low, high));
    middle = _mm_xor_si128(middle,
                           _mm_xor_si128(_mm_shuffle_epi32(low, 0x4e), _mm_clmulepi64_si128(low, q, 0x00)));
    high = _mm_xor_si128(
        high, _mm_xor_si128(_mm_shuffle_epi32(middle, 0x4e), _mm_clmulepi64_si128(middle, q, 0x00)));
    return v_of_low(high);
}

/* The products of a step; the first vector, to which the hash is added, with H^power. */
INLINE struct product step_products(const struct gcm_form *form, vector hash, const uint8_t *data,
                                    size_t power)
{
    struct product sum = product_zero();
#pragma GCC unroll 8
    for (int u = 0; u < WIDTH; u++) {
        vector x = v_reverse_bytes(v_load(data + VECTOR_BYTES * u));
        product_add(&sum, form, u == 0 ? v_xor(x, hash) : x, power - (size_t)(LANES * u));
    }
    return sum;
}

/* Additional data or an IV, any length but 0; the last block is filled up with zeroes. */
__attribute__((noinline)) static vector ghash_long(const struct gcm_form *form, vector hash,
                                                   const uint8_t *data, size_t length)
{
    for (; length >= STEP_BYTES; length -= STEP_BYTES, data += STEP_BYTES)
        hash = product_fold(step_products(form, hash, data, LANES * WIDTH));
    if (length == 0)
        return hash;
    struct product sum = product_zero();
    size_t power = (length + 15) / 16;
    for (; length >= VECTOR_BYTES; length -= VECTOR_BYTES, data += VECTOR_BYTES, power -= LANES) {
        product_add(&sum, form, v_xor(v_reverse_bytes(v_load(data)), hash), power);
        hash = v_zero();
    }
    if (length > 0)
        product_add(&sum, form, v_xor(v_reverse_bytes(v_load_bytes(data, length)), hash), power);
    return product_fold(sum);
}

INLINE vector ghash(const struct gcm_form *form, vector hash, const uint8_t *data, size_t length)
{
    return length == 0 ? hash : ghash_long(form, hash, data, length);
}

INLINE void expand_step(struct step_powers *powers)
{
    for (int u = 0; u < WIDTH; u += 2)
        powers->folded[u / 2] = v_fold_pair(powers->power[u], powers->power[u + 1]);
}

static void expand_gcm(void *memory, const uint8_t *key, size_t key_length)
{
    struct gcm_form *form = memory;
    struct cipher cipher = {form->aes.round_key, (unsigned)(key_length / 4 + 6)};
    expand_encrypt(form, key, key_length);
    vector zero = v_zero();
    run_cipher(&zero, 1, cipher, false);
    block h = reverse_bytes(V_LOW(zero));
    /* H / x: shift left over both words, and add the constant where a bit falls out, without a branch. */
    block carries = _mm_srli_epi64(h, 63);
    block out = _mm_sub_epi32(_mm_setzero_si128(), _mm_shuffle_epi32(carries, 0xaa));
    block c = _mm_and_si128(out, _mm_set_epi64x((long long)0xc200000000000000, 1));
    h = _mm_or_si128(_mm_slli_epi64(h, 1), _mm_slli_si128(carries, 8));
    h = _mm_xor_si128(h, c);
    block folded_h = _mm_xor_si128(h, _mm_shuffle_epi32(h, 0x4e));
    block power = h;
    memset(form->power, 0, sizeof form->power);
    memset(form->folded, 0, sizeof form->folded);
    for (int i = POWERS - 1; i >= 0; i--) {
        struct product sum = product_zero();
        form->power[i] = power;
        form->folded[i] = _mm_xor_si128(power, _mm_shuffle_epi32(power, 0x4e));
        product_add_by(&sum, v_of_low(power), v_of_low(h), v_of_low(folded_h));
        power = V_LOW(product_reduce(sum));
    }
    for (int u = 0; u < WIDTH; u++) {
        form->every.power[u] = v_broadcast(form->power[POWERS - LANES * (WIDTH - u)]);
        form->last.power[u] = v_load(&form->power[POWERS - LANES * (WIDTH - u)]);
    }
    expand_step(&form->every);
    expand_step(&form->last);
    form->counted[0] = form->counted[1] = _mm_setzero_si128();
    for (int i = 0; i < 256; i += LANES) {
        vector x = v_xor(v_last_bytes(i), form->aes.round_key[0]);
        v_store((uint8_t *)&form->counted[2 + i], V(aesenc_epi128)(x, form->aes.round_key[1]));
    }
    v_forget();
}

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

/* J0 of an IV of 12 bytes, in the order of memory: SP 800-38D, section 7.1, step 2. */
INLINE block first_counter_short(const uint8_t *iv)
{
    return _mm_or_si128(load_twelve(iv), _mm_set_epi32(0x01000000, 0, 0, 0));
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

INLINE block lengths_block(uint64_t aad_bytes, uint64_t text_bytes)
{
    return _mm_set_epi64x((long long)(aad_bytes * 8), (long long)(text_bytes * 8));
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

/* --- Short messages, a group at a time --------------------------------------------------------------------
 */

/* Whether the next LANES items are short ones of the usual kind. */
INLINE bool next_are_short(const struct cm_aes_item *items)
{
    bool other = false;
#pragma GCC unroll 4
    for (int i = 0; i < LANES; i++)
        other |= (items[i].ret_status != CM_AES_OK) | (items[i].length > SHORT_BYTES) |
                 (items[i].iv_length != 12) | (items[i].aad_length > VECTOR_BYTES);
    return !other;
}

/* Whether the next n items are of `length` bytes, not 0, and have nothing unusual about them. */
INLINE bool next_are_bare(const struct cm_aes_item *items, size_t count, size_t n, size_t length)
{
    if (count < n)
        return false;
    size_t other = 0;
#pragma GCC unroll 4
    for (size_t i = 0; i < n; i++)
        other |= (items[i].ret_length ^ length) | (items[i].iv_length ^ 12) | items[i].aad_length;
    return other == 0;
}

/* The counter blocks of vector u of a short message: its counters stay within their last byte. */
INLINE vector short_counters(block j0, int u)
{
    return V(add_epi8)(v_broadcast(j0), v_last_bytes(1 + LANES * u));
}

/* Adds n vectors of key stream, a constant, to the text of one message; its products are not yet summed over
 * the lanes. */
INLINE struct product short_text(const struct gcm_form *form, const struct cm_aes_item *item,
                                 const vector *stream, int n, size_t last, size_t blocks, bool decrypt)
{
    struct product sum = product_zero();
#pragma GCC unroll 8
    for (int u = 0; u < n; u++) {
        vector in = load_one(item->source, u, n, last);
        vector out = v_xor(in, stream[u]);
        store_one(item->destination, out, u, n, last);
        if (!decrypt && u == n - 1 && last != VECTOR_BYTES)
            out = v_keep_bytes(out, last);
        product_add(&sum, form, v_reverse_bytes(decrypt ? in : out), blocks + 1 - (size_t)(LANES * u));
    }
    return sum;
}

/* One message of a group. */
INLINE struct product short_message(const struct gcm_form *form, struct cipher cipher,
                                    const struct cm_aes_item *item, int n, bool decrypt)
{
    vector x[WIDTH];
    block j0 = first_counter_short(item->iv);
#pragma GCC unroll 8
    for (int u = 0; u < n; u++)
        x[u] = short_counters(j0, u);
    run_cipher(x, n, cipher, false);
    size_t blocks = (item->length + 15) / 16;
    struct product sum =
        short_text(form, item, x, n, item->length - (size_t)(VECTOR_BYTES * (n - 1)), blocks, decrypt);
    if (__builtin_expect(item->aad_length > 0, 0))
        product_add(&sum, form, v_reverse_bytes(v_load_bytes(item->aad, item->aad_length)),
                    blocks + 1 + (item->aad_length + 15) / 16);
    return sum;
}

/* Tags, one a lane, in the order of memory. */
INLINE void group_tags(struct cm_aes_item *items, vector tags, bool decrypt)
{
    uint8_t *place[LANES];
    size_t other = 0;
#pragma GCC unroll 4
    for (int i = 0; i < LANES; i++) {
        place[i] = items[i].tag;
        other |= items[i].tag_length ^ 16;
    }
    if (other == 0 && !decrypt) {
        v_scatter(place, tags);
        return;
    }
    bool same = other == 0 && v_equal(tags, v_gather((const uint8_t *const *)place));
    CM_DECLASSIFY(same);
    if (same)
        return;
    alignas(VECTOR_BYTES) uint8_t full[VECTOR_BYTES];
    v_store(full, tags);
    for (int i = 0; i < LANES; i++)
        cm_gcm_tag(decrypt ? CM_AES_DECRYPT : CM_AES_ENCRYPT, &items[i], full + 16 * i);
}

INLINE vector group_first_counters(const struct cm_aes_item *items)
{
    block ivs[LANES];
#pragma GCC unroll 4
    for (int i = 0; i < LANES; i++)
        ivs[i] = load_twelve(items[i].iv);
    return v_xor(v_of_lanes(ivs), v_broadcast(_mm_set_epi32(0x01000000, 0, 0, 0)));
}

INLINE vector group_lengths(const struct cm_aes_item *items)
{
    block lengths[LANES];
#pragma GCC unroll 4
    for (int i = 0; i < LANES; i++)
        lengths[i] = lengths_block(items[i].aad_length, items[i].length);
    return v_of_lanes(lengths);
}

/* What ends a group: the sums over the lanes, the lengths, one reduction, the tags. */
INLINE void group_end(const struct gcm_form *form, struct cm_aes_item *items,
                      const struct product each[LANES], vector lengths, vector pad, bool decrypt)
{
    vector low[LANES], middle[LANES], high[LANES];
#pragma GCC unroll 4
    for (int i = 0; i < LANES; i++) {
        low[i] = each[i].low;
        middle[i] = each[i].middle;
        high[i] = each[i].high;
    }
    struct product sum = {v_fold_each(low), v_fold_each(middle), v_fold_each(high)};
    product_add_same(&sum, form, lengths, 1);
    group_tags(items, v_xor(v_reverse_bytes(product_reduce(sum)), pad), decrypt);
}

/* Messages of n whole vectors each, a constant, with no additional data: the rounds of up to eight vectors
 * together, with those of J0. */
INLINE void group_alike(const struct gcm_form *form, struct cipher cipher, struct cm_aes_item *items, int n,
                        bool decrypt)
{
    const int together = n * LANES <= WIDTH ? LANES : WIDTH / n;
    struct product each[LANES];
    vector pad = group_first_counters(items);
#pragma GCC unroll 4
    for (int first = 0; first < LANES; first += together) {
        vector x[WIDTH + 1];
#pragma GCC unroll 4
        for (int i = 0; i < together; i++) {
            block j0 = first_counter_short(items[first + i].iv);
#pragma GCC unroll 8
            for (int u = 0; u < n; u++)
                x[n * i + u] = short_counters(j0, u);
        }
        x[n * together] = pad;
        run_cipher(x, n * together + (first == 0), cipher, false);
        if (first == 0)
            pad = x[n * together];
#pragma GCC unroll 4
        for (int i = 0; i < together; i++)
            each[first + i] =
                short_text(form, &items[first + i], x + n * i, n, VECTOR_BYTES, (size_t)(LANES * n), decrypt);
    }
    group_end(form, items, each, v_broadcast(lengths_block(0, (uint64_t)(VECTOR_BYTES * n))), pad, decrypt);
}

/* A group of messages of SMALL_BYTES whose text is done and whose tags are not. */
struct pending {
    struct cm_aes_item *items;
    vector data[LANES * SMALL_VECTORS]; /* byte-reversed ciphertext */
    vector pad;
    struct product each[LANES], sum;
};

/* One step, a constant, of what is left to do: LANES + 4 of them. */
INLINE void pending_step(const struct gcm_form *form, struct pending *pending, int step, bool decrypt)
{
    vector part[LANES];
    if (step < LANES) {
        pending->each[step] = product_zero();
#pragma GCC unroll 2
        for (int u = 0; u < SMALL_VECTORS; u++)
            product_add(&pending->each[step], form, pending->data[SMALL_VECTORS * step + u],
                        (size_t)(LANES * (SMALL_VECTORS - u) + 1));
    }
#pragma GCC unroll 4
    for (int i = 0; i < LANES; i++)
        part[i] = step == LANES       ? pending->each[i].low
                  : step == LANES + 1 ? pending->each[i].middle
                                      : pending->each[i].high;
    if (step == LANES)
        pending->sum.low = v_fold_each(part);
    if (step == LANES + 1)
        pending->sum.middle = v_fold_each(part);
    if (step == LANES + 2)
        pending->sum.high = v_fold_each(part);
    if (step == LANES + 3) {
        product_add_same(&pending->sum, form, v_broadcast(lengths_block(0, SMALL_BYTES)), 1);
        vector hash = v_reverse_bytes(product_reduce(pending->sum));
        group_tags(pending->items, v_xor(hash, pending->pad), decrypt);
    }
}

/* The text of a group of messages of SMALL_BYTES, and meanwhile, if `hashing`, the tags of the one before. */
INLINE void small_group(const struct gcm_form *form, struct cipher cipher, struct cm_aes_item *items,
                        struct pending *pending, bool hashing, bool decrypt)
{
    vector x[LANES * SMALL_VECTORS + 1];
    const int n = LANES * SMALL_VECTORS;
#pragma GCC unroll 4
    for (int i = 0; i < LANES; i++) {
        block j0 = first_counter_short(items[i].iv);
#pragma GCC unroll 2
        for (int u = 0; u < SMALL_VECTORS; u++)
            x[SMALL_VECTORS * i + u] = short_counters(j0, u);
    }
    x[n] = group_first_counters(items);
    whiten(x, n + 1, cipher.round_key[0]);
#pragma GCC unroll 9
    for (int round = 1; round < 10; round++) {
        round_of(x, n + 1, cipher.round_key[round], false);
        if (hashing && round <= LANES + 4)
            pending_step(form, pending, round - 1, decrypt);
    }
    more_rounds(x, n + 1, cipher, false);
    vector last = cipher.round_key[cipher.rounds];
    pending->items = items;
    pending->pad = V(aesenclast_epi128)(x[n], last);
#pragma GCC unroll 4
    for (int u = 0; u < n; u++) {
        size_t at = (size_t)(u % SMALL_VECTORS * VECTOR_BYTES);
        vector in = v_load(items[u / SMALL_VECTORS].source + at);
        vector out = V(aesenclast_epi128)(x[u], v_xor(last, in));
        v_store(items[u / SMALL_VECTORS].destination + at, out);
        pending->data[u] = v_reverse_bytes(decrypt ? in : out);
    }
}

/* As many groups of messages of SMALL_BYTES as there are; returns the number of their items. */
INLINE size_t small_groups(const struct gcm_form *form, struct cipher cipher, struct cm_aes_item *items,
                           size_t count, bool decrypt)
{
    struct pending pending;
    size_t done = 0;
    if (!next_are_bare(items, count, LANES, SMALL_BYTES))
        return 0;
    small_group(form, cipher, items, &pending, false, decrypt);
    for (done = LANES; next_are_bare(items + done, count - done, LANES, SMALL_BYTES); done += LANES)
        small_group(form, cipher, items + done, &pending, true, decrypt);
#pragma GCC unroll 8
    for (int step = 0; step < LANES + 4; step++)
        pending_step(form, &pending, step, decrypt);
    return done;
}

/* Messages of any number of vectors. */
INLINE void group_unlike(const struct gcm_form *form, struct cipher cipher, struct cm_aes_item *items,
                         bool decrypt)
{
    struct product each[LANES];
    vector pad = group_first_counters(items);
    run_cipher(&pad, 1, cipher, false);
    for (int i = 0; i < LANES; i++) {
#define STEP(n) each[i] = short_message(form, cipher, &items[i], n, decrypt)
        size_t vectors = tail_of(items[i].length).vectors;
        if (vectors > SHORT_VECTORS)
            __builtin_unreachable();
        if (vectors == 0)
            STEP(0);
        else
            TAIL(vectors, STEP)
#undef STEP
    }
    group_end(form, items, each, group_lengths(items), pad, decrypt);
}

/* Out of line, for the sake of the callers' frames: the stack is wiped as deep as they are. */
__attribute__((noinline)) static void group_unlike_encrypt(const struct gcm_form *form, struct cipher cipher,
                                                           struct cm_aes_item *items)
{
    group_unlike(form, cipher, items, false);
}

__attribute__((noinline)) static void group_unlike_decrypt(const struct gcm_form *form, struct cipher cipher,
                                                           struct cm_aes_item *items)
{
    group_unlike(form, cipher, items, true);
}

/* A group of messages that are alike, or LANES messages of any kind as far as they are short; returns how
 * many of the first items are done, which is 0 if the first is none of these. */
INLINE size_t gcm_group(const struct gcm_form *form, struct cipher cipher, struct cm_aes_item *items,
                        size_t count, bool decrypt)
{
    size_t length = items->ret_length;
    if (length > SHORT_BYTES || count < LANES)
        return 0;
    if (length == SMALL_BYTES) {
        size_t done = small_groups(form, cipher, items, count, decrypt);
        if (done > 0)
            return done;
    }
    if (length % 128 == 0 && length > 0 && next_are_bare(items, count, LANES, length)) {
        if (length == 128)
            group_alike(form, cipher, items, 128 / VECTOR_BYTES, decrypt);
        else
            group_alike(form, cipher, items, 256 / VECTOR_BYTES, decrypt);
        return LANES;
    }
    if (!next_are_short(items))
        return 0;
    if (decrypt)
        group_unlike_decrypt(form, cipher, items);
    else
        group_unlike_encrypt(form, cipher, items);
    return LANES;
}

/* Groups of messages of one block, n groups, a constant. */
INLINE void gcm_singles(const struct gcm_form *form, struct cipher cipher, struct cm_aes_item *items, int n,
                        const struct product *lengths, bool decrypt)
{
    vector x[8];
#pragma GCC unroll 4
    for (int u = 0; u < n; u++) {
        x[u] = group_first_counters(items + LANES * u);
        x[n + u] = V(add_epi8)(x[u], v_broadcast(_mm_set_epi32(0x01000000, 0, 0, 0)));
    }
    run_cipher(x, 2 * n, cipher, false);
#pragma GCC unroll 4
    for (int u = 0; u < n; u++) {
        const uint8_t *source[LANES];
        uint8_t *destination[LANES];
#pragma GCC unroll 4
        for (int i = 0; i < LANES; i++) {
            source[i] = items[LANES * u + i].source;
            destination[i] = items[LANES * u + i].destination;
        }
        vector in = v_gather(source), out = v_xor(in, x[n + u]);
        v_scatter(destination, out);
        struct product sum = *lengths;
        product_add_same(&sum, form, v_reverse_bytes(decrypt ? in : out), 2);
        group_tags(items + LANES * u, v_xor(v_reverse_bytes(product_reduce(sum)), x[u]), decrypt);
    }
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
    struct product lengths = product_zero();
    product_add_same(&lengths, form, v_broadcast(lengths_block(0, 16)), 1);
    for (size_t i = 0; i < count;) {
        struct cm_aes_item *item = &items[i];
        if (item->ret_length == 16 && next_are_bare(item, count - i, SINGLES * LANES, 16)) {
            gcm_singles(form, cipher, item, SINGLES, &lengths, decrypt);
            i += SINGLES * LANES;
            continue;
        }
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
