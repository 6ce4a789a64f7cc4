/* SPDX-License-Identifier: Apache-2.0 */
/* The rules for key names and key attributes: families, directions, IVs, tag lengths. */
#ifndef CM_ATTRIBUTES_H
#define CM_ATTRIBUTES_H

#include "message.h"

/* 1 to 128 of a-z A-Z 0-9 . _ -, starting with none of . and -. */
bool cm_key_name_valid(const char *name);

/* Whether the two halves of an XTS key, `length` bytes together, are the same, in time that depends on the
 * length alone. Such a key is refused: under it XTS falls to chosen ciphertexts (FIPS 140-3 implementation
 * guidance, C.I, asks for the check where a key is made or brought in). */
bool cm_xts_halves_equal(const uint8_t *bytes, size_t length);

/* Fills in what was left open (no modes: GCM; no direction: both; GCM without tag length: 16) and checks that
 * the whole goes together. XTS stands alone whatever `unsafe_mixed_modes` says: it has two keys, and no other
 * mode knows which of them would be its own. Returns CM_STATUS_OK or CM_STATUS_BAD_ATTRIBUTES with *ret_text,
 * a static line that says why. */
uint32_t cm_attributes_settle(struct cm_key_attributes *attributes, uint32_t key_bits,
                              bool unsafe_mixed_modes, const char **ret_text);

#endif
