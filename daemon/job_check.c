/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a batch may be done at all: its shape, the limits, the key and what its attributes allow. */
#include "job_internal.h"

#include "modes.h"
#include "status.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    TEXT_BYTES = 192,
    REPLY_BYTES_AN_ITEM = 10, /* lengths and statuses, as varints */
    REPLY_BYTES = 64
};

uint32_t cm_job_refuse(struct cm_job_plan *plan, uint32_t status, const char *format, ...)
{
    char *text = cm_arena_take(plan->arena, TEXT_BYTES);
    if (text != NULL) {
        va_list arguments;
        va_start(arguments, format);
        (void)vsnprintf(text, TEXT_BYTES, format, arguments);
        va_end(arguments);
        plan->text = text;
    }
    return status;
}

static uint32_t check_numbers(struct cm_job_plan *plan)
{
    const struct cm_batch *batch = plan->batch;
    const struct cm_limits *limits = &plan->worker->service->options.limits;
    if (batch->count > limits->batch_items)
        return cm_job_refuse(plan, CM_STATUS_TOO_LARGE,
                             "the batch has %" PRIu32 " items, the limit is %" PRIu32, batch->count,
                             limits->batch_items);
    if (batch->mode < CM_WIRE_ECB || batch->mode > CM_WIRE_MODE_LAST)
        return cm_job_refuse(plan, CM_STATUS_UNSUPPORTED, "mode %d is not known", batch->mode);
    if (batch->direction != CM_WIRE_ENCRYPT && batch->direction != CM_WIRE_DECRYPT)
        return cm_job_refuse(plan, CM_STATUS_UNSUPPORTED, "direction %d is not known", batch->direction);
    if (batch->padding && batch->mode != CM_WIRE_ECB && batch->mode != CM_WIRE_CBC)
        return cm_job_refuse(plan, CM_STATUS_BAD_REQUEST, "padding goes with ECB and CBC only");
    if (batch->count > 0 && batch->lengths == NULL)
        return cm_job_refuse(plan, CM_STATUS_BAD_REQUEST, "the items have no lengths");
    for (uint32_t i = 0; i < batch->count; i++)
        if (batch->lengths[i] > limits->item_bytes)
            return cm_job_refuse(plan, CM_STATUS_TOO_LARGE,
                                 "item %" PRIu32 " has %" PRIu32 " bytes, the limit is %" PRIu32, i,
                                 batch->lengths[i], limits->item_bytes);
    return CM_STATUS_OK;
}

static uint64_t sum(const uint32_t *column, uint32_t count)
{
    uint64_t total = 0;
    for (uint32_t i = 0; column != NULL && i < count; i++)
        total += column[i];
    return total;
}

/* What decoding a frame has checked already is checked again: batches will come from elsewhere too. */
static uint32_t check_columns(struct cm_job_plan *plan)
{
    const struct cm_batch *batch = plan->batch;
    if (sum(batch->iv_lengths, batch->count) != batch->ivs.length)
        return cm_job_refuse(plan, CM_STATUS_BAD_REQUEST, "the IVs are not as long as their lengths say");
    if (batch->tags.length > 0 && (batch->mode != CM_WIRE_GCM || batch->direction != CM_WIRE_DECRYPT))
        return cm_job_refuse(plan, CM_STATUS_BAD_REQUEST, "tags go with decrypting in GCM only");
    if (batch->tags.length > 0 && (batch->count == 0 || batch->tags.length % batch->count != 0))
        return cm_job_refuse(plan, CM_STATUS_BAD_REQUEST, "the tags are not all of one length");
    uint64_t aad_total = sum(batch->aad_lengths, batch->count);
    if (aad_total > 0 && batch->mode != CM_WIRE_GCM)
        return cm_job_refuse(plan, CM_STATUS_BAD_REQUEST, "additional data goes with GCM only");

    plan->slot_total = cm_slot_total(batch);
    if (plan->slot_total == UINT64_MAX)
        return cm_job_refuse(plan, CM_STATUS_BAD_REQUEST,
                             "slot_align %" PRIu32 " or slot_gap %" PRIu32 " is not allowed",
                             batch->slot_align, batch->slot_gap);
    if (plan->slot_total + aad_total != plan->body_length)
        return cm_job_refuse(plan, CM_STATUS_BAD_REQUEST,
                             "the body has %zu bytes, the header says %" PRIu64 " of slots and %" PRIu64
                             " of additional data",
                             plan->body_length, plan->slot_total, aad_total);
    return CM_STATUS_OK;
}

/* An operation may appear once: its next part starts where the one before it ends. A small open table of the
 * numbers seen, at most half full. */
static uint32_t check_parts(struct cm_job_plan *plan)
{
    const struct cm_batch *batch = plan->batch;
    if (batch->parts == NULL)
        return CM_STATUS_OK;
    if (batch->operations == NULL)
        return cm_job_refuse(plan, CM_STATUS_BAD_REQUEST, "parts come with operations");
    uint32_t capacity = 16;
    while (capacity < 2 * batch->count)
        capacity *= 2;
    struct cm_arena before = *plan->arena;
    uint32_t *seen = cm_arena_take(plan->arena, capacity * sizeof *seen);
    if (seen == NULL)
        return cm_job_refuse(plan, CM_STATUS_TOO_LARGE, "the batch has too many items to plan");
    memset(seen, 0, capacity * sizeof *seen);
    const char *wrong = NULL;
    for (uint32_t i = 0; i < batch->count && wrong == NULL; i++) {
        uint32_t number = batch->operations[i];
        if (batch->parts[i] > CM_WIRE_LAST)
            wrong = "a part is not known";
        else if ((batch->parts[i] == CM_WIRE_SINGLE) != (number == 0))
            wrong = "a part belongs to an operation, a single item to none";
        if (wrong != NULL || number == 0)
            continue;
        uint32_t at = number * UINT32_C(2654435761) & (capacity - 1); /* spreads runs of numbers */
        while (seen[at] != 0 && seen[at] != number)
            at = (at + 1) & (capacity - 1);
        if (seen[at] == number)
            wrong = "an operation may have one part in a batch";
        seen[at] = number;
    }
    *plan->arena = before;
    return wrong == NULL ? CM_STATUS_OK : cm_job_refuse(plan, CM_STATUS_BAD_REQUEST, "%s", wrong);
}

uint32_t cm_job_check(struct cm_job_plan *plan)
{
    uint32_t status = check_numbers(plan);
    if (status == CM_STATUS_OK)
        status = check_columns(plan);
    if (status == CM_STATUS_OK)
        status = check_parts(plan);
    return status;
}

static uint32_t check_attributes(struct cm_job_plan *plan, const struct cm_key_attributes *attributes)
{
    const struct cm_batch *batch = plan->batch;
    bool encrypt = batch->direction == CM_WIRE_ENCRYPT;
    if (!(attributes->modes & UINT32_C(1) << batch->mode))
        return cm_job_refuse(plan, CM_STATUS_NOT_PERMITTED, "the key's attributes do not allow %s",
                             cm_mode_word(batch->mode));
    if (encrypt ? !attributes->encrypt : !attributes->decrypt)
        return cm_job_refuse(plan, CM_STATUS_NOT_PERMITTED, "the key's attributes do not allow %s",
                             encrypt ? "encrypting" : "decrypting");
    if (batch->mode == CM_WIRE_GCM && !encrypt && batch->count > 0 && batch->parts == NULL &&
        batch->tags.length / batch->count != attributes->tag_length)
        return cm_job_refuse(plan, CM_STATUS_BAD_TAG,
                             "the tags have %zu bytes, the key's attributes demand %" PRIu32,
                             batch->tags.length / batch->count, attributes->tag_length);
    return CM_STATUS_OK;
}

const struct cm_aes_key *cm_job_form(struct cm_job_plan *plan, struct cm_live_version *version)
{
    struct cm_job_state *state = plan->state;
    const struct cm_aes_key *form = cm_live_key_form(state->key, version, state->mode, state->direction);
    if (form != NULL)
        return form;
    const struct cm_aes_row *row = cm_aes_row(state->mode, state->direction);
    struct cm_job_form *own = cm_arena_take(plan->arena, sizeof *own);
    uint8_t *memory = cm_arena_take(plan->arena, cm_aes_key_size(row) + CM_AES_KEY_ALIGN);
    if (own == NULL || memory == NULL)
        return NULL;
    memory += -(uintptr_t)memory & (CM_AES_KEY_ALIGN - 1);
    own->key = (struct cm_aes_key *)memory;
    if (cm_aes_key_init(own->key, row, version->bytes,
                        cm_key_bytes(&state->key->attributes, state->key->key_bits)) != CM_AES_OK)
        return NULL;
    own->next = state->own_forms;
    state->own_forms = own;
    return own->key;
}

uint32_t cm_job_check_key(struct cm_job_plan *plan)
{
    const struct cm_batch *batch = plan->batch;
    struct cm_job_state *state = plan->state;
    struct cm_live_key *key;
    uint32_t status = cm_peer_find_key(plan->peer, batch->key_handle, &key);
    if (status != CM_STATUS_OK)
        return cm_job_refuse(plan, status, "the session has no key handle %" PRIu32, batch->key_handle);
    state->mode = cm_mode_of_wire(batch->mode);
    state->direction = cm_direction_of_wire(batch->direction);
    state->padding = batch->padding ? CM_AES_PKCS7 : CM_AES_NO_PADDING;
    status = check_attributes(plan, &key->attributes);
    if (status != CM_STATUS_OK)
        return status;
    struct cm_live_version *version;
    status = cm_live_key_version(key, batch->key_version, state->direction, &version);
    if (status != CM_STATUS_OK)
        return cm_job_refuse(plan, status, "%s: key version %" PRIu32, cm_wire_status_text(status),
                             batch->key_version);

    uint32_t iv = state->mode == CM_AES_ECB || state->mode == CM_AES_XTS ? 0 : 16;
    uint32_t tag = state->mode == CM_AES_GCM ? key->attributes.tag_length : 0;
    uint32_t made = state->direction == CM_AES_ENCRYPT ? iv + tag : 0;
    uint64_t reply = REPLY_BYTES + (uint64_t)batch->count * (REPLY_BYTES_AN_ITEM + made);
    if (reply > plan->worker->service->options.limits.header_bytes)
        return cm_job_refuse(plan, CM_STATUS_TOO_LARGE, "the reply's header would not fit its limit");

    state->key = cm_live_key_get(key);
    state->version = version;
    state->tag_length = tag;
    return CM_STATUS_OK;
}
