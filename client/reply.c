/* SPDX-License-Identifier: Apache-2.0 */
/* What a frame from the daemon means for the request at the head of the queue. */
#include "conn.h"
#include "error.h"
#include <string.h>

static void break_protocol(struct cm_conn *conn, const char *what)
{
    cm_conn_break(conn, CM_ERR_PROTOCOL, "%.150s sent what breaks the protocol: %s", conn->uri, what);
}

/* The request that a reply must be for, or NULL with the connection broken. */
static struct cm_request *answered(struct cm_conn *conn, uint64_t id, bool is_call)
{
    struct cm_request *request = conn->first;
    bool begun = request != NULL && (request != conn->unsent || conn->encoded);
    if (!begun || request->id != id || (request->call != NULL) != is_call) {
        break_protocol(conn, "a reply to no request");
        return NULL;
    }
    return request;
}

/* The daemon refused the request as a whole. */
static void finish_refused(struct cm_conn *conn, struct cm_request *request, uint32_t status,
                           const char *text)
{
    int code = cm_code_of_status(status);
    bool half_sent = !request->sent;
    cm_fail_code(&request->error, code, "%s",
                 text != NULL && text[0] != 0 ? text : cm_status_description(code));
    cm_conn_remove(conn, request);
    if (half_sent)
        break_protocol(conn, "it answered a request before all of it was sent");
}

static bool any_well(const struct cm_batch_reply *reply)
{
    for (uint32_t i = 0; i < reply->count; i++)
        if (reply->statuses == NULL || reply->statuses[i] == CM_STATUS_OK)
            return true;
    return false;
}

/* Without its IV or tag a ciphertext is lost, so that such a reply must not count as success. */
static const char *encryption_fault(const struct cm_request *request, const struct cm_batch_reply *reply)
{
    const struct cm_shape *shape = &request->shape;
    bool begins = shape->part == CM_WIRE_SINGLE || shape->part == CM_WIRE_FIRST;
    bool ends = shape->part == CM_WIRE_SINGLE || shape->part == CM_WIRE_LAST;
    const uint8_t *iv;
    if (shape->direction != CM_ENCRYPT || !any_well(reply))
        return NULL;
    if (shape->mode == CM_GCM && ends && reply->tag_length == 0)
        return "an encryption without its tag";
    if (shape->mode != CM_ECB && begins && reply->iv_length == 0 &&
        cm_shape_iv(shape, &request->items[0], &iv) == 0)
        return "an encryption without its IV";
    return NULL;
}

/* NULL, or how the reply contradicts the request. */
static const char *reply_fault(const struct cm_request *request, const struct cm_batch_reply *reply,
                               uint32_t body_length)
{
    if (!request->sent)
        return "a batch was answered before all of it was sent";
    if (reply->count != request->count || body_length != request->reply_length)
        return "the reply has another shape than its batch";
    if (reply->iv_length > 16 || reply->tag_length > 16)
        return "an IV or tag of more than 16 bytes";
    const uint8_t *iv;
    if (reply->iv_length > 0 && cm_shape_iv(&request->shape, &request->items[0], &iv) > 0)
        return "an IV in place of the caller's";
    for (uint32_t i = 0; i < reply->count; i++)
        if (reply->lengths[i] > cm_shape_output(&request->shape, request->items[i].in_length))
            return "an output longer than its slot";
    return encryption_fault(request, reply);
}

static void take_columns(struct cm_request *request, const struct cm_batch_reply *reply)
{
    request->failed = 0;
    request->ret_key_version = reply->key_version;
    request->daemon_ivs = reply->iv_length > 0 && reply->ivs != NULL;
    for (uint32_t i = 0; i < request->count; i++) {
        cm_item *item = &request->items[i];
        uint32_t status = reply->statuses != NULL ? reply->statuses[i] : 0;
        item->status = cm_code_of_status(status);
        item->out_length = status == 0 ? reply->lengths[i] : 0;
        request->failed += status != 0;
        if (status != 0)
            continue;
        if (request->daemon_ivs) {
            memcpy(item->iv, reply->ivs + (size_t)i * reply->iv_length, reply->iv_length);
            item->iv_length = reply->iv_length;
        }
        if (reply->tag_length > 0 && reply->tags != NULL) {
            memcpy(item->tag, reply->tags + (size_t)i * reply->tag_length, reply->tag_length);
            item->tag_length = reply->tag_length;
        }
    }
}

static void on_batch_reply(struct cm_conn *conn, const struct cm_frame *frame, const uint8_t *header)
{
    struct cm_batch_reply reply;
    if (cm_codec_get_batch_reply(&conn->arena, header, frame->header_length, &reply) != CM_CODEC_OK) {
        break_protocol(conn, "a malformed reply");
        return;
    }
    struct cm_request *request = answered(conn, reply.request_id, false);
    if (request == NULL)
        return;
    if (reply.status != CM_STATUS_OK && frame->body_length == 0) {
        finish_refused(conn, request, reply.status, reply.text);
        return;
    }
    const char *fault = reply.status != CM_STATUS_OK ? "a refused batch with a body"
                                                     : reply_fault(request, &reply, frame->body_length);
    if (fault != NULL) {
        break_protocol(conn, fault);
        return;
    }
    take_columns(request, &reply);
    conn->in_body = true;
    conn->receive_at = (struct cm_position){0};
}

static void on_answer(struct cm_conn *conn, const struct cm_frame *frame, const uint8_t *header)
{
    struct cm_answer answer;
    if (cm_codec_get_answer(&conn->arena, header, frame->header_length, &answer) != CM_CODEC_OK) {
        break_protocol(conn, "a malformed answer");
        return;
    }
    struct cm_request *request = answered(conn, answer.request_id, true);
    if (request == NULL)
        return;
    if (answer.status != CM_STATUS_OK) {
        finish_refused(conn, request, answer.status, answer.text);
        return;
    }
    if (!request->sent) {
        break_protocol(conn, "a call was answered before all of it was sent");
        return;
    }
    cm_error_clear(&request->error);
    if (request->read_answer != NULL)
        request->read_answer(request->context, &answer, &request->error);
    cm_conn_remove(conn, request);
}

/* Nothing that has not begun to leave will leave; what is half sent is finished, since the daemon answers it.
 */
static void on_goodbye(struct cm_conn *conn, const struct cm_frame *frame, const uint8_t *header)
{
    struct cm_goodbye goodbye;
    if (cm_codec_get_goodbye(&conn->arena, header, frame->header_length, &goodbye) != CM_CODEC_OK) {
        break_protocol(conn, "a malformed goodbye");
        return;
    }
    if (conn->going_away) { /* else an endless row of them would keep this side reading past every deadline */
        break_protocol(conn, "a second goodbye");
        return;
    }
    conn->going_away = true;
    conn->last_answered_id = goodbye.last_request_id;
    cm_fail_code(&conn->failure, CM_ERR_GOING_AWAY, "the daemon at %.120s is going away: %.80s", conn->uri,
                 goodbye.reason != NULL && goodbye.reason[0] != 0 ? goodbye.reason : "no reason given");
    struct cm_request *request = conn->unsent;
    if (request != NULL && conn->encoded)
        request = request->next;
    while (request != NULL) {
        struct cm_request *next = request->next;
        request->error = conn->failure;
        cm_conn_remove(conn, request);
        request = next;
    }
}

static void on_refusal(struct cm_conn *conn, const struct cm_frame *frame, const uint8_t *header)
{
    struct cm_refusal refusal;
    if (cm_codec_get_refusal(&conn->arena, header, frame->header_length, &refusal) != CM_CODEC_OK) {
        break_protocol(conn, "a malformed refusal");
        return;
    }
    int code = cm_code_of_status(refusal.status);
    cm_conn_break(conn, code != CM_OK ? code : CM_ERR_PROTOCOL, "the daemon ended the connection: %.200s",
                  refusal.text != NULL && refusal.text[0] != 0 ? refusal.text : cm_status_description(code));
}

void cm_conn_on_header(struct cm_conn *conn, const struct cm_frame *frame, const uint8_t *header)
{
    cm_arena_reset(&conn->arena);
    if (frame->type != CM_FRAME_BATCH_REPLY && frame->body_length != 0) {
        break_protocol(conn, "a body where none belongs");
        return;
    }
    switch (frame->type) {
    case CM_FRAME_BATCH_REPLY:
        on_batch_reply(conn, frame, header);
        break;
    case CM_FRAME_ANSWER:
        on_answer(conn, frame, header);
        break;
    case CM_FRAME_GOODBYE:
        on_goodbye(conn, frame, header);
        break;
    case CM_FRAME_REFUSAL:
        on_refusal(conn, frame, header);
        break;
    default:
        break_protocol(conn, "a frame of an unexpected type");
    }
}
