/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a plan: connects, loads, measures, verifies. */
#ifndef LOAD_H
#define LOAD_H

#include "keys.h"

/* CODE_OK if it could be run, whatever came of it (see result->code, mismatches); else an exit code, having
 * said why. The first error of a batch is said on standard error, the others are counted. SIGINT and SIGTERM
 * end a run early, with the result so far; a second one ends the process. */
int load_run(const struct plan *plan, const struct keys *keys, struct result *ret_result);
/* The exit code of a result: mismatches, errors, nothing verified. */
int load_code(const struct result *result);
/* Whether a signal has ended a run: the rest of a series is not wanted. */
bool load_interrupted(void);

#endif
