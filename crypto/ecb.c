/* SPDX-License-Identifier: Apache-2.0 */
/* ECB: SP 800-38A, section 6.1. */
#include "impl.h"

static size_t prepare(enum cm_aes_direction direction, enum cm_aes_padding padding, struct cm_aes_item *items,
                      size_t count)
{
    return cm_pkcs7_prepare(direction, padding, false, items, count);
}

/* The table wants it writable. NOLINTNEXTLINE(readability-non-const-parameter) */
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
