/* SPDX-License-Identifier: Apache-2.0 */
/* What AES work costs: timed once at start, then estimated from two numbers. */
#include "cost.h"

#include <stdalign.h>
#include <string.h>
#include <time.h>

enum { ITEMS = 8, SHORT = 16, LONG = 1024, ROUNDS = 3, ROUNDS_OF_128 = 10 };

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* The best of a few rounds, since whatever disturbs a measurement makes it longer. */
static uint64_t batch_ns(const struct cm_aes_key *key, struct cm_aes_item *items, size_t length)
{
    uint64_t best = UINT64_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < ITEMS; i++)
            items[i].length = length;
        uint64_t start = now_ns();
        (void)cm_aes_batch(key, CM_AES_NO_PADDING, items, ITEMS);
        uint64_t taken = now_ns() - start;
        if (taken < best)
            best = taken;
    }
    return best;
}

static struct cm_cost measure(enum cm_aes_mode mode, enum cm_aes_direction direction)
{
    static const uint8_t zero[32];
    alignas(CM_AES_KEY_ALIGN) uint8_t memory[CM_AES_KEY_MAX_SIZE];
    struct cm_aes_key *key = (struct cm_aes_key *)memory;
    uint8_t text[ITEMS * LONG], tags[ITEMS][CM_AES_MAX_TAG_BYTES];
    struct cm_aes_item items[ITEMS];

    memset(text, 0, sizeof text);
    memset(tags, 0, sizeof tags);
    if (cm_aes_key_init(key, cm_aes_row(mode, direction), zero, mode == CM_AES_XTS ? 32 : 16) != CM_AES_OK)
        return (struct cm_cost){1000, 1000};
    for (size_t i = 0; i < ITEMS; i++)
        items[i] = (struct cm_aes_item){.source = text + i * (size_t)LONG,
                                        .destination = text + i * (size_t)LONG,
                                        .iv = zero,
                                        .iv_length = mode == CM_AES_GCM ? 12 : 16,
                                        .tag = tags[i],
                                        .tag_length = CM_AES_MAX_TAG_BYTES};
    uint64_t brief = batch_ns(key, items, SHORT), lengthy = batch_ns(key, items, LONG);
    cm_aes_key_done(key);

    uint64_t more = lengthy > brief ? lengthy - brief : 0;
    uint64_t byte_ps = more * 1000 / ((uint64_t)ITEMS * (LONG - SHORT));
    uint64_t item_ps = brief * 1000 / ITEMS;
    uint64_t in_bytes = byte_ps * SHORT;
    return (struct cm_cost){item_ps > in_bytes ? item_ps - in_bytes : 0, byte_ps > 0 ? byte_ps : 1};
}

void cm_cost_measure(struct cm_cost_model *ret_model)
{
    for (int mode = 0; mode < CM_AES_MODE_COUNT; mode++)
        for (int direction = 0; direction < CM_AES_DIRECTION_COUNT; direction++)
            ret_model->of[mode][direction] =
                measure((enum cm_aes_mode)mode, (enum cm_aes_direction)direction);
}

struct cm_cost cm_cost_of(const struct cm_cost_model *model, enum cm_aes_mode mode,
                          enum cm_aes_direction direction, uint32_t key_bits)
{
    const struct cm_cost *cost = &model->of[mode][direction];
    uint64_t rounds = key_bits / 32 + 6;
    return (struct cm_cost){cost->item_ps * rounds / ROUNDS_OF_128, cost->byte_ps * rounds / ROUNDS_OF_128};
}
