/* SPDX-License-Identifier: Apache-2.0 */
/* Draws a progress bar. */
#include "progress.h"
#include "text.h"
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* Seconds before the first drawing and between two. */
static const double wait_s = 0.3;
static const double every_s = 0.1;
enum { BAR = 30 };

static double seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void progress_init(struct progress *progress, uint64_t total, bool quiet)
{
    *progress = (struct progress){.shown = !quiet && total > 0 && isatty(STDERR_FILENO) == 1, .total = total};
    progress->started_s = seconds_now();
    progress->drawn_s = progress->started_s + wait_s - every_s;
}

static void draw(const struct progress *progress, uint64_t bytes, double elapsed_s)
{
    double part = bytes >= progress->total ? 1 : (double)bytes / (double)progress->total;
    int filled = (int)(part * BAR);
    char done[TEXT_BYTES_MAX];
    char total[TEXT_BYTES_MAX];
    char rate[TEXT_BYTES_MAX];
    char bar[BAR + 1] = "";

    for (int i = 0; i < BAR; i++)
        bar[i] = i < filled ? '#' : '.';
    text_format_bytes((double)bytes, done);
    text_format_bytes((double)progress->total, total);
    text_format_bytes(elapsed_s > 0 ? (double)bytes / elapsed_s : 0, rate);
    fprintf(stderr, "\r[%s] %3.0f %%  %s of %s  %s/s\x1b[K", bar, part * 100, done, total, rate);
    fflush(stderr);
}

void progress_update(struct progress *progress, uint64_t bytes)
{
    double now_s;

    if (!progress->shown)
        return;
    now_s = seconds_now();
    if (now_s - progress->drawn_s < every_s && !(progress->drawn && bytes >= progress->total))
        return;
    progress->drawn_s = now_s;
    progress->drawn = true;
    draw(progress, bytes, now_s - progress->started_s);
}

void progress_done(struct progress *progress)
{
    if (progress->drawn)
        fputc('\n', stderr);
    progress->drawn = false;
    progress->shown = false;
}
