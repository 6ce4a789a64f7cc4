/* SPDX-License-Identifier: Apache-2.0 */
/* bench-kernels: how fast the kernels are beside OpenSSL's EVP and IPSec-MB.
 *
 * A cell is a mode with its direction, a key length, a message size, a batch and a stride. In every cell each
 * implementation's output is first compared with OpenSSL's; then all are timed in turn. */
#include "choices.h"
#include "goals.h"
#include "plot.h"
#include "processor.h"
#include "report.h"
#include "requests.h"

#include <stdlib.h>
#include <string.h>

/* Fits the caches that the size itself fits; CBC encryption needs many messages for its lanes. */
static size_t batch_of(const struct bench_mode *mode, struct bench_lengths lengths)
{
    if (lengths.high <= 4096 || lengths.high > lengths.low)
        return 64;
    bool chained = mode->mode == CM_AES_CBC && mode->direction == CM_AES_ENCRYPT;
    return lengths.high <= 65536 || chained ? 16 : 4;
}

static struct bench_measurement measurement;
static bool good = true; /* nothing wrong, and nothing short of what the task wants */

/* Results that --plot draws. */
static struct {
    struct bench_result *results;
    size_t count, room;
} kept;

static void keep(const struct bench_result *results, size_t count)
{
    if (kept.count + count > kept.room) {
        kept.room = 2 * kept.room + BENCH_MOST_ENTRIES;
        kept.results = realloc(kept.results, kept.room * sizeof *kept.results);
        if (kept.results == NULL)
            abort();
    }
    memcpy(kept.results + kept.count, results, count * sizeof *results);
    kept.count += count;
}

/* Judgements are for people: beside rows for programs they go to standard error. */
static FILE *judgements(const struct bench_options *options)
{
    return options->format == BENCH_TEXT ? stdout : stderr;
}

static void run(const struct bench_options *options, const struct bench_cell *cell)
{
    struct bench_result results[BENCH_MOST_ENTRIES];
    if (cell->mode->mode == CM_AES_XTS && cell->key_bits == 192)
        return;
    size_t count = bench_run_cell(&measurement, cell, options, results);
    for (size_t i = 0; i < count; i++) {
        good &= results[i].verified;
        if (options->task == BENCH_GOALS)
            results[i].goal = bench_goal(results[i].implementation, cell);
        if (options->task == BENCH_ROWS || options->format != BENCH_TEXT)
            bench_report_row(options->format, &results[i]);
        if (results[i].goal > 0)
            good &= bench_goals_judge(judgements(options), &results[i]);
    }
    if (options->task == BENCH_CHOICES)
        good &= bench_choices_judge(judgements(options), results, count);
    if (options->plot != NULL)
        keep(results, count);
}

static void run_strides(const struct bench_options *options, struct bench_cell cell)
{
    while (cell.batch > 1 && cell.batch * (cell.lengths.high + 256) > BENCH_MOST_BYTES)
        cell.batch /= 2;
    for (int padded = 1; padded >= 0; padded--) {
        cell.padded = padded;
        if (padded ? options->padded : options->contiguous)
            run(options, &cell);
    }
}

static void run_batches(const struct bench_options *options, const struct bench_mode *mode, size_t bits,
                        struct bench_lengths lengths)
{
    struct bench_cell cell = {
        .mode = mode, .key_bits = bits, .lengths = lengths, .padding = options->padding};
    size_t own = batch_of(mode, lengths), count = 1;
    const size_t *batches = &own;
    if (options->batch_count > 0) {
        batches = options->batches;
        count = options->batch_count;
    } else if (options->task == BENCH_CHOICES) {
        batches = bench_choices_batches;
        count = bench_choices_batch_count;
    }
    for (size_t i = 0; i < count; i++) {
        cell.batch = batches[i];
        run_strides(options, cell);
    }
}

static void run_sizes(const struct bench_options *options, const struct bench_mode *mode, size_t bits)
{
    static const size_t usual[] = {16, 64, 256, 1024, 4096, 16384, 65536, 1048576};
    const size_t *sizes = usual;
    size_t count = sizeof usual / sizeof *usual;
    if (options->random.high > 0) {
        run_batches(options, mode, bits, options->random);
        return;
    }
    if (options->size_count > 0) {
        sizes = options->sizes;
        count = options->size_count;
    } else if (options->task == BENCH_CHOICES) {
        sizes = bench_choices_sizes;
        count = bench_choices_size_count;
    }
    for (size_t i = 0; i < count; i++)
        run_batches(options, mode, bits, (struct bench_lengths){sizes[i], sizes[i]});
}

static bool wanted_bits(const struct bench_options *options, size_t bits)
{
    for (size_t i = 0; i < options->bits_count; i++)
        if (options->bits[i] == bits)
            return true;
    return options->bits_count == 0 && bits != 192;
}

static void run_modes(const struct bench_options *options)
{
    for (size_t i = 0; i < bench_mode_count; i++)
        for (size_t bits = 128; bits <= 256; bits += 64)
            if (bench_options_want_mode(options, &bench_modes[i]) && wanted_bits(options, bits))
                run_sizes(options, &bench_modes[i], bits);
}

/* The goals' own cells, as far as they are among what was asked for. */
static void run_goals(struct bench_options *options)
{
    if (options->implementation_count == 0)
        options->implementations[options->implementation_count++] = "dispatch";
    struct bench_cell cell;
    size_t judged = 0;
    for (size_t i = 0; bench_goals_cell(i, &cell); i++) {
        bool wanted = bench_options_want_mode(options, cell.mode) && wanted_bits(options, cell.key_bits);
        bool has_goal = false;
        for (size_t j = 0; j < options->implementation_count; j++)
            has_goal |= bench_goal(options->implementations[j], &cell) > 0;
        if (!wanted || !has_goal)
            continue;
        run(options, &cell);
        judged++;
    }
    if (judged == 0) {
        (void)fputs("bench-kernels: nothing is wanted of these implementations in these modes\n", stderr);
        exit(2);
    }
}

static void serve(const struct bench_options *options)
{
    struct bench_lengths lengths = {options->sizes[0], options->sizes[0]};
    struct bench_cell cell = {.mode = options->modes[0],
                              .key_bits = options->bits[0],
                              .lengths = lengths,
                              .padded = options->padded,
                              .padding = options->padding};
    cell.batch = options->batch_count > 0 ? options->batches[0] : batch_of(cell.mode, lengths);
    good = bench_serve_requests(&measurement, &cell, options) == 0;
}

static void introduce(FILE *output)
{
    const char *reason, *version = bench_ipsecmb_version(&reason);
    double cycle = bench_cycle_ns();
    (void)fprintf(output, "processor: %s", bench_processor_name());
    if (cycle > 0)
        (void)fprintf(output, ", %.2f GHz measured", 1 / cycle);
    (void)fprintf(output, "\nIPSec-MB: %s\n", version == NULL ? reason : version);
}

int main(int argc, char **argv)
{
    static struct bench_options options;
    if (cm_aes_init(getenv("CIPHERMILL_CPU")) != CM_AES_OK) {
        (void)fputs("bench-kernels: no implementation passes its self-test\n", stderr);
        return 2;
    }
    bench_options_read(&options, argc, argv);
    if (options.plot != NULL && !bench_plot_possible()) {
        (void)fputs("bench-kernels: --plot takes gnuplot, which is not in PATH\n", stderr);
        return 2;
    }
    if (options.task == BENCH_REQUESTS) {
        serve(&options);
        return good ? 0 : 1;
    }
    introduce(judgements(&options));
    if (options.task == BENCH_ROWS || options.format != BENCH_TEXT)
        bench_report_begin(options.format);
    if (options.task == BENCH_GOALS)
        run_goals(&options);
    else
        run_modes(&options);
    bench_report_end(options.format);
    if (options.plot != NULL)
        good &= bench_plot(options.plot, kept.results, kept.count);
    free(kept.results);
    return good ? 0 : 1;
}
