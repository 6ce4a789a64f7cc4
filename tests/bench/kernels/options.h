/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of bench-kernels. */
#ifndef CM_BENCH_OPTIONS_H
#define CM_BENCH_OPTIONS_H

#include "load.h"

enum { BENCH_MOST_WORDS = 32, BENCH_MOST_BYTES = 64 * 1024 * 1024 };

enum bench_format { BENCH_TEXT, BENCH_JSON, BENCH_CSV };

/* What is asked of the cells beside their figures. */
enum bench_task {
    BENCH_ROWS,    /* nothing */
    BENCH_GOALS,   /* held against the project's goals */
    BENCH_CHOICES, /* what dispatch chooses, against what is fastest */
    BENCH_REQUESTS /* a round for each line of standard input */
};

/* Where a count is zero, everything is wanted, or what the task needs. */
struct bench_options {
    const struct bench_mode *modes[BENCH_MOST_WORDS];
    const char *implementations[BENCH_MOST_WORDS];
    size_t sizes[BENCH_MOST_WORDS], bits[BENCH_MOST_WORDS], batches[BENCH_MOST_WORDS];
    size_t mode_count, implementation_count, size_count, bits_count, batch_count;
    struct bench_lengths random; /* high is 0: sizes count */
    bool padded, contiguous, per_block;
    enum cm_aes_padding padding;
    enum bench_format format;
    enum bench_task task;
    const char *plot; /* a file's name, or NULL */
    size_t rounds;    /* at most */
    double round_ns;  /* about so long for one implementation */
    double cell_ns;   /* fewer rounds where a cell would take longer */
};

/* Ends the program if there is something wrong, or if only help was wanted. Call after cm_aes_init. */
void bench_options_read(struct bench_options *ret_options, int argc, char **argv);

bool bench_options_want_mode(const struct bench_options *options, const struct bench_mode *mode);
bool bench_options_want_implementation(const struct bench_options *options, const char *name);

#endif
