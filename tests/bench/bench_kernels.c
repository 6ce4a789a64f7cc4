/* SPDX-License-Identifier: Apache-2.0 */
/* How fast the kernels are beside OpenSSL's EVP: every implementation on the same batch, in turn within one
 * run.
 *
 * A cell is a mode with its direction, a key length, a message size and a stride. In every cell each
 * implementation's output is first compared with OpenSSL's; then come the rounds, in each of which OpenSSL
 * and all implementations are timed one after the other, so that what else the machine does hits them alike.
 * The figures are medians over the rounds; a ratio is the median of the rounds' ratios. The core's clock is
 * taken from a chain of dependent additions beside each cell, since hardware counters may be missing. */
#include "kernel_load.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_ENTRIES = 12, MOST_ROUNDS = 101, MOST_WORDS = 32, MOST_BYTES = 64 * 1024 * 1024 };

enum format { FORMAT_TABLE, FORMAT_JSON, FORMAT_CSV };

struct options {
    const char *modes[MOST_WORDS], *implementations[MOST_WORDS];
    size_t sizes[MOST_WORDS], bits[MOST_WORDS];
    size_t mode_count, implementation_count, size_count, bits_count;
    size_t batch; /* 0: by size */
    struct kernel_lengths random;
    bool padded, contiguous, per_block;
    enum format format;
    size_t rounds;
    double round_ns; /* about so long for one implementation */
};

/* One implementation in one cell; the first entry of a cell is OpenSSL. */
struct entry {
    const char *name;
    bool per_block; /* a call for each block of each message */
    struct kernel_evp *evp;
    struct cm_aes_key *key;
    size_t turns;
    bool verified;
    double ns[MOST_ROUNDS];     /* a message */
    double cycles[MOST_ROUNDS]; /* a message */
    double ratio[MOST_ROUNDS];
};

static struct kernel_load load;
static struct entry entries[MOST_ENTRIES];
static size_t entry_count;
static size_t wrong;
static size_t rows_printed;

static void die(const char *what, const char *which)
{
    (void)fprintf(stderr, "bench-kernels: %s%s\n", what, which);
    exit(2);
}

/* --- Time -------------------------------------------------------------------------------------------------
 */

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Nanoseconds in a cycle of this core: additions that wait for each other take one cycle each. */
static double cycle_ns(void)
{
    enum { CHAINS = 1000, ADDITIONS = 8, TRIES = 3 };
    double best = 1e9;
    for (int attempt = 0; attempt < TRIES; attempt++) {
        uint64_t x = 1, y = 3;
        double start = now_ns();
        for (int i = 0; i < CHAINS; i++)
#pragma GCC unroll 8
            for (int j = 0; j < ADDITIONS; j++) {
                x += y;
                __asm__ volatile("" : "+r"(x));
            }
        double took = (now_ns() - start) / (CHAINS * ADDITIONS);
        best = took < best ? took : best;
    }
    return best;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts; `at` is from 0 to 1. */
static double quantile(double *values, size_t count, double at)
{
    qsort(values, count, sizeof *values, compare);
    return values[(size_t)((double)(count - 1) * at + 0.5)];
}

/* --- Running ----------------------------------------------------------------------------------------------
 */

static bool run_per_block(const struct entry *entry)
{
    size_t failed = 0;
    for (size_t i = 0; i < load.count; i++)
        for (size_t at = 0; at < load.items[i].length; at += 16) {
            struct cm_aes_item block = {.source = load.items[i].source + at,
                                        .destination = load.items[i].destination + at,
                                        .length = 16};
            failed += cm_aes_batch(entry->key, CM_AES_NO_PADDING, &block, 1);
        }
    return failed == 0;
}

static bool run(const struct entry *entry)
{
    if (entry->evp != NULL)
        return kernel_evp_run(entry->evp, load.items, load.count);
    if (entry->per_block)
        return run_per_block(entry);
    return cm_aes_batch(entry->key, CM_AES_NO_PADDING, load.items, load.count) == 0;
}

static double time_turns(const struct entry *entry, size_t turns)
{
    double start = now_ns();
    for (size_t i = 0; i < turns; i++)
        if (!run(entry))
            die(entry->name, ": fails while it is timed");
    return (now_ns() - start) / (double)turns;
}

static void measure(const struct options *options)
{
    for (size_t i = 0; i < entry_count; i++) {
        struct entry *entry = &entries[i];
        kernel_load_spoil(&load);
        entry->verified = run(entry) && kernel_load_is_right(&load);
        if (!entry->verified) {
            (void)fprintf(stderr, "bench-kernels: %s, %s: not OpenSSL's answer\n", entry->name,
                          load.mode->name);
            wrong++;
        }
        entry->turns = 1;
        if (entry->verified)
            entry->turns += (size_t)(options->round_ns / time_turns(entry, 1));
    }
    for (size_t round = 0; round < options->rounds; round++) {
        double cycle = cycle_ns();
        for (size_t i = 0; i < entry_count; i++) {
            struct entry *entry = &entries[i];
            if (!entry->verified)
                continue;
            entry->ns[round] = time_turns(entry, entry->turns) / (double)load.count;
            entry->cycles[round] = entry->ns[round] / cycle;
            entry->ratio[round] = entries[0].ns[round] / entry->ns[round];
        }
    }
}

/* --- Output -----------------------------------------------------------------------------------------------
 */

/* Cycles a byte that the AES units of the processors measured so far (Zen 4) need at least, and carry-less
 * multiplications with them (Karatsuba): two units, each of a 128-bit instruction a cycle, or of a 256-bit
 * one. CBC encryption of a single message waits four cycles a round instead. 0: no limit known. */
static double limit_cycles(const char *implementation)
{
    size_t rounds = load.key_length / 4 + 6;
    bool wide = strncmp(implementation, "vaes", 4) == 0;
    if (!wide && strcmp(implementation, "aesni") != 0)
        return 0;
    if (load.mode->mode == CM_AES_CBC && load.mode->direction == CM_AES_ENCRYPT && load.count == 1)
        return (double)(4 * rounds + 1) / 16;
    double instructions = (double)rounds + (load.mode->mode == CM_AES_GCM ? 3 : 0);
    return instructions * (wide ? 0.25 : 0.5) / 16;
}

struct row {
    const char *impl, *mode, *stride;
    char name[64], size[48];
    size_t key_bits, batch;
    double ns, spread, gb_per_s, cycles_per_byte, ratio, limit_fraction;
    bool verified;
};

static void print_number(const char *name, double value, const char *end)
{
    if (value > 0)
        (void)printf("\"%s\": %.4g%s", name, value, end);
    else
        (void)printf("\"%s\": null%s", name, end);
}

static void print_json(const struct row *row)
{
    (void)printf("%s  {\"impl\": \"%s\", \"mode\": \"%s\", \"key_bits\": %zu, \"size\": %s, \"batch\": %zu, "
                 "\"stride\": \"%s\", ",
                 rows_printed == 0 ? "" : ",\n", row->name, row->mode, row->key_bits, row->size, row->batch,
                 row->stride);
    print_number("ns_per_message", row->ns, ", ");
    print_number("spread", row->spread, ", ");
    print_number("gb_per_s", row->gb_per_s, ", ");
    print_number("cycles_per_byte", row->cycles_per_byte, ", ");
    print_number("ratio_openssl", row->ratio, ", ");
    print_number("ratio_ipsecmb", 0, ", ");
    print_number("limit_fraction", row->limit_fraction, ", ");
    (void)printf("\"verified\": %s}", row->verified ? "true" : "false");
}

static void print_row(const struct options *options, const struct row *row)
{
    if (options->format == FORMAT_JSON)
        print_json(row);
    else if (options->format == FORMAT_CSV)
        (void)printf("%s,%s,%zu,%s,%zu,%s,%.4g,%.3g,%.4g,%.4g,%.4g,,%.3g,%s\n", row->name, row->mode,
                     row->key_bits, row->size, row->batch, row->stride, row->ns, row->spread, row->gb_per_s,
                     row->cycles_per_byte, row->ratio, row->limit_fraction, row->verified ? "true" : "false");
    else
        (void)printf(
            "%-12s %4zu %14s %5zu %-10s %-18s %10.1f ns %4.0f%% %8.2f GB/s %7.3f c/B %7.2f x %4.0f%%%s\n",
            row->mode, row->key_bits, row->size, row->batch, row->stride, row->name, row->ns,
            100 * row->spread, row->gb_per_s, row->cycles_per_byte, row->ratio, 100 * row->limit_fraction,
            row->verified ? "" : "  WRONG");
    rows_printed++;
}

static void print_cell(const struct options *options, const char *size, const char *stride)
{
    for (size_t i = 0; i < entry_count; i++) {
        struct entry *entry = &entries[i];
        struct row row = {.impl = entry->name,
                          .mode = load.mode->name,
                          .stride = stride,
                          .key_bits = 8 * load.key_length,
                          .batch = load.count,
                          .verified = entry->verified};
        (void)snprintf(row.name, sizeof row.name, "%s%s", entry->name, entry->per_block ? "-per-block" : "");
        bool quoted = options->format == FORMAT_JSON && options->random.high > 0;
        (void)snprintf(row.size, sizeof row.size, quoted ? "\"%s\"" : "%s", size);
        if (entry->verified) {
            double bytes = (double)load.bytes / (double)load.count;
            row.ns = quantile(entry->ns, options->rounds, 0.5);
            row.spread =
                (quantile(entry->ns, options->rounds, 0.75) - quantile(entry->ns, options->rounds, 0.25)) /
                row.ns;
            row.ratio = quantile(entry->ratio, options->rounds, 0.5);
            row.gb_per_s = bytes / row.ns;
            row.cycles_per_byte = quantile(entry->cycles, options->rounds, 0.5) / bytes;
            row.limit_fraction = limit_cycles(entry->name) / row.cycles_per_byte;
        }
        print_row(options, &row);
    }
    (void)fflush(stdout);
}

/* --- Cells ------------------------------------------------------------------------------------------------
 */

static bool wanted(const char *const *words, size_t count, const char *word)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(words[i], word) == 0)
            return true;
    return count == 0;
}

static void add_kernel(const char *name, const struct cm_aes_row *row, bool per_block)
{
    if (entry_count == MOST_ENTRIES)
        die("too many implementations", "");
    struct entry *entry = &entries[entry_count++];
    entry->name = name;
    entry->per_block = per_block;
    entry->key = aligned_alloc(CM_AES_KEY_ALIGN, cm_aes_key_size(row));
    if (entry->key == NULL || cm_aes_key_init(entry->key, row, load.key, load.key_length) != CM_AES_OK)
        die(name, ": takes no key");
}

static void open_entries(const struct options *options)
{
    memset(entries, 0, sizeof entries);
    entries[0].name = "openssl";
    entries[0].evp = kernel_evp_new(load.mode, load.key, load.key_length);
    entry_count = 1;
    struct cm_aes_implementation known;
    for (size_t i = 0; cm_aes_implementation(i, load.mode->mode, load.mode->direction, &known); i++) {
        const struct cm_aes_row *row = cm_aes_row_named(load.mode->mode, load.mode->direction, known.name);
        if (row == NULL || !wanted(options->implementations, options->implementation_count, known.name))
            continue;
        add_kernel(known.name, row, false);
        if (options->per_block && load.mode->mode == CM_AES_ECB)
            add_kernel(known.name, row, true);
    }
}

static void close_entries(void)
{
    for (size_t i = 0; i < entry_count; i++) {
        if (entries[i].evp != NULL)
            kernel_evp_free(entries[i].evp);
        if (entries[i].key != NULL)
            cm_aes_key_done(entries[i].key);
        free(entries[i].key);
    }
}

static void run_cell(const struct options *options, const struct kernel_mode *mode, size_t bits,
                     struct kernel_lengths lengths, bool padded)
{
    size_t batch = options->batch;
    char size[48];
    if (batch == 0)
        batch = lengths.high <= 4096 || lengths.high > lengths.low ? 64 : 16;
    while (batch > 1 && batch * (lengths.high + 256) > MOST_BYTES)
        batch /= 2;
    if (lengths.high > lengths.low)
        (void)snprintf(size, sizeof size, "%zu-%zu", lengths.low, lengths.high);
    else
        (void)snprintf(size, sizeof size, "%zu", lengths.low);
    kernel_load_init(&load, mode, bits / 8, batch, lengths, padded);
    open_entries(options);
    measure(options);
    print_cell(options, size, padded ? "padded" : "contiguous");
    close_entries();
    kernel_load_done(&load);
}

static void run_strides(const struct options *options, const struct kernel_mode *mode, size_t bits,
                        struct kernel_lengths lengths)
{
    if (options->padded)
        run_cell(options, mode, bits, lengths, true);
    if (options->contiguous)
        run_cell(options, mode, bits, lengths, false);
}

static void run_all(const struct options *options)
{
    for (size_t m = 0; m < kernel_mode_count; m++) {
        if (!wanted(options->modes, options->mode_count, kernel_modes[m].name))
            continue;
        for (size_t b = 0; b < options->bits_count; b++) {
            if (options->random.high > 0) {
                run_strides(options, &kernel_modes[m], options->bits[b], options->random);
                continue;
            }
            for (size_t s = 0; s < options->size_count; s++)
                run_strides(options, &kernel_modes[m], options->bits[b],
                            (struct kernel_lengths){options->sizes[s], options->sizes[s]});
        }
    }
}

/* --- The command line -------------------------------------------------------------------------------------
 */

static const char usage[] =
    "usage: bench-kernels [OPTION...]\n"
    "  --modes LIST          ecb-encrypt,ecb-decrypt,cbc-encrypt,cbc-decrypt,ctr,gcm-seal,gcm-open (all)\n"
    "  --sizes LIST          bytes of a message (16,64,256,1024,4096,16384)\n"
    "  --bits LIST           of the key (128,256)\n"
    "  --batch N             messages a batch (64; 16 from 16 KiB on)\n"
    "  --impl LIST           implementations (all that this processor runs); OpenSSL goes along always\n"
    "  --per-block           ECB also by one call a block\n"
    "  --lengths random:LO-HI  unequal messages in place of --sizes\n"
    "  --stride contiguous|padded|both  slots one behind the other, or 192 bytes apart (padded)\n"
    "  --json, --csv         for programs\n"
    "  --quick               few short rounds: sees that everything is right, measures nothing\n";

static void words_of(char *list, const char **words, size_t *count)
{
    for (char *word = strtok(list, ","); word != NULL; word = strtok(NULL, ",")) {
        if (*count == MOST_WORDS)
            die("too long a list", "");
        words[(*count)++] = word;
    }
}

static size_t number_of(const char *word)
{
    char *end;
    unsigned long number = strtoul(word, &end, 10);
    if (*word == '\0' || *end != '\0' || number > MOST_BYTES)
        die("no number, or too large: ", word);
    return number;
}

static void numbers_of(char *list, size_t *numbers, size_t *count)
{
    const char *words[MOST_WORDS];
    *count = 0;
    words_of(list, words, count);
    for (size_t i = 0; i < *count; i++)
        numbers[i] = number_of(words[i]);
}

static void check_options(const struct options *options)
{
    for (size_t i = 0; i < options->mode_count; i++) {
        size_t m = 0;
        while (m < kernel_mode_count && strcmp(options->modes[i], kernel_modes[m].name) != 0)
            m++;
        if (m == kernel_mode_count)
            die("no such mode: ", options->modes[i]);
    }
    for (size_t i = 0; i < options->implementation_count; i++)
        if (cm_aes_row_named(CM_AES_ECB, CM_AES_ENCRYPT, options->implementations[i]) == NULL)
            die("does not run here: ", options->implementations[i]);
    for (size_t i = 0; i < options->bits_count; i++)
        if (options->bits[i] != 128 && options->bits[i] != 192 && options->bits[i] != 256)
            die("--bits takes 128, 192 and 256", "");
    for (size_t i = 0; i < options->size_count; i++)
        if (options->sizes[i] == 0 || options->sizes[i] % 16 != 0)
            die("--sizes takes multiples of 16; use --lengths for others", "");
    if (options->batch > KERNEL_LOAD_MAX_ITEMS)
        die("too large a batch", "");
}

static void take_lengths(struct options *options, const char *word)
{
    char excess;
    if (sscanf(word, "random:%zu-%zu%c", &options->random.low, &options->random.high, &excess) != 2 ||
        options->random.low >= options->random.high || options->random.high > MOST_BYTES / 64)
        die("--lengths takes random:LO-HI, not ", word);
}

static void take_stride(struct options *options, const char *word)
{
    options->contiguous = strcmp(word, "padded") != 0;
    options->padded = strcmp(word, "contiguous") != 0;
    if (options->contiguous && options->padded && strcmp(word, "both") != 0)
        die("--stride takes contiguous, padded or both, not ", word);
}

static void read_options(struct options *options, int argc, char **argv)
{
    static const struct option known[] = {
        {"modes", required_argument, NULL, 'm'},
        {"sizes", required_argument, NULL, 's'},
        {"bits", required_argument, NULL, 'b'},
        {"batch", required_argument, NULL, 'n'},
        {"impl", required_argument, NULL, 'i'},
        {"per-block", no_argument, NULL, 'p'},
        {"lengths", required_argument, NULL, 'l'},
        {"stride", required_argument, NULL, 't'},
        {"json", no_argument, NULL, 'j'},
        {"csv", no_argument, NULL, 'c'},
        {"quick", no_argument, NULL, 'q'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    for (int letter; (letter = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        switch (letter) {
        case 'm':
            words_of(optarg, options->modes, &options->mode_count);
            break;
        case 's':
            numbers_of(optarg, options->sizes, &options->size_count);
            break;
        case 'b':
            numbers_of(optarg, options->bits, &options->bits_count);
            break;
        case 'n':
            options->batch = number_of(optarg);
            break;
        case 'i':
            words_of(optarg, options->implementations, &options->implementation_count);
            break;
        case 'p':
            options->per_block = true;
            break;
        case 'l':
            take_lengths(options, optarg);
            break;
        case 't':
            take_stride(options, optarg);
            break;
        case 'j':
            options->format = FORMAT_JSON;
            break;
        case 'c':
            options->format = FORMAT_CSV;
            break;
        case 'q':
            options->rounds = 1;
            options->round_ns = 1;
            break;
        case 'h':
            (void)fputs(usage, stdout);
            exit(0);
        default:
            (void)fputs(usage, stderr);
            exit(2);
        }
    }
    if (optind < argc)
        die("no such argument: ", argv[optind]);
}

/* The processor's name, as the kernel shows it. */
static void print_processor(FILE *output)
{
    char line[512], name[256] = "unknown";
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "model name : %255[^\n]", name) == 1)
            break;
    if (file != NULL)
        (void)fclose(file);
    (void)fprintf(output, "processor: %s, %.2f GHz measured\n", name, 1 / cycle_ns());
}

int main(int argc, char **argv)
{
    static struct options options = {
        .sizes = {16, 64, 256, 1024, 4096, 16384},
        .size_count = 6,
        .bits = {128, 256},
        .bits_count = 2,
        .padded = true,
        .rounds = 61,
        .round_ns = 40e3,
    };
    if (cm_aes_init(getenv("CIPHERMILL_CPU")) != CM_AES_OK)
        die("no implementation passes its self-test", "");
    read_options(&options, argc, argv);
    check_options(&options);
    print_processor(options.format == FORMAT_TABLE ? stdout : stderr);
    if (options.format == FORMAT_JSON)
        (void)puts("[");
    if (options.format == FORMAT_CSV)
        (void)puts("impl,mode,key_bits,size,batch,stride,ns_per_message,spread,gb_per_s,cycles_per_byte,"
                   "ratio_openssl,ratio_ipsecmb,limit_fraction,verified");
    run_all(&options);
    if (options.format == FORMAT_JSON)
        (void)puts("\n]");
    return wrong == 0 ? 0 : 1;
}
