/* SPDX-License-Identifier: Apache-2.0 */
/* The rules for key names and key attributes: families, directions, IVs, tag lengths. */
#ifndef CM_ATTRIBUTES_H
#define CM_ATTRIBUTES_H

#include "message.h"

/* 1 to 128 of a-z A-Z 0-9 . _ -, starting with none of . and -. */
bool cm_key_name_valid(const char *name);

/* Fills in what was left open (no modes: GCM; no direction: both; GCM without tag length: 16) and checks that
 * the whole goes together. Returns CM_STATUS_OK or CM_STATUS_BAD_ATTRIBUTES with *ret_text, a static line
 * that says why. */
uint32_t cm_attributes_settle(struct cm_key_attributes *attributes, uint32_t key_bits,
                              bool unsafe_mixed_modes, const char **ret_text);

#endif
