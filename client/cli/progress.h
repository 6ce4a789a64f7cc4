/* SPDX-License-Identifier: Apache-2.0 */
/* A progress bar with rate on standard error, if that is a terminal and the work takes long enough to look.
 */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    bool shown; /* may be drawn */
    bool drawn; /* is on the screen */
    uint64_t total;
    double started_s, drawn_s;
};

/* `total` 0: it is not known and nothing is drawn. */
void progress_init(struct progress *progress, uint64_t total, bool quiet);
void progress_update(struct progress *progress, uint64_t bytes);
/* Leaves the screen at the start of a fresh line. */
void progress_done(struct progress *progress);

#endif
