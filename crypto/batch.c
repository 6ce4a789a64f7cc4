/* SPDX-License-Identifier: Apache-2.0 */
/* Runs batches, slices and parts: what is the same for every mode and every kernel. */
#include "impl.h"

/* A mode's one slot. */
const struct cm_mode *const cm_modes[CM_AES_MODE_COUNT] = {
    [CM_AES_ECB] = &cm_ecb, [CM_AES_CBC] = &cm_cbc, [CM_AES_CTR] = &cm_ctr,
    [CM_AES_GCM] = &cm_gcm, [CM_AES_XTS] = &cm_xts,
};

size_t cm_item_fail(struct cm_aes_item *item, enum cm_aes_status status)
{
    item->ret_status = status;
    item->ret_length = 0;
    return 1;
}

size_t cm_aes_output_bound(enum cm_aes_direction direction, enum cm_aes_padding padding, size_t length)
{
    if (direction == CM_AES_DECRYPT || padding == CM_AES_NO_PADDING)
        return length;
    size_t whole = length - length % 16;
    return whole > SIZE_MAX - 16 ? SIZE_MAX : whole + 16;
}

/* Lengths are cut to what decides already, so that their sum can't overflow. */
static inline size_t capped_length(const struct cm_aes_item *item)
{
    enum { CAP = 4 * CM_AES_SMALL_BYTES + 1 };
    return item->length < CAP ? item->length : CAP;
}

enum cm_aes_size_class cm_aes_size_class(const struct cm_aes_item *items, size_t count)
{
    size_t bytes = 0;
    if (count <= CM_AES_SHORT_ITEMS) {
        for (size_t i = 0; i < count; i++)
            bytes += capped_length(&items[i]);
        if (bytes <= CM_AES_SHORT_BYTES)
            return CM_AES_SHORT;
    }
    bytes = 0;
    for (size_t i = 0; i < 4; i++)
        bytes += capped_length(&items[count / 4 * i + count % 4 * i / 4]);
    return bytes <= 4 * CM_AES_SMALL_BYTES ? CM_AES_SMALL : CM_AES_LONG;
}

size_t cm_aes_batch(const struct cm_aes_key *key, enum cm_aes_padding padding, struct cm_aes_item *items,
                    size_t count)
{
    const struct cm_kernel_key *chosen = cm_key_for(key, cm_aes_size_class(items, count));
    const struct cm_kernel *kernel = chosen->kernel;
    const struct cm_mode *mode = cm_modes[kernel->mode];
    size_t failed = 0;
    if (padding != CM_AES_NO_PADDING && !mode->pads) {
        for (size_t i = 0; i < count; i++)
            failed += cm_item_fail(&items[i], CM_AES_UNAVAILABLE);
        return failed;
    }
    failed = mode->prepare(kernel->direction, padding, items, count);
    kernel->run(chosen, items, count);
    cm_wipe_stack(kernel->stack_bytes);
    if (mode->finish != NULL)
        failed += mode->finish(kernel->direction, padding, items, count);
    return failed;
}

int cm_aes_slice(enum cm_aes_mode mode, enum cm_aes_direction direction, const struct cm_aes_item *whole,
                 size_t offset, size_t length, uint8_t iv[16], struct cm_aes_item *ret_slice)
{
    if (!cm_modes[mode]->cuts[direction])
        return CM_AES_UNAVAILABLE;
    if (offset % 16 != 0 || offset > whole->length || length > whole->length - offset)
        return CM_AES_BAD_LENGTH;
    if (length % 16 != 0 && offset + length != whole->length)
        return CM_AES_BAD_LENGTH;
    if (mode != CM_AES_ECB && whole->iv_length != 16)
        return CM_AES_BAD_IV;
    struct cm_aes_item slice = {.length = length, .iv = iv};
    if (whole->source != NULL)
        slice.source = whole->source + offset;
    if (whole->destination != NULL)
        slice.destination = whole->destination + offset;
    slice.iv_length = cm_modes[mode]->slice_iv(whole, offset, iv);
    *ret_slice = slice;
    return CM_AES_OK;
}

int cm_aes_part(const struct cm_aes_key *key, enum cm_aes_padding padding, struct cm_aes_parts *state,
                struct cm_aes_item *item, bool last)
{
    const struct cm_mode *mode = cm_modes[cm_key_for(key, CM_AES_LONG)->kernel->mode];
    enum cm_aes_status status = CM_AES_OK;
    if (mode->part == NULL || (padding != CM_AES_NO_PADDING && !mode->pads))
        status = CM_AES_UNAVAILABLE;
    else if (state->ended || (!last && item->length % 16 != 0))
        status = CM_AES_BAD_LENGTH;
    if (status != CM_AES_OK) {
        cm_item_fail(item, status);
        return status;
    }
    status = mode->part(key, last ? padding : CM_AES_NO_PADDING, state, item, last);
    if (status == CM_AES_OK || status == CM_AES_BAD_PADDING || status == CM_AES_BAD_TAG) {
        state->begun = true;
        state->ended = last;
    }
    return status;
}

void cm_aes_parts_done(struct cm_aes_parts *state)
{
    cm_aes_wipe(state, sizeof *state);
}
