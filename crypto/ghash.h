/* SPDX-License-Identifier: Apache-2.0 */
/* GHASH (SP 800-38D, section 6.4) in plain C and constant time, for the portable implementation. */
#ifndef CM_GHASH_H
#define CM_GHASH_H

#include <stddef.h>
#include <stdint.h>

/* H as two words, their sum, and the same three bit-reversed. */
struct cm_ghash_key {
    uint64_t high, low, sum;
    uint64_t reversed_high, reversed_low, reversed_sum;
};

void cm_ghash_key_init(struct cm_ghash_key *key, const uint8_t h[16]);

/* hash = (hash + block) * H for every block of `data`, its last one filled up with zeros. */
void cm_ghash_update(const struct cm_ghash_key *key, uint8_t hash[16], const uint8_t *data, size_t length);

#endif
