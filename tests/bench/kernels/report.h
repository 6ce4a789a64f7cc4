/* SPDX-License-Identifier: Apache-2.0 */
/* Results of bench-kernels for people and for programs. */
#ifndef CM_BENCH_REPORT_H
#define CM_BENCH_REPORT_H

#include "measure.h"

#include <stdio.h>

/* Bytes of a message, or "LO-HI". Static memory, overwritten by the next call. */
const char *bench_size_text(const struct bench_cell *cell);

/* Rows go to standard output. */
void bench_report_begin(enum bench_format format);
void bench_report_row(enum bench_format format, const struct bench_result *result);
void bench_report_end(enum bench_format format);

#endif
