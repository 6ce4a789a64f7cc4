/* SPDX-License-Identifier: Apache-2.0 */
/* Calls: requests that are no batches, run to their answer. */
#ifndef CM_CLIENT_CALL_H
#define CM_CLIENT_CALL_H

#include "pool.h"

/* On a connection that the caller holds. key_bytes travel as the call's body. */
int cm_call_on(struct cm_client *client, struct cm_conn *conn, const struct cm_call *call,
               const void *key_bytes, size_t key_length, cm_answer_reader read_answer, void *context,
               cm_error *error);

/* On a connection of the pool; once more on a new one if the first broke. The call must be one that may be
 * repeated: it only reads, or it carries an operation id. */
int cm_call_run(struct cm_client *client, const struct cm_call *call, const void *key_bytes,
                size_t key_length, cm_answer_reader read_answer, void *context, cm_error *error);

/* Sends a call whose outcome nobody waits for. False if it could not be sent now. */
bool cm_call_post(struct cm_client *client, struct cm_conn *conn, const struct cm_call *call);

#endif
