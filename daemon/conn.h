/* SPDX-License-Identifier: Apache-2.0 */
/* A connection: reads frames, has them answered in order, and holds no more memory than it must. */
#ifndef CM_CONN_H
#define CM_CONN_H

#include "transport.h"
#include "worker.h"

struct cm_request;
struct cm_peer_count;

/* An accepted connection on its way to a worker, and back to the main thread when it has ended. */
struct cm_admission {
    struct cm_inbox_item item;
    int fd;
    const struct cm_transport *transport;
    struct cm_identity identity;
    struct cm_peer_count *peer; /* the main thread's */
    uint32_t worker;
    void (*departed)(struct cm_inbox_item *item, void *common); /* runs on the main thread */
};

/* Lives on one worker. One request at a time; while it runs, and while a reply waits, nothing is read. */
struct cm_conn {
    struct cm_channel channel;
    struct cm_worker *worker;
    struct cm_admission *admission;
    struct cm_conn *previous, *next;
    struct cm_peer_state *peer; /* NULL before the greeting */
    uint64_t last_request_id;

    /* Received bytes: [start, end) are not parsed yet. NULL while there are none. `borrowed`: it is the
     * worker's spare buffer. `pinned`: a job or an unsent reply refers to bytes before `start`, so nothing
     * may move. */
    struct cm_buffer *input;
    size_t start, end;
    size_t wanted; /* whole length of the frame at `start`; 0 if its prefix is not complete */
    bool borrowed, pinned;

    /* Bytes that did not leave at once: copied here, or only headers here and bodies in the pinned input. */
    struct cm_buffer *kept;
    bool unsent;
    size_t queue_seen;

    /* A request that is not answered yet: a job that several workers share, or a call. */
    struct cm_request *request; /* the job's; in arena_buffer */
    struct cm_buffer *arena_buffer;
    bool busy;
    bool calling; /* inside cm_service_call */
    unsigned call_kind;
    uint64_t call_id, begun_ns;

    uint64_t charged; /* to the budget */
    uint64_t opened_ms, heard_ms, progress_ms, starved_ms, linger_until_ms;
    uint64_t moved; /* bytes since progress_ms */
    bool reading, starved;
    bool owes; /* starved, but has sent too little for it to be us who keep it waiting */
    bool borrows_reserve, borrowed_enough; /* enough: the frame that needed it was read */
    uint64_t borrowed_ms;

    /* Its turn in the present round of the loop; then it waits for the next one. */
    uint64_t turn_round, turn_ns;
    bool waits_turn;
    struct cm_conn *next_waiting;
    bool goodbye_wanted, goodbye_sent;
    bool lingering; /* refused: what comes is thrown away until the peer has seen it */
    bool closing, closed;
};

/* Runs an admission: makes the connection, or closes and sends the admission back. Owner: the worker. */
void cm_conn_admit(struct cm_inbox_item *item, void *worker);

/* Parses, answers and writes as far as it goes now. */
void cm_conn_advance(struct cm_conn *conn);
/* Idempotent. The memory goes when the channel has closed and no job runs. */
void cm_conn_close(struct cm_conn *conn, enum cm_close_reason reason);
/* A job has ended on a connection that was closing. */
void cm_conn_release(struct cm_conn *conn);
/* After a refusal was added: writes it, then ends the connection without losing it. */
void cm_conn_linger(struct cm_conn *conn);

/* --- conn_input.c --- */

enum { CM_PRESSURE_FREES = 8 /* memory is short until this part of the limit is free */ };

/* What the connection holds has changed. */
void cm_conn_charge(struct cm_conn *conn);
/* Between events: the worker's spare buffer goes back to it, what is left of the input moves to where the
 * rest of its frame has room, and what nobody needs is returned. Charges. */
void cm_conn_settle(struct cm_conn *conn);
void cm_conn_drop_input(struct cm_conn *conn);
/* How much may be read now into `space` bytes; 0: wait for room. */
size_t cm_conn_window(struct cm_conn *conn, size_t space);
/* The budget's reserve is this connection's now; and no more, if it was. */
void cm_conn_borrow(struct cm_conn *conn);
void cm_conn_give_back(struct cm_conn *conn);

/* All connections of a worker. */
void cm_conn_drain_all(struct cm_worker *worker);
void cm_conn_close_all(struct cm_worker *worker);
/* Lets connections go on that wait for room, where there is some. `all`: those for which there is none look
 * again too, since the rest of a small frame may have arrived. */
void cm_conn_resume_starved(struct cm_worker *worker, bool all);
void cm_conn_tick_all(struct cm_worker *worker, bool second);

#endif
