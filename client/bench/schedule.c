/* SPDX-License-Identifier: Apache-2.0 */
/* Intended times, computed from the number and never from the time before: nothing adds up. */
#include "schedule.h"
#include <math.h>

void schedule_init(struct schedule *schedule, uint64_t start_ns, double rate, uint32_t connection,
                   uint32_t connections)
{
    *schedule = (struct schedule){
        .start_ns = start_ns, .interval_ns = 1e9 / rate, .next = connection, .stride = connections};
}

static uint64_t time_of(const struct schedule *schedule, uint64_t number)
{
    return schedule->start_ns + (uint64_t)((double)number * schedule->interval_ns);
}

uint64_t schedule_due(const struct schedule *schedule)
{
    return time_of(schedule, schedule->next);
}

void schedule_advance(struct schedule *schedule)
{
    schedule->next += schedule->stride;
}

uint64_t schedule_left(const struct schedule *schedule, uint64_t end_ns)
{
    double step_ns = schedule->interval_ns * schedule->stride;
    uint64_t due_ns = schedule_due(schedule);
    uint64_t count;

    if (due_ns >= end_ns)
        return 0;
    count = (uint64_t)ceil((double)(end_ns - due_ns) / step_ns);
    /* Rounding may have taken one too many. */
    if (count > 0 && time_of(schedule, schedule->next + (count - 1) * schedule->stride) >= end_ns)
        count--;
    return count;
}
