/* SPDX-License-Identifier: Apache-2.0 */
/* Time and the processor's name: what is the same on every architecture. */
#include "processor.h"

#include <stdio.h>
#include <time.h>

double bench_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

const char *bench_processor_name(void)
{
    static char name[256];
    char line[512];
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (name[0] == '\0' && file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "model name : %255[^\n]", name) != 1)
            (void)sscanf(line, "cpu : %255[^\n]", name);
    if (file != NULL)
        (void)fclose(file);
    return name[0] == '\0' ? "unknown" : name;
}
