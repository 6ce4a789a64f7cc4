/* SPDX-License-Identifier: Apache-2.0 */
/* Where nothing is known of the processor: no cycles, no limit. */
#include "processor.h"

double bench_cycle_ns(void)
{
    return 0;
}

double bench_limit_cycles(const char *implementation, const struct bench_cell *cell)
{
    (void)implementation;
    (void)cell;
    return 0;
}
