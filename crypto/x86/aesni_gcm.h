/* SPDX-License-Identifier: Apache-2.0 */
/* GCM with AES-NI and PCLMULQDQ: the part of aesni.c that is about GHASH, text beside it, and tags.
 *
 * Eight blocks in flight, and after each of the first eight rounds one product: of the step before when
 * encrypting, of this step when decrypting. Messages of one block go in fours, two blocks each.
 *
 * GHASH. A block, its bytes reversed, is an integer in which bit 127 - i is the coefficient of x^i. A
 * carry-less product of two such is the product of the polynomials read one position too low, i.e. divided by
 * x; so the powers of H are kept divided by x: H / x is the integer shifted left by one, plus, if a bit fell
 * out (the coefficient of x^0), (x^128 + x^7 + x^2 + x + 1 + 1) / x = x^127 + x^6 + x + 1, that is c2..01.
 * Eight products, by Karatsuba, are summed before one reduction. Of the 256-bit sum, `high` holds x^0 to
 * x^127, `low` x^128 to x^255. As x^128 = 1 + x * q with q = x^6 + x + 1, whose 64-bit integer is
 * c2000000_00000000, the word of `low` with the highest powers is folded 64 places down by adding it, and its
 * product with q one place lower, which is where a carry-less product stands anyway; twice, and the sum is in
 * `high`. */
#ifndef CM_X86_AESNI_GCM_H
#define CM_X86_AESNI_GCM_H

#include "declassify.h"

struct gcm_form {
    struct form aes;
    block power[WIDTH];  /* H^(i+1) / x */
    block folded[WIDTH]; /* in both halves: high half + low half of that */
};

/* --- GHASH ---------------------------------------------------------------------------------------------- */

/* A sum of products that has not been reduced; `middle` still lacks `low` and `high` (Karatsuba). */
struct product {
    block low, middle, high;
};

INLINE void product_add(struct product *sum, const struct gcm_form *form, block x, size_t power)
{
    block h = form->power[power - 1];
    block folded = _mm_xor_si128(x, _mm_shuffle_epi32(x, 0x4e));
    sum->low = _mm_xor_si128(sum->low, _mm_clmulepi64_si128(x, h, 0x00));
    sum->high = _mm_xor_si128(sum->high, _mm_clmulepi64_si128(x, h, 0x11));
    sum->middle = _mm_xor_si128(sum->middle, _mm_clmulepi64_si128(folded, form->folded[power - 1], 0x00));
}

INLINE block product_reduce(const struct product *sum)
{
    const block q = _mm_set_epi64x(0, (long long)0xc200000000000000);
    block middle = _mm_xor_si128(sum->middle, _mm_xor_si128(sum->low, sum->high));
    block low = _mm_xor_si128(sum->low, _mm_slli_si128(middle, 8));
    block high = _mm_xor_si128(sum->high, _mm_srli_si128(middle, 8));
    low = _mm_xor_si128(_mm_shuffle_epi32(low, 0x4e), _mm_clmulepi64_si128(low, q, 0x00));
    low = _mm_xor_si128(_mm_shuffle_epi32(low, 0x4e), _mm_clmulepi64_si128(low, q, 0x00));
    return _mm_xor_si128(high, low);
}

INLINE struct product product_zero(void)
{
    block zero = _mm_setzero_si128();
    return (struct product){zero, zero, zero};
}

INLINE block ghash_one(const struct gcm_form *form, block x)
{
    struct product sum = product_zero();
    product_add(&sum, form, x, 1);
    return product_reduce(&sum);
}

INLINE block ghash_eight(const struct gcm_form *form, block hash, const uint8_t *data)
{
    struct product sum = product_zero();
#pragma GCC unroll 8
    for (size_t i = 0; i < WIDTH; i++) {
        block x = reverse_bytes(load(data + 16 * i));
        product_add(&sum, form, i == 0 ? _mm_xor_si128(x, hash) : x, WIDTH - i);
    }
    return product_reduce(&sum);
}

/* Additional data or an IV; the last block is filled up with zeroes. */
static block ghash(const struct gcm_form *form, block hash, const uint8_t *data, size_t length)
{
    for (; length >= 16 * WIDTH; length -= 16 * WIDTH, data += 16 * WIDTH)
        hash = ghash_eight(form, hash, data);
    if (length == 0)
        return hash;
    struct product sum = product_zero();
    for (size_t power = (length + 15) / 16; power > 0; power--, data += 16, length -= 16) {
        block x = reverse_bytes(length < 16 ? load_partial(data, length) : load(data));
        product_add(&sum, form, _mm_xor_si128(x, hash), power);
        hash = _mm_setzero_si128();
        if (length < 16)
            break;
    }
    return product_reduce(&sum);
}

static void expand_gcm(void *memory, const uint8_t *key, size_t key_length)
{
    struct gcm_form *form = memory;
    struct cipher cipher = {form->aes.round_key, (unsigned)(key_length / 4 + 6)};
    expand_encrypt(form, key, key_length);
    block h = _mm_setzero_si128();
    run_cipher(&h, 1, cipher, false);
    h = reverse_bytes(h);
    /* H / x: shift left over both words, and add the constant where a bit falls out, without a branch. */
    block carries = _mm_srli_epi64(h, 63);
    block out = _mm_sub_epi32(_mm_setzero_si128(), _mm_shuffle_epi32(carries, 0xaa));
    block c = _mm_and_si128(out, _mm_set_epi64x((long long)0xc200000000000000, 1));
    h = _mm_or_si128(_mm_slli_epi64(h, 1), _mm_slli_si128(carries, 8));
    h = _mm_xor_si128(h, c);
    block power = h;
    for (int i = 0; i < WIDTH; i++) {
        form->power[i] = power;
        form->folded[i] = _mm_xor_si128(power, _mm_shuffle_epi32(power, 0x4e));
        power = ghash_one(form, power);
    }
    forget();
}

/* --- GCM ------------------------------------------------------------------------------------------------ */

/* A message under way. Counter and hash are byte-reversed; the counter is the last 32 bits: one lane. */
struct running {
    block counter; /* of the next block */
    block hash;
    block pad; /* E(K, J0) */
};

INLINE block counter_plus(block counter, int n)
{
    return _mm_add_epi32(counter, _mm_set_epi32(0, 0, 0, n));
}

/* J0 of an IV of 12 bytes, in the order of memory: SP 800-38D, section 7.1, step 2. */
INLINE block first_counter_short(const uint8_t *iv)
{
    uint32_t last = cm_load32_le(iv + 8);
    block x = _mm_loadl_epi64((const block *)(const void *)iv);
    return _mm_insert_epi32(_mm_insert_epi32(x, (int)last, 2), 0x01000000, 3);
}

/* J0, byte-reversed. */
INLINE block first_counter(const struct gcm_form *form, const uint8_t *iv, size_t length)
{
    if (length == 12)
        return reverse_bytes(first_counter_short(iv));
    block hash = ghash(form, _mm_setzero_si128(), iv, length);
    return ghash_one(form, _mm_xor_si128(hash, _mm_set_epi64x(0, (long long)(length * 8))));
}

/* Compilers would gather all round keys first and sum all products last, and spill both. Nothing crosses
 * this. */
INLINE void stay_in_order(block x[WIDTH], struct product *sum)
{
    __asm__ volatile(""
                     : "+x"(x[0]), "+x"(x[1]), "+x"(x[2]), "+x"(x[3]), "+x"(x[4]), "+x"(x[5]), "+x"(x[6]),
                       "+x"(x[7]), "+x"(sum->low), "+x"(sum->middle), "+x"(sum->high)
                     :
                     : "memory");
}

/* Eight blocks of text, and meanwhile, if `hashing`, eight blocks of `hashed` into the hash: one product
 * after each round. */
INLINE void gcm_eight(const struct gcm_form *form, struct cipher cipher, struct running *run,
                      const uint8_t *source, uint8_t *destination, const uint8_t *hashed, bool hashing)
{
    block x[WIDTH];
    struct product sum = product_zero();
#pragma GCC unroll 8
    for (int i = 0; i < WIDTH; i++)
        x[i] = reverse_bytes(counter_plus(run->counter, i));
    run->counter = counter_plus(run->counter, WIDTH);
    whiten(x, WIDTH, cipher.round_key[0]);
#pragma GCC unroll 9
    for (int round = 1; round < 10; round++) {
        round_of(x, WIDTH, cipher.round_key[round], false);
        if (hashing && round <= WIDTH) {
            block data = reverse_bytes(load(hashed + 16 * (round - 1)));
            if (round == 1)
                data = _mm_xor_si128(data, run->hash);
            product_add(&sum, form, data, (size_t)(WIDTH + 1 - round));
        }
        stay_in_order(x, &sum);
    }
    if (hashing)
        run->hash = product_reduce(&sum);
    last_rounds(x, WIDTH, cipher, false);
#pragma GCC unroll 8
    for (int i = 0; i < WIDTH; i++)
        store(destination + 16 * i, _mm_xor_si128(x[i], load(source + 16 * i)));
}

/* What a message ends with: up to seven blocks, the last maybe partial, and where `lengths` is given the
 * lengths block, in one sum of products. J0 takes the place beside them; n is a constant, 0 to 7. */
INLINE void gcm_tail(const struct gcm_form *form, struct cipher cipher, struct running *run, block j0,
                     const uint8_t *source, uint8_t *destination, int n, size_t partial, const block *lengths,
                     bool decrypt)
{
    block x[WIDTH];
    struct product sum = product_zero();
    size_t power = (size_t)n + (lengths != NULL);
    block hash = run->hash;
#pragma GCC unroll 8
    for (int i = 0; i < n; i++)
        x[i] = reverse_bytes(counter_plus(run->counter, i));
    run->counter = counter_plus(run->counter, n);
    x[n] = reverse_bytes(j0);
    run_cipher(x, n + 1, cipher, false);
    run->pad = x[n];
#pragma GCC unroll 8
    for (int i = 0; i < n; i++) {
        block in, out, ciphertext;
        if (i < n - 1 || partial == 0) {
            in = load(source + 16 * i);
            out = _mm_xor_si128(in, x[i]);
            store(destination + 16 * i, out);
            ciphertext = decrypt ? in : out;
        } else {
            in = load_partial(source + 16 * i, partial);
            out = _mm_xor_si128(in, x[i]);
            store_partial(destination + 16 * i, out, partial);
            ciphertext = decrypt ? in : keep_bytes(out, partial);
        }
        product_add(&sum, form, _mm_xor_si128(reverse_bytes(ciphertext), hash), power--);
        hash = _mm_setzero_si128();
    }
    if (lengths != NULL)
        product_add(&sum, form, _mm_xor_si128(*lengths, hash), 1);
    if (n > 0 || lengths != NULL)
        run->hash = product_reduce(&sum);
}

/* One part. Encryption hashes what the step before has written, decryption what the step is about to read, so
 * that in both the products wait for nothing. */
INLINE void gcm_text(const struct gcm_form *form, struct cipher cipher, struct running *run, block j0,
                     const struct cm_aes_item *item, const block *lengths, bool decrypt)
{
    const uint8_t *source = item->source;
    uint8_t *destination = item->destination;
    size_t length = item->length;
    if (!decrypt && length >= 16 * WIDTH) {
        gcm_eight(form, cipher, run, source, destination, NULL, false);
        source += 16 * WIDTH;
        destination += 16 * WIDTH;
        for (length -= 16 * WIDTH; length >= 16 * WIDTH; length -= 16 * WIDTH) {
            gcm_eight(form, cipher, run, source, destination, destination - 16 * WIDTH, true);
            source += 16 * WIDTH;
            destination += 16 * WIDTH;
        }
        run->hash = ghash_eight(form, run->hash, destination - 16 * WIDTH);
    }
    for (; decrypt && length >= 16 * WIDTH; length -= 16 * WIDTH) {
        gcm_eight(form, cipher, run, source, destination, source, true);
        source += 16 * WIDTH;
        destination += 16 * WIDTH;
    }
    size_t blocks = (length + 15) / 16, partial = length % 16;
#define STEP(n) gcm_tail(form, cipher, run, j0, source, destination, n, partial, lengths, decrypt)
    if (blocks == WIDTH) {
        /* Seven whole blocks and a partial one: with J0, which goes along twice, they would be nine. */
        gcm_tail(form, cipher, run, j0, source, destination, 7, 0, NULL, decrypt);
        source += 16 * 7;
        destination += 16 * 7;
        STEP(1);
    } else if (blocks == 0) {
        STEP(0);
    } else {
        TAIL(blocks, STEP)
    }
#undef STEP
}

static void gcm_part(const struct cm_kernel_key *key, struct cm_aes_parts *state,
                     const struct cm_aes_item *item, bool first, bool last, uint8_t ret_tag[16])
{
    const struct gcm_form *form = (const struct gcm_form *)(const void *)key->form;
    struct cipher cipher = cipher_of(key);
    struct running run;
    block lengths = _mm_set_epi64x((long long)(state->aad_bytes * 8), (long long)(state->text_bytes * 8));
    block j0 = _mm_setzero_si128();
    if (first) {
        j0 = first_counter(form, item->iv, item->iv_length);
        run.counter = counter_plus(j0, 1);
        run.hash = ghash(form, _mm_setzero_si128(), item->aad, item->aad_length);
    } else {
        run.counter = reverse_bytes(load(state->chain));
        run.hash = reverse_bytes(load(state->hash));
    }
    if (key->kernel->direction == CM_AES_ENCRYPT)
        gcm_text(form, cipher, &run, j0, item, last ? &lengths : NULL, false);
    else
        gcm_text(form, cipher, &run, j0, item, last ? &lengths : NULL, true);
    if (first)
        store(state->first_pad, run.pad);
    store(state->chain, reverse_bytes(run.counter));
    store(state->hash, reverse_bytes(run.hash));
    if (last)
        store(ret_tag, _mm_xor_si128(reverse_bytes(run.hash), load(state->first_pad)));
    forget();
}

INLINE void put_tag(struct cm_aes_item *item, block tag, bool decrypt)
{
    uint8_t full[16];
    if (item->tag_length == 16 && !decrypt) {
        store(item->tag, tag);
        return;
    }
    if (item->tag_length == 16) {
        bool same = _mm_movemask_epi8(_mm_cmpeq_epi8(tag, load(item->tag))) == 0xffff;
        CM_DECLASSIFY(same);
        if (__builtin_expect(same, 1))
            return;
    }
    store(full, tag);
    cm_gcm_tag(decrypt ? CM_AES_DECRYPT : CM_AES_ENCRYPT, item, full);
}

/* Messages of one block go in fours, so that as many blocks are in flight as in a long one. */
enum { SINGLES = WIDTH / 2 };

INLINE bool next_are_single(const struct cm_aes_item *items, size_t count)
{
    size_t other = 0;
    if (items->ret_length != 16 || count < SINGLES)
        return false;
#pragma GCC unroll 4
    for (int i = 0; i < SINGLES; i++)
        other |= (items[i].ret_length ^ 16) | (items[i].iv_length ^ 12) | items[i].aad_length;
    return other == 0;
}

INLINE void gcm_singles(const struct gcm_form *form, struct cipher cipher, struct cm_aes_item *items,
                        bool decrypt)
{
    block x[WIDTH];
    struct product lengths = product_zero();
    product_add(&lengths, form, _mm_set_epi64x(0, 16 * 8), 1);
#pragma GCC unroll 4
    for (int i = 0; i < SINGLES; i++) {
        x[i] = first_counter_short(items[i].iv);
        x[SINGLES + i] = _mm_add_epi32(x[i], _mm_set_epi32(0x01000000, 0, 0, 0));
    }
    run_cipher(x, WIDTH, cipher, false);
#pragma GCC unroll 4
    for (int i = 0; i < SINGLES; i++) {
        struct product sum = lengths;
        block in = load(items[i].source), out = _mm_xor_si128(in, x[SINGLES + i]);
        store(items[i].destination, out);
        product_add(&sum, form, reverse_bytes(decrypt ? in : out), 2);
        x[i] = _mm_xor_si128(x[i], reverse_bytes(product_reduce(&sum)));
    }
#pragma GCC unroll 4
    for (int i = 0; i < SINGLES; i++)
        put_tag(&items[i], x[i], decrypt);
}

/* A message is a part that is both first and last, without the way through memory. */
INLINE void gcm_messages(const struct cm_kernel_key *key, struct cm_aes_item *items, size_t count,
                         bool decrypt)
{
    const struct gcm_form *form = (const struct gcm_form *)(const void *)key->form;
    struct cipher cipher = cipher_of(key);
    for (size_t i = 0; i < count; i++) {
        struct cm_aes_item *item = &items[i];
        if (next_are_single(item, count - i)) {
            gcm_singles(form, cipher, item, decrypt);
            i += SINGLES - 1;
            continue;
        }
        struct running run;
        if (item->ret_status != CM_AES_OK)
            continue;
        block lengths = _mm_set_epi64x((long long)((uint64_t)item->aad_length * 8),
                                       (long long)((uint64_t)item->length * 8));
        block j0 = first_counter(form, item->iv, item->iv_length);
        run.counter = counter_plus(j0, 1);
        run.hash = ghash(form, _mm_setzero_si128(), item->aad, item->aad_length);
        gcm_text(form, cipher, &run, j0, item, &lengths, decrypt);
        put_tag(item, _mm_xor_si128(reverse_bytes(run.hash), run.pad), decrypt);
    }
    forget();
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
