/* SPDX-License-Identifier: Apache-2.0 */
/* CTR: SP 800-38A, section 6.5, with the whole block as one 128-bit big-endian counter. */
#include "bytes.h"
#include "impl.h"
#include "prepare.h"

static size_t prepare(enum cm_aes_direction direction, enum cm_aes_padding padding, struct cm_aes_item *items,
                      size_t count)
{
    (void)direction, (void)padding;
    size_t failed = 0;
    for (size_t i = cm_prepare_quick(items, count, true, 1); i < count; i++) {
        items[i].ret_status = CM_AES_OK;
        items[i].ret_length = items[i].length;
        if (items[i].iv_length != 16)
            failed += cm_item_fail(&items[i], CM_AES_BAD_IV);
    }
    return failed;
}

static size_t slice_iv(const struct cm_aes_item *whole, size_t offset, uint8_t ret_iv[16])
{
    memcpy(ret_iv, whole->iv, 16);
    cm_counter_add(ret_iv, offset / 16);
    return 16;
}

static int part(const struct cm_aes_key *key, enum cm_aes_padding padding, struct cm_aes_parts *state,
                struct cm_aes_item *item, bool last)
{
    struct cm_aes_item piece = *item;
    if (state->begun) {
        piece.iv = state->chain;
        piece.iv_length = 16;
    }
    cm_aes_batch(key, padding, &piece, 1);
    item->ret_status = piece.ret_status;
    item->ret_length = piece.ret_length;
    if (piece.ret_status != CM_AES_OK || last)
        return item->ret_status;
    memmove(state->chain, piece.iv, 16);
    cm_counter_add(state->chain, item->length / 16);
    return CM_AES_OK;
}

const struct cm_mode cm_ctr = {
    .cuts = {true, true},
    .prepare = prepare,
    .slice_iv = slice_iv,
    .part = part,
};
