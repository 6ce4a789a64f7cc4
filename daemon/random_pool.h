/* SPDX-License-Identifier: Apache-2.0 */
/* Random bytes in bulk: a worker's IVs cost no system call each. */
#ifndef CM_RANDOM_POOL_H
#define CM_RANDOM_POOL_H

#include <stddef.h>
#include <stdint.h>

enum { CM_RANDOM_POOL_BYTES = 4096 };

/* Belongs to one thread. Zeroed memory is an empty pool. */
struct cm_random_pool {
    uint8_t bytes[CM_RANDOM_POOL_BYTES];
    size_t left; /* unused ones, at the end */
};

/* Public random bytes: IVs and nonces. 0, or -1 when the generator failed; then *ret_bytes is unchanged. No
 * byte is handed out twice. `length` is at most CM_RANDOM_POOL_BYTES. */
int cm_random_pool_take(struct cm_random_pool *pool, void *ret_bytes, size_t length)
    __attribute__((warn_unused_result));

/* Secret random bytes: keys and tokens. 0 or -1. Any thread. */
int cm_random_secret(void *ret_bytes, size_t length) __attribute__((warn_unused_result));

#endif
