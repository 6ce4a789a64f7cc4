/* SPDX-License-Identifier: Apache-2.0 */
/* Frames to the service and its replies to frames: what a connection does with each request. */
#include "request.h"

#include "log.h"
#include "share.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* A batch at work, in the arena that also holds its columns and its plan. */
struct cm_request {
    struct cm_conn *conn;
    struct cm_batch batch;
    struct cm_job job;
    struct cm_share share;
    bool ran; /* every task has run */
};

static struct cm_metrics *metrics_of(struct cm_conn *conn)
{
    return &conn->worker->metrics;
}

/* --- Refusing ---------------------------------------------------------------------------------------------
 */

static void refuse(struct cm_conn *conn, const struct cm_refusal *refusal)
{
    static struct cm_log_limit limit;
    size_t length;
    struct cm_arena *arena = cm_worker_arena(conn->worker);
    if (arena == NULL || cm_codec_put_refusal(arena, refusal, cm_output_header(conn), CM_OUTPUT_HEADER_MAX,
                                              &length) != CM_CODEC_OK) {
        cm_conn_close(conn, CM_CLOSE_PROTOCOL);
        return;
    }
    cm_log_limited(&limit, CM_LOG_INFO, "refused a connection of %s: %s", conn->admission->identity.name,
                   refusal->text);
    cm_output_add(conn, length, NULL, 0);
    cm_conn_linger(conn);
}

static void refuse_with(struct cm_conn *conn, uint32_t status, const char *text)
{
    const struct cm_refusal refusal = {.status = status,
                                       .text = text,
                                       .version_min = CM_PROTOCOL_VERSION,
                                       .version_max = CM_PROTOCOL_VERSION};
    refuse(conn, &refusal);
}

void cm_request_bad_frame(struct cm_conn *conn, int error, const struct cm_frame *frame)
{
    static struct cm_log_limit limit;
    char text[160];
    switch (error) {
    case CM_FRAME_BAD_VERSION:
        snprintf(text, sizeof text, "the client speaks protocol version %u, the daemon %u: upgrade the %s",
                 frame->version, CM_PROTOCOL_VERSION,
                 frame->version > CM_PROTOCOL_VERSION ? "daemon" : "client");
        refuse_with(conn, CM_STATUS_VERSION_MISMATCH, text);
        break;
    case CM_FRAME_TOO_LARGE:
        snprintf(text, sizeof text, "a frame of %zu bytes (header %u) is over the limits that were announced",
                 cm_frame_total(frame), frame->header_length);
        refuse_with(conn, CM_STATUS_TOO_LARGE, text);
        break;
    case CM_FRAME_BAD_RESERVED:
        refuse_with(conn, CM_STATUS_BAD_REQUEST, "a reserved byte of the frame is not zero");
        break;
    default:
        cm_log_limited(&limit, CM_LOG_INFO, "closed a connection of %s: it does not speak this protocol",
                       conn->admission->identity.name);
        cm_conn_close(conn, CM_CLOSE_PROTOCOL);
        break;
    }
}

/* --- Greeting and goodbye ---------------------------------------------------------------------------------
 */

static void handle_hello(struct cm_conn *conn, const struct cm_frame *frame, const uint8_t *header)
{
    struct cm_hello hello;
    struct cm_welcome welcome;
    struct cm_refusal refusal;
    size_t length;
    struct cm_arena *arena = cm_worker_arena(conn->worker);
    if (arena == NULL) {
        cm_conn_close(conn, CM_CLOSE_PRESSURE);
        return;
    }
    if (frame->body_length != 0 ||
        cm_codec_get_hello(arena, header, frame->header_length, &hello) != CM_CODEC_OK) {
        refuse_with(conn, CM_STATUS_BAD_REQUEST, "the greeting is malformed");
        return;
    }
    conn->peer =
        cm_service_hello(conn->worker->service, &conn->admission->identity, &hello, &welcome, &refusal);
    cm_metrics_request(metrics_of(conn), CM_REQUEST_HELLO,
                       conn->peer != NULL ? (uint32_t)CM_STATUS_OK : refusal.status,
                       uv_hrtime() - conn->begun_ns);
    if (conn->peer == NULL) {
        refuse(conn, &refusal);
        return;
    }
    cm_log(CM_LOG_DEBUG, "%s connected: %s", conn->admission->identity.name, hello.client);
    if (cm_codec_put_welcome(arena, &welcome, cm_output_header(conn), CM_OUTPUT_HEADER_MAX, &length) !=
        CM_CODEC_OK) {
        cm_conn_close(conn, CM_CLOSE_PROTOCOL);
        return;
    }
    cm_output_add(conn, length, NULL, 0);
}

void cm_request_goodbye(struct cm_conn *conn)
{
    const struct cm_goodbye goodbye = {.last_request_id = conn->last_request_id,
                                       .reason = "the daemon is going away"};
    size_t length;
    conn->goodbye_sent = true;
    conn->heard_ms = uv_now(&conn->worker->loop);
    if (conn->peer == NULL) {
        refuse_with(conn, CM_STATUS_GOING_AWAY, "the daemon is going away");
        return;
    }
    struct cm_arena *arena = cm_worker_arena(conn->worker);
    if (arena == NULL || cm_codec_put_goodbye(arena, &goodbye, cm_output_header(conn), CM_OUTPUT_HEADER_MAX,
                                              &length) != CM_CODEC_OK) {
        cm_conn_close(conn, CM_CLOSE_DRAIN);
        return;
    }
    cm_output_add(conn, length, NULL, 0);
}

/* --- Requests ---------------------------------------------------------------------------------------------
 */

/* The id orders replies and goodbyes: without a good one nothing sensible can be said about the request. */
static bool take_id(struct cm_conn *conn, uint64_t request_id)
{
    if (request_id > conn->last_request_id) {
        if (!conn->goodbye_sent)
            conn->last_request_id = request_id;
        return true;
    }
    refuse_with(conn, CM_STATUS_BAD_REQUEST,
                request_id == 0 ? "a request has no readable request id" : "request ids must rise");
    return false;
}

static void reply_batch(struct cm_conn *conn, struct cm_arena *arena, const struct cm_batch *batch,
                        const struct cm_batch_reply *reply, const uint8_t *body)
{
    size_t length;
    uint64_t body_length = reply->status == CM_STATUS_OK ? cm_slot_total(batch) : 0;
    assert(body_length <= UINT32_MAX);
    if (cm_codec_put_batch_reply(arena, reply, (uint32_t)body_length, cm_output_header(conn),
                                 CM_OUTPUT_HEADER_MAX, &length) != CM_CODEC_OK) {
        cm_log(CM_LOG_ERROR, "a reply could not be encoded");
        cm_conn_close(conn, CM_CLOSE_PROTOCOL);
        return;
    }
    cm_output_add(conn, length, body, (size_t)body_length);
    cm_metrics_request(metrics_of(conn), CM_REQUEST_BATCH, reply->status, uv_hrtime() - conn->begun_ns);
}

static void refuse_batch(struct cm_conn *conn, struct cm_arena *arena, const struct cm_batch *batch,
                         uint32_t status, const char *text)
{
    const struct cm_batch_reply reply = {.request_id = batch->request_id, .status = status, .text = text};
    reply_batch(conn, arena, batch, &reply, NULL);
}

static void finish_batch(struct cm_conn *conn, struct cm_arena *arena, struct cm_request *request)
{
    struct cm_job *job = &request->job;
    cm_job_finish(job, conn->worker->service);
    reply_batch(conn, arena, &request->batch, &job->reply, job->body);
    if (job->reply.status == CM_STATUS_OK)
        cm_metrics_batch(metrics_of(conn), &request->batch, &job->reply, job->bytes_in);
}

/* A shared job's end. */
static void complete(struct cm_conn *conn)
{
    struct cm_request *request = conn->request;
    struct cm_arena *arena = (struct cm_arena *)(void *)conn->arena_buffer->data;
    if (!conn->closing && cm_output_ready(conn))
        finish_batch(conn, arena, request);
    else
        cm_job_finish(&request->job, conn->worker->service); /* the service's state must end all the same */
    conn->request = NULL;
    conn->busy = false;
    cm_output_flush(conn);
    cm_buffer_touch(conn->arena_buffer, CM_ARENA_HEAD + arena->used);
    cm_pool_put(&conn->worker->pool, conn->arena_buffer);
    conn->arena_buffer = NULL;
    if (!conn->unsent)
        conn->pinned = false;
    if (conn->closing)
        cm_conn_release(conn);
    else
        cm_conn_advance(conn);
}

void cm_request_resume(struct cm_conn *conn)
{
    if (conn->request != NULL && conn->request->ran)
        complete(conn);
}

static void on_shared_done(struct cm_inbox_item *done, void *worker)
{
    struct cm_share *share = (struct cm_share *)(void *)((char *)done - offsetof(struct cm_share, done));
    struct cm_request *request =
        (struct cm_request *)(void *)((char *)share - offsetof(struct cm_request, share));
    (void)worker;
    request->ran = true;
    if (!request->conn->unsent || request->conn->closing)
        complete(request->conn);
}

static void run_batch(struct cm_conn *conn, struct cm_arena *arena, struct cm_request *request)
{
    struct cm_worker *worker = conn->worker;
    struct cm_job *job = &request->job;
    if (!cm_share_pays(worker, job)) {
        for (uint32_t task = 0; task < job->task_count; task++)
            cm_job_run(job, task);
        finish_batch(conn, arena, request);
        return;
    }
    if (cm_share_run(&request->share, worker, job, on_shared_done)) {
        finish_batch(conn, arena, request);
        return;
    }
    /* Others are still at it: the arena goes with the job, and the body must stay where it is. */
    conn->request = request;
    conn->arena_buffer = worker->arena_buffer;
    worker->arena_buffer = NULL;
    conn->busy = true;
    conn->pinned = true;
}

static void handle_batch(struct cm_conn *conn, const struct cm_frame *frame, const uint8_t *header,
                         uint8_t *body)
{
    struct cm_arena *arena = cm_worker_arena(conn->worker);
    struct cm_request *request = arena != NULL ? cm_arena_take(arena, sizeof *request) : NULL;
    if (request == NULL) {
        cm_conn_close(conn, CM_CLOSE_PRESSURE);
        return;
    }
    request->conn = conn;
    request->ran = false;
    request->batch = (struct cm_batch){0};
    int rc = cm_codec_get_batch(arena, header, frame->header_length, &request->batch);
    if (!take_id(conn, request->batch.request_id))
        return;
    if (rc != CM_CODEC_OK) {
        refuse_batch(conn, arena, &request->batch, CM_STATUS_BAD_REQUEST,
                     "the batch's header is malformed or has too many fields");
        return;
    }
    if (conn->goodbye_sent) {
        refuse_batch(conn, arena, &request->batch, CM_STATUS_GOING_AWAY, "the daemon is going away");
        return;
    }
    cm_job_plan(&request->job, conn->worker->service, conn->peer, &request->batch, body, frame->body_length,
                arena, cm_share_quantum(conn->worker));
    run_batch(conn, arena, request);
}

/* --- Calls ------------------------------------------------------------------------------------------------
 */

static void reply_call(struct cm_conn *conn, struct cm_arena *arena, const struct cm_answer *answer)
{
    size_t length;
    uint32_t status = answer->status;
    int rc = cm_codec_put_answer(arena, answer, cm_output_header(conn), CM_OUTPUT_HEADER_MAX, &length);
    if (rc != CM_CODEC_OK) {
        const struct cm_answer failure = {.request_id = answer->request_id,
                                          .status = CM_STATUS_INTERNAL,
                                          .text = "the answer does not fit a frame's header"};
        status = failure.status;
        rc = cm_codec_put_answer(arena, &failure, cm_output_header(conn), CM_OUTPUT_HEADER_MAX, &length);
    }
    if (rc != CM_CODEC_OK) {
        cm_conn_close(conn, CM_CLOSE_PROTOCOL);
        return;
    }
    cm_output_add(conn, length, NULL, 0);
    cm_metrics_request(metrics_of(conn), conn->call_kind, status, uv_hrtime() - conn->begun_ns);
}

static void on_answer(void *context, const struct cm_answer *given)
{
    struct cm_conn *conn = context;
    struct cm_answer answer = *given;
    answer.request_id = conn->call_id;
    conn->busy = false;
    if (conn->closing)
        return;
    /* Nothing waits: replies before this one had left before the call began. */
    struct cm_arena *arena = conn->calling ? (struct cm_arena *)(void *)conn->worker->arena_buffer->data
                                           : cm_worker_arena(conn->worker);
    if (arena == NULL || !cm_output_ready(conn)) {
        cm_conn_close(conn, CM_CLOSE_PRESSURE);
        return;
    }
    reply_call(conn, arena, &answer);
    if (!conn->calling)
        cm_conn_advance(conn);
}

static void handle_call(struct cm_conn *conn, const struct cm_frame *frame, const uint8_t *header,
                        uint8_t *body)
{
    struct cm_call call = {0};
    struct cm_arena *arena = cm_worker_arena(conn->worker);
    if (arena == NULL) {
        cm_conn_close(conn, CM_CLOSE_PRESSURE);
        return;
    }
    int rc = cm_codec_get_call(arena, header, frame->header_length, &call);
    if (!take_id(conn, call.request_id))
        return;
    conn->call_kind = CM_REQUEST_CALL + (unsigned)call.kind;
    conn->call_id = call.request_id;
    if (rc != CM_CODEC_OK || conn->goodbye_sent) {
        const struct cm_answer answer = {
            .request_id = call.request_id,
            .status = rc != CM_CODEC_OK ? CM_STATUS_BAD_REQUEST : CM_STATUS_GOING_AWAY,
            .text = rc != CM_CODEC_OK ? "the call's header is malformed or has too many fields"
                                      : "the daemon is going away"};
        explicit_bzero(body, frame->body_length); /* may be a key */
        reply_call(conn, arena, &answer);
        return;
    }
    conn->busy = true;
    conn->calling = true;
    cm_service_call(conn->worker->service, conn->peer, &call, body, frame->body_length, on_answer, conn);
    conn->calling = false;
}

void cm_request_handle(struct cm_conn *conn, const struct cm_frame *frame, uint8_t *bytes)
{
    const uint8_t *header = bytes + CM_FRAME_PREFIX_BYTES;
    uint8_t *body = bytes + cm_frame_body_offset(frame->header_length);
    conn->begun_ns = uv_hrtime();
    if (conn->peer == NULL && frame->type == CM_FRAME_HELLO)
        handle_hello(conn, frame, header);
    else if (conn->peer == NULL)
        refuse_with(conn, CM_STATUS_BAD_REQUEST, "the first frame must be a greeting");
    else if (frame->type == CM_FRAME_BATCH)
        handle_batch(conn, frame, header, body);
    else if (frame->type == CM_FRAME_CALL)
        handle_call(conn, frame, header, body);
    else
        refuse_with(conn, CM_STATUS_BAD_REQUEST, "a client sends no frames of this type");
}
