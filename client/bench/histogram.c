/* SPDX-License-Identifier: Apache-2.0 */
/* A log-linear histogram. */
#include "histogram.h"
#include <math.h>
#include <stddef.h>

static size_t bucket_of(uint64_t value)
{
    unsigned shift;

    if (value < HISTOGRAM_EXACT)
        return (size_t)value;
    if (value >> HISTOGRAM_TOP != 0)
        return HISTOGRAM_BUCKETS - 1;
    shift = 63 - (unsigned)__builtin_clzll(value) - HISTOGRAM_BITS;
    /* value >> shift lies in [STEPS, 2 * STEPS): the top bit counts as one more row of steps. */
    return (size_t)shift * HISTOGRAM_STEPS + (size_t)(value >> shift);
}

static uint64_t middle_of(size_t bucket)
{
    size_t shift;
    uint64_t low;

    if (bucket < HISTOGRAM_EXACT)
        return bucket;
    shift = bucket / HISTOGRAM_STEPS - 1;
    low = (uint64_t)(bucket - shift * HISTOGRAM_STEPS) << shift;
    return low + (((uint64_t)1 << shift) >> 1);
}

void histogram_add(struct histogram *histogram, uint64_t value)
{
    histogram->count++;
    if (value > histogram->max)
        histogram->max = value;
    histogram->buckets[bucket_of(value)]++;
}

void histogram_merge(struct histogram *histogram, const struct histogram *from)
{
    histogram->count += from->count;
    if (from->max > histogram->max)
        histogram->max = from->max;
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        histogram->buckets[i] += from->buckets[i];
}

uint64_t histogram_percentile(const struct histogram *histogram, double part)
{
    uint64_t rank = (uint64_t)ceil(part * (double)histogram->count);
    uint64_t seen = 0;

    if (histogram->count == 0)
        return 0;
    if (rank == 0)
        rank = 1;
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += histogram->buckets[i];
        if (seen >= rank) {
            uint64_t middle = middle_of(i);
            return i == HISTOGRAM_BUCKETS - 1 || middle > histogram->max ? histogram->max : middle;
        }
    }
    return histogram->max;
}
