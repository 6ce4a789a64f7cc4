/* SPDX-License-Identifier: Apache-2.0 */
/* How fast the project wants its kernels to be: times faster than OpenSSL's EVP, which holds on any machine
 * better than a time does. */
#ifndef CM_BENCH_GOALS_H
#define CM_BENCH_GOALS_H

#include "measure.h"

#include <stdio.h>

/* The widest implementation that dispatch may use for a mode: the level that `dispatch` is judged at. */
const char *bench_goals_level(const struct bench_mode *mode);

/* The least ratio to OpenSSL wanted of an implementation in a cell; 0: nothing is wanted. */
double bench_goal(const char *implementation, const struct bench_cell *cell);

/* The cell of goal number `index`, over all implementations; false past the end. */
bool bench_goals_cell(size_t index, struct bench_cell *ret_cell);

/* A line for people: what was measured, what was wanted, and how that ended. Returns whether it is within the
 * 5 % that are allowed for noise. */
bool bench_goals_judge(FILE *output, const struct bench_result *result);

#endif
