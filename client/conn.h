/* SPDX-License-Identifier: Apache-2.0 */
/* One connection: a queue of requests that is sent and answered in order. It never blocks but in
 * cm_conn_step. Used by one thread at a time. */
#ifndef CM_CLIENT_CONN_H
#define CM_CLIENT_CONN_H

#include "codec.h"
#include "request.h"
#include "transport.h"
#include <sys/types.h>

/* Items in a frame at most, whatever the daemon allows: the columns are laid out for so many. */
enum { CM_CONN_ITEMS_MAX = 4096 };

enum {
    CM_CONN_FRAME_BYTES = CM_FRAME_PREFIX_BYTES + CM_HEADER_LIMIT + CM_FRAME_BODY_ALIGN,
    CM_CONN_TRASH_BYTES = 4096
};

/* Columns of the batch that is being encoded. */
struct cm_columns {
    uint32_t lengths[CM_CONN_ITEMS_MAX];
    uint32_t iv_lengths[CM_CONN_ITEMS_MAX];
    uint32_t aad_lengths[CM_CONN_ITEMS_MAX];
    uint8_t ivs[CM_HEADER_LIMIT];
    uint8_t tags[CM_HEADER_LIMIT];
};

struct cm_conn {
    int fd;                    /* -1: closed */
    int epoll;                 /* one that watches the socket, or -1 */
    pid_t pid;                 /* of the process that connected */
    bool broken;               /* closed for good; `failure` says why */
    bool going_away;           /* a goodbye came: nothing more is sent */
    bool pooled;               /* it lay idle in the pool once, where the daemon may have ended it */
    uint64_t last_answered_id; /* of the goodbye */
    cm_error failure;
    const char *uri; /* the client's */

    struct cm_limits limits; /* clamped to what this side can do */
    uint32_t session_number; /* which of the client's sessions it is in */
    uint32_t serial;         /* unique in the client */
    uint32_t next_operation;
    uint32_t operations; /* multi-part ones that are open on it */

    struct cm_request *first, *last,
        *unsent; /* in order; `unsent` is the first that is not completely sent */
    uint64_t next_id;

    bool encoded; /* `out` holds the head of `unsent` */
    size_t out_length, out_sent;
    struct cm_position send_at;

    size_t in_start, in_end; /* what `in` holds */
    bool in_body;            /* the body of first's reply is being read */
    struct cm_position receive_at;

    struct cm_arena arena;
    struct cm_columns columns;
    uint8_t out[CM_CONN_FRAME_BYTES];
    uint8_t in[CM_CONN_FRAME_BYTES];
    uint8_t trash[CM_CONN_TRASH_BYTES];
    _Alignas(16) uint8_t arena_memory[CM_ARENA_BYTES];
};

/* A connection around a connected socket, which it owns from then on; NULL when there is no memory. */
struct cm_conn *cm_conn_new(int fd, const char *uri);
/* Closes, in a child without the parent noticing; requests that are still queued hear on_done, but nothing is
 * written into them. NULL is fine. */
void cm_conn_free(struct cm_conn *conn);

/* Puts a request at the end of the queue and sends what the socket takes now. On a broken connection, and on
 * one that is going away, the request is done at once. */
void cm_conn_add(struct cm_conn *conn, struct cm_request *request);

/* Waits up to wait_ms for the socket (< 0: until a request's deadline; 0: not at all), then moves data both
 * ways. Ends the connection, and its requests with it, if the first one's deadline has passed. */
void cm_conn_step(struct cm_conn *conn, int wait_ms);
/* Steps until the request is done. */
void cm_conn_finish(struct cm_conn *conn, struct cm_request *request);

/* Ends the connection: everything in the queue is done with this code, each with the retry class that what is
 * known of it allows. */
void cm_conn_break(struct cm_conn *conn, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* True while the socket has to be watched for writing too. */
bool cm_conn_wants_write(const struct cm_conn *conn);

/* --- Between the files of the connection --- */

/* As much as the socket takes, and as it has; true if anything was received. */
void cm_conn_send(struct cm_conn *conn);
bool cm_conn_receive(struct cm_conn *conn);
/* Encodes the head of `unsent` into `out`. 0 or a codec error. */
int cm_conn_encode(struct cm_conn *conn, struct cm_request *request);
/* Takes a request out of the queue: it is done, with what request->error says. */
void cm_conn_remove(struct cm_conn *conn, struct cm_request *request);
/* A frame's header is there. Ends the connection over one that breaks the protocol. */
void cm_conn_on_header(struct cm_conn *conn, const struct cm_frame *frame, const uint8_t *header);

/* --- Greeting --- */

/* Connects and greets before the deadline. `token` NULL: a new session. On success *ret_welcome lies in the
 * connection's arena until the next step. */
int cm_conn_open(const struct cm_endpoint *endpoint, const uint8_t *token, const char *program,
                 int64_t deadline_ms, struct cm_conn **ret_conn, struct cm_welcome *ret_welcome,
                 cm_error *error);

#endif
