/* SPDX-License-Identifier: Apache-2.0 */
/* XTS with VAES at either vector width: IEEE Std 1619, sections 5.1 to 5.4.
 *
 * Prototypes, in words: as in vaes_template.h.
 *
 * Tweaks. Those of GROUP messages are encrypted together, one a lane. The tweaks of a message's blocks are T,
 * T x, T x^2, ...: little-endian numbers in which bit i stands for x^i, so that multiplying by x^n is a shift
 * to the left; the n bits that fall out, a polynomial c, come back as c (x^7 + x^2 + x + 1), a carry-less
 * product by 0x87 of at most 39 bits. The lanes of a vector differ by one power each, vectors by LANES, and a
 * whole step moves all of them by x^(LANES * WIDTH): whole bytes, so one byte shift each way and one product.
 * There is no chain between vectors, and none longer than one product between steps.
 *
 * Blocks in flight: as in the template, eight vectors. A message of a single block shares them with others,
 * and so do messages of 64 bytes; longer ones overlap in the processor's window.
 *
 * Ciphertext stealing, section 5.3.2: the last whole block of a ragged data unit and its end are computed
 * apart, one after the other, from copies of the source; nothing that was written is read again.
 *
 * Registers: x[0..7], the blocks in flight; a round key, a tweak and three temporaries. Tweaks lie on the
 * stack between their uses, which costs a load and a store for each and is no slower than registers at 512
 * bits; at 256 there is no room for them. The frames are wiped as said in the template. */
#ifndef CM_X86_VAES_XTS_H
#define CM_X86_VAES_XTS_H

#include "vaes_template.h"

struct xts_form {
    struct form aes;
    struct form tweak;
};

/* Bounds on the frames, as in vaes_rows.h. What only ragged ends soil is wiped apart. */
#ifdef __clang__
enum { XTS_STACK_BYTES = 2304, RAGGED_STACK_BYTES = 1664 };
#else
enum { XTS_STACK_BYTES = 1920, RAGGED_STACK_BYTES = 1280 };
#endif

/* Messages whose tweaks are encrypted together. */
enum { GROUP = 16, XTS_VECTORS = GROUP / LANES };

struct xts_ciphers {
    struct cipher text, tweak;
};

INLINE struct xts_ciphers xts_ciphers_of(const struct cm_kernel_key *key)
{
    const struct xts_form *form = (const struct xts_form *)(const void *)key->form;
    return (struct xts_ciphers){{form->aes.round_key, key->rounds}, {form->tweak.round_key, key->rounds}};
}

static void expand_xts_encrypt(void *form, const uint8_t *key, size_t key_length)
{
    struct xts_form *made = form;
    expand_encrypt(&made->aes, key, key_length / 2);
    expand_encrypt(&made->tweak, key + key_length / 2, key_length / 2);
}

static void expand_xts_decrypt(void *form, const uint8_t *key, size_t key_length)
{
    struct xts_form *made = form;
    expand_decrypt(&made->aes, key, key_length / 2);
    expand_encrypt(&made->tweak, key + key_length / 2, key_length / 2);
}

/* --- Tweaks --------------------------------------------------------------------------------------------- */

/* t x^(8 n) in every lane, by whole bytes; n is a constant, up to 4. Clang takes nothing but a literal. */
#define TWEAK_TIMES_BYTES(t, n)                                                                              \
    v_xor(v_bytes_up(t, n), v_multiply(v_bytes_down(t, 16 - (n)), v_broadcast(_mm_set_epi64x(0, 0x87)), 0x00))

/* t x^n in every lane; n is a constant, at most 28. */
INLINE vector tweak_times(vector t, int n)
{
    if (n == 8)
        return TWEAK_TIMES_BYTES(t, 1);
    if (n == 16)
        return TWEAK_TIMES_BYTES(t, 2);
    if (n == 24)
        return TWEAK_TIMES_BYTES(t, 3);
    vector carries = v_bits_down(t, 64 - n);
    vector out = v_multiply(carries, v_broadcast(_mm_set_epi64x(0, 0x87)), 0x01);
    return v_xor3(v_bits_up(t, n), v_bytes_up(carries, 8), out);
}

/* t x^(LANES * WIDTH): one step further. */
INLINE vector tweak_next(vector t)
{
    return TWEAK_TIMES_BYTES(t, LANES * WIDTH / 8);
}

/* From one T in every lane: T x^i in lane i. Shifts by 64 give 0, as lane 0 needs. */
INLINE vector tweak_lanes(vector t)
{
    vector up = v_pair_numbers(), down = V(sub_epi64)(v_broadcast(_mm_set1_epi64x(64)), up);
    vector reduction = v_broadcast(_mm_set_epi64x(0, 0x87));
    vector carries = V(srlv_epi64)(t, down);
    vector out = v_multiply(carries, reduction, 0x01);
    return v_xor3(V(sllv_epi64)(t, up), v_bytes_up(carries, 8), out);
}

/* A step's tweaks, in memory: at 256 bits they would not fit beside the blocks in flight. */
struct tweaks {
    alignas(VECTOR_BYTES) uint8_t bytes[STEP_BYTES];
};

INLINE vector tweak_get(const struct tweaks *t, int u)
{
    return v_load(t->bytes + VECTOR_BYTES * u);
}

INLINE void tweak_put(struct tweaks *t, int u, vector tweak)
{
    v_store(t->bytes + VECTOR_BYTES * u, tweak);
}

/* Vector u of the tweaks of messages that have `each` vectors, a constant; the vectors before it are there.
 * Message by message stands its encrypted tweak. */
INLINE void tweak_make(struct tweaks *t, int u, int each, const uint8_t (*encrypted)[16])
{
    int from = u / each * each;
    vector made = u == from ? tweak_lanes(v_broadcast(load(encrypted[u / each])))
                            : tweak_times(tweak_get(t, from), LANES * (u - from));
    tweak_put(t, u, made);
}

/* The first n. */
INLINE void tweaks_make(struct tweaks *t, int n, int each, const uint8_t (*encrypted)[16])
{
#pragma GCC unroll 8
    for (int u = 0; u < n; u++)
        tweak_make(t, u, each, encrypted);
}

/* --- Steps ---------------------------------------------------------------------------------------------- */

/* n vectors with tweaks t. Where the message goes on, `next` gets the tweaks of the step after, one a round:
 * made in one go before their own rounds, they would wait behind those of this step in the processor's
 * queues. */
INLINE void xts_rounds(struct cipher cipher, vector *x, const struct tweaks *t, int n, bool decrypt,
                       struct tweaks *next)
{
#pragma GCC unroll 8
    for (int u = 0; u < n; u++)
        x[u] = v_xor(x[u], tweak_get(t, u));
    whiten(x, n, cipher.round_key[0]);
#pragma GCC unroll 9
    for (int round = 1; round < 10; round++) {
        int u = round - 1;
        round_of(x, n, cipher.round_key[round], decrypt);
        if (next != NULL && u < n)
            tweak_put(next, u, tweak_next(tweak_get(t, u)));
        /* Keeps the compiler from holding tweaks and round keys over the rounds where that is too much. */
        if (next != NULL || VECTOR_BITS == 256)
            __asm__ volatile("" : : : "memory");
    }
    more_rounds(x, n, cipher, decrypt);
    last_round(x, n, cipher, decrypt);
#pragma GCC unroll 8
    for (int u = 0; u < n; u++)
        x[u] = v_xor(x[u], tweak_get(t, u));
}

/* n vectors of one message, the last of `last` bytes. */
INLINE void xts_step(struct cipher cipher, const struct tweaks *t, const uint8_t *source,
                     uint8_t *destination, int n, size_t last, bool decrypt, struct tweaks *next)
{
    vector x[WIDTH];
#pragma GCC unroll 8
    for (int u = 0; u < n; u++)
        x[u] = load_one(source, u, n, last);
    xts_rounds(cipher, x, t, n, decrypt, next);
#pragma GCC unroll 8
    for (int u = 0; u < n; u++)
        store_blocks(destination, x[u], u, n, last);
}

INLINE block xts_block(struct cipher cipher, block x, block tweak, bool decrypt)
{
    x = _mm_xor_si128(_mm_xor_si128(x, tweak), V_LOW(cipher.round_key[0]));
    for (unsigned round = 1; round < cipher.rounds; round++)
        x = decrypt ? _mm_aesdec_si128(x, V_LOW(cipher.round_key[round]))
                    : _mm_aesenc_si128(x, V_LOW(cipher.round_key[round]));
    block last = V_LOW(cipher.round_key[cipher.rounds]);
    return _mm_xor_si128(decrypt ? _mm_aesdeclast_si128(x, last) : _mm_aesenclast_si128(x, last), tweak);
}

/* The last block and 1 to 15 bytes more; `tweak` is the block's. Decryption uses the later tweak first. */
INLINE void xts_steal(struct cipher cipher, block tweak, const uint8_t *source, uint8_t *destination,
                      size_t rest, bool decrypt)
{
    block later = V_LOW(tweak_times(v_of_low(tweak), 1));
    block first = load(source), end = load_partial(source + 16, rest);
    block whole = xts_block(cipher, first, decrypt ? later : tweak, decrypt);
    block mixed = _mm_xor_si128(_mm_xor_si128(whole, keep_bytes(whole, rest)), end);
    store_partial(destination + 16, whole, rest);
    store(destination, xts_block(cipher, mixed, decrypt ? tweak : later, decrypt));
}

/* --- Messages ------------------------------------------------------------------------------------------- */

/* Whole blocks of one message. t[0] has the first tweaks; returns the one that has those from the last begun
 * step on. */
INLINE const struct tweaks *xts_blocks(struct cipher cipher, struct tweaks t[2], const uint8_t *source,
                                       uint8_t *destination, size_t length, bool decrypt)
{
    struct tweaks *now = &t[0], *next = &t[1];
    for (; length >= STEP_BYTES; length -= STEP_BYTES, source += STEP_BYTES, destination += STEP_BYTES) {
        xts_step(cipher, now, source, destination, WIDTH, VECTOR_BYTES, decrypt, next);
        struct tweaks *used = now;
        now = next;
        next = used;
    }
    if (length > 0) {
        struct tail tail = tail_of(length);
#define STEP(n) xts_step(cipher, now, source, destination, n, tail.last, decrypt, NULL)
        TAIL(tail.vectors, STEP)
#undef STEP
    }
    return now;
}

/* A data unit with a ragged end. `encrypted` is its tweak. */
__attribute__((noinline)) static void xts_ragged(struct cipher cipher, const uint8_t (*encrypted)[16],
                                                 const struct cm_aes_item *item, bool decrypt)
{
    size_t rest = item->ret_length % 16, length = item->ret_length - rest - 16;
    const uint8_t *source = item->source;
    uint8_t *destination = item->destination;
    const struct tweaks *end;
    struct tweaks t[2];
    tweaks_make(t, WIDTH, WIDTH, encrypted);
    if (decrypt)
        end = xts_blocks(cipher, t, source, destination, length, true);
    else
        end = xts_blocks(cipher, t, source, destination, length, false);
    block tweak = load(end->bytes + length % STEP_BYTES);
    if (decrypt)
        xts_steal(cipher, tweak, source + length, destination + length, rest, true);
    else
        xts_steal(cipher, tweak, source + length, destination + length, rest, false);
}

/* `encrypted` is the message's tweak. */
INLINE void xts_message(struct cipher cipher, const uint8_t (*encrypted)[16], const struct cm_aes_item *item,
                        bool decrypt)
{
    struct tweaks t[2];
    if (item->ret_length % 16 != 0) {
        xts_ragged(cipher, encrypted, item, decrypt);
    } else if (item->ret_length > STEP_BYTES) {
        tweaks_make(t, WIDTH, WIDTH, encrypted);
        (void)xts_blocks(cipher, t, item->source, item->destination, item->ret_length, decrypt);
    } else {
        struct tail tail = tail_of(item->ret_length);
#define STEP(n)                                                                                              \
    tweaks_make(t, n, n, encrypted);                                                                         \
    xts_step(cipher, t, item->source, item->destination, n, tail.last, decrypt, NULL)
        TAIL(tail.vectors, STEP)
#undef STEP
    }
}

/* n vectors of messages of a block each, n a constant. */
INLINE void xts_singles(struct xts_ciphers ciphers, const struct cm_aes_item *items, int n, bool decrypt)
{
    vector t[XTS_VECTORS], x[XTS_VECTORS];
#pragma GCC unroll 8
    for (int u = 0; u < n; u++) {
        const uint8_t *tweak[LANES];
#pragma GCC unroll 4
        for (int i = 0; i < LANES; i++)
            tweak[i] = items[LANES * u + i].iv;
        t[u] = v_gather(tweak);
    }
    run_cipher(t, n, ciphers.tweak, false);
#pragma GCC unroll 8
    for (int u = 0; u < n; u++) {
        const uint8_t *source[LANES];
#pragma GCC unroll 4
        for (int i = 0; i < LANES; i++)
            source[i] = items[LANES * u + i].source;
        x[u] = v_xor(v_gather(source), t[u]);
    }
    run_cipher(x, n, ciphers.text, decrypt);
#pragma GCC unroll 8
    for (int u = 0; u < n; u++) {
        uint8_t *destination[LANES];
#pragma GCC unroll 4
        for (int i = 0; i < LANES; i++)
            destination[i] = items[LANES * u + i].destination;
        v_scatter(destination, v_xor(x[u], t[u]));
    }
}

/* Messages of 64 bytes, as many as fill a step. */
INLINE void xts_smalls(struct cipher cipher, const uint8_t (*encrypted)[16],
                       const struct cm_aes_item *const *items, bool decrypt)
{
    const int n = SMALL_MESSAGES * SMALL_VECTORS;
    struct tweaks t;
    vector x[SMALL_MESSAGES * SMALL_VECTORS];
    tweaks_make(&t, n, SMALL_VECTORS, encrypted);
#pragma GCC unroll 8
    for (int u = 0; u < n; u++)
        x[u] = v_load(items[u / SMALL_VECTORS]->source + VECTOR_BYTES * (u % SMALL_VECTORS));
    xts_rounds(cipher, x, &t, n, decrypt, NULL);
#pragma GCC unroll 8
    for (int u = 0; u < n; u++)
        v_store(items[u / SMALL_VECTORS]->destination + VECTOR_BYTES * (u % SMALL_VECTORS), x[u]);
}

/* n vectors of encrypted tweaks. */
INLINE void xts_tweaks(struct cipher cipher, const struct cm_aes_item *const *items, size_t count, int n,
                       uint8_t (*ret_tweaks)[16])
{
    vector t[XTS_VECTORS];
#pragma GCC unroll 8
    for (int u = 0; u < n; u++) {
        const uint8_t *tweak[LANES];
#pragma GCC unroll 4
        for (size_t i = 0; i < LANES; i++) {
            size_t at = LANES * (size_t)u + i;
            tweak[i] = items[at < count ? at : 0]->iv;
        }
        t[u] = v_gather(tweak);
    }
    run_cipher(t, n, cipher, false);
#pragma GCC unroll 8
    for (int u = 0; u < n; u++)
        v_store(ret_tweaks[LANES * u], t[u]);
}

INLINE bool xts_are_small(const struct cm_aes_item *const *items)
{
    size_t other = 0;
#pragma GCC unroll 4
    for (int i = 0; i < SMALL_MESSAGES; i++)
        other |= items[i]->ret_length ^ SMALL_BYTES;
    return other == 0;
}

INLINE void xts(const struct cm_kernel_key *key, struct cm_aes_item *items, size_t count, bool decrypt)
{
    struct xts_ciphers ciphers = xts_ciphers_of(key);
    size_t ragged = 0;
    for (size_t next = 0; next < count;) {
        if (next_are_single(items + next, count - next, GROUP)) {
            xts_singles(ciphers, items + next, XTS_VECTORS, decrypt);
            next += GROUP;
            continue;
        }
        if (next_are_single(items + next, count - next, LANES)) {
            xts_singles(ciphers, items + next, 1, decrypt);
            next += LANES;
            continue;
        }
        alignas(64) uint8_t tweaks[GROUP][16];
        const struct cm_aes_item *group[GROUP];
        size_t size = 0;
        for (; next < count && size < GROUP; next++)
            if (items[next].ret_status == CM_AES_OK)
                group[size++] = &items[next];
        if (size == 0)
            break;
        if (size <= LANES)
            xts_tweaks(ciphers.tweak, group, size, 1, tweaks);
        else
            xts_tweaks(ciphers.tweak, group, size, XTS_VECTORS, tweaks);
        for (size_t i = 0; i < size;) {
            if (size - i >= SMALL_MESSAGES && xts_are_small(group + i)) {
                xts_smalls(ciphers.text, tweaks + i, group + i, decrypt);
                i += SMALL_MESSAGES;
            } else {
                xts_message(ciphers.text, tweaks + i, group[i], decrypt);
                ragged |= group[i]->ret_length % 16;
                i++;
            }
        }
    }
    if (ragged != 0) /* not as the last thing, lest the compiler give up this frame before */
        cm_wipe_stack(RAGGED_STACK_BYTES);
    v_forget();
}

static void xts_encrypt(const struct cm_kernel_key *key, struct cm_aes_item *items, size_t count)
{
    xts(key, items, count, false);
}

static void xts_decrypt(const struct cm_kernel_key *key, struct cm_aes_item *items, size_t count)
{
    xts(key, items, count, true);
}

#endif
