/* SPDX-License-Identifier: Apache-2.0 */
/* In every round OpenSSL and all implementations are timed one after the other, so that what else the machine
 * does hits them alike. */
#include "measure.h"
#include "processor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char *what, const char *which)
{
    (void)fprintf(stderr, "bench-kernels: %s%s\n", which, what);
    exit(2);
}

/* --- Running ---------------------------------------------------------------------------------------------
 */

/* Padding goes with the last call alone: of a last block when decrypting, of what is left, if only nothing,
 * when encrypting. */
static bool run_per_block(const struct bench_load *load, const struct cm_aes_key *key)
{
    bool pads = load->cell.padding == CM_AES_PKCS7;
    bool keeps = pads && load->cell.mode->direction == CM_AES_DECRYPT;
    size_t failed = 0;
    for (size_t i = 0; i < load->cell.batch; i++) {
        const struct cm_aes_item *item = &load->items[i];
        size_t whole = (keeps ? item->length - 1 : item->length) / 16 * 16, at = 0;
        for (; at < whole; at += 16) {
            struct cm_aes_item block = {
                .source = item->source + at, .destination = item->destination + at, .length = 16};
            failed += cm_aes_batch(key, CM_AES_NO_PADDING, &block, 1);
        }
        struct cm_aes_item last = {
            .source = item->source + at, .destination = item->destination + at, .length = item->length - at};
        if (pads)
            failed += cm_aes_batch(key, CM_AES_PKCS7, &last, 1);
    }
    return failed == 0;
}

static bool run(struct bench_load *load, const struct bench_entry *entry, size_t round)
{
    const struct cm_aes_key *key = entry->keys[round % BENCH_KEY_COPIES];
    if (entry->openssl != NULL)
        return bench_openssl_run(entry->openssl, load->items, load->cell.batch);
    if (entry->ipsecmb != NULL)
        return bench_ipsecmb_run(entry->ipsecmb);
    if (entry->per_block)
        return run_per_block(load, key);
    return cm_aes_batch(key, load->cell.padding, load->items, load->cell.batch) == 0;
}

static double time_turns(struct bench_load *load, const struct bench_entry *entry, size_t turns, size_t round)
{
    double start = bench_now_ns();
    for (size_t i = 0; i < turns; i++)
        if (!run(load, entry, round))
            die(" fails while it is timed", entry->name);
    return (bench_now_ns() - start) / (double)turns;
}

/* --- Opening ---------------------------------------------------------------------------------------------
 */

static struct bench_entry *add(struct bench_measurement *measurement, const char *name)
{
    if (measurement->count == BENCH_MOST_ENTRIES)
        die(": one implementation too many", name);
    struct bench_entry *entry = &measurement->entries[measurement->count++];
    *entry = (struct bench_entry){.name = name};
    return entry;
}

static void add_kernel(struct bench_measurement *measurement, const char *name, const struct cm_aes_row *row,
                       bool per_block)
{
    struct bench_entry *entry = add(measurement, name);
    entry->per_block = per_block;
    for (size_t i = 0; i < BENCH_KEY_COPIES; i++) {
        entry->keys[i] = aligned_alloc(CM_AES_KEY_ALIGN, cm_aes_key_size(row));
        if (entry->keys[i] == NULL || cm_aes_key_init(entry->keys[i], row, measurement->load.key,
                                                      measurement->load.key_length) != CM_AES_OK)
            die(" takes no key", name);
    }
}

static void add_kernels(struct bench_measurement *measurement, const char *name, const struct cm_aes_row *row,
                        const struct bench_options *options)
{
    if (row == NULL || !bench_options_want_implementation(options, name))
        return;
    add_kernel(measurement, name, row, false);
    if (options->per_block && measurement->load.cell.mode->mode == CM_AES_ECB)
        add_kernel(measurement, name, row, true);
}

static void add_entries(struct bench_measurement *measurement, const struct bench_options *options)
{
    const struct bench_mode *mode = measurement->load.cell.mode;
    add(measurement, "openssl")->openssl = bench_openssl_new(&measurement->load.cell, measurement->load.key);
    struct bench_ipsecmb *ipsecmb =
        options->task == BENCH_CHOICES ? NULL : bench_ipsecmb_new(&measurement->load);
    if (ipsecmb != NULL)
        add(measurement, "ipsecmb")->ipsecmb = ipsecmb;
    add_kernels(measurement, "dispatch", cm_aes_row(mode->mode, mode->direction), options);
    struct cm_aes_implementation known;
    for (size_t i = 0; cm_aes_implementation(i, mode->mode, mode->direction, &known); i++)
        add_kernels(measurement, known.name, cm_aes_row_named(mode->mode, mode->direction, known.name),
                    options);
}

size_t bench_open(struct bench_measurement *measurement, const struct bench_cell *cell,
                  const struct bench_options *options)
{
    struct bench_load *load = &measurement->load;
    size_t wrong = 0;
    double turn_ns = 0;
    measurement->count = 0;
    bench_load_init(load, cell);
    add_entries(measurement, options);
    for (size_t i = 0; i < measurement->count; i++) {
        struct bench_entry *entry = &measurement->entries[i];
        bench_load_spoil(load);
        entry->verified = run(load, entry, 0) && bench_load_is_right(load);
        if (!entry->verified) {
            (void)fprintf(stderr, "bench-kernels: %s, %s: not OpenSSL's answer\n", entry->name,
                          cell->mode->name);
            wrong++;
            continue;
        }
        double once = time_turns(load, entry, 1, 0);
        entry->turns = 1 + (size_t)(options->round_ns / once);
        turn_ns += once * (double)entry->turns;
    }
    size_t affordable = (size_t)(options->cell_ns / turn_ns);
    measurement->rounds = affordable < options->rounds ? affordable : options->rounds;
    if (measurement->rounds < 5)
        measurement->rounds = options->rounds < 5 ? options->rounds : 5;
    return wrong;
}

void bench_close(struct bench_measurement *measurement)
{
    for (size_t i = 0; i < measurement->count; i++) {
        struct bench_entry *entry = &measurement->entries[i];
        if (entry->openssl != NULL)
            bench_openssl_free(entry->openssl);
        if (entry->ipsecmb != NULL)
            bench_ipsecmb_free(entry->ipsecmb);
        for (size_t j = 0; j < BENCH_KEY_COPIES && entry->keys[j] != NULL; j++) {
            cm_aes_key_done(entry->keys[j]);
            free(entry->keys[j]);
        }
    }
    bench_load_done(&measurement->load);
}

/* --- Rounds and what comes of them -----------------------------------------------------------------------
 */

void bench_round(struct bench_measurement *measurement, size_t round)
{
    double cycle = bench_cycle_ns();
    for (size_t i = 0; i < measurement->count; i++) {
        struct bench_entry *entry = &measurement->entries[i];
        if (!entry->verified)
            continue;
        entry->ns[round] =
            time_turns(&measurement->load, entry, entry->turns, round) / (double)measurement->load.cell.batch;
        entry->cycles[round] = cycle > 0 ? entry->ns[round] / cycle : 0;
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* `at` is from 0 to 1. */
static double quantile(const double *values, size_t count, double at)
{
    double sorted[BENCH_MOST_ROUNDS];
    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare);
    return sorted[(size_t)((double)(count - 1) * at + 0.5)];
}

/* How many times faster than `other`. */
static double ratio_to(const struct bench_entry *entry, const struct bench_entry *other, size_t rounds)
{
    double ratios[BENCH_MOST_ROUNDS];
    if (other == NULL || !other->verified)
        return 0;
    for (size_t i = 0; i < rounds; i++)
        ratios[i] = other->ns[i] / entry->ns[i];
    return quantile(ratios, rounds, 0.5);
}

static void evaluate(const struct bench_measurement *measurement, const struct bench_entry *entry,
                     struct bench_result *ret_result)
{
    const struct bench_cell *cell = &measurement->load.cell;
    const struct bench_entry *openssl = &measurement->entries[0];
    const struct bench_entry *ipsecmb = measurement->entries[1].ipsecmb != NULL ? openssl + 1 : NULL;
    size_t rounds = measurement->rounds;
    *ret_result = (struct bench_result){.cell = *cell, .verified = entry->verified, .kernel = ""};
    (void)snprintf(ret_result->implementation, sizeof ret_result->implementation, "%s%s", entry->name,
                   entry->per_block ? "-per-block" : "");
    if (strcmp(entry->name, "dispatch") == 0)
        ret_result->kernel = cm_aes_row_name(cm_aes_row(cell->mode->mode, cell->mode->direction),
                                             cm_aes_size_class(measurement->load.items, cell->batch));
    if (!entry->verified)
        return;
    double bytes = (double)measurement->load.bytes / (double)cell->batch;
    double ns = quantile(entry->ns, rounds, 0.5);
    ret_result->ns_per_message = ns;
    ret_result->spread = (quantile(entry->ns, rounds, 0.75) - quantile(entry->ns, rounds, 0.25)) / ns;
    ret_result->gb_per_s = bytes / ns;
    ret_result->cycles_per_byte = quantile(entry->cycles, rounds, 0.5) / bytes;
    ret_result->ratio_openssl = ratio_to(entry, openssl, rounds);
    ret_result->ratio_ipsecmb = ratio_to(entry, ipsecmb, rounds);
    const char *width = ret_result->kernel[0] == '\0' ? entry->name : ret_result->kernel;
    if (ret_result->cycles_per_byte > 0)
        ret_result->limit_fraction = bench_limit_cycles(width, cell) / ret_result->cycles_per_byte;
}

size_t bench_run_cell(struct bench_measurement *measurement, const struct bench_cell *cell,
                      const struct bench_options *options, struct bench_result *ret_results)
{
    bench_open(measurement, cell, options);
    for (size_t round = 0; round < measurement->rounds; round++)
        bench_round(measurement, round);
    for (size_t i = 0; i < measurement->count; i++)
        evaluate(measurement, &measurement->entries[i], &ret_results[i]);
    bench_close(measurement);
    return measurement->count;
}
