/* SPDX-License-Identifier: Apache-2.0 */
/* What AES work costs on this machine: measured at start for the implementation in use, never a fixed number.
 */
#ifndef CM_COST_H
#define CM_COST_H

#include "cm_aes.h"

/* Picoseconds, for 128-bit keys; longer keys cost in proportion to their rounds. */
struct cm_cost {
    uint64_t item_ps, byte_ps;
};

struct cm_cost_model {
    struct cm_cost of[CM_AES_MODE_COUNT][CM_AES_DIRECTION_COUNT];
};

/* Times small batches of every mode and direction; takes some milliseconds. Needs cm_aes_init. */
void cm_cost_measure(struct cm_cost_model *ret_model);

/* For keys of that many bits. */
struct cm_cost cm_cost_of(const struct cm_cost_model *model, enum cm_aes_mode mode,
                          enum cm_aes_direction direction, uint32_t key_bits);

/* Estimated kernel time of one item. */
static inline uint64_t cm_cost_ps(const struct cm_cost *cost, uint64_t length)
{
    return cost->item_ps + cost->byte_ps * length;
}

#endif
