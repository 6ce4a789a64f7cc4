/* SPDX-License-Identifier: Apache-2.0 */
/* Draws results of bench-kernels with gnuplot. */
#ifndef CM_BENCH_PLOT_H
#define CM_BENCH_PLOT_H

#include "measure.h"

/* Whether gnuplot is in PATH. */
bool bench_plot_possible(void);

/* Throughput against size, whose axis is logarithmic: a panel for each mode, key length and stride, a line
 * for each implementation. Writes an SVG to `file`; false, having said why, if that failed. */
bool bench_plot(const char *file, const struct bench_result *results, size_t count);

#endif
