/* SPDX-License-Identifier: Apache-2.0 */
/* ECB, CBC and CTR of any length: reads a buffer, sends it as several parts at once, writes it, again. */
#include "crypt.h"
#include "progress.h"
#include "report.h"
#include <stdlib.h>
#include <string.h>

/* 512 KiB to 1 MiB on their way is what a Unix socket carries best; parts let daemon and socket overlap. */
enum { PART = 256 * 1024, PARTS = 4, BUFFER = PART * PARTS, BLOCK = 16 };

/* Cuts the buffer into parts that are done in place. Only the last part of the message may be ragged, be
 * empty, or grow by its padding. Returns how many. */
static size_t cut(uint8_t *buffer, size_t length, cm_item items[PARTS])
{
    size_t count = length == 0 ? 1 : (length + PART - 1) / PART;

    memset(items, 0, PARTS * sizeof items[0]);
    for (size_t i = 0; i < count; i++) {
        size_t part = i + 1 < count ? PART : length - i * PART;

        items[i].in = buffer + i * PART;
        items[i].in_length = part;
        items[i].out = buffer + i * PART;
        items[i].out_capacity = i + 1 < count ? part : part + BLOCK;
    }
    return count;
}

static int write_parts(struct crypt *crypt, const cm_item *items, size_t count)
{
    size_t length = 0;

    for (size_t i = 0; i < count; i++) {
        if (i + 1 < count && items[i].out_length != items[i].in_length)
            return report_error(CODE_FAILED, "the daemon changed the length of a part that is not the last");
        length += items[i].out_length;
    }
    return output_write(&crypt->output, items[0].out, length);
}

/* The daemon's own IV is known with the first part's reply, and goes first. */
static int write_begin(struct crypt *crypt, const cm_item *first)
{
    int code = crypt_check_version(crypt);

    if (code == CODE_OK && crypt->direction == CM_ENCRYPT && crypt->mode != CM_ECB && crypt->iv_length == 0)
        code = output_write(&crypt->output, first->iv, BLOCK);
    return code;
}

static int run_parts(struct crypt *crypt, cm_operation *operation, uint8_t *buffer, struct progress *progress)
{
    cm_item items[PARTS];
    cm_error error = CM_ERROR_INIT;
    uint64_t done = 0;
    size_t length;
    size_t count;
    int code;

    do {
        bool begins = done == 0;

        code = input_fill(&crypt->input, buffer, BUFFER, &length);
        if (code != CODE_OK)
            return code;
        count = cut(buffer, length, items);
        if (begins) {
            memcpy(items[0].iv, crypt->iv, crypt->iv_length);
            items[0].iv_length = (uint32_t)crypt->iv_length;
        }
        if (cm_operation_parts(operation, items, count, crypt->input.ended, &error) != 0)
            return crypt_failed(crypt, &error);
        if (begins)
            code = write_begin(crypt, &items[0]);
        if (code == CODE_OK)
            code = write_parts(crypt, items, count);
        done += length;
        progress_update(progress, done);
    } while (code == CODE_OK && !crypt->input.ended);
    return code;
}

/* Takes the IV from the head of the input, where encryption put it. */
static int read_iv(struct crypt *crypt)
{
    int code = input_fill(&crypt->input, crypt->iv, BLOCK, &crypt->iv_length);

    if (code == CODE_OK && crypt->iv_length < BLOCK)
        return report_error(
            CODE_FAILED, "%s is too short: it should begin with an IV of 16 bytes; give --iv if it does not",
            crypt->input.name);
    if (code == CODE_OK && crypt->input.size >= BLOCK)
        crypt->input.size -= BLOCK;
    return code;
}

int crypt_long(struct crypt *crypt)
{
    cm_operation *operation = NULL;
    cm_error error = CM_ERROR_INIT;
    struct progress progress;
    uint8_t *buffer;
    int code = CODE_OK;

    if (crypt->direction == CM_DECRYPT && crypt->mode != CM_ECB && crypt->iv_length == 0)
        code = read_iv(crypt);
    if (code != CODE_OK)
        return code;
    buffer = aligned_alloc(4096, BUFFER + 4096);
    if (buffer == NULL)
        return report_error(CODE_FAILED, "no memory for a buffer of %d bytes", BUFFER + 4096);
    if (cm_operation_open(&operation, crypt->key, crypt->mode, crypt->direction, crypt->flags, &error) != 0) {
        code = crypt_failed(crypt, &error);
    } else {
        progress_init(&progress, crypt->input.size, crypt->quiet);
        code = run_parts(crypt, operation, buffer, &progress);
        progress_done(&progress);
    }
    cm_operation_close(operation);
    explicit_bzero(buffer, BUFFER + 4096);
    free(buffer);
    return code;
}
