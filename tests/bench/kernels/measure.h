/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one cell of bench-kernels: every implementation on the same batch, first compared with OpenSSL, then
 * timed in turn. */
#ifndef CM_BENCH_MEASURE_H
#define CM_BENCH_MEASURE_H

#include "options.h"
#include "reference.h"

enum { BENCH_MOST_ENTRIES = 16, BENCH_MOST_ROUNDS = 101, BENCH_KEY_COPIES = 8 };

/* One implementation in the cell; exactly one of `openssl`, `ipsecmb` and `keys` is set. */
struct bench_entry {
    const char *name; /* "openssl", "ipsecmb", "dispatch" or a kernel's */
    bool per_block;   /* a call for each block of each message */
    struct bench_openssl *openssl;
    struct bench_ipsecmb *ipsecmb;
    /* A short call's time depends on where its key lies, as lines of the cache go: rounds take turns among
     * copies, so that no implementation keeps a bad place. */
    struct cm_aes_key *keys[BENCH_KEY_COPIES];
    size_t turns; /* over the batch in each round */
    bool verified;
    double ns[BENCH_MOST_ROUNDS]; /* a message, by round */
    double cycles[BENCH_MOST_ROUNDS];
};

struct bench_measurement {
    struct bench_load load;
    struct bench_entry entries[BENCH_MOST_ENTRIES]; /* OpenSSL is the first */
    size_t count, rounds;
};

/* What came out for one implementation in one cell. Medians over the rounds; a ratio is the median of the
 * rounds' ratios. 0 stands for what is not known. */
struct bench_result {
    char implementation[48];
    const char *kernel; /* of "dispatch": which implementation's kernel runs; else "" */
    struct bench_cell cell;
    double ns_per_message, gb_per_s, cycles_per_byte, ratio_openssl, ratio_ipsecmb, limit_fraction;
    double spread; /* the middle half of the rounds, as a part of the median */
    double goal;   /* the least ratio_openssl that the project wants */
    bool verified;
};

/* Makes the batch and the keys, and compares what everybody makes of it; who is wrong is not timed. Says so
 * on standard error and returns how many are. */
size_t bench_open(struct bench_measurement *measurement, const struct bench_cell *cell,
                  const struct bench_options *options);
void bench_round(struct bench_measurement *measurement, size_t round);
void bench_close(struct bench_measurement *measurement);

/* All of a cell: `ret_results` has room for BENCH_MOST_ENTRIES. Returns how many there are. */
size_t bench_run_cell(struct bench_measurement *measurement, const struct bench_cell *cell,
                      const struct bench_options *options, struct bench_result *ret_results);

#endif
