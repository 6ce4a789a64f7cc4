/* SPDX-License-Identifier: Apache-2.0 */
/* GCM of a file that is one item: all of it in memory, written only when the daemon vouches for it. */
#include "crypt.h"
#include "report.h"
#include "text.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { NONCE = 12 };

static int too_large(const struct crypt *crypt, size_t limit)
{
    char size[TEXT_BYTES_MAX];

    text_format_bytes((double)limit, size);
    return report_error(
        CODE_FAILED,
        "%s is over the item limit of %zu bytes (%s): GCM takes a message as a whole; split it, or "
        "use --mode cbc or ctr with a key for them",
        crypt->input.name, limit, size);
}

/* Where the nonce and the tag are when decrypting: before and behind the ciphertext. */
static int take_apart(struct crypt *crypt, const uint8_t *bytes, size_t length, cm_item *item)
{
    size_t nonce = crypt->iv_length == 0 ? NONCE : 0;

    if (length < nonce + crypt->tag_length)
        return report_error(CODE_FAILED, "%s is too short: it holds %zu bytes, %s takes %zu",
                            crypt->input.name, length, nonce != 0 ? "a nonce and a tag" : "a tag",
                            nonce + crypt->tag_length);
    if (nonce != 0) {
        memcpy(item->iv, bytes, nonce);
        item->iv_length = NONCE;
    }
    item->in = bytes + nonce;
    item->in_length = length - nonce - crypt->tag_length;
    memcpy(item->tag, bytes + length - crypt->tag_length, crypt->tag_length);
    item->tag_length = crypt->tag_length;
    return CODE_OK;
}

static void give_iv(const struct crypt *crypt, cm_item *item)
{
    if (crypt->iv_length > sizeof item->iv) {
        item->long_iv = crypt->iv;
        item->long_iv_length = crypt->iv_length;
        return;
    }
    memcpy(item->iv, crypt->iv, crypt->iv_length);
    item->iv_length = (uint32_t)crypt->iv_length;
}

static int write_item(struct crypt *crypt, const cm_item *item)
{
    int code = crypt_check_version(crypt);

    if (code == CODE_OK && crypt->direction == CM_ENCRYPT && crypt->iv_length == 0)
        code = output_write(&crypt->output, item->iv, item->iv_length);
    if (code == CODE_OK)
        code = output_write(&crypt->output, item->out, item->out_length);
    if (code == CODE_OK && crypt->direction == CM_ENCRYPT)
        code = output_write(&crypt->output, item->tag, item->tag_length);
    return code;
}

static int run_item(struct crypt *crypt, cm_item *item)
{
    cm_error error = CM_ERROR_INIT;
    int rc;

    item->out = (void *)(uintptr_t)item->in; /* in place; `in` is ours and writable */
    item->out_capacity = item->in_length;
    item->aad = crypt->aad;
    item->aad_length = crypt->aad_length;
    if (crypt->direction == CM_ENCRYPT)
        rc = cm_encrypt_flags(crypt->key, CM_GCM, 0, item, 1, &error);
    else
        rc = cm_decrypt_flags(crypt->key, CM_GCM, 0, item, 1, &error);
    if (rc > 0)
        error = (cm_error){.code = item->status, .retry = cm_status_retry(item->status)};
    if (rc != 0)
        return crypt_failed(crypt, &error);
    return write_item(crypt, item);
}

int crypt_single(struct crypt *crypt)
{
    cm_limits_info limits = {.size = sizeof limits};
    cm_error error = CM_ERROR_INIT;
    cm_item item = {0};
    size_t around = 0; /* nonce and tag of the input */
    size_t capacity;
    size_t length = 0;
    uint8_t *bytes;
    int code;

    if (cm_get_limits(crypt->client, &limits, &error) != 0)
        return report_failure(&error, "can't ask for the daemon's limits");
    if (crypt->direction == CM_DECRYPT)
        around = crypt->tag_length + (crypt->iv_length == 0 ? NONCE : 0);
    if (crypt->input.size > limits.item_bytes + around)
        return too_large(crypt, limits.item_bytes);
    /* Address space for the largest item; only what is read becomes memory. */
    capacity = limits.item_bytes + around + 1;
    bytes = mmap(NULL, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (bytes == MAP_FAILED)
        return report_error(CODE_FAILED, "no memory for %zu bytes: %s", capacity, strerror(errno));
    code = input_fill(&crypt->input, bytes, capacity - 1, &length);
    if (code == CODE_OK && !crypt->input.ended)
        code = too_large(crypt, limits.item_bytes);
    if (code == CODE_OK) {
        give_iv(crypt, &item);
        item.in = bytes;
        item.in_length = length;
        if (crypt->direction == CM_DECRYPT)
            code = take_apart(crypt, bytes, length, &item);
    }
    if (code == CODE_OK)
        code = run_item(crypt, &item);
    explicit_bzero(bytes, length);
    munmap(bytes, capacity);
    return code;
}
