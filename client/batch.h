/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: what a call's arguments mean on the wire, and blocking batches run frame by frame. */
#ifndef CM_CLIENT_BATCH_H
#define CM_CLIENT_BATCH_H

#include "key.h"

enum {
    /* A body that can be cut is cut here, and so much is on its way at once: the daemon works on one frame
     * while the next arrives, and both stay in the processor's caches. */
    CM_FRAME_SOFT_BYTES = 256 * 1024,
    CM_WINDOW_BYTES = 1024 * 1024,
    CM_WINDOW_FRAMES = 8
};

/* The shape that mode, direction and flags ask for. 0 or CM_ERR_ARGUMENT. */
int cm_shape_of(struct cm_key *key, int mode, int direction, unsigned flags, struct cm_shape *ret_shape,
                cm_error *error);

/* What a batch in which `failed` items failed by their own status returns: how many, after the error has got
 * the first one's code. The error stays as it is if none failed. */
int cm_tell_failed_items(const cm_item *items, size_t count, size_t failed, cm_error *error);

/* A run of frames on one connection: what is left, what is on its way, what became of the rest. */
struct cm_run {
    struct cm_client *client;
    struct cm_conn *conn;
    struct cm_shape shape;
    uint32_t key_handle;
    cm_item *items;
    size_t count, planned;
    bool parts, ends; /* a multi-part operation, a frame a part; the last item is its last part */
    bool begins;      /* the first item is the operation's first part */
    struct cm_request requests[CM_WINDOW_FRAMES];
    unsigned oldest, used; /* a ring */
    uint64_t window_bytes;
    size_t answered_items; /* in frames that the daemon executed */
    size_t failed_items;
    uint32_t key_version;
    cm_error error; /* the first frame that failed */
};

/* Runs it to its end: everything answered, or failed and nothing on its way any more. 0 or the error's code.
 */
int cm_run_all(struct cm_run *run);

/* After a failure: nothing was done, since the connection had ended before the run was sent. If it had lain
 * idle in the pool, a new one may well work. */
bool cm_run_may_repeat(const struct cm_run *run);

#endif
