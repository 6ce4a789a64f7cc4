/* SPDX-License-Identifier: Apache-2.0 */
/* Whether dispatch chooses what is fastest on this processor: bench-kernels --dispatch. */
#ifndef CM_BENCH_CHOICES_H
#define CM_BENCH_CHOICES_H

#include "measure.h"

#include <stdio.h>

/* The sizes and batches around the size classes' borders that are looked at where none are asked for. */
extern const size_t bench_choices_sizes[], bench_choices_batches[];
extern const size_t bench_choices_size_count, bench_choices_batch_count;

/* A line for people from a cell's results: the fastest implementation that dispatch may use, what it uses,
 * and how much slower that is. Returns whether it is within 5 %. */
bool bench_choices_judge(FILE *output, const struct bench_result *results, size_t count);

#endif
