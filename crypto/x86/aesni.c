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
 * wiped with the stack, once a batch, and the registers are cleared by `forget` at the end of each kernel.
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
#include "impl.h"

#include "block.h"
#include "cpu.h"

enum { WIDTH = 8 };

struct form {
    block round_key[15]; /* in the order of use */
};

struct gcm_form {
    struct form aes;
    block power[WIDTH];  /* H^(i+1) / x */
    block folded[WIDTH]; /* in both halves: high half + low half of that */
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

/* J0, byte-reversed: SP 800-38D, section 7.1, step 2. */
INLINE block first_counter(const struct gcm_form *form, const uint8_t *iv, size_t length)
{
    if (length == 12) {
        uint32_t last = cm_load32_le(iv + 8);
        block x = _mm_loadl_epi64((const block *)(const void *)iv);
        return reverse_bytes(_mm_insert_epi32(_mm_insert_epi32(x, (int)last, 2), 0x01000000, 3));
    }
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

/* A message is a part that is both first and last, without the way through memory. */
INLINE void gcm_messages(const struct cm_kernel_key *key, struct cm_aes_item *items, size_t count,
                         bool decrypt)
{
    const struct gcm_form *form = (const struct gcm_form *)(const void *)key->form;
    struct cipher cipher = cipher_of(key);
    for (size_t i = 0; i < count; i++) {
        struct cm_aes_item *item = &items[i];
        struct running run;
        uint8_t tag[16];
        if (item->ret_status != CM_AES_OK)
            continue;
        block lengths = _mm_set_epi64x((long long)((uint64_t)item->aad_length * 8),
                                       (long long)((uint64_t)item->length * 8));
        block j0 = first_counter(form, item->iv, item->iv_length);
        run.counter = counter_plus(j0, 1);
        run.hash = ghash(form, _mm_setzero_si128(), item->aad, item->aad_length);
        gcm_text(form, cipher, &run, j0, item, &lengths, decrypt);
        store(tag, _mm_xor_si128(reverse_bytes(run.hash), run.pad));
        cm_gcm_tag(decrypt ? CM_AES_DECRYPT : CM_AES_ENCRYPT, item, tag);
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
            },
};
