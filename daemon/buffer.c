/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for messages: buffers pooled by each worker, charged to one budget for the process. */
#include "buffer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void cm_buffer_touch(struct cm_buffer *buffer, size_t used)
{
    if (used > buffer->used)
        buffer->used = used;
    if (used > buffer->committed)
        buffer->committed = used;
}

/* CM_POOL_CLASSES for what is too large to be pooled. */
static unsigned class_of(size_t capacity)
{
    unsigned slot = 0;
    while (slot < CM_POOL_CLASSES && ((size_t)CM_POOL_SMALLEST << slot) < capacity)
        slot++;
    return slot;
}

static struct cm_buffer *buffer_new(size_t capacity)
{
    struct cm_buffer *buffer = calloc(1, sizeof *buffer);
    if (buffer == NULL)
        return NULL;
    void *data = mmap(NULL, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
        free(buffer);
        return NULL;
    }
    /* A huge page would commit 2 MiB for the first byte. Both pieces of advice may be refused: no harm. */
    (void)madvise(data, capacity, MADV_NOHUGEPAGE);
    (void)madvise(data, capacity, MADV_DONTDUMP);
    buffer->data = data;
    buffer->capacity = capacity;
    return buffer;
}

static void buffer_free(struct cm_buffer *buffer)
{
    munmap(buffer->data, buffer->capacity);
    free(buffer);
}

struct cm_buffer *cm_pool_take(struct cm_pool *pool, size_t capacity)
{
    unsigned slot = class_of(capacity);
    if (slot == CM_POOL_CLASSES) {
        size_t page = CM_POOL_SMALLEST;
        return capacity > SIZE_MAX - page ? NULL : buffer_new((capacity + page - 1) / page * page);
    }
    struct cm_buffer *buffer = pool->classes[slot];
    if (buffer == NULL)
        return buffer_new((size_t)CM_POOL_SMALLEST << slot);
    pool->classes[slot] = buffer->next;
    pool->kept -= buffer->committed;
    buffer->next = NULL;
    return buffer;
}

void cm_pool_put(struct cm_pool *pool, struct cm_buffer *buffer)
{
    if (buffer == NULL)
        return;
    explicit_bzero(buffer->data, buffer->used);
    buffer->used = 0;
    unsigned slot = class_of(buffer->capacity);
    if (slot == CM_POOL_CLASSES || pool->kept + buffer->committed > CM_POOL_KEEPS) {
        buffer_free(buffer);
        return;
    }
    pool->kept += buffer->committed;
    buffer->next = pool->classes[slot];
    pool->classes[slot] = buffer;
}

void cm_pool_done(struct cm_pool *pool)
{
    for (unsigned slot = 0; slot < CM_POOL_CLASSES; slot++) {
        while (pool->classes[slot] != NULL) {
            struct cm_buffer *buffer = pool->classes[slot];
            pool->classes[slot] = buffer->next;
            buffer_free(buffer);
        }
    }
    pool->kept = 0;
}

void cm_budget_init(struct cm_budget *budget, uint64_t limit, uint64_t reserve)
{
    atomic_init(&budget->used, 0);
    atomic_init(&budget->lent, false);
    budget->limit = limit;
    budget->reserve = reserve;
}

void cm_budget_charge(struct cm_budget *budget, uint64_t *charged, uint64_t now)
{
    /* Unsigned arithmetic wraps, so one addition serves both directions. */
    if (now != *charged)
        atomic_fetch_add_explicit(&budget->used, now - *charged, memory_order_relaxed);
    *charged = now;
}

uint64_t cm_budget_used(const struct cm_budget *budget)
{
    return atomic_load_explicit(&budget->used, memory_order_relaxed);
}

uint64_t cm_budget_room(const struct cm_budget *budget)
{
    uint64_t taken = cm_budget_used(budget) + budget->reserve;
    return taken < budget->limit ? budget->limit - taken : 0;
}

bool cm_budget_borrow(struct cm_budget *budget)
{
    return !atomic_exchange_explicit(&budget->lent, true, memory_order_relaxed);
}

bool cm_budget_is_lent(const struct cm_budget *budget)
{
    return atomic_load_explicit(&budget->lent, memory_order_relaxed);
}

void cm_budget_give_back(struct cm_budget *budget)
{
    atomic_store_explicit(&budget->lent, false, memory_order_relaxed);
}
