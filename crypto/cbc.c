/* SPDX-License-Identifier: Apache-2.0 */
/* CBC: SP 800-38A, section 6.2. */
#include "impl.h"

#include <string.h>

static size_t prepare(enum cm_aes_direction direction, enum cm_aes_padding padding, struct cm_aes_item *items,
                      size_t count)
{
    return cm_pkcs7_prepare(direction, padding, true, items, count);
}

/* The block before the range chains into it. */
static size_t slice_iv(const struct cm_aes_item *whole, size_t offset, uint8_t ret_iv[16])
{
    memcpy(ret_iv, offset == 0 ? whole->iv : whole->source + offset - 16, 16);
    return 16;
}

static int part(const struct cm_aes_key *key, enum cm_aes_padding padding, struct cm_aes_parts *state,
                struct cm_aes_item *item, bool last)
{
    bool encrypt = cm_key_for(key, CM_AES_LONG)->kernel->direction == CM_AES_ENCRYPT;
    struct cm_aes_item piece = *item;
    uint8_t chain[16];
    if (state->begun) {
        piece.iv = state->chain;
        piece.iv_length = 16;
    }
    /* In place, decryption overwrites the block that the next part needs. */
    if (!encrypt && item->length >= 16)
        memcpy(chain, item->source + item->length - 16, 16);
    cm_aes_batch(key, padding, &piece, 1);
    item->ret_status = piece.ret_status;
    item->ret_length = piece.ret_length;
    if (piece.ret_status != CM_AES_OK || last)
        return item->ret_status;
    if (item->length == 0)
        memmove(state->chain, piece.iv, 16);
    else
        memcpy(state->chain, encrypt ? item->destination + item->length - 16 : chain, 16);
    return CM_AES_OK;
}

const struct cm_mode cm_cbc = {
    .pads = true,
    .cuts = {[CM_AES_DECRYPT] = true},
    .prepare = prepare,
    .finish = cm_pkcs7_finish,
    .slice_iv = slice_iv,
    .part = part,
};
