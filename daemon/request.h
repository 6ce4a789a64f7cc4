/* SPDX-License-Identifier: Apache-2.0 */
/* Frames to the service and its replies to frames: what a connection does with each request. */
#ifndef CM_REQUEST_H
#define CM_REQUEST_H

#include "conn.h"
#include "frame.h"

/* Handles one whole frame, after cm_output_ready. Adds a reply, or makes the connection busy until one is
 * there, or refuses and lets the connection end. */
void cm_request_handle(struct cm_conn *conn, const struct cm_frame *frame, uint8_t *bytes);
/* What stands at the front of the input is no frame of this protocol: `error` is a cm_frame_error, and *frame
 * is filled where frame.h says so. */
void cm_request_bad_frame(struct cm_conn *conn, int error, const struct cm_frame *frame);
/* Says goodbye (or refuses, before the greeting). After cm_output_ready. */
void cm_request_goodbye(struct cm_conn *conn);
/* Finishes a shared job that was ready before earlier replies had left. */
void cm_request_resume(struct cm_conn *conn);

#endif
