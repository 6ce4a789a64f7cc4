/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for messages: buffers pooled by each worker, charged to one budget for the process. */
#ifndef CM_BUFFER_H
#define CM_BUFFER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Pages come from the system untouched, so a buffer costs what was written to it, not what it could hold. It
 * has one owner at a time: a pool, a worker or a connection. Page-aligned, kept out of core dumps. */
struct cm_buffer {
    uint8_t *data;
    size_t capacity;
    size_t used;      /* the owner raises it: bytes from the start that may hold somebody's data */
    size_t committed; /* most that was ever used: what the buffer costs */
    struct cm_buffer *next;
};

/* Says that the first `used` bytes have been written. */
void cm_buffer_touch(struct cm_buffer *buffer, size_t used);

enum {
    CM_POOL_CLASSES = 11, /* 4 KiB, 8 KiB, … 4 MiB; larger buffers are not pooled */
    CM_POOL_SMALLEST = 4096,
    CM_POOL_KEEPS = 8 * 1024 * 1024, /* committed bytes that a pool keeps at most */
};

/* One thread's. Zeroed is empty. */
struct cm_pool {
    struct cm_buffer *classes[CM_POOL_CLASSES];
    size_t kept;
};

/* A buffer of at least `capacity` bytes whose contents are unspecified; NULL if the system has no memory. */
struct cm_buffer *cm_pool_take(struct cm_pool *pool, size_t capacity);
/* Wipes what was used, then keeps the buffer or gives it back to the system. NULL is fine. */
void cm_pool_put(struct cm_pool *pool, struct cm_buffer *buffer);
/* Gives everything back. */
void cm_pool_done(struct cm_pool *pool);

/* What the connections of all workers hold together. Charging never fails: whoever is about to read asks for
 * room first, so that the total passes the limit by no more than what the workers read at that moment. */
struct cm_budget {
    _Atomic uint64_t used;
    uint64_t limit;
    uint64_t reserve; /* the last part of the limit: only for the one who borrows it */
    _Atomic bool lent;
};

void cm_budget_init(struct cm_budget *budget, uint64_t limit, uint64_t reserve);
/* Replaces *charged, what one owner holds, by `now`. */
void cm_budget_charge(struct cm_budget *budget, uint64_t *charged, uint64_t now);
uint64_t cm_budget_used(const struct cm_budget *budget);
/* What is left without the reserve. */
uint64_t cm_budget_room(const struct cm_budget *budget);
/* When everyone waits for room to complete what they hold, nobody would ever free anything. So one at a time
 * may borrow the reserve and complete. True if the caller is the one now. */
bool cm_budget_borrow(struct cm_budget *budget);
bool cm_budget_is_lent(const struct cm_budget *budget);
void cm_budget_give_back(struct cm_budget *budget);

#endif
