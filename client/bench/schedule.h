/* SPDX-License-Identifier: Apache-2.0 */
/* When the batches of an open loop are meant to start, whatever became of those before them.
 *
 * The batches of the whole run are numbered; number n starts n / rate after the beginning, and connection c
 * of C has the numbers c, c + C, c + 2C, ... */
#ifndef SCHEDULE_H
#define SCHEDULE_H

#include <stdint.h>

struct schedule {
    uint64_t start_ns;
    double interval_ns; /* between two batches of the whole run */
    uint64_t next;      /* number of this connection's next batch */
    uint32_t stride;    /* C */
};

void schedule_init(struct schedule *schedule, uint64_t start_ns, double rate, uint32_t connection,
                   uint32_t connections);
/* The intended time of the next batch. */
uint64_t schedule_due(const struct schedule *schedule);
/* The next batch has been sent. */
void schedule_advance(struct schedule *schedule);
/* How many of this connection's batches from the next one on are due before `end_ns`. */
uint64_t schedule_left(const struct schedule *schedule, uint64_t end_ns);

#endif
