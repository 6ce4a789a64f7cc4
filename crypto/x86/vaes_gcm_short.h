/* SPDX-License-Identifier: Apache-2.0 */
/* GCM with VAES and VPCLMULQDQ: messages up to SHORT_BYTES, as many at once as a vector has lanes.
 *
 * So many messages form a group. Their J0 are one vector, whose first round is all that is computed of first
 * rounds: the counter blocks differ from J0 in their last byte, and what this makes of the first round is
 * looked up (vaes_gcm.h). What is done with a group depends on what its messages are:
 * - One block each: text and tags one message a lane from the start, SINGLES groups at once; the tags of
 *   groups are made beside the rounds of those behind them.
 * - SMALL_BYTES each: key stream and text one message a vector (or two), and the ciphertext transposed to one
 *   message a lane, where products with the same power in all lanes need no folding. Tags as above.
 * - Anything else: the products of one message are spread over the lanes, and the sums of a group are folded
 *   by a transposition to one message a lane.
 * In each case all messages of a group are reduced at once, together with the products of their lengths.
 *
 * Registers: x[0..7] or [0..4], what is left to do for the groups before (at most four vectors of ciphertext
 * and two of encrypted J0), three sums of products, temporaries. */
#ifndef CM_X86_VAES_GCM_SHORT_H
#define CM_X86_VAES_GCM_SHORT_H

#include "declassify.h"
#include "vaes_ghash.h"

enum { SHORT_BYTES = 256, SHORT_VECTORS = SHORT_BYTES / VECTOR_BYTES };

/* Groups of messages of one block that run together: as many as keep the AES units busy with two vectors
 * each, and no more, so that the processor's window holds both the rounds and what goes along. */
enum { SINGLES = 4 };

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
INLINE bool next_are_usual(const struct cm_aes_item *items, size_t count, size_t n, size_t length)
{
    /* length, iv, iv_length, aad, aad_length, tag, tag_length, ret_length */
    enum { FIRST = offsetof(struct cm_aes_item, length), VECTORS = 64 / VECTOR_BYTES };
    _Static_assert(offsetof(struct cm_aes_item, ret_length) == FIRST + 56, "these eight words and no others");
    const uint64_t usual[8] = {length, 0, 12, 0, 0, 0, 16, length};
    const uint64_t counts[8] = {UINT64_MAX, 0, UINT64_MAX, 0, UINT64_MAX, 0, UINT64_MAX, UINT64_MAX};
    bool other = false;
    if (count < n || items->ret_length != length)
        return false;
#pragma GCC unroll 2
    for (int u = 0; u < VECTORS; u++) {
        vector differs = v_zero();
#pragma GCC unroll 8
        for (size_t i = 0; i < n; i++)
            differs = v_or_xor(differs, v_load((const uint8_t *)&items[i] + FIRST + VECTOR_BYTES * u),
                               v_of_words(usual, u));
        other |= v_have_common(differs, v_of_words(counts, u));
    }
    return !other;
}

/* The J0 of a group after the first round. */
INLINE vector group_first_counters(const struct gcm_form *form, const struct cm_aes_item *items)
{
    const vector *k = form->aes.round_key;
    block ivs[LANES];
#pragma GCC unroll 4
    for (int i = 0; i < LANES; i++)
        ivs[i] = load_twelve(items[i].iv);
    vector ones = v_broadcast(_mm_set_epi32(0x01000000, 0, 0, 0));
    return V(aesenc_epi128)(v_xor3(v_of_lanes(ivs), ones, k[0]), k[1]);
}

/* From these, what the counter blocks of a message have in common, one message a lane. */
INLINE vector group_bases(const struct gcm_form *form, vector first_counters)
{
    return v_xor(first_counters, v_broadcast(form->counted[2 + 1]));
}

/* Vector u of a message's counter blocks after the first round; `base` is the message's in every lane. */
INLINE vector short_counters(const struct gcm_form *form, vector base, int u)
{
    return v_xor(base, v_load(&form->counted[2 + 2 + LANES * u]));
}

/* Rounds from the second on. */
INLINE void rest_of_cipher(vector *x, int n, struct cipher cipher)
{
#pragma GCC unroll 8
    for (int round = 2; round < 10; round++)
        round_of(x, n, cipher.round_key[round], false);
    more_rounds(x, n, cipher, false);
    vector last = cipher.round_key[cipher.rounds];
#pragma GCC unroll 9
    for (int u = 0; u < n; u++)
        x[u] = V(aesenclast_epi128)(x[u], last);
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
                                    const struct cm_aes_item *item, block base, int n, bool decrypt)
{
    vector x[WIDTH];
#pragma GCC unroll 8
    for (int u = 0; u < n; u++)
        x[u] = short_counters(form, v_broadcast(base), u);
    rest_of_cipher(x, n, cipher);
    size_t blocks = (item->length + 15) / 16;
    struct product sum =
        short_text(form, item, x, n, item->length - (size_t)(VECTOR_BYTES * (n - 1)), blocks, decrypt);
    if (__builtin_expect(item->aad_length > 0, 0))
        product_add(&sum, form, v_reverse_bytes(v_load_bytes(item->aad, item->aad_length)),
                    blocks + 1 + (item->aad_length + 15) / 16);
    return sum;
}

/* Tags, one a lane, in the order of memory, of whatever lengths. */
__attribute__((noinline)) static void tags_one_by_one(struct cm_aes_item *items, vector tags, bool decrypt)
{
    alignas(VECTOR_BYTES) uint8_t full[VECTOR_BYTES];
    v_store(full, tags);
    for (int i = 0; i < LANES; i++)
        cm_gcm_tag(decrypt ? CM_AES_DECRYPT : CM_AES_ENCRYPT, &items[i], full + 16 * i);
}

/* Of 16 bytes each. */
INLINE void usual_tags(struct cm_aes_item *items, vector tags, bool decrypt)
{
    uint8_t *place[LANES];
#pragma GCC unroll 4
    for (int i = 0; i < LANES; i++)
        place[i] = items[i].tag;
    if (!decrypt) {
        v_scatter(place, tags);
        return;
    }
    unsigned different = v_different_words(tags, v_gather((const uint8_t *const *)place));
    CM_DECLASSIFY(different);
    if (__builtin_expect(different == 0, 1))
        return;
    for (int i = 0; i < LANES; i++)
        if (different >> 2 * i & 3)
            items[i].ret_status = CM_AES_BAD_TAG;
}

INLINE void group_tags(struct cm_aes_item *items, vector tags, bool decrypt)
{
    size_t other = 0;
#pragma GCC unroll 4
    for (int i = 0; i < LANES; i++)
        other |= items[i].tag_length ^ 16;
    if (other == 0)
        usual_tags(items, tags, decrypt);
    else
        tags_one_by_one(items, tags, decrypt);
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
    vector pad = group_first_counters(form, items), bases = group_bases(form, pad);
#pragma GCC unroll 4
    for (int first = 0; first < LANES; first += together) {
        vector x[WIDTH + 1];
#pragma GCC unroll 4
        for (int i = 0; i < together; i++) {
            vector base = v_lane(bases, first + i);
#pragma GCC unroll 8
            for (int u = 0; u < n; u++)
                x[n * i + u] = short_counters(form, base, u);
        }
        x[n * together] = pad;
        rest_of_cipher(x, n * together + (first == 0), cipher);
        if (first == 0)
            pad = x[n * together];
#pragma GCC unroll 4
        for (int i = 0; i < together; i++)
            each[first + i] =
                short_text(form, &items[first + i], x + n * i, n, VECTOR_BYTES, (size_t)(LANES * n), decrypt);
    }
    group_end(form, items, each, v_broadcast(lengths_block(0, (uint64_t)(VECTOR_BYTES * n))), pad, decrypt);
}

/* The product of the lengths of messages of so many bytes, with no additional data. */
INLINE struct product lengths_product(const struct gcm_form *form, uint64_t length)
{
    struct product sum = product_zero();
    product_add_same(&sum, form, v_broadcast(lengths_block(0, length)), 1);
    return sum;
}

/* What is left to do of a group whose text is done: byte-reversed ciphertext, one message a lane, and
 * encrypted J0. */
struct small_tags {
    struct cm_aes_item *items;
    vector data[SMALL_BYTES / 16], pad;
    struct product sum;
};

/* One step, a constant from 0 to 4, of that. */
INLINE void small_tags_step(const struct gcm_form *form, struct small_tags *tags,
                            const struct product *lengths, int step, bool decrypt)
{
    if (step == 0)
        tags->sum = *lengths;
    if (step < SMALL_BYTES / 16)
        product_add_same(&tags->sum, form, tags->data[step], (size_t)(SMALL_BYTES / 16 + 1 - step));
    else
        usual_tags(tags->items, v_xor(v_reverse_bytes(product_reduce(tags->sum)), tags->pad), decrypt);
}

/* The text of a group of messages of SMALL_BYTES, and meanwhile, if `hashing`, the tags of the one before. */
INLINE void small_group(const struct gcm_form *form, struct cipher cipher, struct cm_aes_item *items,
                        const struct product *lengths, struct small_tags *tags, bool hashing, bool decrypt)
{
    enum { N = LANES * SMALL_VECTORS };
    vector x[N + 1];
    x[N] = group_first_counters(form, items);
    vector bases = group_bases(form, x[N]);
#pragma GCC unroll 4
    for (int i = 0; i < N; i++)
        x[i] = short_counters(form, v_lane(bases, i / SMALL_VECTORS), i % SMALL_VECTORS);
#pragma GCC unroll 8
    for (int round = 2; round < 10; round++) {
        round_of(x, N + 1, cipher.round_key[round], false);
        if (hashing && round <= 6)
            small_tags_step(form, tags, lengths, round - 2, decrypt);
    }
    more_rounds(x, N + 1, cipher, false);
    vector last = cipher.round_key[cipher.rounds];
    tags->items = items;
    tags->pad = V(aesenclast_epi128)(x[N], last);
#pragma GCC unroll 4
    for (int i = 0; i < N; i++) {
        const struct cm_aes_item *item = &items[i / SMALL_VECTORS];
        size_t at = (size_t)(i % SMALL_VECTORS * VECTOR_BYTES);
        vector in = v_load(item->source + at);
        vector out = V(aesenclast_epi128)(x[i], v_xor(last, in));
        v_store(item->destination + at, out);
        tags->data[i % SMALL_VECTORS * LANES + i / SMALL_VECTORS] = v_reverse_bytes(decrypt ? in : out);
    }
#pragma GCC unroll 2
    for (int u = 0; u < SMALL_VECTORS; u++)
        v_transpose(tags->data + LANES * u);
}

/* As many groups of messages of SMALL_BYTES as there are; returns the number of their items. */
INLINE size_t small_groups(const struct gcm_form *form, struct cipher cipher, struct cm_aes_item *items,
                           size_t count, bool decrypt)
{
    struct small_tags tags;
    size_t done;
    if (!next_are_usual(items, count, LANES, SMALL_BYTES))
        return 0;
    struct product lengths = lengths_product(form, SMALL_BYTES);
    small_group(form, cipher, items, &lengths, &tags, false, decrypt);
    for (done = LANES; next_are_usual(items + done, count - done, LANES, SMALL_BYTES); done += LANES)
        small_group(form, cipher, items + done, &lengths, &tags, true, decrypt);
#pragma GCC unroll 8
    for (int step = 0; step <= SMALL_BYTES / 16; step++)
        small_tags_step(form, &tags, &lengths, step, decrypt);
    return done;
}

/* As small_tags, of SINGLES groups of messages of one block. */
struct single_tags {
    struct cm_aes_item *items;
    vector data[SINGLES], pad[SINGLES];
};

INLINE void single_tags_of(const struct gcm_form *form, const struct single_tags *tags, int u,
                           const struct product *lengths, bool decrypt)
{
    struct product sum = *lengths;
    product_add_same(&sum, form, tags->data[u], 2);
    vector hash = v_reverse_bytes(product_reduce(sum));
    usual_tags(tags->items + LANES * u, v_xor(hash, tags->pad[u]), decrypt);
}

/* The text of SINGLES groups, and meanwhile, if `hashing`, the tags of those before. */
INLINE void single_groups_step(const struct gcm_form *form, struct cipher cipher, struct cm_aes_item *items,
                               const struct product *lengths, struct single_tags *tags, bool hashing,
                               bool decrypt)
{
    enum { ROUNDS_EACH = 8 / SINGLES };
    vector x[2 * SINGLES];
    vector one_on = v_broadcast(_mm_xor_si128(form->counted[2 + 1], form->counted[2 + 2]));
#pragma GCC unroll 4
    for (int u = 0; u < SINGLES; u++) {
        x[u] = group_first_counters(form, items + LANES * u);
        x[SINGLES + u] = v_xor(x[u], one_on);
    }
#pragma GCC unroll 8
    for (int round = 2; round < 10; round++) {
        round_of(x, 2 * SINGLES, cipher.round_key[round], false);
        if (hashing && (round - 1) % ROUNDS_EACH == 0)
            single_tags_of(form, tags, (round - 2) / ROUNDS_EACH, lengths, decrypt);
    }
    more_rounds(x, 2 * SINGLES, cipher, false);
    vector last = cipher.round_key[cipher.rounds];
    tags->items = items;
#pragma GCC unroll 4
    for (int u = 0; u < SINGLES; u++) {
        const uint8_t *source[LANES];
        uint8_t *destination[LANES];
#pragma GCC unroll 4
        for (int i = 0; i < LANES; i++) {
            source[i] = items[LANES * u + i].source;
            destination[i] = items[LANES * u + i].destination;
        }
        vector in = v_gather(source);
        vector out = V(aesenclast_epi128)(x[SINGLES + u], v_xor(last, in));
        v_scatter(destination, out);
        tags->data[u] = v_reverse_bytes(decrypt ? in : out);
        tags->pad[u] = V(aesenclast_epi128)(x[u], last);
    }
}

/* As small_groups, SINGLES groups of messages of one block at a time. */
INLINE size_t single_groups(const struct gcm_form *form, struct cipher cipher, struct cm_aes_item *items,
                            size_t count, bool decrypt)
{
    enum { STEP_ITEMS = SINGLES * LANES };
    struct single_tags tags;
    size_t done;
    if (!next_are_usual(items, count, STEP_ITEMS, 16))
        return 0;
    struct product lengths = lengths_product(form, 16);
    single_groups_step(form, cipher, items, &lengths, &tags, false, decrypt);
    for (done = STEP_ITEMS; next_are_usual(items + done, count - done, STEP_ITEMS, 16); done += STEP_ITEMS)
        single_groups_step(form, cipher, items + done, &lengths, &tags, true, decrypt);
#pragma GCC unroll 4
    for (int u = 0; u < SINGLES; u++)
        single_tags_of(form, &tags, u, &lengths, decrypt);
    return done;
}

/* Messages of any number of vectors. */
INLINE void group_unlike(const struct gcm_form *form, struct cipher cipher, struct cm_aes_item *items,
                         bool decrypt)
{
    struct product each[LANES];
    block bases[LANES];
    vector pad = group_first_counters(form, items);
    v_store((uint8_t *)bases, group_bases(form, pad));
    rest_of_cipher(&pad, 1, cipher);
    for (int i = 0; i < LANES; i++) {
#define STEP(n) each[i] = short_message(form, cipher, &items[i], bases[i], n, decrypt)
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
    size_t done = 0;
    if (length == 16)
        done = single_groups(form, cipher, items, count, decrypt);
    if (length == SMALL_BYTES)
        done = small_groups(form, cipher, items, count, decrypt);
    if (done > 0)
        return done;
    if (next_are_usual(items, count, LANES, 128)) {
        group_alike(form, cipher, items, 128 / VECTOR_BYTES, decrypt);
        return LANES;
    }
    if (next_are_usual(items, count, LANES, 256)) {
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

#endif
