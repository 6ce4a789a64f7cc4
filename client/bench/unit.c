/* SPDX-License-Identifier: Apache-2.0 */
/* Batches that the bench sends. */
#include "unit.h"
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 16, NONCE = 12 };

static uint64_t round_up(uint64_t length)
{
    return (length + BLOCK - 1) / BLOCK * BLOCK;
}

uint64_t unit_bytes(const struct plan *plan)
{
    /* Padding makes input or output longer by a block. */
    return plan->batch * (2 * (round_up(plan->size_most) + BLOCK) + sizeof(cm_item) + BLOCK);
}

static uint64_t next_random(struct unit *unit)
{
    unit->random ^= unit->random << 13;
    unit->random ^= unit->random >> 7;
    unit->random ^= unit->random << 17;
    return unit->random;
}

static size_t pick_size(struct unit *unit, const struct plan *plan)
{
    return (size_t)(plan->size_least + next_random(unit) % (plan->size_most - plan->size_least + 1));
}

static bool allocate(struct unit *unit, const struct plan *plan)
{
    unit->count = plan->batch;
    unit->in_stride = round_up(plan->size_most) + BLOCK;
    unit->out_stride = unit->in_stride;
    unit->items = calloc(unit->count, sizeof unit->items[0]);
    unit->in = aligned_alloc(64, (unit->count * unit->in_stride + 63) / 64 * 64);
    unit->out = aligned_alloc(64, (unit->count * unit->out_stride + 63) / 64 * 64);
    if (unit->iv_length > 0)
        unit->first_ivs = malloc(unit->count * BLOCK);
    return unit->items != NULL && unit->in != NULL && unit->out != NULL &&
           (unit->iv_length == 0 || unit->first_ivs != NULL);
}

static bool fill_random(uint8_t *bytes, size_t length)
{
    /* RAND_bytes counts in int. */
    while (length > 0) {
        int now = length > 1 << 30 ? 1 << 30 : (int)length;
        if (RAND_bytes(bytes, now) != 1)
            return false;
        bytes += now;
        length -= (size_t)now;
    }
    return true;
}

/* Makes the input of a decryption: the random bytes that are there, encrypted. */
static bool encrypt_input(struct unit *unit, struct reference *reference)
{
    for (size_t i = 0; i < unit->count; i++) {
        cm_item *item = &unit->items[i];
        uint8_t *in = unit->in + i * unit->in_stride;
        struct message message = {.in = in,
                                  .in_length = item->in_length,
                                  .iv = unit->iv_length > 0 ? unit->first_ivs + i * BLOCK : NULL,
                                  .iv_length = unit->iv_length,
                                  .out = unit->out + i * unit->out_stride,
                                  .tag = item->tag,
                                  .tag_length = item->tag_length};

        if (!reference_run(reference, unit->mode, CM_ENCRYPT, (unit->flags & CM_NO_PADDING) == 0, &message))
            return false;
        memcpy(in, message.out, message.out_length);
        item->in_length = message.out_length;
    }
    return true;
}

bool unit_init(struct unit *unit, const struct plan *plan, struct combination kind, uint32_t tag_length,
               struct reference *reference)
{
    bool pads = plan->padding && (kind.mode == CM_ECB || kind.mode == CM_CBC);

    *unit = (struct unit){.mode = kind.mode, .direction = kind.direction};
    unit->flags = pads ? 0 : CM_NO_PADDING;
    unit->fixed = kind.direction == CM_DECRYPT && (kind.mode == CM_GCM || pads);
    if (kind.mode == CM_XTS || (kind.mode != CM_ECB && (kind.direction == CM_DECRYPT || plan->caller_iv)))
        unit->iv_length = kind.mode == CM_GCM ? NONCE : BLOCK;
    if (!allocate(unit, plan))
        return false;
    if (!fill_random(unit->in, unit->count * unit->in_stride) ||
        !fill_random((uint8_t *)&unit->random, sizeof unit->random) ||
        (unit->iv_length > 0 && !fill_random(unit->first_ivs, unit->count * BLOCK)))
        return false;
    unit->random |= 1;
    for (size_t i = 0; i < unit->count; i++) {
        cm_item *item = &unit->items[i];

        item->in = unit->in + i * unit->in_stride;
        item->in_length = pick_size(unit, plan);
        item->out = unit->out + i * unit->out_stride;
        item->out_capacity = unit->out_stride;
        item->tag_length = kind.mode == CM_GCM ? tag_length : 0;
    }
    return kind.direction == CM_ENCRYPT || encrypt_input(unit, reference);
}

void unit_done(struct unit *unit)
{
    free(unit->items);
    free(unit->in);
    free(unit->out);
    free(unit->first_ivs);
    *unit = (struct unit){0};
}

/* An output that the daemon or the library left alone must not pass for an answer. */
static void poison(cm_item *item)
{
    static const uint8_t marks[BLOCK] = {0xa5, 0x5a, 0xc3, 0x3c, 0xa5, 0x5a, 0xc3, 0x3c,
                                         0xa5, 0x5a, 0xc3, 0x3c, 0xa5, 0x5a, 0xc3, 0x3c};
    uint8_t *out = item->out;

    memcpy(out, marks, sizeof marks);
    if (item->in_length > BLOCK)
        memcpy(out + item->in_length - BLOCK, marks, sizeof marks);
    item->out_length = 0;
    item->status = CM_ERR_NOT_SENT;
}

void unit_prepare(struct unit *unit, const struct plan *plan)
{
    bool ranges = plan->size_least != plan->size_most && unit->direction == CM_ENCRYPT;

    unit->round++;
    for (size_t i = 0; i < unit->count; i++) {
        cm_item *item = &unit->items[i];
        uint8_t *in = unit->in + i * unit->in_stride;

        if (ranges)
            item->in_length = pick_size(unit, plan);
        if (!unit->fixed && item->in_length >= sizeof unit->round)
            memcpy(in, &unit->round, sizeof unit->round);
        item->iv_length = unit->iv_length;
        if (unit->iv_length > 0) {
            uint8_t *iv = unit->first_ivs + i * BLOCK;

            /* A caller's own IV is used once. */
            if (unit->direction == CM_ENCRYPT)
                memcpy(iv, &unit->round, 4);
            memcpy(item->iv, iv, unit->iv_length);
        }
        poison(item);
    }
}

uint64_t unit_bytes_done(const struct unit *unit)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < unit->count; i++) {
        if (unit->items[i].status == CM_OK)
            bytes += unit->items[i].in_length;
    }
    return bytes;
}

static bool item_is_right(const struct unit *unit, const cm_item *item, struct reference *reference,
                          uint8_t *scratch)
{
    uint8_t tag[BLOCK];
    struct message message = {.in = item->in,
                              .in_length = item->in_length,
                              .iv = unit->mode == CM_ECB ? NULL : item->iv,
                              .iv_length = item->iv_length,
                              .out = scratch,
                              .tag = tag,
                              .tag_length = item->tag_length};

    if (unit->mode != CM_ECB && item->iv_length != (unit->mode == CM_GCM ? NONCE : BLOCK))
        return false;
    if (unit->mode == CM_GCM && (item->tag_length < 4 || item->tag_length > sizeof tag))
        return false;
    memcpy(tag, item->tag, sizeof tag);
    if (!reference_run(reference, unit->mode, unit->direction, (unit->flags & CM_NO_PADDING) == 0, &message))
        return false;
    return message.out_length == item->out_length && memcmp(scratch, item->out, item->out_length) == 0 &&
           (unit->mode != CM_GCM || memcmp(tag, item->tag, item->tag_length) == 0);
}

uint64_t unit_verify(const struct unit *unit, struct reference *reference, uint8_t *scratch,
                     uint64_t *ret_checked)
{
    uint64_t wrong = 0;
    uint64_t checked = 0;

    for (size_t i = 0; i < unit->count; i++) {
        if (unit->items[i].status != CM_OK)
            continue;
        checked++;
        wrong += !item_is_right(unit, &unit->items[i], reference, scratch);
    }
    *ret_checked = checked;
    return wrong;
}
