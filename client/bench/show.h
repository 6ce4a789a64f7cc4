/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what came of a plan: as text, JSON, or CSV. */
#ifndef SHOW_H
#define SHOW_H

#include "json.h"
#include "plan.h"

void show_text(const struct plan *plan, const struct result *result);
/* One object. */
void show_json(struct json *json, const struct plan *plan, const struct result *result);
/* A line of column names, and a line of values. */
void show_csv_head(void);
void show_csv(const struct plan *plan, const struct result *result);

/* The processor, from /proc/cpuinfo; "unknown" if it doesn't say. */
const char *show_cpu(void);
/* The implementations that the plan's batches ran on: one name, or "mixed"; "unknown" if not told. */
const char *show_implementation(const struct plan *plan, const struct result *result);

#endif
