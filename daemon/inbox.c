/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's inbox: a stack that anyone pushes to and the owner takes whole, then turns round. */
#include "inbox.h"

bool cm_inbox_put(struct cm_inbox *inbox, struct cm_inbox_item *item)
{
    struct cm_inbox_item *newest = atomic_load_explicit(&inbox->newest, memory_order_relaxed);
    do {
        item->next = newest;
    } while (!atomic_compare_exchange_weak_explicit(&inbox->newest, &newest, item, memory_order_release,
                                                    memory_order_relaxed));
    /* `item` may be gone by now: only the local copy tells. */
    return newest == NULL;
}

size_t cm_inbox_run(struct cm_inbox *inbox, void *owner)
{
    /* Taking everything at once leaves no window in which a node could come back under another pushing
     * thread's feet. */
    struct cm_inbox_item *item = atomic_exchange_explicit(&inbox->newest, NULL, memory_order_acquire);
    struct cm_inbox_item *oldest = NULL;
    while (item != NULL) {
        struct cm_inbox_item *next = item->next;
        item->next = oldest;
        oldest = item;
        item = next;
    }
    size_t count = 0;
    while (oldest != NULL) {
        struct cm_inbox_item *next = oldest->next;
        oldest->run(oldest, owner);
        oldest = next;
        count++;
    }
    return count;
}
