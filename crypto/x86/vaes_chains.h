/* SPDX-License-Identifier: Apache-2.0 */
/* CBC encryption: sixteen messages at once, two in each of eight 256-bit registers, at either vector width.
 *
 * A block waits for the one before it, so one message alone gets one VAESENC every four cycles. Eight
 * registers fill those four cycles; two messages to a register because that is what a load and an insert cost
 * least at (four to a 512-bit one need three inserts and three extracts a block, on the ports that the rounds
 * want).
 *
 * Registers. x[0..7], the chains; everything else comes from memory: the messages' addresses, of which there
 * are more than integer registers, and the round keys. */
#ifndef CM_X86_VAES_CHAINS_H
#define CM_X86_VAES_CHAINS_H

#include "vaes_template.h"

enum { CHAINS = 16 };

/* Bound on the frame of `chains_unlike` and what it calls (GCC 12 and Clang 14). It is wiped here, since most
 * batches of short messages never get there, and would feel it. */
#ifdef __clang__
enum { CHAINS_STACK_BYTES = 1536 };
#else
enum { CHAINS_STACK_BYTES = 1280 };
#endif

typedef __m256i pair;

/* Chains under way. All share one position, in bytes, which only ever grows; a message's addresses are kept
 * less the position at which it began, so that nothing but the position moves. */
struct chains {
    alignas(32) block chain[CHAINS];
    uintptr_t source[CHAINS], destination[CHAINS];
    size_t end[CHAINS];  /* where the chain needs attention */
    bool padded[CHAINS]; /* one more block, in the destination */
    size_t position;
};

/* Gives chain i its next message; false if there is none. */
INLINE bool chain_fill(struct chains *chains, int i, struct cm_aes_item **next, const struct cm_aes_item *end)
{
    for (; *next < end; (*next)++) {
        const struct cm_aes_item *item = *next;
        size_t length = item->ret_length;
        if (length == 0)
            continue;
        bool padded = length > item->length;
        bool apart = padded && item->source != item->destination && length > 16;
        const uint8_t *source = padded && length == 16 ? item->destination : item->source;
        chains->source[i] = (uintptr_t)source - chains->position;
        chains->destination[i] = (uintptr_t)item->destination - chains->position;
        chains->end[i] = chains->position + (apart ? length - 16 : length);
        chains->padded[i] = apart;
        chains->chain[i] = load(item->iv);
        (*next)++;
        return true;
    }
    return false;
}

INLINE pair pair_of(block low, block high)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

/* x ^ text ^ round_key, of which only x has to be waited for. */
INLINE pair pair_whiten(pair x, pair text, pair round_key, bool in_step)
{
#if VECTOR_BITS == 512
    /* Saves a port's cycle where all chains start together; where they are skewed, two additions were
     * measured to be faster (bench-kernels --modes cbc-encrypt --stride contiguous). */
    if (in_step)
        return _mm256_ternarylogic_epi64(x, text, round_key, 0x96);
    return _mm256_xor_si256(x, _mm256_xor_si256(text, round_key));
#else
    (void)in_step;
    text = _mm256_xor_si256(text, round_key);
    /* Otherwise the compiler would add the two to x one after the other, and spill some of x meanwhile. */
    __asm__("" : "+x"(text));
    x = _mm256_xor_si256(x, text);
    __asm__ volatile("" : "+x"(x));
    return x;
#endif
}

INLINE pair pair_key(struct cipher cipher, unsigned round)
{
    return _mm256_load_si256((const pair *)(const void *)&cipher.round_key[round]);
}

INLINE block block_key(struct cipher cipher, unsigned round)
{
    return _mm_load_si128((const block *)(const void *)&cipher.round_key[round]);
}

INLINE void pairs_round(pair *x, int n, pair round_key)
{
#pragma GCC unroll 8
    for (int u = 0; u < n; u++)
        x[u] = _mm256_aesenc_epi128(x[u], round_key);
}

/* Where the addresses of all messages' texts stand: the first one's, and how far to the next. */
struct addresses {
    const void *source, *destination;
    size_t stride;
};

INLINE const uint8_t *source_of(struct addresses from, int i, size_t at)
{
    const char *place = (const char *)from.source + (size_t)i * from.stride;
    return (const uint8_t *)(*(const uintptr_t *)(const void *)place + at);
}

INLINE uint8_t *destination_of(struct addresses to, int i, size_t at)
{
    const char *place = (const char *)to.destination + (size_t)i * to.stride;
    return (uint8_t *)(*(const uintptr_t *)(const void *)place + at);
}

/* One block of every chain. */
INLINE void chains_block(struct cipher cipher, pair *x, struct addresses addresses, int n, size_t at,
                         bool in_step)
{
    pair first = pair_key(cipher, 0);
#pragma GCC unroll 8
    for (int u = 0; u < n; u++) {
        pair text = pair_of(load(source_of(addresses, 2 * u, at)), load(source_of(addresses, 2 * u + 1, at)));
        x[u] = pair_whiten(x[u], text, first, in_step);
    }
#pragma GCC unroll 9
    for (unsigned round = 1; round < 10; round++)
        pairs_round(x, n, pair_key(cipher, round));
    if (cipher.rounds > 10) {
        pairs_round(x, n, pair_key(cipher, 10));
        pairs_round(x, n, pair_key(cipher, 11));
        if (cipher.rounds > 12) {
            pairs_round(x, n, pair_key(cipher, 12));
            pairs_round(x, n, pair_key(cipher, 13));
        }
    }
    pair last = pair_key(cipher, cipher.rounds);
#pragma GCC unroll 8
    for (int u = 0; u < n; u++) {
        x[u] = _mm256_aesenclast_epi128(x[u], last);
        store(destination_of(addresses, 2 * u, at), _mm256_castsi256_si128(x[u]));
        store(destination_of(addresses, 2 * u + 1, at), _mm256_extracti128_si256(x[u], 1));
    }
}

/* Every one of 2 * n chains from one position to another, n and the stride constants. */
INLINE void chains_run(struct cipher cipher, pair *x, struct addresses addresses, int n, size_t at,
                       size_t end, bool in_step)
{
    for (; at < end; at += 16)
        chains_block(cipher, x, addresses, n, at, in_step);
}

/* The same from and to the state of the chains. */
INLINE void chains_go_on(struct cipher cipher, struct chains *chains, int n, size_t end)
{
    pair x[CHAINS / 2];
    struct addresses addresses = {chains->source, chains->destination, sizeof chains->source[0]};
#pragma GCC unroll 8
    for (int u = 0; u < n; u++) /* by halves, as they were stored a moment ago */
        x[u] = pair_of(chains->chain[2 * u], chains->chain[2 * u + 1]);
    chains_run(cipher, x, addresses, n, chains->position, end, false);
#pragma GCC unroll 8
    for (int u = 0; u < n; u++)
        _mm256_store_si256((pair *)(void *)&chains->chain[2 * u], x[u]);
}

static void chain_copy(struct chains *chains, int to, int from)
{
    chains->source[to] = chains->source[from];
    chains->destination[to] = chains->destination[from];
    chains->end[to] = chains->end[from];
    chains->padded[to] = chains->padded[from];
    chains->chain[to] = chains->chain[from];
}

/* Runs every chain that is in use up to position `end`. An odd last one has itself beside it: both read the
 * same blocks before either writes, and write the same. */
static void chains_advance(struct cipher cipher, struct chains *chains, int used, size_t end)
{
    if (used % 2 != 0)
        chain_copy(chains, used, used - 1);
#define STEP(n) chains_go_on(cipher, chains, n, end)
    TAIL((used + 1) / 2, STEP)
#undef STEP
    chains->position = end;
}

/* Turns chains that have come to an end to their padded block or to the next message; closes the gaps that
 * are left. Returns how many go on. */
static int chains_renew(struct chains *chains, int used, struct cm_aes_item **next,
                        const struct cm_aes_item *end)
{
    for (int i = 0; i < used;) {
        if (chains->end[i] == chains->position && chains->padded[i]) {
            chains->padded[i] = false;
            chains->source[i] = chains->destination[i];
            chains->end[i] += 16;
        } else if (chains->end[i] == chains->position && !chain_fill(chains, i, next, end)) {
            chain_copy(chains, i, --used);
            continue;
        }
        i++;
    }
    return used;
}

/* Messages that lie a multiple of 4 KiB apart would all use the same few sets of the first-level cache, and,
 * worked on apart, miss it all the time. Where the first two long messages lie so, each chain starts one
 * cache line behind the one before it, and keeps that distance. Returns the number of blocks to run before
 * the next chain starts; 0: all start at once. */
static size_t chains_pace(const struct cm_aes_item *items, size_t count)
{
    if (count < 2 || items[0].length < 2048)
        return 0;
    uintptr_t distance = (uintptr_t)items[1].source - (uintptr_t)items[0].source;
    return (distance + 64) % 4096 < 128 ? 64 : 0;
}

/* Whether the next items fill all chains and are of one length, each in one piece. */
INLINE bool next_are_equal(const struct cm_aes_item *items, size_t count)
{
    if (count < CHAINS || items->ret_length == 0)
        return false;
    size_t other = 0;
#pragma GCC unroll 1
    for (size_t i = 0; i < CHAINS; i++) {
        size_t padding = items[i].length ^ items[i].ret_length;
        other |= items[i].ret_length ^ items->ret_length;
        other |= items[i].source == items[i].destination ? 0 : padding;
    }
    return other == 0;
}

/* Sixteen messages of one length from start to end: nothing has to be looked at in between. */
INLINE void chains_run_equal(struct cipher cipher, const struct cm_aes_item *items)
{
    pair x[CHAINS / 2];
    struct addresses addresses = {&items->source, &items->destination, sizeof *items};
#pragma GCC unroll 8
    for (int u = 0; u < CHAINS / 2; u++)
        x[u] = pair_of(load(items[2 * u].iv), load(items[2 * u + 1].iv));
    chains_run(cipher, x, addresses, CHAINS / 2, 0, items->ret_length, true);
}

/* Messages of any length, each chain taking the next one as it comes to an end. */
__attribute__((noinline)) static void chains_unlike(struct cipher cipher, struct cm_aes_item *next,
                                                    const struct cm_aes_item *end, size_t pace)
{
    struct chains chains;
    chains.position = 0;
    int used = 0;
    for (;;) {
        while (used < CHAINS && chain_fill(&chains, used, &next, end)) {
            used++;
            if (pace > 0)
                break;
        }
        if (used == 0)
            break;
        size_t stop = chains.end[0];
        for (int i = 1; i < used; i++)
            stop = chains.end[i] < stop ? chains.end[i] : stop;
        if (pace > 0 && used < CHAINS && next < end && stop > chains.position + pace)
            stop = chains.position + pace;
        chains_advance(cipher, &chains, used, stop);
        used = chains_renew(&chains, used, &next, end);
    }
}

/* One message by itself, a block at a time: what is left of a batch, or all of it. */
INLINE void chain_alone(struct cipher cipher, const struct cm_aes_item *item)
{
    size_t length = item->ret_length;
    bool apart = length > item->length && item->source != item->destination;
    const uint8_t *source = item->source;
    block x = load(item->iv);
    for (size_t at = 0; at < length; at += 16) {
        if (apart && at == length - 16)
            source = item->destination;
        x = _mm_xor_si128(_mm_xor_si128(load(source + at), block_key(cipher, 0)), x);
#pragma GCC unroll 9
        for (unsigned round = 1; round < 10; round++)
            x = _mm_aesenc_si128(x, block_key(cipher, round));
        for (unsigned round = 10; round < cipher.rounds; round++)
            x = _mm_aesenc_si128(x, block_key(cipher, round));
        x = _mm_aesenclast_si128(x, block_key(cipher, cipher.rounds));
        store(item->destination + at, x);
    }
}

static void cbc_encrypt(const struct cm_kernel_key *key, struct cm_aes_item *items, size_t count)
{
    struct cipher cipher = cipher_of(key);
    size_t done = singles(cipher, items, count, KIND_CBC_ENCRYPT);
    size_t pace = chains_pace(items + done, count - done);
    if (pace == 0)
        for (; next_are_equal(items + done, count - done); done += CHAINS)
            chains_run_equal(cipher, items + done);
    if (done + 1 == count) {
        chain_alone(cipher, items + done);
    } else if (done < count) {
        chains_unlike(cipher, items + done, items + count, pace);
        cm_wipe_stack(CHAINS_STACK_BYTES);
    }
    v_forget();
}

#endif
