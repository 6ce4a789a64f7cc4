/* SPDX-License-Identifier: Apache-2.0 */
/* Each row in turn: the daemon over its socket, then OpenSSL on one thread with the same batch. */
#include "quick.h"
#include "clock.h"
#include "load.h"
#include "report.h"
#include "show.h"
#include "text.h"
#include "unit.h"
#include <inttypes.h>

static const struct combination kinds[] = {
    {CM_ECB, CM_ENCRYPT}, {CM_CBC, CM_ENCRYPT}, {CM_CBC, CM_DECRYPT}, {CM_CTR, CM_ENCRYPT},
    {CM_GCM, CM_ENCRYPT}, {CM_GCM, CM_DECRYPT}, {CM_XTS, CM_ENCRYPT},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };
static const struct {
    uint64_t size;
    uint32_t batch;
} shapes[] = {{64, 64}, {1024, 64}, {16384, 16}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static const double duration_s = 0.4;
static const double warmup_s = 0.1;
static const uint64_t baseline_ns = 150000000;

/* Bytes a second of OpenSSL's EVP with the unit's batch, on one thread; 0 if it refuses. */
static double baseline(const struct plan *plan, struct combination kind, const struct keys *keys)
{
    struct reference reference;
    struct unit unit;
    uint64_t bytes = 0;
    uint64_t begun_ns = 0;
    uint64_t now_ns = 0;
    bool ready;

    reference_init(&reference, keys);
    ready = unit_init(&unit, plan, kind, 16, &reference);
    if (ready)
        unit_prepare(&unit, plan);
    begun_ns = clock_now();
    while (ready && (now_ns = clock_now()) - begun_ns < baseline_ns) {
        for (size_t i = 0; i < unit.count && ready; i++) {
            static uint8_t iv[16]; /* OpenSSL's side needs any; a fresh one costs it nothing */
            cm_item *item = &unit.items[i];
            struct message message = {.in = item->in,
                                      .in_length = item->in_length,
                                      .iv = kind.mode == CM_ECB  ? NULL
                                            : unit.iv_length > 0 ? item->iv
                                                                 : iv,
                                      .iv_length = kind.mode == CM_GCM ? 12 : 16,
                                      .out = item->out,
                                      .tag = item->tag,
                                      .tag_length = 16};

            ready = reference_run(&reference, kind.mode, kind.direction, false, &message);
            bytes += item->in_length;
        }
    }
    unit_done(&unit);
    reference_done(&reference);
    return ready ? (double)bytes * 1e9 / (double)(now_ns - begun_ns) : 0;
}

static void print_head(const struct plan *plan, const struct result *result)
{
    printf("%s, AES-%u, %u connections with %u batches in flight; OpenSSL EVP in this process on one "
           "thread\n%s\n\n",
           result->server, plan->key_bits, plan->connections, plan->inflight, show_cpu());
    printf("%-4s %-8s %6s %6s  %-10s %12s %12s %6s %9s %9s  %s\n", "MODE", "", "BYTES", "ITEMS", "USES",
           "DAEMON", "OPENSSL", "RATIO", "p50 us", "p99 us", "VERIFIED");
}

static void print_row(const struct plan *plan, const struct result *result)
{
    double daemon = result->seconds > 0 ? (double)result->bytes / result->seconds : 0;
    double openssl = result->openssl_bytes_per_s;
    char daemon_text[TEXT_BYTES_MAX];
    char openssl_text[TEXT_BYTES_MAX];

    text_format_bytes(daemon, daemon_text);
    text_format_bytes(openssl, openssl_text);
    printf("%-4s %-8s %6" PRIu64 " %6u  %-10s %10s/s %10s/s %6.2f %9.1f %9.1f  %" PRIu64,
           plan_mode_name(plan), plan_direction_name(plan), plan->size_most, plan->batch,
           show_implementation(plan, result), daemon_text, openssl_text, openssl > 0 ? daemon / openssl : 0,
           (double)histogram_percentile(&result->latency, 0.5) * 1e-3,
           (double)histogram_percentile(&result->latency, 0.99) * 1e-3, result->verified);
    if (result->mismatches > 0 || result->errors > 0)
        printf("  %" PRIu64 " WRONG, %" PRIu64 " errors", result->mismatches, result->errors);
    putchar('\n');
    fflush(stdout);
}

static void show_row(const struct plan *plan, const struct result *result, enum show_form form,
                     struct json *json, bool first)
{
    if (form == SHOW_JSON) {
        show_json(json, plan, result);
        return;
    }
    if (first && form == SHOW_CSV)
        show_csv_head();
    else if (first)
        print_head(plan, result);
    if (form == SHOW_CSV)
        show_csv(plan, result);
    else
        print_row(plan, result);
}

static int run_row(const struct plan *plan, const struct keys *keys, struct result *result)
{
    int code = load_run(plan, keys, result);
    struct combination made[PLAN_COMBINATIONS];

    if (code != CODE_OK)
        return code;
    plan_combinations(plan, made);
    result->openssl_bytes_per_s = baseline(plan, made[0], keys);
    if (result->openssl_bytes_per_s <= 0)
        return report_error(CODE_FAILED, "OpenSSL refuses %s", plan_mode_name(plan));
    return load_code(result);
}

int quick_run(const struct plan *plan, const struct keys *keys, enum show_form form)
{
    static struct result result; /* too large for a stack */
    struct plan row = *plan;
    struct json json;
    bool first = true;
    int code = CODE_OK;

    row.duration_s = duration_s;
    row.warmup_s = warmup_s;
    json_init(&json, stdout);
    if (form == SHOW_JSON)
        json_array_begin(&json, NULL);
    for (size_t k = 0; k < KINDS; k++) {
        if ((plan->modes & CM_MODE_BIT(kinds[k].mode)) == 0)
            continue;
        for (size_t s = 0; s < SHAPES && code == CODE_OK && !load_interrupted(); s++) {
            row.modes = CM_MODE_BIT(kinds[k].mode);
            row.directions = PLAN_DIRECTION_BIT(kinds[k].direction);
            row.size_least = row.size_most = shapes[s].size;
            row.batch = shapes[s].batch;
            result.seconds = 0;
            code = run_row(&row, keys, &result);
            if (result.seconds > 0)
                show_row(&row, &result, form, &json, first);
            first = false;
        }
    }
    if (form == SHOW_JSON) {
        json_array_end(&json);
        json_done(&json);
    }
    return code;
}
