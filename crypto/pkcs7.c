/* SPDX-License-Identifier: Apache-2.0 */
/* What ECB and CBC share before and after the kernel: whole blocks, and PKCS#7 padding in constant time. */
#include "declassify.h"
#include "impl.h"
#include "prepare.h"

#include <string.h>

/* Decrypting, the bytes to write are those of the ciphertext; finishing takes the padding off. */
static inline enum cm_aes_status prepare_decrypt(enum cm_aes_padding padding, struct cm_aes_item *item)
{
    if (item->length % 16 != 0 || (padding == CM_AES_PKCS7 && item->length == 0))
        return CM_AES_BAD_LENGTH;
    item->ret_length = item->length;
    return CM_AES_OK;
}

/* The last block is laid out at its place in the destination. In place its first bytes stand there already.
 */
static inline enum cm_aes_status prepare_encrypt(enum cm_aes_padding padding, struct cm_aes_item *item)
{
    size_t rest = item->length % 16;
    if (padding == CM_AES_NO_PADDING) {
        item->ret_length = item->length;
        return rest == 0 ? CM_AES_OK : CM_AES_BAD_LENGTH;
    }
    if (item->length > SIZE_MAX - 16)
        return CM_AES_BAD_LENGTH;
    size_t whole = item->length - rest;
    uint8_t *last = item->destination + whole;
    if (rest > 0 && item->source != item->destination)
        memcpy(last, item->source + whole, rest);
    memset(last + rest, (int)(16 - rest), 16 - rest);
    item->ret_length = whole + 16;
    return CM_AES_OK;
}

/* One loop for each combination, for it is a large part of what a message of a block or two costs. */
static inline __attribute__((always_inline)) size_t prepare_all(enum cm_aes_direction direction,
                                                                enum cm_aes_padding padding, bool needs_iv,
                                                                struct cm_aes_item *items, size_t count)
{
    size_t failed = 0;
    size_t quick = padding == CM_AES_NO_PADDING ? cm_prepare_quick(items, count, needs_iv, 16) : 0;
    for (size_t i = quick; i < count; i++) {
        struct cm_aes_item *item = &items[i];
        enum cm_aes_status status;
        if (needs_iv && item->iv_length != 16)
            status = CM_AES_BAD_IV;
        else
            status =
                direction == CM_AES_ENCRYPT ? prepare_encrypt(padding, item) : prepare_decrypt(padding, item);
        item->ret_status = status;
        if (status != CM_AES_OK)
            failed += cm_item_fail(item, status);
    }
    return failed;
}

size_t cm_pkcs7_prepare(enum cm_aes_direction direction, enum cm_aes_padding padding, bool needs_iv,
                        struct cm_aes_item *items, size_t count)
{
    if (padding == CM_AES_PKCS7)
        return prepare_all(direction, CM_AES_PKCS7, needs_iv, items, count);
    /* Without padding both directions ask for the same. */
    if (needs_iv)
        return prepare_all(CM_AES_DECRYPT, CM_AES_NO_PADDING, true, items, count);
    return prepare_all(CM_AES_DECRYPT, CM_AES_NO_PADDING, false, items, count);
}

/* All ones if a < b, else zero; for small numbers. */
static inline unsigned below(unsigned a, unsigned b)
{
    return 0u - ((a - b) >> 31);
}

/* How many bytes of padding a message's last block has, or 0 if they are malformed. Looks at all sixteen
 * bytes alike: the last n must equal n, and n must be 1 to 16. */
static unsigned padding_bytes(const uint8_t block[16])
{
    unsigned n = block[15];
    unsigned bad = below(n, 1) | below(16, n);
    for (unsigned i = 0; i < 16; i++)
        bad |= below(i, n) & (block[15 - i] ^ n);
    unsigned good = ((bad | (0u - bad)) >> 31) - 1; /* all ones if bad is 0 */
    __asm__("" : "+r"(good));                       /* no branch may be made of the mask before here */
    return n & good;
}

size_t cm_pkcs7_finish(enum cm_aes_direction direction, enum cm_aes_padding padding,
                       struct cm_aes_item *items, size_t count)
{
    size_t failed = 0;
    if (direction == CM_AES_ENCRYPT || padding == CM_AES_NO_PADDING)
        return 0;
    for (size_t i = 0; i < count; i++) {
        struct cm_aes_item *item = &items[i];
        if (item->ret_status != CM_AES_OK)
            continue;
        unsigned bytes = padding_bytes(item->destination + item->length - 16);
        CM_DECLASSIFY(bytes); /* the length of the plaintext is what the caller asked for */
        if (bytes > 0) {
            item->ret_length = item->length - bytes;
        } else {
            cm_aes_wipe(item->destination, item->length);
            failed += cm_item_fail(item, CM_AES_BAD_PADDING);
        }
    }
    return failed;
}
