/* SPDX-License-Identifier: Apache-2.0 */
/* ciphermill bench: the command line of the load test. */
#include "commands.h"
#include "load.h"
#include "quick.h"
#include "report.h"
#include "show.h"
#include "text.h"
#include <string.h>
#include <unistd.h>

static const char text[] =
    "Loads the daemon with batches and measures throughput and latency. The bytes of the answers are "
    "compared with\n"
    "what OpenSSL computes in this process: of all answers at low rates, of as many as cost a tenth of the "
    "time at\n"
    "high ones, and of one batch in 1,024 at least. A difference makes the exit code 1.\n\n"
    "Closed loop: each connection keeps --inflight batches on their way, and latency counts from sending. "
    "Open loop\n"
    "(--rate): batches are due at fixed times, whatever became of those before them, and latency counts from "
    "the\n"
    "time at which a batch was due, so that a daemon that stalls can't hide it.\n\n"
    "Over a Unix socket the bench brings an ephemeral key of its own. Over plain TCP raw key bytes don't "
    "travel:\n"
    "--admin-endpoint names a Unix socket over which a temporary named key is imported, and destroyed "
    "afterwards; or\n"
    "--key and --key-hex name a key of the daemon's and a file with its bytes.\n\n"
    "Throughput and latency leave out the warm-up. Errors, verified and mismatches count items, of the whole "
    "run.\n";
static const char examples[] = "  ciphermill bench --quick\n"
                               "  ciphermill bench --mode ctr --bits 128 --size 4096 --batch 16 --inflight 4 "
                               "--connections 2 --duration 5\n"
                               "  ciphermill bench --mode gcm --size 64-4KiB --batch 64 --rate 5000 --json\n"
                               "  ciphermill bench --mode xts --bits 256 --size 4096 --batch 64\n"
                               "  ciphermill --endpoint tcp://127.0.0.1:7700 bench --admin-endpoint "
                               "unix:/run/ciphermill/ciphermill.sock\n";

enum { UNIT_LEAST = 16, UNIT_MOST = 1 << 24 };

struct arguments {
    const char *mode, *direction, *size, *rate;
    uint64_t bits, batch, inflight, connections, threads;
    double duration_s, warmup_s;
    bool padding, caller_iv, csv, quick;
    const char *verify;
    struct keys_source key;
};

static bool read_arguments(struct cli *cli, int argc, char **argv, struct arguments *a, int *ret_code)
{
    const struct option options[] = {
        {"mode", "MODE", "ecb, cbc, ctr, gcm, xts, or mixed, which is all but xts (ctr)", OPTION_TEXT,
         &a->mode, 0, 0},
        {"direction", "WHICH", "encrypt, decrypt, or mixed (encrypt)", OPTION_TEXT, &a->direction, 0, 0},
        {"bits", "N", "of AES: 128, 192 or 256 (128); an XTS key has two of them, and no 192", OPTION_NUMBER,
         &a->bits, 128, 256},
        {"size", "BYTES", "of an item: 4096, 4KiB, or a range 64-4KiB, evenly at random (4096)", OPTION_TEXT,
         &a->size, 0, 0},
        {"batch", "N", "items a batch (16)", OPTION_NUMBER, &a->batch, 1, 1 << 20},
        {"inflight", "N", "batches on their way on each connection, at most (4)", OPTION_NUMBER, &a->inflight,
         1, 4096},
        {"connections", "N", "to the daemon (1)", OPTION_NUMBER, &a->connections, 1, 100000},
        {"threads", "N", "that send and receive (one a processor, one a connection at most)", OPTION_NUMBER,
         &a->threads, 1, 1024},
        {"duration", "SECONDS", "that are measured (5)", OPTION_SECONDS, &a->duration_s, 0, 0},
        {"warmup", "SECONDS", "before that (0.5)", OPTION_SECONDS, &a->warmup_s, 0, 0},
        {"rate", "N", "open loop: batches a second, over all connections", OPTION_TEXT, &a->rate, 0, 0},
        {"padding", NULL, "ECB and CBC: PKCS#7; always on where --size is not all whole blocks", OPTION_FLAG,
         &a->padding, 0, 0},
        {"caller-iv", NULL, "the bench gives the IVs when encrypting, instead of the daemon", OPTION_FLAG,
         &a->caller_iv, 0, 0},
        {"verify", "HOW", "sample, as said above, or all, which holds up the load if need be (sample)",
         OPTION_TEXT, &a->verify, 0, 0},
        {"key", "NAME", "use this key of the daemon's", OPTION_TEXT, &a->key.name, 0, 0},
        {"key-hex", "FILE", "its bytes in hex digits; - is standard input", OPTION_TEXT, &a->key.hex, 0, 0},
        {"admin-endpoint", "URI", "import a temporary key there", OPTION_TEXT, &a->key.admin_endpoint, 0, 0},
        {"quick", NULL, "a small matrix of modes and sizes beside OpenSSL, in about 14 seconds", OPTION_FLAG,
         &a->quick, 0, 0},
        {"csv", NULL, "print the result as CSV, with a line of column names", OPTION_FLAG, &a->csv, 0, 0},
    };
    const struct form form = {
        .command = "bench",
        .arguments = "[options]",
        .text = text,
        .examples = examples,
        .options = options,
        .option_count = sizeof options / sizeof options[0],
    };
    const char *words[OPTIONS_WORDS_MAX];

    return options_read(&form, cli, argc, argv, words, ret_code);
}

static int settle_kinds(struct plan *plan, const struct arguments *a)
{
    if (strcmp(a->mode, "mixed") == 0)
        plan->modes = CM_MODE_BIT(CM_ECB) | CM_MODE_BIT(CM_CBC) | CM_MODE_BIT(CM_CTR) | CM_MODE_BIT(CM_GCM);
    else if (text_parse_modes(a->mode, &plan->modes) != TEXT_OK)
        return report_usage("bench", "--mode is ecb, cbc, ctr, gcm, xts or mixed, not '%s'", a->mode);
    if (strcmp(a->direction, "encrypt") == 0)
        plan->directions = PLAN_DIRECTION_BIT(CM_ENCRYPT);
    else if (strcmp(a->direction, "decrypt") == 0)
        plan->directions = PLAN_DIRECTION_BIT(CM_DECRYPT);
    else if (strcmp(a->direction, "mixed") == 0)
        plan->directions = PLAN_DIRECTION_BIT(CM_ENCRYPT) | PLAN_DIRECTION_BIT(CM_DECRYPT);
    else
        return report_usage("bench", "--direction is encrypt, decrypt or mixed, not '%s'", a->direction);
    if (a->bits != 128 && a->bits != 192 && a->bits != 256)
        return report_usage("bench", "--bits is 128, 192 or 256");
    if (a->bits == 192 && (plan->modes & CM_MODE_BIT(CM_XTS)) != 0)
        return report_usage("bench", "XTS is for AES-128 and AES-256: --bits 128 or 256");
    return CODE_OK;
}

static int settle_sizes(struct plan *plan, const struct arguments *a)
{
    if (text_parse_range(a->size, &plan->size_least, &plan->size_most) != TEXT_OK ||
        plan->size_most > UINT32_MAX / 2)
        return report_usage("bench",
                            "--size is a number of bytes such as 4096 or 4KiB, or a range such as 64-4KiB, "
                            "not '%s'",
                            a->size);
    if ((plan->modes & CM_MODE_BIT(CM_XTS)) != 0 &&
        (plan->size_least < UNIT_LEAST || plan->size_most > UNIT_MOST))
        return report_usage("bench", "XTS takes data units of 16 bytes to 16MiB: see --size");
    plan->padding = a->padding || plan->size_least != plan->size_most || plan->size_most % 16 != 0;
    return CODE_OK;
}

static int settle_loop(struct plan *plan, const struct arguments *a)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t threads = a->threads;

    if (threads == 0)
        threads = processors > 0 ? (uint64_t)processors : 1;
    plan->threads = (uint32_t)(threads < a->connections ? threads : a->connections);
    if (a->rate != NULL && (text_parse_seconds(a->rate, &plan->rate) != TEXT_OK || plan->rate < 0.001 ||
                            strchr(a->rate, 's') != NULL))
        return report_usage("bench", "--rate is a number of batches a second, of 0.001 to 1000000, not '%s'",
                            a->rate);
    if (a->duration_s <= 0)
        return report_usage("bench", "--duration has to be more than 0");
    if (strcmp(a->verify, "all") != 0 && strcmp(a->verify, "sample") != 0)
        return report_usage("bench", "--verify is all or sample, not '%s'", a->verify);
    plan->verify_all = strcmp(a->verify, "all") == 0;
    return CODE_OK;
}

static int settle(struct plan *plan, const struct cli *cli, const struct arguments *a)
{
    int code;

    *plan = (struct plan){.cli = cli,
                          .key_bits = (uint32_t)a->bits,
                          .batch = (uint32_t)a->batch,
                          .inflight = (uint32_t)a->inflight,
                          .connections = (uint32_t)a->connections,
                          .duration_s = a->duration_s,
                          .warmup_s = a->warmup_s,
                          .caller_iv = a->caller_iv};
    code = settle_kinds(plan, a);
    if (code == CODE_OK)
        code = settle_sizes(plan, a);
    if (code == CODE_OK)
        code = settle_loop(plan, a);
    if (code == CODE_OK && cli->json && a->csv)
        code = report_usage("bench", "--json or --csv, not both");
    return code;
}

static int run(const struct plan *plan, const struct keys *keys, enum show_form form)
{
    static struct result result; /* too large for a stack */
    struct json json;
    int code = load_run(plan, keys, &result);

    if (code != CODE_OK)
        return code;
    if (form == SHOW_JSON) {
        json_init(&json, stdout);
        show_json(&json, plan, &result);
        json_done(&json);
    } else if (form == SHOW_CSV) {
        show_csv_head();
        show_csv(plan, &result);
    } else {
        show_text(plan, &result);
    }
    return load_code(&result);
}

int cmd_bench(struct cli *cli, int argc, char **argv)
{
    struct arguments arguments = {.mode = "ctr",
                                  .direction = "encrypt",
                                  .size = "4096",
                                  .verify = "sample",
                                  .bits = 128,
                                  .batch = 16,
                                  .inflight = 4,
                                  .connections = 1,
                                  .duration_s = 5,
                                  .warmup_s = 0.5};
    struct plan plan;
    struct keys keys;
    enum show_form form;
    int code;

    if (!read_arguments(cli, argc, argv, &arguments, &code))
        return code;
    if (arguments.quick) {
        /* Keys for all of them, as far as there are any. */
        arguments.mode =
            arguments.bits == 192 || arguments.key.name != NULL ? "mixed" : "ecb,cbc,ctr,gcm,xts";
        arguments.size = "64";
        arguments.padding = false;
    }
    code = settle(&plan, cli, &arguments);
    if (code != CODE_OK)
        return code;
    form = cli->json ? SHOW_JSON : arguments.csv ? SHOW_CSV : SHOW_TEXT;
    code = keys_prepare(&keys, &plan, &arguments.key);
    if (code == CODE_OK)
        code = arguments.quick ? quick_run(&plan, &keys, form) : run(&plan, &keys, form);
    keys_done(&keys, &plan);
    return code;
}
