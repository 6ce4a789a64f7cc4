/* SPDX-License-Identifier: Apache-2.0 */
/* Measures what it costs to wake another worker. */
#ifndef CM_WAKE_H
#define CM_WAKE_H

#include "worker.h"

struct cm_wake;

/* Sends an item to and fro between two sleeping workers; when it knows the median it runs `on_measured` on
 * the main thread, once, with nanoseconds. Returns NULL, and never calls, if there is no memory. Whoever ends
 * before the answer may: the memory stays until cm_wake_free. */
struct cm_wake *cm_wake_measure(struct cm_worker *one, struct cm_worker *other,
                                void (*on_measured)(void *context, uint64_t wake_ns), void *context);
/* After cm_worker_done of both workers. NULL is fine. */
void cm_wake_free(struct cm_wake *wake);

#endif
