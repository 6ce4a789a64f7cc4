/* SPDX-License-Identifier: Apache-2.0 */
/* Replies on their way out: gathered while one read is answered, written at once, kept where they can't be.
 */
#ifndef CM_OUTPUT_H
#define CM_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct cm_buffer;
struct cm_conn;

enum {
    CM_OUTPUT_PARTS = 64,
    CM_OUTPUT_HEADER_MAX = 65536 + 128,     /* one reply's, with prefix and padding */
    CM_OUTPUT_HEADER_BYTES = 2 * 65536 * 2, /* several replies' */
};

/* A worker's: replies of the connection that it is at. Empty between events. */
struct cm_output {
    uv_buf_t parts[CM_OUTPUT_PARTS];
    unsigned count;
    size_t bytes;
    struct cm_buffer *headers;
    size_t headers_used;
};

/* Makes sure that one more reply can be added, writing what is there if need be. False if that is not
 * possible now: bytes wait (conn->unsent), or the connection closes. */
bool cm_output_ready(struct cm_conn *conn);
/* Where the next reply's prefix and header go: CM_OUTPUT_HEADER_MAX bytes. After cm_output_ready. */
uint8_t *cm_output_header(struct cm_conn *conn);
/* Adds a reply whose header stands there. The body stays where it is, in conn->input. */
void cm_output_add(struct cm_conn *conn, size_t header_length, const uint8_t *body, size_t body_length);
/* Writes what was added. What the socket does not take is kept, and conn->unsent is set until it has left. */
void cm_output_flush(struct cm_conn *conn);
/* The kept bytes have left, or `status` is negative. */
void cm_output_written(struct cm_conn *conn, int status);

#endif
