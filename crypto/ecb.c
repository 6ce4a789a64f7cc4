/* SPDX-License-Identifier: Apache-2.0 */
/* ECB: SP 800-38A, section 6.1. */
#include "impl.h"

static size_t prepare(enum cm_aes_direction direction, enum cm_aes_padding padding, struct cm_aes_item *items,
                      size_t count)
{
    size_t failed = 0;
    for (size_t i = 0; i < count; i++) {
        items[i].ret_status = cm_pkcs7_prepare(direction, padding, &items[i]);
        if (items[i].ret_status != CM_AES_OK)
            failed += cm_item_fail(&items[i], CM_AES_BAD_LENGTH);
    }
    return failed;
}

static size_t slice_iv(const struct cm_aes_item *whole, size_t offset, uint8_t ret_iv[16])
{
    (void)whole, (void)offset, (void)ret_iv;
    return 0;
}

static int part(const struct cm_aes_key *key, enum cm_aes_padding padding, struct cm_aes_parts *state,
                struct cm_aes_item *item, bool last)
{
    (void)state, (void)last;
    cm_aes_batch(key, padding, item, 1);
    return item->ret_status;
}

const struct cm_mode cm_ecb = {
    .pads = true,
    .cuts = {true, true},
    .prepare = prepare,
    .finish = cm_pkcs7_finish,
    .slice_iv = slice_iv,
    .part = part,
};
