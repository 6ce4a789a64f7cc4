/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds on demand, so that another program can be timed in turn with the kernels: bench-kernels
 * --on-request. */
#ifndef CM_BENCH_REQUESTS_H
#define CM_BENCH_REQUESTS_H

#include "measure.h"

/* Prints `key`, `text` and `answer` of the cell's first message as lines with a word and hexadecimal digits,
 * a line with the word `ready`, and then for each line of standard input a line with a name and the
 * nanoseconds a message of each implementation. Returns how many implementations are wrong, and then takes no
 * requests. */
size_t bench_serve_requests(struct bench_measurement *measurement, const struct bench_cell *cell,
                            const struct bench_options *options);

#endif
