/* SPDX-License-Identifier: Apache-2.0 */
/* Many items as a window of pipelined frames on one connection. */
#include "batch.h"
#include "error.h"
#include <string.h>

static uint64_t request_bytes(const struct cm_run *run, const cm_item *items, size_t count)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += items[i].in_length + cm_shape_aad(&run->shape, &items[i]);
    return bytes;
}

/* The shape of the next frame: in an operation it depends on the place. */
static struct cm_shape next_shape(const struct cm_run *run)
{
    struct cm_shape shape = run->shape;
    if (!run->parts)
        return shape;
    bool first = run->begins && run->planned == 0;
    bool last = run->ends && run->planned + 1 == run->count;
    if (first && last)
        shape.part = CM_WIRE_SINGLE;
    else
        shape.part = first ? CM_WIRE_FIRST : last ? CM_WIRE_LAST : CM_WIRE_MIDDLE;
    if (shape.part == CM_WIRE_SINGLE)
        shape.operation = 0;
    return shape;
}

/* Only the first failure is told; what failed after it, failed because of it. */
static void note_failure(struct cm_run *run, const cm_error *error)
{
    if (run->error.code == CM_OK)
        run->error = *error;
    /* One frame of unknown fate leaves the whole in doubt. */
    if (error->retry == CM_RETRY_UNKNOWN)
        run->error.retry = CM_RETRY_UNKNOWN;
}

static void take_oldest(struct cm_run *run)
{
    struct cm_request *request = &run->requests[run->oldest];
    cm_conn_finish(run->conn, request);
    run->oldest = (run->oldest + 1) % CM_WINDOW_FRAMES;
    run->used--;
    run->window_bytes -= request_bytes(run, request->items, request->count);
    if (request->error.code != CM_OK) {
        note_failure(run, &request->error);
        return;
    }
    run->answered_items += request->count;
    run->failed_items += request->failed;
    if (request->ret_key_version != 0)
        run->key_version = request->ret_key_version;
}

/* A part that failed ends its operation: what follows would only be refused. */
static bool goes_on(const struct cm_run *run)
{
    return run->error.code == CM_OK && !(run->parts && run->failed_items > 0) && run->planned < run->count;
}

static bool plan_next(struct cm_run *run, struct cm_shape *ret_shape, size_t *ret_count)
{
    *ret_shape = next_shape(run);
    cm_error error = CM_ERROR_INIT;
    size_t left = run->parts ? 1 : run->count - run->planned;
    if (cm_frame_plan(&run->conn->limits, ret_shape, run->items + run->planned, left, CM_FRAME_SOFT_BYTES,
                      ret_count, &error) == 0)
        return true;
    error.retry = run->answered_items > 0 ? CM_RETRY_UNKNOWN : error.retry;
    run->items[run->planned].status = error.code;
    note_failure(run, &error);
    return false;
}

static void start(struct cm_run *run, const struct cm_shape *shape, size_t count, uint64_t bytes)
{
    struct cm_request *request = &run->requests[(run->oldest + run->used) % CM_WINDOW_FRAMES];
    *request = (struct cm_request){
        .deadline_ms = cm_request_deadline(run->client),
        .shape = *shape,
        .key_handle = run->key_handle,
        .items = run->items + run->planned,
        .count = (uint32_t)count,
    };
    run->used++;
    run->planned += count;
    run->window_bytes += bytes;
    cm_conn_add(run->conn, request);
}

int cm_run_all(struct cm_run *run)
{
    while (goes_on(run)) {
        struct cm_shape shape;
        size_t count;
        if (!plan_next(run, &shape, &count))
            break;
        uint64_t bytes = request_bytes(run, run->items + run->planned, count);
        while (run->used == CM_WINDOW_FRAMES ||
               (run->used > 0 && run->window_bytes + bytes > CM_WINDOW_BYTES))
            take_oldest(run);
        if (goes_on(run))
            start(run, &shape, count, bytes);
    }
    while (run->used > 0)
        take_oldest(run);
    if (run->error.code != CM_OK && run->error.retry == CM_RETRY_NOT_EXECUTED && run->answered_items > 0)
        run->error.retry = CM_RETRY_UNKNOWN;
    return run->error.code;
}

bool cm_run_may_repeat(const struct cm_run *run)
{
    return run->error.code == CM_ERR_DISCONNECTED && run->error.retry == CM_RETRY_NOT_EXECUTED &&
           !run->client->no_reconnect;
}
