/* SPDX-License-Identifier: Apache-2.0 */
/* The portable implementation: every mode on sixteen bitsliced blocks at once, whoever's blocks they are.
 *
 * A pass costs the same for one block as for sixteen. So all modes but CBC encryption go through one queue of
 * lanes, block by block and message by message, which is emptied whenever sixteen are waiting; CBC
 * encryption, where a message can use only one lane, runs sixteen messages side by side. */
#include "bitslice.h"
#include "bytes.h"
#include "ghash.h"
#include "impl.h"

enum { LANES = CM_BITSLICE_BLOCKS };

struct form {
    struct cm_bitslice_key aes;
};

struct gcm_form {
    struct cm_bitslice_key aes;
    struct cm_ghash_key ghash;
};

struct xts_form {
    struct cm_bitslice_key aes;
    struct cm_bitslice_key tweak;
};

/* The one for the text comes first in every form. */
static const struct cm_bitslice_key *cipher_of(const struct cm_kernel_key *key)
{
    return &((const struct form *)(const void *)key->form)->aes;
}

static const struct cm_ghash_key *ghash_of(const struct cm_kernel_key *key)
{
    return &((const struct gcm_form *)(const void *)key->form)->ghash;
}

static void expand_cipher(struct cm_bitslice_key *cipher, const uint8_t *key, size_t key_length)
{
    uint32_t words[CM_ROUND_KEY_WORDS];
    unsigned rounds = cm_key_expand(words, key, key_length, cm_bitslice_sub_word);
    cm_bitslice_key_init(cipher, words, rounds);
    cm_aes_wipe(words, sizeof words);
}

static void expand(void *form, const uint8_t *key, size_t key_length)
{
    expand_cipher(&((struct form *)form)->aes, key, key_length);
}

/* H is the encryption of the zero block: SP 800-38D, section 7.1. */
static void expand_gcm(void *form, const uint8_t *key, size_t key_length)
{
    struct gcm_form *made = form;
    uint8_t blocks[LANES][16] = {{0}};
    expand(form, key, key_length);
    cm_bitslice_encrypt(&made->aes, (unsigned)(key_length / 4 + 6), blocks);
    cm_ghash_key_init(&made->ghash, blocks[0]);
    cm_aes_wipe(blocks, sizeof blocks);
}

static void expand_xts(void *form, const uint8_t *key, size_t key_length)
{
    struct xts_form *made = form;
    expand_cipher(&made->aes, key, key_length / 2);
    expand_cipher(&made->tweak, key + key_length / 2, key_length / 2);
}

/* Blocks that wait for the cipher: destination = cipher(block) + mask, of which `bytes` bytes count. Whatever
 * the mask needs of the source is copied when the block is queued, so that working in place is safe. */
struct queue {
    const struct cm_kernel_key *key;
    enum cm_aes_direction direction; /* of the cipher */
    unsigned used;
    uint8_t block[LANES][16];
    uint8_t mask[LANES][16];
    uint8_t *destination[LANES];
    size_t bytes[LANES];
};

static void queue_init(struct queue *queue, const struct cm_kernel_key *key, enum cm_aes_direction direction)
{
    memset(queue, 0, sizeof *queue);
    queue->key = key;
    queue->direction = direction;
}

static void queue_flush(struct queue *queue)
{
    if (queue->used == 0)
        return;
    if (queue->direction == CM_AES_ENCRYPT)
        cm_bitslice_encrypt(cipher_of(queue->key), queue->key->rounds, queue->block);
    else
        cm_bitslice_decrypt(cipher_of(queue->key), queue->key->rounds, queue->block);
    for (unsigned i = 0; i < queue->used; i++) {
        if (queue->bytes[i] == 16) {
            cm_xor_block(queue->destination[i], queue->block[i], queue->mask[i]);
        } else {
            cm_xor_block(queue->mask[i], queue->block[i], queue->mask[i]);
            memcpy(queue->destination[i], queue->mask[i], queue->bytes[i]);
        }
    }
    queue->used = 0;
}

/* Adds a lane, of which the caller has filled block and mask at [used]. */
static inline void queue_push(struct queue *queue, uint8_t *destination, size_t bytes)
{
    queue->destination[queue->used] = destination;
    queue->bytes[queue->used] = bytes;
    if (++queue->used == LANES)
        queue_flush(queue);
}

/* --- ECB ------------------------------------------------------------------------------------------------ */

static void ecb_queue(struct queue *queue, const uint8_t *source, uint8_t *destination, size_t blocks)
{
    for (; blocks > 0; blocks--, source += 16, destination += 16) {
        memcpy(queue->block[queue->used], source, 16);
        memset(queue->mask[queue->used], 0, 16);
        queue_push(queue, destination, 16);
    }
}

static void ecb(const struct cm_kernel_key *key, struct cm_aes_item *items, size_t count)
{
    struct queue queue;
    queue_init(&queue, key, key->kernel->direction);
    for (size_t i = 0; i < count; i++) {
        struct cm_aes_item *item = &items[i];
        if (item->ret_status != CM_AES_OK)
            continue;
        size_t whole = item->length / 16 * 16;
        ecb_queue(&queue, item->source, item->destination, whole / 16);
        if (item->ret_length > whole) {
            uint8_t *last = item->destination + whole;
            ecb_queue(&queue, last, last, 1);
        }
    }
    queue_flush(&queue);
}

/* --- CBC ------------------------------------------------------------------------------------------------ */

static void cbc_decrypt(const struct cm_kernel_key *key, struct cm_aes_item *items, size_t count)
{
    struct queue queue;
    queue_init(&queue, key, CM_AES_DECRYPT);
    for (size_t i = 0; i < count; i++) {
        uint8_t chain[16];
        if (items[i].ret_status != CM_AES_OK)
            continue;
        memcpy(chain, items[i].iv, 16);
        for (size_t at = 0; at < items[i].length; at += 16) {
            uint8_t *block = queue.block[queue.used];
            memcpy(queue.mask[queue.used], chain, 16);
            memcpy(block, items[i].source + at, 16);
            memcpy(chain, block, 16);
            queue_push(&queue, items[i].destination + at, 16);
        }
    }
    queue_flush(&queue);
}

/* A message in its lane. */
struct chain {
    const uint8_t *source;
    uint8_t *destination;
    size_t left;       /* blocks from the source */
    bool padded;       /* then one more from the destination */
    const uint8_t *iv; /* what the next block is added to: the IV, then the last ciphertext block */
};

/* Gives the lane its next message; false if there is none. */
static bool chain_refill(struct chain *chain, struct cm_aes_item **next, const struct cm_aes_item *end)
{
    for (; *next < end; (*next)++) {
        const struct cm_aes_item *item = *next;
        if (item->ret_status != CM_AES_OK || item->ret_length == 0)
            continue;
        chain->source = item->source;
        chain->destination = item->destination;
        chain->left = item->length / 16;
        chain->padded = item->ret_length > item->length / 16 * 16;
        chain->iv = item->iv;
        (*next)++;
        return true;
    }
    return false;
}

/* One block of every chain. Returns how many chains go on. */
static unsigned chain_step(const struct cm_kernel_key *key, struct chain chains[LANES], unsigned used,
                           uint8_t blocks[LANES][16])
{
    for (unsigned i = 0; i < used; i++)
        cm_xor_block(blocks[i], chains[i].left > 0 ? chains[i].source : chains[i].destination, chains[i].iv);
    cm_bitslice_encrypt(cipher_of(key), key->rounds, blocks);
    unsigned kept = 0;
    for (unsigned i = 0; i < used; i++) {
        struct chain *chain = &chains[i];
        memcpy(chain->destination, blocks[i], 16);
        chain->iv = chain->destination;
        chain->destination += 16;
        if (chain->left > 0) {
            chain->source += 16;
            chain->left--;
        } else {
            chain->padded = false;
        }
        if (chain->left > 0 || chain->padded)
            chains[kept++] = *chain;
    }
    return kept;
}

static void cbc_encrypt(const struct cm_kernel_key *key, struct cm_aes_item *items, size_t count)
{
    struct chain chains[LANES];
    uint8_t blocks[LANES][16] = {{0}};
    struct cm_aes_item *next = items;
    unsigned used = 0;
    for (;;) {
        while (used < LANES && chain_refill(&chains[used], &next, items + count))
            used++;
        if (used == 0)
            return;
        used = chain_step(key, chains, used, blocks);
    }
}

/* --- CTR ------------------------------------------------------------------------------------------------ */

/* Queues a text under the counters from `counter` on. `bits` is how wide the counter is, 128 or 32. */
static inline void ctr_queue(struct queue *queue, uint8_t counter[16], unsigned bits,
                             const struct cm_aes_item *item)
{
    for (size_t at = 0; at < item->length; at += 16) {
        size_t bytes = item->length - at < 16 ? item->length - at : 16;
        memcpy(queue->block[queue->used], counter, 16);
        memcpy(queue->mask[queue->used], item->source + at, bytes);
        queue_push(queue, item->destination + at, bytes);
        if (bits == 32)
            cm_counter_add32(counter, 1);
        else
            cm_counter_add(counter, 1);
    }
}

static void ctr(const struct cm_kernel_key *key, struct cm_aes_item *items, size_t count)
{
    struct queue queue;
    queue_init(&queue, key, CM_AES_ENCRYPT);
    for (size_t i = 0; i < count; i++) {
        uint8_t counter[16];
        if (items[i].ret_status != CM_AES_OK)
            continue;
        memcpy(counter, items[i].iv, 16);
        ctr_queue(&queue, counter, 128, &items[i]);
    }
    queue_flush(&queue);
}

/* --- GCM ------------------------------------------------------------------------------------------------ */

/* Ends a hash with the two lengths in bits: SP 800-38D, sections 7.1 and, for IVs, step 2. */
static void hash_lengths(const struct cm_kernel_key *key, uint8_t hash[16], uint64_t first_bytes,
                         uint64_t second_bytes)
{
    uint8_t lengths[16];
    cm_store64_be(lengths, first_bytes * 8);
    cm_store64_be(lengths + 8, second_bytes * 8);
    cm_ghash_update(ghash_of(key), hash, lengths, 16);
}

/* Queues J0 for first_pad, makes chain, and hashes the additional data. */
static void gcm_begin(struct queue *queue, struct cm_aes_parts *state, const struct cm_aes_item *item)
{
    uint8_t *counter = state->chain;
    memset(counter, 0, 16);
    if (item->iv_length == 12) {
        memcpy(counter, item->iv, 12);
        counter[15] = 1;
    } else {
        cm_ghash_update(ghash_of(queue->key), counter, item->iv, item->iv_length);
        hash_lengths(queue->key, counter, 0, item->iv_length);
    }
    memcpy(queue->block[queue->used], counter, 16);
    memset(queue->mask[queue->used], 0, 16);
    queue_push(queue, state->first_pad, 16);
    cm_counter_add32(counter, 1);
    memset(state->hash, 0, 16);
    cm_ghash_update(ghash_of(queue->key), state->hash, item->aad, item->aad_length);
}

/* The text, up to queueing it. Ciphertext must be hashed before it can be overwritten. */
static void gcm_text(struct queue *queue, struct cm_aes_parts *state, const struct cm_aes_item *item)
{
    if (queue->key->kernel->direction == CM_AES_DECRYPT)
        cm_ghash_update(ghash_of(queue->key), state->hash, item->source, item->length);
    ctr_queue(queue, state->chain, 32, item);
}

/* After the queue has been flushed. */
static void gcm_hash_output(const struct cm_kernel_key *key, struct cm_aes_parts *state,
                            const struct cm_aes_item *item)
{
    if (key->kernel->direction == CM_AES_ENCRYPT)
        cm_ghash_update(ghash_of(key), state->hash, item->destination, item->length);
}

static void gcm_end(const struct cm_kernel_key *key, struct cm_aes_parts *state, uint8_t ret_tag[16])
{
    hash_lengths(key, state->hash, state->aad_bytes, state->text_bytes);
    cm_xor_block(ret_tag, state->hash, state->first_pad);
}

static void gcm_part(const struct cm_kernel_key *key, struct cm_aes_parts *state,
                     const struct cm_aes_item *item, bool first, bool last, uint8_t ret_tag[16])
{
    struct queue queue;
    queue_init(&queue, key, CM_AES_ENCRYPT);
    if (first)
        gcm_begin(&queue, state, item);
    gcm_text(&queue, state, item);
    queue_flush(&queue);
    gcm_hash_output(key, state, item);
    if (last)
        gcm_end(key, state, ret_tag);
}

/* Messages wait in groups for the end of the queue, since their tags need what is in it. */
enum { GROUP = 8 };

static void gcm(const struct cm_kernel_key *key, struct cm_aes_item *items, size_t count)
{
    struct queue queue;
    struct cm_aes_parts states[GROUP];
    struct cm_aes_item *group[GROUP];
    queue_init(&queue, key, CM_AES_ENCRYPT);
    for (size_t next = 0; next < count;) {
        size_t size = 0;
        for (; next < count && size < GROUP; next++) {
            if (items[next].ret_status != CM_AES_OK)
                continue;
            struct cm_aes_parts *state = &states[size];
            group[size++] = &items[next];
            state->aad_bytes = items[next].aad_length;
            state->text_bytes = items[next].length;
            gcm_begin(&queue, state, &items[next]);
            gcm_text(&queue, state, &items[next]);
        }
        queue_flush(&queue);
        for (size_t i = 0; i < size; i++) {
            uint8_t tag[16];
            gcm_hash_output(key, &states[i], group[i]);
            gcm_end(key, &states[i], tag);
            cm_gcm_tag(key->kernel->direction, group[i], tag);
        }
    }
}

/* --- XTS ------------------------------------------------------------------------------------------------ */

/* The tweak times x, IEEE Std 1619, section 5.2: a little-endian number in which bit i stands for x^i, and
 * x^128 = x^7 + x^2 + x + 1. */
static void tweak_step(uint8_t tweak[16])
{
    uint64_t low = cm_load64_le(tweak), high = cm_load64_le(tweak + 8);
    uint64_t carry = high >> 63;
    cm_store64_le(tweak, low << 1 ^ ((0 - carry) & 0x87));
    cm_store64_le(tweak + 8, high << 1 | low >> 63);
}

static void xts_queue(struct queue *queue, const uint8_t *source, const uint8_t tweak[16],
                      uint8_t *destination)
{
    cm_xor_block(queue->block[queue->used], source, tweak);
    memcpy(queue->mask[queue->used], tweak, 16);
    queue_push(queue, destination, 16);
}

/* What ciphertext stealing still needs of a data unit whose last block is ragged. */
struct theft {
    uint8_t tweak[16]; /* of the block that is computed last */
    uint8_t block[16]; /* of the one before: its head ends the output, its tail completes the last input */
};

/* All of a data unit but its stolen end. Of the last two tweaks of a ragged one, decryption takes the later
 * first. */
static void xts_blocks(struct queue *queue, const struct cm_aes_item *item, uint8_t tweak[16],
                       struct theft *theft)
{
    size_t whole = item->length / 16, at = 0;
    bool ragged = item->length % 16 != 0;
    for (; at < 16 * (whole - ragged); at += 16) {
        xts_queue(queue, item->source + at, tweak, item->destination + at);
        tweak_step(tweak);
    }
    if (!ragged)
        return;
    memcpy(theft->tweak, tweak, 16);
    if (queue->direction == CM_AES_ENCRYPT)
        tweak_step(theft->tweak);
    else
        tweak_step(tweak);
    xts_queue(queue, item->source + at, tweak, theft->block);
}

/* The two ends of a ragged data unit change places, section 5.3.2. */
static void xts_steal(struct queue *queue, const struct cm_aes_item *item, struct theft *theft)
{
    size_t whole = item->length / 16 * 16, rest = item->length % 16;
    uint8_t last[16];
    memcpy(last, item->source + whole, rest);
    memcpy(last + rest, theft->block + rest, 16 - rest);
    memcpy(item->destination + whole, theft->block, rest);
    xts_queue(queue, last, theft->tweak, item->destination + whole - 16);
}

/* The tweaks of as many messages as there are lanes are encrypted together. */
static void xts(const struct cm_kernel_key *key, struct cm_aes_item *items, size_t count)
{
    const struct xts_form *form = (const struct xts_form *)(const void *)key->form;
    struct queue queue;
    struct theft thefts[LANES];
    struct cm_aes_item *group[LANES];
    uint8_t tweaks[LANES][16] = {{0}};
    queue_init(&queue, key, key->kernel->direction);
    for (size_t next = 0; next < count;) {
        size_t size = 0;
        for (; next < count && size < LANES; next++) {
            if (items[next].ret_status != CM_AES_OK)
                continue;
            memcpy(tweaks[size], items[next].iv, 16);
            group[size++] = &items[next];
        }
        cm_bitslice_encrypt(&form->tweak, key->rounds, tweaks);
        for (size_t i = 0; i < size; i++)
            xts_blocks(&queue, group[i], tweaks[i], &thefts[i]);
        queue_flush(&queue);
        for (size_t i = 0; i < size; i++)
            if (group[i]->length % 16 != 0)
                xts_steal(&queue, group[i], &thefts[i]);
        queue_flush(&queue);
    }
}

/* --- What it offers ------------------------------------------------------------------------------------- */

/* The queue or the chains, a bitsliced state and its temporaries, GCM's group: 3 KiB at most by the
 * compiler's account. */
enum { STACK_BYTES = 4096 };

#define KERNEL(the_mode, the_direction, the_run)                                                             \
    {                                                                                                        \
        .name = "portable", .mode = (the_mode), .direction = (the_direction),                                \
        .form_size = sizeof(struct form), .stack_bytes = STACK_BYTES, .expand = expand, .run = (the_run)     \
    }
#define GCM_KERNEL(the_direction)                                                                            \
    {                                                                                                        \
        .name = "portable", .mode = CM_AES_GCM, .direction = (the_direction),                                \
        .form_size = sizeof(struct gcm_form), .stack_bytes = STACK_BYTES, .expand = expand_gcm, .run = gcm,  \
        .part = gcm_part                                                                                     \
    }
#define XTS_KERNEL(the_direction)                                                                            \
    {                                                                                                        \
        .name = "portable", .mode = CM_AES_XTS, .direction = (the_direction),                                \
        .form_size = sizeof(struct xts_form), .stack_bytes = STACK_BYTES, .expand = expand_xts, .run = xts   \
    }

const struct cm_implementation cm_portable = {
    .needs = 0,
    .lacks = "",
    .kernels =
        {
            [CM_AES_ECB] = {KERNEL(CM_AES_ECB, CM_AES_ENCRYPT, ecb), KERNEL(CM_AES_ECB, CM_AES_DECRYPT, ecb)},
            [CM_AES_CBC] = {KERNEL(CM_AES_CBC, CM_AES_ENCRYPT, cbc_encrypt),
                            KERNEL(CM_AES_CBC, CM_AES_DECRYPT, cbc_decrypt)},
            [CM_AES_CTR] = {KERNEL(CM_AES_CTR, CM_AES_ENCRYPT, ctr), KERNEL(CM_AES_CTR, CM_AES_DECRYPT, ctr)},
            [CM_AES_GCM] = {GCM_KERNEL(CM_AES_ENCRYPT), GCM_KERNEL(CM_AES_DECRYPT)},
            [CM_AES_XTS] = {XTS_KERNEL(CM_AES_ENCRYPT), XTS_KERNEL(CM_AES_DECRYPT)},
        },
};
