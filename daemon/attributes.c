/* SPDX-License-Identifier: Apache-2.0 */
/* The rules for key names and key attributes. */
#include "attributes.h"

#include "cm_aes.h"
#include "status.h"
#include <string.h>

enum {
    BIT_GCM = 1 << CM_WIRE_GCM,
    BIT_CTR = 1 << CM_WIRE_CTR,
    BIT_XTS = 1 << CM_WIRE_XTS,
    FAMILY_BLOCKS = 1 << CM_WIRE_ECB | 1 << CM_WIRE_CBC | 1 << CM_WIRE_CTR,
    DEFAULT_TAG_LENGTH = 16
};

bool cm_key_name_valid(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t length = strnlen(name, CM_KEY_NAME_MAX + 1);
    return length >= 1 && length <= CM_KEY_NAME_MAX && name[0] != '.' && name[0] != '-' &&
           strspn(name, allowed) == length;
}

static bool tag_length_valid(uint32_t length)
{
    return length == 4 || length == 8 || (length >= 12 && length <= 16);
}

bool cm_xts_halves_equal(const uint8_t *bytes, size_t length)
{
    return cm_aes_equal(bytes, bytes + length / 2, length / 2);
}

uint32_t cm_attributes_settle(struct cm_key_attributes *attributes, uint32_t key_bits,
                              bool unsafe_mixed_modes, const char **ret_text)
{
    if (attributes->modes == 0)
        attributes->modes = BIT_GCM;
    if (!attributes->encrypt && !attributes->decrypt)
        attributes->encrypt = attributes->decrypt = true;
    if (attributes->tag_length == 0 && attributes->modes & BIT_GCM)
        attributes->tag_length = DEFAULT_TAG_LENGTH;

    const char *text = NULL;
    if (key_bits != 128 && key_bits != 192 && key_bits != 256)
        text = "an AES key has 128, 192 or 256 bits";
    else if (attributes->modes & ~(uint32_t)(BIT_GCM | BIT_XTS | FAMILY_BLOCKS))
        text = "the modes name one that this daemon does not know";
    else if (attributes->modes & BIT_XTS && attributes->modes != BIT_XTS)
        text = "a key for XTS is for XTS alone: it is two keys, one for the data and one for the tweak; make "
               "two";
    else if (attributes->modes & BIT_XTS && key_bits == 192)
        text = "XTS is for AES-128 and AES-256: the standard has no AES-192 in it";
    else if (attributes->modes & BIT_GCM && attributes->modes & FAMILY_BLOCKS && !unsafe_mixed_modes)
        text = "one key for GCM and for ECB, CBC or CTR breaks GCM: encrypting a zero block in ECB gives its "
               "authentication key; make two keys, or ask for unsafe mixed modes";
    else if (attributes->modes & BIT_CTR && attributes->encrypt != attributes->decrypt)
        text = "in CTR encrypting and decrypting are the same: a key for it needs both directions";
    else if (attributes->modes & BIT_GCM && !tag_length_valid(attributes->tag_length))
        text = "a GCM tag has 4, 8 or 12 to 16 bytes";
    else if (!(attributes->modes & BIT_GCM) && attributes->tag_length != 0)
        text = "a tag length goes with GCM only";
    if (text == NULL)
        return CM_STATUS_OK;
    *ret_text = text;
    return CM_STATUS_BAD_ATTRIBUTES;
}
