/* SPDX-License-Identifier: Apache-2.0 */
/* What bench-kernels knows of the processor: its clock, and how fast its AES instructions could be at best.
 */
#ifndef CM_BENCH_PROCESSOR_H
#define CM_BENCH_PROCESSOR_H

#include "load.h"

double bench_now_ns(void);

/* Nanoseconds in a cycle of this core now, or 0 where there is no chain of instructions of known latency. */
double bench_cycle_ns(void);

/* The processor's name as the operating system shows it. */
const char *bench_processor_name(void);

/* Cycles a byte that the bare AES instructions of a cell, and the carry-less multiplications with them, take
 * on this core at an implementation's register width: measured, with nothing loaded or stored. 0: unknown. */
double bench_limit_cycles(const char *implementation, const struct bench_cell *cell);

#endif
