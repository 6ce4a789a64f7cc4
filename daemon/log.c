/* SPDX-License-Identifier: Apache-2.0 */
/* One line each on stderr, with level and time; for the journal, with its priority prefix. */
#include "log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES = 1024, LIMIT_INTERVAL_MS = 10000 };

static int threshold = CM_LOG_INFO;
static bool for_journal;

static const struct {
    int level;
    const char *name;
} names[] = {
    {CM_LOG_ERROR, "error"}, {CM_LOG_WARNING, "warning"}, {CM_LOG_INFO, "info"}, {CM_LOG_DEBUG, "debug"}};

const char *cm_log_level_name(int level)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].level == level)
            return names[i].name;
    return NULL;
}

int cm_log_level_find(const char *name)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i].name, name) == 0)
            return names[i].level;
    return -1;
}

void cm_log_init(enum cm_log_level least_grave)
{
    threshold = (int)least_grave;
    for_journal = getenv("JOURNAL_STREAM") != NULL;
}

static size_t put_prefix(char *line, size_t capacity, int level)
{
    int length;
    if (for_journal) {
        length = snprintf(line, capacity, "<%d>", level);
    } else {
        struct timespec now;
        struct tm broken;
        char stamp[32];
        clock_gettime(CLOCK_REALTIME, &now);
        gmtime_r(&now.tv_sec, &broken);
        (void)strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &broken);
        const char *name = cm_log_level_name(level);
        length =
            snprintf(line, capacity, "%s.%03ldZ %s: ", stamp, now.tv_nsec / 1000000, name ? name : "log");
    }
    return length > 0 ? (size_t)length : 0;
}

__attribute__((format(printf, 3, 0))) static void write_line(int level, uint32_t dropped, const char *format,
                                                             va_list arguments)
{
    char line[LINE_BYTES];
    size_t used = put_prefix(line, sizeof line, level);
    size_t room = sizeof line - used - 1;
    int length = vsnprintf(line + used, room, format, arguments);
    if (length < 0)
        return;
    size_t end = used + ((size_t)length < room ? (size_t)length : room - 1);
    if (dropped != 0 && end < sizeof line - 2) {
        length = snprintf(line + end, sizeof line - 1 - end, " (%u more like this)", dropped);
        end = (size_t)length < sizeof line - 1 - end ? end + (size_t)length : sizeof line - 2;
    }
    for (size_t i = used; i < end; i++)
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
            line[i] = '?';
    line[end++] = '\n';
    /* One write a line, so that lines of several threads do not mix. Nothing can be done if stderr is gone.
     */
    ssize_t ignored = write(STDERR_FILENO, line, end);
    (void)ignored;
}

void cm_log(int level, const char *format, ...)
{
    if (level > threshold)
        return;
    va_list arguments;
    va_start(arguments, format);
    write_line(level, 0, format, arguments);
    va_end(arguments);
}

void cm_log_limited(struct cm_log_limit *limit, int level, const char *format, ...)
{
    if (level > threshold)
        return;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t now_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    uint64_t next_ms = atomic_load_explicit(&limit->next_ms, memory_order_relaxed);
    if (now_ms < next_ms ||
        !atomic_compare_exchange_strong_explicit(&limit->next_ms, &next_ms, now_ms + LIMIT_INTERVAL_MS,
                                                 memory_order_relaxed, memory_order_relaxed)) {
        atomic_fetch_add_explicit(&limit->dropped, 1, memory_order_relaxed);
        return;
    }
    uint32_t dropped = atomic_exchange_explicit(&limit->dropped, 0, memory_order_relaxed);
    va_list arguments;
    va_start(arguments, format);
    write_line(level, dropped, format, arguments);
    va_end(arguments);
}
