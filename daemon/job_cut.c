/* SPDX-License-Identifier: Apache-2.0 */
/* Makes units, parts and tasks out of a batch's items, and gives each item its IV. */
#include "job_internal.h"

#include "status.h"
#include <string.h>

enum {
    PIECES_MAX = 256,       /* of one item */
    PIECE_BYTES_MIN = 4096, /* below, handing over costs more than it brings */
    PIECE_BYTES_ALIGN = 64  /* so that no two threads write into one cache line */
};

/* Where the cutting stands: the item and its offsets. */
struct cursor {
    uint32_t index;
    uint64_t slot, aad;
    size_t iv;
};

static bool cuttable(const struct cm_job_state *state, uint8_t part)
{
    if (part != CM_WIRE_SINGLE)
        return state->mode == CM_AES_CTR;
    return state->mode == CM_AES_ECB || state->mode == CM_AES_CTR ||
           (state->mode == CM_AES_CBC && state->direction == CM_AES_DECRYPT);
}

/* Into how many ranges an item is cut: each of about the share, if that is more than one. */
static uint32_t pieces_of(const struct cm_job_plan *plan, uint32_t index)
{
    const struct cm_batch *batch = plan->batch;
    uint64_t length = batch->lengths[index];
    if (plan->share_ps == 0 || length < (uint64_t)2 * PIECE_BYTES_MIN ||
        !cuttable(plan->state, batch->parts != NULL ? batch->parts[index] : CM_WIRE_SINGLE))
        return 1;
    uint64_t pieces = cm_cost_ps(&plan->cost, length) / plan->share_ps;
    if (pieces > length / PIECE_BYTES_MIN)
        pieces = length / PIECE_BYTES_MIN;
    if (pieces > PIECES_MAX)
        pieces = PIECES_MAX;
    return pieces > 1 ? (uint32_t)pieces : 1;
}

/* --- Tasks --- */

static struct cm_job_task *open_task(struct cm_job_plan *plan)
{
    return &plan->state->tasks[plan->state->task_count];
}

/* The task that is being filled is full, if there is anything in it. */
static void close_task(struct cm_job_plan *plan)
{
    struct cm_job_state *state = plan->state;
    const struct cm_job_task *task = open_task(plan);
    if (task->unit_count + task->part_count > 0)
        state->task_count++;
    *open_task(plan) =
        (struct cm_job_task){.unit = state->unit_count, .part = state->part_count, .padding = state->padding};
    plan->task_cost_ps = 0;
}

static void count_cost(struct cm_job_plan *plan, uint64_t cost_ps)
{
    plan->cost_ps += cost_ps;
    plan->task_cost_ps += cost_ps;
    if (plan->share_ps > 0 && plan->task_cost_ps >= plan->share_ps)
        close_task(plan);
}

/* Takes in the unit that stands behind the last one. */
static void add_unit(struct cm_job_plan *plan, uint32_t index)
{
    struct cm_job_state *state = plan->state;
    const struct cm_aes_item *item = &state->units[state->unit_count];
    state->unit_items[state->unit_count++] = index;
    open_task(plan)->unit_count++;
    count_cost(plan, cm_cost_ps(&plan->cost, item->length));
}

/* Each range is a task of its own, since only the last one of an item takes the padding. Cutting comes before
 * running, and gives each range an IV in the arena. */
static uint32_t add_ranges(struct cm_job_plan *plan, const struct cm_aes_item *item, uint32_t index,
                           uint32_t pieces)
{
    struct cm_job_state *state = plan->state;
    uint8_t *ivs = cm_arena_take(plan->arena, (size_t)pieces * 16);
    if (ivs == NULL)
        return CM_STATUS_TOO_LARGE;
    size_t step = (item->length / pieces + PIECE_BYTES_ALIGN) & ~(size_t)(PIECE_BYTES_ALIGN - 1);
    close_task(plan);
    for (size_t offset = 0; offset < item->length; offset += step, ivs += 16) {
        bool last = item->length - offset <= step;
        if (cm_aes_slice(state->mode, state->direction, item, offset, last ? item->length - offset : step,
                         ivs, &state->units[state->unit_count]) != CM_AES_OK)
            return CM_STATUS_INTERNAL;
        open_task(plan)->padding = last ? state->padding : CM_AES_NO_PADDING;
        add_unit(plan, index);
        close_task(plan);
    }
    return CM_STATUS_OK;
}

/* --- IVs and tags --- */

/* Room in the reply for an IV of each item, made when the first one is needed. */
static uint8_t *reply_iv(struct cm_job_plan *plan, uint32_t index)
{
    struct cm_job_state *state = plan->state;
    if (state->ivs == NULL) {
        uint32_t length = state->mode == CM_AES_GCM ? 12 : 16;
        state->ivs = cm_arena_take(plan->arena, (size_t)plan->batch->count * length);
        if (state->ivs == NULL)
            return NULL;
        memset(state->ivs, 0, (size_t)plan->batch->count * length);
        state->iv_length = length;
    }
    return state->ivs + (size_t)index * state->iv_length;
}

static uint32_t give_iv(struct cm_job_plan *plan, const struct cursor *at, struct cm_aes_item *item)
{
    const struct cm_batch *batch = plan->batch;
    const struct cm_job_state *state = plan->state;
    uint32_t given = batch->iv_lengths != NULL ? batch->iv_lengths[at->index] : 0;
    if (state->mode == CM_AES_ECB)
        return given == 0 ? CM_STATUS_OK : CM_STATUS_BAD_IV;
    if (given > 0) {
        item->iv = batch->ivs.data + at->iv;
        item->iv_length = given;
        /* A tweak says where the data stands, which only the caller knows. */
        if (state->direction == CM_AES_ENCRYPT && state->mode != CM_AES_XTS &&
            !state->key->attributes.caller_iv)
            return CM_STATUS_IV_NOT_ALLOWED;
        return state->mode == CM_AES_GCM || given == 16 ? CM_STATUS_OK : CM_STATUS_BAD_IV;
    }
    if (state->direction == CM_AES_DECRYPT || state->mode == CM_AES_XTS || batch->ivs.length > 0)
        return CM_STATUS_BAD_IV;
    uint8_t *iv = reply_iv(plan, at->index);
    if (iv == NULL)
        return CM_STATUS_TOO_LARGE;
    item->iv = iv;
    item->iv_length = state->iv_length;
    return cm_random_pool_take(&plan->worker->random, iv, state->iv_length) == 0 ? CM_STATUS_OK
                                                                                 : CM_STATUS_INTERNAL;
}

static uint32_t give_tag(struct cm_job_plan *plan, uint32_t index, struct cm_aes_item *item)
{
    const struct cm_batch *batch = plan->batch;
    const struct cm_job_state *state = plan->state;
    if (state->mode != CM_AES_GCM)
        return CM_STATUS_OK;
    item->tag_length = state->tag_length;
    if (state->direction == CM_AES_ENCRYPT) {
        item->tag = state->tags + (size_t)index * state->tag_length;
        return CM_STATUS_OK;
    }
    if (batch->tags.length / batch->count != state->tag_length)
        return CM_STATUS_BAD_TAG;
    item->tag = (uint8_t *)(uintptr_t)batch->tags.data + (size_t)index * state->tag_length; /* only read */
    return CM_STATUS_OK;
}

/* --- Parts --- */

static void add_blocks(uint8_t counter[16], uint64_t blocks)
{
    for (int i = 15; i >= 0 && blocks > 0; i--) {
        blocks += counter[i];
        counter[i] = (uint8_t)blocks;
        blocks >>= 8;
    }
}

/* In CTR where each range of a part starts is known beforehand, and so is where the next part does. */
static uint32_t cut_part(struct cm_job_plan *plan, struct cm_job_part *part, uint32_t pieces)
{
    struct cm_aes_parts *parts = &part->operation->parts;
    struct cm_aes_item item = part->item;
    if (!parts->begun && item.iv != NULL)
        memcpy(parts->chain, item.iv, sizeof parts->chain);
    item.iv = parts->chain;
    item.iv_length = sizeof parts->chain;
    uint32_t status = add_ranges(plan, &item, part->index, pieces);
    add_blocks(parts->chain, item.length / CM_AES_BLOCK_BYTES);
    parts->begun = true;
    parts->text_bytes += item.length;
    part->cut = true;
    part->item.ret_status = CM_AES_OK;
    part->item.ret_length = item.length;
    return status;
}

static uint32_t find_operation(struct cm_job_plan *plan, const struct cursor *at,
                               struct cm_operation **ret_operation)
{
    const struct cm_batch *batch = plan->batch;
    uint32_t number = batch->operations[at->index];
    struct cm_operation *operation = cm_operation_find(plan->peer, number);
    if (batch->parts[at->index] == CM_WIRE_FIRST) {
        if (batch->mode == CM_WIRE_XTS || (batch->mode == CM_WIRE_GCM && batch->direction == CM_WIRE_DECRYPT))
            return CM_STATUS_UNSUPPORTED;
        uint32_t status = cm_operation_start(plan->peer, number, ret_operation);
        if (status != CM_STATUS_OK)
            return status;
        operation = *ret_operation;
        operation->handle = batch->key_handle;
        operation->version = plan->state->version->number;
        operation->mode = batch->mode;
        operation->direction = batch->direction;
        operation->padding = batch->padding;
        return CM_STATUS_OK;
    }
    if (operation == NULL || operation->cancelled)
        return CM_STATUS_NO_SUCH_OPERATION;
    if (operation->busy)
        return CM_STATUS_INTERNAL; /* the caller of cm_job_plan broke its contract */
    *ret_operation = operation;
    bool same = operation->handle == batch->key_handle && operation->mode == batch->mode &&
                operation->direction == batch->direction && operation->padding == batch->padding &&
                (batch->key_version == 0 || batch->key_version == operation->version);
    return same ? CM_STATUS_OK : CM_STATUS_BAD_REQUEST;
}

static uint32_t find_form(struct cm_job_plan *plan, const struct cm_operation *operation,
                          const struct cm_aes_key **ret_form)
{
    struct cm_job_state *state = plan->state;
    *ret_form = state->form;
    if (operation->version == state->version->number)
        return CM_STATUS_OK;
    struct cm_live_version *version;
    uint32_t status = cm_live_key_version(state->key, operation->version, state->direction, &version);
    if (status != CM_STATUS_OK)
        return status;
    *ret_form = cm_job_form(plan, version);
    return *ret_form != NULL ? CM_STATUS_OK : CM_STATUS_OVERLOADED;
}

static uint32_t plan_part(struct cm_job_plan *plan, const struct cursor *at, struct cm_aes_item *item,
                          struct cm_operation **ret_operation)
{
    const struct cm_batch *batch = plan->batch;
    struct cm_job_state *state = plan->state;
    struct cm_job_part *part = &state->parts[state->part_count];
    uint8_t kind = batch->parts[at->index];
    uint32_t status = find_operation(plan, at, ret_operation);
    if (status != CM_STATUS_OK)
        return status;
    struct cm_operation *operation = *ret_operation;
    if (kind != CM_WIRE_LAST && item->length % CM_AES_BLOCK_BYTES != 0)
        return CM_STATUS_BAD_LENGTH;
    if (kind == CM_WIRE_FIRST)
        status = give_iv(plan, at, item);
    else if (batch->iv_lengths != NULL && batch->iv_lengths[at->index] > 0)
        status = CM_STATUS_BAD_IV;
    else if (item->aad_length > 0)
        status = CM_STATUS_BAD_REQUEST;
    if (status == CM_STATUS_OK)
        status = give_tag(plan, at->index, item);
    const struct cm_aes_key *form = NULL;
    if (status == CM_STATUS_OK)
        status = find_form(plan, operation, &form);
    if (status != CM_STATUS_OK)
        return status;

    *part = (struct cm_job_part){.item = *item,
                                 .operation = operation,
                                 .form = form,
                                 .index = at->index,
                                 .last = kind == CM_WIRE_LAST};
    operation->busy = true;
    operation->idle = false;
    uint32_t pieces = form == state->form ? pieces_of(plan, at->index) : 1;
    if (pieces > 1) {
        state->part_count++;
        close_task(plan); /* it does not run this part */
        return cut_part(plan, part, pieces);
    }
    state->part_count++;
    open_task(plan)->part_count++;
    count_cost(plan, cm_cost_ps(&plan->cost, item->length));
    return CM_STATUS_OK;
}

/* --- The whole --- */

static uint32_t plan_item(struct cm_job_plan *plan, const struct cursor *at)
{
    const struct cm_batch *batch = plan->batch;
    struct cm_job_state *state = plan->state;
    struct cm_aes_item *item = &state->units[state->unit_count]; /* a unit, unless it turns out otherwise */
    *item = (struct cm_aes_item){.source = plan->job->body + at->slot,
                                 .destination = plan->job->body + at->slot,
                                 .length = batch->lengths[at->index]};
    if (batch->aad_lengths != NULL) {
        item->aad = plan->job->body + plan->slot_total + at->aad;
        item->aad_length = batch->aad_lengths[at->index];
    }
    if (batch->parts != NULL && batch->parts[at->index] != CM_WIRE_SINGLE) {
        struct cm_aes_item part = *item;
        struct cm_operation *operation = NULL;
        uint32_t status = plan_part(plan, at, &part, &operation);
        if (status == CM_STATUS_BAD_REQUEST && operation == NULL)
            operation = cm_operation_find(plan->peer, batch->operations[at->index]); /* begun twice */
        if (status != CM_STATUS_OK)
            cm_operation_end(plan->peer, operation);
        return status;
    }
    uint32_t status = give_iv(plan, at, item);
    if (status == CM_STATUS_OK)
        status = give_tag(plan, at->index, item);
    if (status != CM_STATUS_OK)
        return status;
    uint32_t pieces = pieces_of(plan, at->index);
    if (pieces > 1) {
        const struct cm_aes_item whole = *item;
        return add_ranges(plan, &whole, at->index, pieces);
    }
    add_unit(plan, at->index);
    return CM_STATUS_OK;
}

/* Room for everything that the items may become; counted first, so that nothing is moved later. */
static bool take_memory(struct cm_job_plan *plan)
{
    const struct cm_batch *batch = plan->batch;
    struct cm_job_state *state = plan->state;
    struct cm_arena *arena = plan->arena;
    size_t count = batch->count, units = count + 1, tasks = 2, parts = 0;
    if (plan->share_ps > 0) {
        tasks += count;
        for (uint32_t i = 0; i < batch->count; i++) {
            uint32_t pieces = pieces_of(plan, i);
            units += pieces - 1;
            tasks += pieces > 1 ? pieces + 1 : 0;
        }
    }
    for (uint32_t i = 0; batch->parts != NULL && i < batch->count; i++)
        parts += batch->parts[i] != CM_WIRE_SINGLE;
    state->lengths = cm_arena_take(arena, count * sizeof *state->lengths);
    state->statuses = cm_arena_take(arena, count * sizeof *state->statuses);
    state->units = cm_arena_take(arena, units * sizeof *state->units);
    state->unit_items = cm_arena_take(arena, units * sizeof *state->unit_items);
    state->parts = cm_arena_take(arena, parts * sizeof *state->parts);
    state->tasks = cm_arena_take(arena, tasks * sizeof *state->tasks);
    if (state->lengths == NULL || state->statuses == NULL || state->units == NULL ||
        state->unit_items == NULL || state->parts == NULL || state->tasks == NULL)
        return false;
    memset(state->lengths, 0, count * sizeof *state->lengths);
    memset(state->statuses, 0, count * sizeof *state->statuses);
    state->tasks[0] = (struct cm_job_task){.padding = state->padding};
    if (state->direction == CM_AES_ENCRYPT && state->tag_length > 0) {
        state->tags = cm_arena_take(arena, count * state->tag_length);
        if (state->tags == NULL)
            return false;
        memset(state->tags, 0, count * state->tag_length);
    }
    return true;
}

uint32_t cm_job_cut(struct cm_job_plan *plan)
{
    const struct cm_batch *batch = plan->batch;
    struct cm_job_state *state = plan->state;
    plan->cost =
        cm_cost_of(&plan->worker->service->cost, state->mode, state->direction, state->key->key_bits);
    state->form = cm_job_form(plan, state->version);
    if (state->form == NULL || !take_memory(plan))
        return cm_job_refuse(plan, CM_STATUS_TOO_LARGE, "the batch has too many items to plan");
    struct cursor at = {0};
    for (; at.index < batch->count; at.index++) {
        state->statuses[at.index] = plan_item(plan, &at);
        at.slot += cm_slot_stride(batch, at.index);
        at.aad += batch->aad_lengths != NULL ? batch->aad_lengths[at.index] : 0;
        at.iv += batch->iv_lengths != NULL ? batch->iv_lengths[at.index] : 0;
    }
    close_task(plan);
    return CM_STATUS_OK;
}
