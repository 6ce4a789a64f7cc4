/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the command line of bench-kernels and checks it before anything is measured. */
#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: bench-kernels [OPTION]...\n"
    "Times the kernels beside OpenSSL's EVP and, where it was built in, IPSec-MB, in turn within one run, "
    "after\n"
    "comparing their outputs. `dispatch` is what cm_aes_row chooses: what a program gets.\n"
    "\n"
    "  --modes LIST          ecb-encrypt, ecb-decrypt, cbc-encrypt, cbc-decrypt, ctr, gcm-seal, gcm-open,\n"
    "                        xts-encrypt, xts-decrypt (all)\n"
    "  --sizes LIST          bytes of a message (16,64,256,1024,4096,16384,65536,1048576)\n"
    "  --lengths random:LO-HI  instead of --sizes: unequal lengths within a batch\n"
    "  --bits LIST           key lengths (128,256)\n"
    "  --batch LIST          messages of a batch (64; 16 above 4 KiB; above 64 KiB 4, or 16 to encrypt in "
    "CBC)\n"
    "  --impl LIST           dispatch, portable, aesni, vaes256, vaes512 (all that run here)\n"
    "  --stride contiguous|padded|both  messages one behind the other, or 192 bytes apart (padded)\n"
    "  --padding none|pkcs7  ECB and CBC only (none)\n"
    "  --per-block           ECB: the same kernel also with one call for each block\n"
    "  --json, --csv         for programs; what is said to people goes to standard error then\n"
    "  --plot FILE.svg       also draws throughput against size; takes gnuplot\n"
    "  --quick               few short rounds: sees that everything is right, measures nothing\n"
    "\n"
    "In place of all rows:\n"
    "  --goals               holds dispatch, or what --impl names, against the project's goals\n"
    "  --dispatch            which implementation is fastest for each size and batch, and what dispatch "
    "uses\n"
    "  --on-request          for other programs: one size; key, text and answer in hexadecimal, then for "
    "each\n"
    "                        line of standard input one round: name and nanoseconds a message of each\n"
    "\n"
    "Exit status: 0; 1 if an output is wrong, a goal is missed by more than 5 % or dispatch is more than 5 "
    "%\n"
    "slower than the fastest; 2 if it can't run as asked.\n"
    "The environment's CIPHERMILL_CPU limits dispatch, as it does for the daemon.\n";

static void die(const char *what, const char *which)
{
    (void)fprintf(stderr, "bench-kernels: %s%s\n", what, which);
    exit(2);
}

static void words_of(char *list, const char **words, size_t *count)
{
    for (char *word = strtok(list, ","); word != NULL; word = strtok(NULL, ",")) {
        if (*count == BENCH_MOST_WORDS)
            die("too long a list", "");
        words[(*count)++] = word;
    }
}

static size_t number_of(const char *word)
{
    char *end;
    unsigned long number = strtoul(word, &end, 10);
    if (*word < '0' || *word > '9' || *end != '\0' || number > BENCH_MOST_BYTES)
        die("no number, or too large: ", word);
    return number;
}

static void numbers_of(char *list, size_t *numbers, size_t *count)
{
    const char *words[BENCH_MOST_WORDS];
    *count = 0;
    words_of(list, words, count);
    for (size_t i = 0; i < *count; i++)
        numbers[i] = number_of(words[i]);
}

static void modes_of(char *list, struct bench_options *options)
{
    const char *words[BENCH_MOST_WORDS];
    options->mode_count = 0;
    words_of(list, words, &options->mode_count);
    for (size_t i = 0; i < options->mode_count; i++)
        if ((options->modes[i] = bench_mode_named(words[i])) == NULL)
            die("no such mode: ", words[i]);
}

static void take_lengths(struct bench_options *options, const char *word)
{
    char excess;
    if (sscanf(word, "random:%zu-%zu%c", &options->random.low, &options->random.high, &excess) != 2 ||
        options->random.low >= options->random.high || options->random.high > BENCH_MOST_BYTES / 64)
        die("--lengths takes random:LO-HI, not ", word);
}

static void take_stride(struct bench_options *options, const char *word)
{
    options->contiguous = strcmp(word, "padded") != 0;
    options->padded = strcmp(word, "contiguous") != 0;
    if (options->contiguous && options->padded && strcmp(word, "both") != 0)
        die("--stride takes contiguous, padded or both, not ", word);
}

static void take_padding(struct bench_options *options, const char *word)
{
    options->padding = strcmp(word, "pkcs7") == 0 ? CM_AES_PKCS7 : CM_AES_NO_PADDING;
    if (options->padding == CM_AES_NO_PADDING && strcmp(word, "none") != 0)
        die("--padding takes none or pkcs7, not ", word);
}

static void take_task(struct bench_options *options, enum bench_task task)
{
    if (options->task != BENCH_ROWS && options->task != task)
        die("one of --goals, --dispatch and --on-request at a time", "");
    options->task = task;
}

static void take(struct bench_options *options, int letter)
{
    switch (letter) {
    case 'm':
        modes_of(optarg, options);
        break;
    case 's':
        numbers_of(optarg, options->sizes, &options->size_count);
        break;
    case 'b':
        numbers_of(optarg, options->bits, &options->bits_count);
        break;
    case 'n':
        numbers_of(optarg, options->batches, &options->batch_count);
        break;
    case 'i':
        words_of(optarg, options->implementations, &options->implementation_count);
        break;
    case 'l':
        take_lengths(options, optarg);
        break;
    case 't':
        take_stride(options, optarg);
        break;
    case 'a':
        take_padding(options, optarg);
        break;
    case 'p':
        options->per_block = true;
        break;
    case 'j':
        options->format = BENCH_JSON;
        break;
    case 'c':
        options->format = BENCH_CSV;
        break;
    case 'o':
        options->plot = optarg;
        break;
    case 'q':
        options->rounds = 1;
        options->round_ns = 1;
        break;
    case 'g':
        take_task(options, BENCH_GOALS);
        break;
    case 'd':
        take_task(options, BENCH_CHOICES);
        break;
    case 'r':
        take_task(options, BENCH_REQUESTS);
        break;
    case 'h':
        (void)fputs(usage, stdout);
        exit(0);
    default:
        (void)fputs(usage, stderr);
        exit(2);
    }
}

static bool whole_blocks_wanted(const struct bench_options *options)
{
    return options->padding == CM_AES_NO_PADDING;
}

static void check(const struct bench_options *options)
{
    for (size_t i = 0; i < options->implementation_count; i++)
        if (strcmp(options->implementations[i], "dispatch") != 0 &&
            cm_aes_row_named(CM_AES_ECB, CM_AES_ENCRYPT, options->implementations[i]) == NULL)
            die("does not run here: ", options->implementations[i]);
    for (size_t i = 0; i < options->bits_count; i++)
        if (options->bits[i] != 128 && options->bits[i] != 192 && options->bits[i] != 256)
            die("--bits takes 128, 192 and 256", "");
    for (size_t i = 0; i < options->size_count; i++)
        if (options->sizes[i] == 0 || (whole_blocks_wanted(options) && options->sizes[i] % 16 != 0))
            die("--sizes takes multiples of 16; use --lengths for others", "");
    for (size_t i = 0; i < options->batch_count; i++)
        if (options->batches[i] == 0 || options->batches[i] > BENCH_MOST_ITEMS)
            die("--batch takes 1 to 4096", "");
    for (size_t i = 0; i < options->mode_count; i++)
        if (options->padding == CM_AES_PKCS7 && options->modes[i]->mode != CM_AES_ECB &&
            options->modes[i]->mode != CM_AES_CBC)
            die("takes no padding: ", options->modes[i]->name);
    if (options->plot != NULL && (options->random.high > 0 || options->task != BENCH_ROWS))
        die("--plot draws over --sizes", "");
    if (options->task == BENCH_REQUESTS &&
        (options->mode_count != 1 || options->size_count != 1 || options->bits_count != 1 ||
         options->batch_count > 1 || options->random.high > 0))
        die("--on-request takes one mode, one size and one key length", "");
}

void bench_options_read(struct bench_options *ret_options, int argc, char **argv)
{
    static const struct option known[] = {
        {"modes", required_argument, NULL, 'm'},  {"sizes", required_argument, NULL, 's'},
        {"bits", required_argument, NULL, 'b'},   {"batch", required_argument, NULL, 'n'},
        {"impl", required_argument, NULL, 'i'},   {"lengths", required_argument, NULL, 'l'},
        {"stride", required_argument, NULL, 't'}, {"padding", required_argument, NULL, 'a'},
        {"per-block", no_argument, NULL, 'p'},    {"json", no_argument, NULL, 'j'},
        {"csv", no_argument, NULL, 'c'},          {"plot", required_argument, NULL, 'o'},
        {"quick", no_argument, NULL, 'q'},        {"goals", no_argument, NULL, 'g'},
        {"dispatch", no_argument, NULL, 'd'},     {"on-request", no_argument, NULL, 'r'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0},
    };
    *ret_options = (struct bench_options){.padded = true, .rounds = 61, .round_ns = 0.5e6, .cell_ns = 0.2e9};
    for (int letter; (letter = getopt_long(argc, argv, "", known, NULL)) != -1;)
        take(ret_options, letter);
    if (optind < argc)
        die("no such argument: ", argv[optind]);
    /* Some six hundred cells, and all in it are alike: shorter ones do. */
    if (ret_options->task == BENCH_CHOICES && ret_options->rounds > 1) {
        ret_options->round_ns = 0.1e6;
        ret_options->cell_ns = 0.06e9;
    }
    check(ret_options);
}

bool bench_options_want_mode(const struct bench_options *options, const struct bench_mode *mode)
{
    for (size_t i = 0; i < options->mode_count; i++)
        if (options->modes[i] == mode)
            return true;
    return options->mode_count == 0;
}

bool bench_options_want_implementation(const struct bench_options *options, const char *name)
{
    for (size_t i = 0; i < options->implementation_count; i++)
        if (strcmp(options->implementations[i], name) == 0)
            return true;
    return options->implementation_count == 0;
}
