/* SPDX-License-Identifier: Apache-2.0 */
/* One line each on stderr, with level and time; for the journal, with its priority prefix. Any thread. */
#ifndef CM_LOG_H
#define CM_LOG_H

#include <stdatomic.h>
#include <stdint.h>

/* syslog's numbers, which the journal's prefix uses too. */
enum cm_log_level { CM_LOG_ERROR = 3, CM_LOG_WARNING = 4, CM_LOG_INFO = 6, CM_LOG_DEBUG = 7 };

/* Before any other thread starts. Lines less grave than `threshold` are dropped. */
void cm_log_init(enum cm_log_level threshold);

/* Writes one line; control characters (a peer may have chosen part of the text) become '?'. Never key bytes.
 */
void cm_log(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* For what a peer can cause as often as it likes: one line every ten seconds from each `limit` (static,
 * zeroed), which says how many were left out since the last one. */
struct cm_log_limit {
    _Atomic uint64_t next_ms;
    _Atomic uint32_t dropped;
};
void cm_log_limited(struct cm_log_limit *limit, int level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* "error", "warning", "info", "debug"; NULL for another number. */
const char *cm_log_level_name(int level);
/* The level of that name, or -1. */
int cm_log_level_find(const char *name);

#endif
