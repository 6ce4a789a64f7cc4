/* SPDX-License-Identifier: Apache-2.0 */
/* The asynchronous side of a client: one connection of its own behind one descriptor. */
#ifndef CM_CLIENT_ASYNC_H
#define CM_CLIENT_ASYNC_H

struct cm_async;

/* Closes everything; batches in flight are forgotten. NULL is fine. */
void cm_async_free(struct cm_async *async);

#endif
