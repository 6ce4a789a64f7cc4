/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines: milliseconds of the monotonic clock, which no change of the wall clock moves. */
#ifndef CM_CLIENT_CLOCK_H
#define CM_CLIENT_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t cm_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* What poll() takes to wait until the deadline: 0 when it has passed. */
static inline int cm_left_ms(int64_t deadline_ms)
{
    int64_t left = deadline_ms - cm_now_ms();
    if (left <= 0)
        return 0;
    return left > 3600000 ? 3600000 : (int)left;
}

#endif
