/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: a batch planned, run in tasks, and finished. */
#include "job_internal.h"

#include "status.h"
#include <assert.h>
#include <string.h>

/* A refused part is one that its message lacks, so what follows must not go on as if nothing were missing. */
static void end_operations(const struct cm_job_plan *plan)
{
    const struct cm_batch *batch = plan->batch;
    if (batch->parts == NULL || batch->operations == NULL)
        return;
    for (uint32_t i = 0; i < batch->count && plan->peer->operation_count > 0; i++)
        cm_operation_end(plan->peer, cm_operation_find(plan->peer, batch->operations[i]));
}

static void wipe_forms(struct cm_job_state *state)
{
    for (struct cm_job_form *form = state->own_forms; form != NULL; form = form->next)
        cm_aes_key_done(form->key);
    state->own_forms = NULL;
}

void cm_job_plan(struct cm_job *job, struct cm_service_worker *worker, struct cm_peer_state *peer,
                 const struct cm_batch *batch, uint8_t *body, size_t body_length, struct cm_arena *arena,
                 uint64_t share_ns)
{
    *job = (struct cm_job){
        .peer = peer, .batch = batch, .body = body, .reply = {.request_id = batch->request_id, .text = ""}};
    job->body = body;
    struct cm_job_plan plan = {.job = job,
                               .worker = worker,
                               .peer = peer,
                               .batch = batch,
                               .arena = arena,
                               .body_length = body_length,
                               .share_ps = share_ns * 1000};
    plan.state = cm_arena_take(arena, sizeof *plan.state);
    uint32_t status = CM_STATUS_TOO_LARGE;
    if (plan.state != NULL) {
        *plan.state = (struct cm_job_state){0};
        status = cm_job_check(&plan);
        if (status == CM_STATUS_OK)
            status = cm_job_check_key(&plan);
        if (status == CM_STATUS_OK && batch->count > 0)
            status = cm_job_cut(&plan);
    }
    if (status != CM_STATUS_OK) {
        end_operations(&plan);
        if (plan.state != NULL) {
            wipe_forms(plan.state);
            cm_live_key_put(plan.state->key);
        }
        job->reply.status = status;
        job->reply.text = plan.text != NULL ? plan.text : cm_wire_status_text(status);
        return;
    }
    job->state = plan.state;
    job->task_count = plan.state->task_count;
    job->cost_ns = plan.cost_ps / 1000;
}

void cm_job_run(struct cm_job *job, uint32_t task_index)
{
    struct cm_job_state *state = job->state;
    assert(task_index < state->task_count);
    const struct cm_job_task *task = &state->tasks[task_index];
    if (task->unit_count > 0)
        (void)cm_aes_batch(state->form, task->padding, state->units + task->unit, task->unit_count);
    for (uint32_t p = task->part; p < task->part + task->part_count; p++) {
        struct cm_job_part *part = &state->parts[p];
        /* Its status stands in the item, where finishing looks for it. */
        int status =
            cm_aes_part(part->form, state->padding, &part->operation->parts, &part->item, part->last);
        (void)status;
    }
}

static uint32_t wire_status(int status)
{
    switch ((enum cm_aes_status)status) {
    case CM_AES_OK:
        return CM_STATUS_OK;
    case CM_AES_BAD_TAG:
    case CM_AES_BAD_TAG_LENGTH:
        return CM_STATUS_BAD_TAG;
    case CM_AES_BAD_PADDING:
        return CM_STATUS_BAD_PADDING;
    case CM_AES_BAD_LENGTH:
        return CM_STATUS_BAD_LENGTH;
    case CM_AES_BAD_IV:
        return CM_STATUS_BAD_IV;
    case CM_AES_BAD_KEY_LENGTH:
    case CM_AES_UNAVAILABLE:
        break;
    }
    return CM_STATUS_INTERNAL;
}

static void take_result(struct cm_job_state *state, uint32_t index, const struct cm_aes_item *item)
{
    if (item->ret_status != CM_AES_OK) {
        if (state->statuses[index] == CM_STATUS_OK)
            state->statuses[index] = wire_status(item->ret_status);
        return;
    }
    state->lengths[index] += (uint32_t)item->ret_length;
}

/* Units of an item that was cut add up; a part that was cut has its length from its units alone. */
static void collect(struct cm_job *job)
{
    struct cm_job_state *state = job->state;
    for (uint32_t u = 0; u < state->unit_count; u++)
        take_result(state, state->unit_items[u], &state->units[u]);
    for (uint32_t p = 0; p < state->part_count; p++) {
        struct cm_job_part *part = &state->parts[p];
        if (!part->cut)
            take_result(state, part->index, &part->item);
        part->operation->busy = false;
        if (part->last || part->operation->cancelled || state->statuses[part->index] != CM_STATUS_OK)
            cm_operation_end(job->peer, part->operation);
    }
}

/* A failed item leaves nothing in its slot; the others nothing but their output. */
static void clean_slots(struct cm_job *job, bool *ret_all_well)
{
    const struct cm_batch *batch = job->batch;
    struct cm_job_state *state = job->state;
    uint8_t *slot = job->body;
    bool all_well = true;
    for (uint32_t i = 0; i < batch->count; i++) {
        uint64_t stride = cm_slot_stride(batch, i);
        if (state->statuses[i] == CM_STATUS_OK) {
            job->items_ok++;
        } else {
            all_well = false;
            state->lengths[i] = 0;
            if (state->ivs != NULL)
                memset(state->ivs + (size_t)i * state->iv_length, 0, state->iv_length);
            if (state->tags != NULL)
                memset(state->tags + (size_t)i * state->tag_length, 0, state->tag_length);
        }
        if (stride > state->lengths[i])
            memset(slot + state->lengths[i], 0, stride - state->lengths[i]);
        job->bytes_in += batch->lengths[i];
        slot += stride;
    }
    *ret_all_well = all_well;
}

void cm_job_finish(struct cm_job *job, struct cm_service_worker *worker)
{
    (void)worker;
    struct cm_job_state *state = job->state;
    if (state == NULL)
        return; /* refused: the reply is complete */
    bool all_well = true;
    if (job->batch->count > 0) {
        collect(job);
        clean_slots(job, &all_well);
    }
    job->reply.key_version = state->version->number;
    job->reply.count = job->batch->count;
    job->reply.lengths = state->lengths;
    job->reply.statuses = all_well ? NULL : state->statuses;
    job->reply.iv_length = state->iv_length;
    job->reply.ivs = state->ivs;
    job->reply.tag_length = state->tags != NULL ? state->tag_length : 0;
    job->reply.tags = state->tags;
    wipe_forms(state);
    cm_live_key_put(state->key);
    job->state = NULL;
}
