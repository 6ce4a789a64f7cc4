/* SPDX-License-Identifier: Apache-2.0 */
/* One frame on its way to the daemon and the place where its reply goes. */
#ifndef CM_CLIENT_REQUEST_H
#define CM_CLIENT_REQUEST_H

#include "message.h"
#include <ciphermill/ciphermill.h>
#include <stdbool.h>

/* What all items of a batch have in common. */
struct cm_shape {
    uint8_t mode, direction; /* CM_ECB …, CM_ENCRYPT … */
    uint8_t part;            /* enum cm_wire_part; not single: exactly one item */
    bool padding;
    uint32_t key_version;
    uint32_t operation;
    uint32_t slot_align, slot_gap;
};

/* Reads the answer of a call; the answer lives only during it. 0, or a code with *error filled. */
typedef int (*cm_answer_reader)(void *context, const struct cm_answer *answer, cm_error *error);

/* A request belongs to its maker, who keeps it, the items and the buffers until `done`. Then `error.code`
 * says what became of the request as a whole, and the items' own results stand in the items. */
struct cm_request {
    struct cm_request *next;
    uint64_t id; /* given when the frame is made */
    int64_t deadline_ms;
    bool sent; /* completely: from here on the daemon may have executed it */
    bool done;
    cm_error error;
    void (*on_done)(struct cm_request *request); /* NULL: the maker looks at `done` */

    /* A batch; call is NULL. */
    struct cm_shape shape;
    uint32_t key_handle;
    cm_item *items;
    uint32_t count;
    uint32_t failed;          /* result: items that failed */
    uint32_t ret_key_version; /* result */
    bool daemon_ivs;          /* result: the items' IVs came with the reply */
    uint64_t body_length;     /* slots and additional data */
    uint64_t reply_length;    /* slots */

    /* A call. */
    const struct cm_call *call;
    const void *key_bytes; /* its body */
    size_t key_length;
    cm_answer_reader read_answer; /* NULL: the status is enough */
    void *context;
};

/* A place in a request's body, or in its reply's. {0} is its start. */
struct cm_position {
    uint32_t item;
    bool behind; /* the slots are behind: additional data */
    uint64_t offset;
};

/* The slots of one item: cm_slot_stride and cm_slot_output for it. */
uint64_t cm_shape_stride(const struct cm_shape *shape, size_t in_length);
size_t cm_shape_output(const struct cm_shape *shape, size_t in_length);
/* What of the item's IV and additional data travels: none where the mode knows none, nor in a later part. */
size_t cm_shape_iv(const struct cm_shape *shape, const cm_item *item, const uint8_t **ret_iv);
size_t cm_shape_aad(const struct cm_shape *shape, const cm_item *item);

/* The run of bytes at *position, which lies in one buffer: its length, and its start, or NULL for filler.
 * Moves *position over what is empty. 0 at the end. In a request the runs are the items' `in` and additional
 * data, in a reply the items' `out`, as much of it as the reply gives. */
uint64_t cm_request_run(const struct cm_request *request, struct cm_position *position,
                        const uint8_t **ret_start);
uint64_t cm_reply_run(const struct cm_request *request, struct cm_position *position, uint8_t **ret_start);

/* How many of the items the next frame takes, at least one. `soft_bytes` is where a body that can be cut is
 * cut; the limits are never passed: CM_ERR_TOO_LARGE if the first item is over one by itself. Items of one
 * frame agree in whether they give an IV and in the length of the tag. */
int cm_frame_plan(const struct cm_limits *limits, const struct cm_shape *shape, const cm_item *items,
                  size_t count, uint64_t soft_bytes, size_t *ret_count, cm_error *error);

/* Checks what the caller gave: pointers, room, what the mode knows. Marks every item not sent, and a bad one
 * with its code. 0, CM_ERR_ARGUMENT or CM_ERR_ROOM. */
int cm_items_check(const struct cm_shape *shape, cm_item *items, size_t count, cm_error *error);

#endif
