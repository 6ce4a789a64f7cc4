/* SPDX-License-Identifier: Apache-2.0 */
/* XTS: SP 800-38E and IEEE Std 1619; the lengths of a data unit. */
#include "impl.h"

static size_t prepare(enum cm_aes_direction direction, enum cm_aes_padding padding, struct cm_aes_item *items,
                      size_t count)
{
    (void)direction, (void)padding;
    size_t failed = 0;
    for (size_t i = 0; i < count; i++) {
        struct cm_aes_item *item = &items[i];
        enum cm_aes_status status = CM_AES_OK;
        if (item->iv_length != 16)
            status = CM_AES_BAD_IV;
        else if (item->length < CM_AES_XTS_MIN_BYTES || item->length > CM_AES_XTS_MAX_BYTES)
            status = CM_AES_BAD_LENGTH;
        item->ret_status = status;
        item->ret_length = item->length;
        if (status != CM_AES_OK)
            failed += cm_item_fail(item, status);
    }
    return failed;
}

const struct cm_mode cm_xts = {
    .doubled_key = true,
    .prepare = prepare,
};
