/* SPDX-License-Identifier: Apache-2.0 */
/* Counts latencies in buckets that grow with the value, so that any percentile is exact to about 3 %. */
#ifndef HISTOGRAM_H
#define HISTOGRAM_H

#include <stdint.h>

/* Values below HISTOGRAM_EXACT have a bucket each; from there on every doubling has HISTOGRAM_STEPS, so a
 * bucket is at most 1/32 of its value wide. 2^40 ns is 18 minutes; what is larger goes to the last bucket. */
enum { HISTOGRAM_BITS = 5, HISTOGRAM_STEPS = 1 << HISTOGRAM_BITS, HISTOGRAM_TOP = 40 };
enum { HISTOGRAM_EXACT = 2 * HISTOGRAM_STEPS };
enum { HISTOGRAM_BUCKETS = (HISTOGRAM_TOP - HISTOGRAM_BITS + 1) * HISTOGRAM_STEPS };

struct histogram {
    uint64_t count, max;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *histogram, uint64_t value);
/* Adds all of `from`. */
void histogram_merge(struct histogram *histogram, const struct histogram *from);
/* The value that `part` (0 to 1) of all values do not exceed: the middle of its bucket, never more than max.
 * 0 if nothing was counted. */
uint64_t histogram_percentile(const struct histogram *histogram, double part);

#endif
