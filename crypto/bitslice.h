/* SPDX-License-Identifier: Apache-2.0 */
/* AES on sixteen blocks at once in plain C and constant time; the heart of the portable implementation. */
#ifndef CM_BITSLICE_H
#define CM_BITSLICE_H

#include "sbox.h"

enum { CM_BITSLICE_BLOCKS = 16 };

/* Round keys in the layout of the state, one form for both directions. */
struct cm_bitslice_key {
    pair plane[15][8][2];
};

/* From the round keys of cm_key_expand. */
void cm_bitslice_key_init(struct cm_bitslice_key *key, const uint32_t *words, unsigned rounds);

/* In place. They cost the same however many of the blocks matter. */
void cm_bitslice_encrypt(const struct cm_bitslice_key *key, unsigned rounds, uint8_t blocks[16][16]);
void cm_bitslice_decrypt(const struct cm_bitslice_key *key, unsigned rounds, uint8_t blocks[16][16]);

/* SubWord of FIPS 197, section 5.2, for cm_key_expand. */
uint32_t cm_bitslice_sub_word(uint32_t value);

#endif
