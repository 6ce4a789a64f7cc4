/* SPDX-License-Identifier: Apache-2.0 */
/* One script for gnuplot, with the data inside it, through a pipe. */
#include "plot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool bench_plot_possible(void)
{
    const char *path = getenv("PATH");
    while (path != NULL && *path != '\0') {
        int length = (int)strcspn(path, ":");
        char name[4096];
        int written = snprintf(name, sizeof name, "%.*s/gnuplot", length, path);
        if (written < (int)sizeof name && access(name, X_OK) == 0)
            return true;
        path += length + (path[length] == ':');
    }
    return false;
}

static bool same_panel(const struct bench_result *a, const struct bench_result *b)
{
    return a->cell.mode == b->cell.mode && a->cell.key_bits == b->cell.key_bits &&
           a->cell.padded == b->cell.padded && a->cell.padding == b->cell.padding;
}

static bool same_line(const struct bench_result *a, const struct bench_result *b)
{
    return same_panel(a, b) && strcmp(a->implementation, b->implementation) == 0;
}

/* Whether a result is the first of its panel or line. */
static bool first(const struct bench_result *results, size_t at,
                  bool (*same)(const struct bench_result *a, const struct bench_result *b))
{
    for (size_t i = 0; i < at; i++)
        if (same(&results[i], &results[at]))
            return false;
    return true;
}

/* A line keeps its colour in every panel and file. */
static const char *colour_of(const char *implementation)
{
    static const char *const colours[][2] = {
        {"openssl", "#7f7f7f"}, {"ipsecmb", "#bc8f00"}, {"dispatch", "#000000"}, {"portable", "#8c564b"},
        {"aesni", "#1f77b4"},   {"vaes256", "#2ca02c"}, {"vaes512", "#d62728"},
    };
    for (size_t i = 0; i < sizeof colours / sizeof *colours; i++)
        if (strcmp(colours[i][0], implementation) == 0)
            return colours[i][1];
    return "#9467bd";
}

static void write_panel(FILE *script, const struct bench_result *results, size_t count, size_t panel)
{
    const struct bench_cell *cell = &results[panel].cell;
    const char *comma = "";
    (void)fprintf(script, "set title 'AES-%zu %s%s'\nplot ", cell->key_bits, cell->mode->name,
                  cell->padded ? "" : ", contiguous");
    for (size_t i = panel; i < count; i++)
        if (same_panel(&results[panel], &results[i]) && first(results, i, same_line)) {
            (void)fprintf(script, "%s'-' with linespoints lc rgb '%s' dt %d pt 7 ps 0.4 lw %d title '%s'",
                          comma, colour_of(results[i].implementation),
                          strcmp(results[i].implementation, "dispatch") == 0 ? 3 : 1,
                          strcmp(results[i].implementation, "dispatch") == 0 ? 1 : 2,
                          results[i].implementation);
            comma = ", ";
        }
    (void)fprintf(script, "\n");
    for (size_t i = panel; i < count; i++) {
        if (!same_panel(&results[panel], &results[i]) || !first(results, i, same_line))
            continue;
        for (size_t j = i; j < count; j++)
            if (same_line(&results[i], &results[j]) && results[j].verified)
                (void)fprintf(script, "%zu %.4g\n", results[j].cell.lengths.low, results[j].gb_per_s);
        (void)fprintf(script, "e\n");
    }
}

bool bench_plot(const char *file, const struct bench_result *results, size_t count)
{
    enum { PANELS_A_ROW = 2, WIDTH = 560, HEIGHT = 320 };
    size_t panels = 0;
    for (size_t i = 0; i < count; i++)
        panels += first(results, i, same_panel);
    size_t columns = panels < PANELS_A_ROW ? panels : PANELS_A_ROW;
    size_t rows = (panels + PANELS_A_ROW - 1) / PANELS_A_ROW;
    FILE *script = strchr(file, '\'') == NULL ? popen("gnuplot", "w") : NULL;
    if (script == NULL || panels == 0) {
        (void)fprintf(stderr, "bench-kernels: can't draw %s\n", file);
        return false;
    }
    (void)fprintf(script,
                  "set terminal svg size %zu,%zu font 'sans-serif,11' background rgb 'white'\n"
                  "set output '%s'\n"
                  "set logscale x 2\nset yrange [0:*]\n"
                  "set xtics ('16' 16, '64' 64, '256' 256, '1K' 1024, '4K' 4096, '16K' 16384, '64K' 65536, "
                  "'256K' 262144, '1M' 1048576)\n"
                  "set xlabel 'bytes of a message'\nset ylabel 'GB/s'\nset grid\n"
                  "set key outside right center font ',9' samplen 2\n"
                  "set multiplot layout %zu,%zu\n",
                  columns * WIDTH, rows * HEIGHT, file, rows, columns);
    for (size_t i = 0; i < count; i++)
        if (first(results, i, same_panel))
            write_panel(script, results, count, i);
    (void)fprintf(script, "unset multiplot\n");
    if (pclose(script) == 0)
        return true;
    (void)fprintf(stderr, "bench-kernels: gnuplot did not draw %s\n", file);
    return false;
}
