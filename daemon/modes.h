/* SPDX-License-Identifier: Apache-2.0 */
/* Modes and directions, which the wire and crypto/ number apart: from one to the other, and their words. */
#ifndef CM_MODES_H
#define CM_MODES_H

#include "cm_aes.h"
#include "message.h"

_Static_assert(CM_WIRE_CBC - CM_WIRE_ECB == (int)CM_AES_CBC && CM_WIRE_CTR - CM_WIRE_ECB == (int)CM_AES_CTR &&
                   CM_WIRE_GCM - CM_WIRE_ECB == (int)CM_AES_GCM &&
                   CM_WIRE_XTS - CM_WIRE_ECB == (int)CM_AES_XTS &&
                   CM_WIRE_DECRYPT - CM_WIRE_ENCRYPT == (int)CM_AES_DECRYPT,
               "both number modes and directions in the same order");

/* Of a known number on the wire. */
static inline enum cm_aes_mode cm_mode_of_wire(uint8_t wire)
{
    return (enum cm_aes_mode)(wire - CM_WIRE_ECB);
}

static inline enum cm_aes_direction cm_direction_of_wire(uint8_t wire)
{
    return (enum cm_aes_direction)(wire - CM_WIRE_ENCRYPT);
}

static inline uint8_t cm_mode_to_wire(enum cm_aes_mode mode)
{
    return (uint8_t)((int)mode + CM_WIRE_ECB);
}

static inline uint8_t cm_direction_to_wire(enum cm_aes_direction direction)
{
    return (uint8_t)((int)direction + CM_WIRE_ENCRYPT);
}

/* "ecb", "encrypt": labels of metrics and parts of texts; "unknown" for any other number on the wire. */
static inline const char *cm_mode_word(unsigned wire)
{
    static const char *const words[] = {[CM_WIRE_ECB] = "ecb",
                                        [CM_WIRE_CBC] = "cbc",
                                        [CM_WIRE_CTR] = "ctr",
                                        [CM_WIRE_GCM] = "gcm",
                                        [CM_WIRE_XTS] = "xts"};
    return wire >= CM_WIRE_ECB && wire <= CM_WIRE_MODE_LAST ? words[wire] : "unknown";
}

static inline const char *cm_direction_word(unsigned wire)
{
    return wire == CM_WIRE_ENCRYPT ? "encrypt" : wire == CM_WIRE_DECRYPT ? "decrypt" : "unknown";
}

#endif
