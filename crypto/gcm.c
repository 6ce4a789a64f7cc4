/* SPDX-License-Identifier: Apache-2.0 */
/* GCM: SP 800-38D; the lengths that it allows, its tags, and its state between parts. */
#include "declassify.h"
#include "impl.h"

#include <string.h>

/* IV and additional data are at most 2^64 - 1 bits, section 5.2.1.1; what is whole bytes of them. */
#define MAX_HASHED_BYTES ((UINT64_C(1) << 61) - 1)

static inline bool tag_length_is_good(size_t length)
{
    const uint32_t good = 1u << 4 | 1u << 8 | 0x1fu << 12;
    return length <= CM_AES_MAX_TAG_BYTES && (good >> length & 1);
}

static enum cm_aes_status check_start(const struct cm_aes_item *item)
{
    if (item->iv_length == 0 || item->iv_length > MAX_HASHED_BYTES)
        return CM_AES_BAD_IV;
    return item->aad_length <= MAX_HASHED_BYTES ? CM_AES_OK : CM_AES_BAD_LENGTH;
}

static size_t prepare(enum cm_aes_direction direction, enum cm_aes_padding padding, struct cm_aes_item *items,
                      size_t count)
{
    (void)direction, (void)padding;
    size_t failed = 0;
    for (size_t i = 0; i < count; i++) {
        /* The usual case first: this is a large part of what a short message costs. */
        if (__builtin_expect(items[i].iv_length == 12, 1) && __builtin_expect(items[i].tag_length == 16, 1) &&
            __builtin_expect(items[i].aad_length <= MAX_HASHED_BYTES, 1) &&
            __builtin_expect(items[i].length <= CM_AES_GCM_MAX_BYTES, 1)) {
            items[i].ret_status = CM_AES_OK;
            items[i].ret_length = items[i].length;
            continue;
        }
        enum cm_aes_status status = check_start(&items[i]);
        if (status == CM_AES_OK && items[i].length > CM_AES_GCM_MAX_BYTES)
            status = CM_AES_BAD_LENGTH;
        if (status == CM_AES_OK && !tag_length_is_good(items[i].tag_length))
            status = CM_AES_BAD_TAG_LENGTH;
        items[i].ret_status = status;
        items[i].ret_length = items[i].length;
        if (status != CM_AES_OK)
            failed += cm_item_fail(&items[i], status);
    }
    return failed;
}

void cm_gcm_tag(enum cm_aes_direction direction, struct cm_aes_item *item, const uint8_t tag[16])
{
    if (direction == CM_AES_ENCRYPT) {
        if (item->tag_length == 16)
            memcpy(item->tag, tag, 16); /* in line, since it is the rule */
        else
            memcpy(item->tag, tag, item->tag_length);
        return;
    }
    bool same = cm_aes_equal(item->tag, tag, item->tag_length);
    CM_DECLASSIFY(same);
    if (!same)
        item->ret_status = CM_AES_BAD_TAG;
}

/* Nobody but the caller has seen the destination, and it is wiped before the call returns; so plaintext does
 * not get out before its tag is right. */
static size_t finish(enum cm_aes_direction direction, enum cm_aes_padding padding, struct cm_aes_item *items,
                     size_t count)
{
    (void)padding;
    size_t failed = 0;
    int any = CM_AES_OK;
    if (direction == CM_AES_ENCRYPT)
        return 0;
#pragma GCC unroll 4
    for (size_t i = 0; i < count; i++)
        any |= items[i].ret_status;
    if (any == CM_AES_OK)
        return 0;
    for (size_t i = 0; i < count; i++) {
        if (items[i].ret_status != CM_AES_BAD_TAG)
            continue;
        cm_aes_wipe(items[i].destination, items[i].length);
        failed += cm_item_fail(&items[i], CM_AES_BAD_TAG);
    }
    return failed;
}

static int part(const struct cm_aes_key *key, enum cm_aes_padding padding, struct cm_aes_parts *state,
                struct cm_aes_item *item, bool last)
{
    const struct cm_kernel_key *chosen = cm_key_for(key, CM_AES_LONG);
    enum cm_aes_direction direction = chosen->kernel->direction;
    enum cm_aes_status status = state->begun ? CM_AES_OK : check_start(item);
    if (status == CM_AES_OK && item->length > CM_AES_GCM_MAX_BYTES - state->text_bytes)
        status = CM_AES_BAD_LENGTH;
    if (status == CM_AES_OK && last && !tag_length_is_good(item->tag_length))
        status = CM_AES_BAD_TAG_LENGTH;
    item->ret_status = status;
    if (status != CM_AES_OK) {
        cm_item_fail(item, status);
        return status;
    }
    if (!state->begun)
        state->aad_bytes = item->aad_length;
    state->text_bytes += item->length;
    item->ret_length = item->length;

    uint8_t tag[16];
    chosen->kernel->part(chosen, state, item, !state->begun, last, tag);
    cm_wipe_stack(chosen->kernel->stack_bytes);
    if (last) {
        cm_gcm_tag(direction, item, tag);
        finish(direction, padding, item, 1);
    }
    cm_aes_wipe(tag, sizeof tag);
    return item->ret_status;
}

const struct cm_mode cm_gcm = {
    .prepare = prepare,
    .finish = finish,
    .part = part,
};
