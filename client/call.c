/* SPDX-License-Identifier: Apache-2.0 */
/* Calls: requests that are no batches, run to their answer. */
#include "call.h"
#include "error.h"
#include <stdlib.h>

int cm_call_on(struct cm_client *client, struct cm_conn *conn, const struct cm_call *call,
               const void *key_bytes, size_t key_length, cm_answer_reader read_answer, void *context,
               cm_error *error)
{
    struct cm_request request = {
        .call = call,
        .key_bytes = key_bytes,
        .key_length = key_length,
        .read_answer = read_answer,
        .context = context,
        .deadline_ms = cm_request_deadline(client),
    };
    cm_conn_add(conn, &request);
    cm_conn_finish(conn, &request);
    return request.error.code == CM_OK ? CM_OK : cm_fail_copy(error, &request.error);
}

int cm_call_run(struct cm_client *client, const struct cm_call *call, const void *key_bytes,
                size_t key_length, cm_answer_reader read_answer, void *context, cm_error *error)
{
    cm_error first = CM_ERROR_INIT;
    for (int attempt = 0;; attempt++) {
        struct cm_slot *slot;
        int rc = cm_pool_take(client, &slot, &first);
        if (rc != 0)
            return cm_fail_copy(error, &first);
        rc = cm_call_on(client, slot->conn, call, key_bytes, key_length, read_answer, context, &first);
        cm_pool_put(client, slot);
        if (rc == 0)
            return 0;
        if (rc != CM_ERR_DISCONNECTED || attempt > 0 || client->no_reconnect)
            return cm_fail_copy(error, &first);
    }
}

struct posted {
    struct cm_request request;
    struct cm_call call;
};

static void free_posted(struct cm_request *request)
{
    free(request->context);
}

bool cm_call_post(struct cm_client *client, struct cm_conn *conn, const struct cm_call *call)
{
    struct posted *posted = calloc(1, sizeof *posted);
    if (posted == NULL)
        return false;
    posted->call = *call;
    posted->request = (struct cm_request){
        .call = &posted->call,
        .on_done = free_posted,
        .context = posted,
        .deadline_ms = cm_request_deadline(client),
    };
    cm_conn_add(conn, &posted->request);
    return true;
}
