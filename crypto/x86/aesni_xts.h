/* SPDX-License-Identifier: Apache-2.0 */
/* XTS with AES-NI: IEEE Std 1619, sections 5.1 to 5.4; the last part of aesni.c.
 *
 * Tweaks of eight messages are encrypted together. From block to block a tweak, a little-endian number in
 * which bit i stands for x^i, is doubled: both halves shifted left by one, the bit that leaves the low half
 * added to the high one, and 0x87 (x^7 + x^2 + x + 1) to the low one if a bit left the high one.
 *
 * Blocks in flight: eight, of one message, or of eight that have a block each. Registers: x[0..7], and eight
 * tweaks, some of which the compiler keeps on the stack; it is wiped once a batch.
 *
 * Ciphertext stealing, section 5.3.2: the last whole block of a ragged data unit and its end are computed
 * apart, one after the other, from copies of the source; nothing that was written is read again. */
#ifndef CM_X86_AESNI_XTS_H
#define CM_X86_AESNI_XTS_H

struct xts_form {
    struct form aes;
    struct form tweak;
};

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

INLINE block tweak_double(block tweak)
{
    /* The top bit of each half, in all bits of the other half's lowest word. */
    block tops = _mm_srai_epi32(_mm_shuffle_epi32(tweak, 0x13), 31);
    return _mm_xor_si128(_mm_add_epi64(tweak, tweak), _mm_and_si128(tops, _mm_set_epi32(0, 1, 0, 0x87)));
}

/* n blocks; returns the tweak of the block behind them. */
INLINE block xts_step(struct cipher cipher, block tweak, const uint8_t *source, uint8_t *destination, int n,
                      bool decrypt)
{
    block x[WIDTH], t[WIDTH];
#pragma GCC unroll 8
    for (int i = 0; i < n; i++) {
        t[i] = tweak;
        x[i] = _mm_xor_si128(load(source + 16 * i), tweak);
        tweak = tweak_double(tweak);
    }
    run_cipher(x, n, cipher, decrypt);
#pragma GCC unroll 8
    for (int i = 0; i < n; i++)
        store(destination + 16 * i, _mm_xor_si128(x[i], t[i]));
    return tweak;
}

/* A full step, and the tweaks of the next one between its rounds: made in one go before the rounds, they
 * would wait behind those of the step before in the processor's queues. */
INLINE void xts_wide_step(struct cipher cipher, block t[WIDTH], const uint8_t *source, uint8_t *destination,
                          bool decrypt)
{
    block x[WIDTH], next[WIDTH], tweak = t[WIDTH - 1];
#pragma GCC unroll 8
    for (int i = 0; i < WIDTH; i++)
        x[i] = _mm_xor_si128(load(source + 16 * i), t[i]);
    whiten(x, WIDTH, cipher.round_key[0]);
#pragma GCC unroll 9
    for (int round = 1; round < 10; round++) {
        round_of(x, WIDTH, cipher.round_key[round], decrypt);
        if (round <= WIDTH)
            next[round - 1] = tweak = tweak_double(tweak);
    }
    last_rounds(x, WIDTH, cipher, decrypt);
#pragma GCC unroll 8
    for (int i = 0; i < WIDTH; i++) {
        store(destination + 16 * i, _mm_xor_si128(x[i], t[i]));
        t[i] = next[i];
    }
}

INLINE block xts_block(struct cipher cipher, block x, block tweak, bool decrypt)
{
    block only = _mm_xor_si128(x, tweak);
    run_cipher(&only, 1, cipher, decrypt);
    return _mm_xor_si128(only, tweak);
}

/* The last block and 1 to 15 bytes more; `tweak` is the block's. Decryption uses the later tweak first. */
INLINE void xts_steal(struct cipher cipher, block tweak, const uint8_t *source, uint8_t *destination,
                      size_t rest, bool decrypt)
{
    block later = tweak_double(tweak);
    block first = load(source), end = load_partial(source + 16, rest);
    block whole = xts_block(cipher, first, decrypt ? later : tweak, decrypt);
    block mixed = _mm_xor_si128(_mm_xor_si128(whole, keep_bytes(whole, rest)), end);
    store_partial(destination + 16, whole, rest);
    store(destination, xts_block(cipher, mixed, decrypt ? tweak : later, decrypt));
}

INLINE void xts_message(struct cipher cipher, block tweak, const struct cm_aes_item *item, bool decrypt)
{
    const uint8_t *source = item->source;
    uint8_t *destination = item->destination;
    size_t rest = item->ret_length % 16;
    size_t blocks = item->ret_length / 16 - (rest > 0);
    if (blocks >= WIDTH) {
        block t[WIDTH] = {tweak};
#pragma GCC unroll 8
        for (int i = 1; i < WIDTH; i++)
            t[i] = tweak_double(t[i - 1]);
        for (; blocks >= WIDTH; blocks -= WIDTH, source += 16 * WIDTH, destination += 16 * WIDTH)
            xts_wide_step(cipher, t, source, destination, decrypt);
        tweak = t[0];
    }
#define STEP(n) tweak = xts_step(cipher, tweak, source, destination, n, decrypt)
    TAIL(blocks, STEP)
#undef STEP
    if (rest > 0)
        xts_steal(cipher, tweak, source + 16 * blocks, destination + 16 * blocks, rest, decrypt);
}

/* The next items whose status is good, up to WIDTH; returns their number. */
INLINE size_t xts_group(struct cm_aes_item *items, size_t count, size_t *next,
                        const struct cm_aes_item *ret_group[WIDTH])
{
    size_t size = 0;
    for (; *next < count && size < WIDTH; (*next)++)
        if (items[*next].ret_status == CM_AES_OK)
            ret_group[size++] = &items[*next];
    return size;
}

INLINE void xts(const struct cm_kernel_key *key, struct cm_aes_item *items, size_t count, bool decrypt)
{
    struct xts_ciphers ciphers = xts_ciphers_of(key);
    const struct cm_aes_item *group[WIDTH];
    block tweaks[WIDTH], x[WIDTH];
    size_t next = 0, size;
    while ((size = xts_group(items, count, &next, group)) > 0) {
        size_t longer = 0;
#pragma GCC unroll 8
        for (size_t i = 0; i < WIDTH; i++) {
            const struct cm_aes_item *item = group[i < size ? i : 0];
            tweaks[i] = load(item->iv);
            longer |= item->ret_length ^ 16;
        }
        if (size == 1)
            run_cipher(tweaks, 1, ciphers.tweak, false);
        else
            run_cipher(tweaks, WIDTH, ciphers.tweak, false);
        if (longer == 0 && size == WIDTH) {
#pragma GCC unroll 8
            for (size_t i = 0; i < WIDTH; i++)
                x[i] = _mm_xor_si128(load(group[i]->source), tweaks[i]);
            run_cipher(x, WIDTH, ciphers.text, decrypt);
#pragma GCC unroll 8
            for (size_t i = 0; i < WIDTH; i++)
                store(group[i]->destination, _mm_xor_si128(x[i], tweaks[i]));
            continue;
        }
        for (size_t i = 0; i < size; i++)
            xts_message(ciphers.text, tweaks[i], group[i], decrypt);
    }
    forget();
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
