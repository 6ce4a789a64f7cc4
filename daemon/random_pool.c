/* SPDX-License-Identifier: Apache-2.0 */
/* Random bytes in bulk for IVs, and singly for secrets. */
#include "random_pool.h"

#include <assert.h>
#include <openssl/rand.h>
#include <string.h>

int cm_random_pool_take(struct cm_random_pool *pool, void *ret_bytes, size_t length)
{
    assert(length <= CM_RANDOM_POOL_BYTES);
    if (pool->left < length) {
        if (RAND_bytes(pool->bytes, CM_RANDOM_POOL_BYTES) != 1) {
            pool->left = 0; /* what stands in the pool now is of unknown quality */
            return -1;
        }
        pool->left = CM_RANDOM_POOL_BYTES;
    }
    memcpy(ret_bytes, pool->bytes + CM_RANDOM_POOL_BYTES - pool->left, length);
    pool->left -= length;
    return 0;
}

int cm_random_secret(void *ret_bytes, size_t length)
{
    assert(length <= INT32_MAX);
    return RAND_priv_bytes(ret_bytes, (int)length) == 1 ? 0 : -1;
}
