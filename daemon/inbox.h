/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's inbox: any thread puts items in without waiting, the owner takes them out in order of arrival.
 */
#ifndef CM_INBOX_H
#define CM_INBOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Stands inside what it carries. From cm_inbox_put until `run` it belongs to the inbox. */
struct cm_inbox_item {
    struct cm_inbox_item *next;
    /* Called on the owner's thread, with the owner; may free the item or put it into another inbox. */
    void (*run)(struct cm_inbox_item *item, void *owner);
};

/* Zeroed is empty. */
struct cm_inbox {
    _Atomic(struct cm_inbox_item *) newest;
};

/* Any thread. What the caller wrote before is seen by the owner when it runs the item. Returns true if the
 * inbox was empty: then the owner must be woken. */
bool cm_inbox_put(struct cm_inbox *inbox, struct cm_inbox_item *item) __attribute__((warn_unused_result));

/* The owner: runs everything that is there now, and returns how many that were. */
size_t cm_inbox_run(struct cm_inbox *inbox, void *owner);

#endif
