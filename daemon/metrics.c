/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of each worker, and their sum as Prometheus text. */
#include "metrics.h"

#include "modes.h"
#include "status.h"

#include <inttypes.h>

static const char *const kind_names[CM_REQUEST_KINDS] = {
    [CM_REQUEST_HELLO] = "hello",
    [CM_REQUEST_BATCH] = "batch",
    [CM_REQUEST_CALL + CM_CALL_NONE] = "unknown_call",
    [CM_REQUEST_CALL + CM_CALL_OPEN_KEY] = "open_key",
    [CM_REQUEST_CALL + CM_CALL_EPHEMERAL_KEY] = "ephemeral_key",
    [CM_REQUEST_CALL + CM_CALL_CLOSE_KEY] = "close_key",
    [CM_REQUEST_CALL + CM_CALL_CANCEL_OPERATION] = "cancel_operation",
    [CM_REQUEST_CALL + CM_CALL_GET_STATUS] = "get_status",
    [CM_REQUEST_CALL + CM_CALL_GET_IMPLEMENTATIONS] = "get_implementations",
    [CM_REQUEST_CALL + CM_CALL_CREATE_KEY] = "create_key",
    [CM_REQUEST_CALL + CM_CALL_LIST_KEYS] = "list_keys",
    [CM_REQUEST_CALL + CM_CALL_DESCRIBE_KEY] = "describe_key",
    [CM_REQUEST_CALL + CM_CALL_DESTROY_KEY] = "destroy_key",
};

static const char *const class_words[CM_AES_SIZE_CLASS_COUNT] = {
    [CM_AES_SHORT] = "short", [CM_AES_SMALL] = "small", [CM_AES_LONG] = "long"};

static const char *const close_names[CM_CLOSE_REASONS] = {
    [CM_CLOSE_PEER] = "peer",       [CM_CLOSE_PROTOCOL] = "protocol", [CM_CLOSE_GREETING] = "greeting",
    [CM_CLOSE_STALLED] = "stalled", [CM_CLOSE_PRESSURE] = "pressure", [CM_CLOSE_DRAIN] = "drain",
};

static const struct {
    uint64_t ns;
    const char *seconds;
} buckets[CM_METRICS_BUCKETS] = {
    {2500, "2.5e-06"},   {5000, "5e-06"},     {10000, "1e-05"},    {25000, "2.5e-05"},  {50000, "5e-05"},
    {100000, "0.0001"},  {250000, "0.00025"}, {500000, "0.0005"},  {1000000, "0.001"},  {2500000, "0.0025"},
    {5000000, "0.005"},  {10000000, "0.01"},  {25000000, "0.025"}, {50000000, "0.05"},  {100000000, "0.1"},
    {250000000, "0.25"}, {500000000, "0.5"},  {1000000000, "1"},   {2500000000, "2.5"}, {UINT64_MAX, "+Inf"},
};

static unsigned status_index(uint32_t status)
{
    return status < CM_METRICS_STATUSES ? status : CM_METRICS_STATUSES - 1;
}

void cm_metrics_request(struct cm_metrics *metrics, unsigned kind, uint32_t status, uint64_t ns)
{
    if (kind >= CM_REQUEST_KINDS)
        kind = CM_REQUEST_CALL;
    cm_metrics_add(&metrics->requests[kind][status_index(status)], 1);
    unsigned bucket = 0;
    while (ns > buckets[bucket].ns)
        bucket++;
    cm_metrics_add(&metrics->seconds[bucket], 1);
    cm_metrics_add(&metrics->seconds_sum_ns, ns);
}

void cm_metrics_batch(struct cm_metrics *metrics, const struct cm_batch *batch,
                      const struct cm_batch_reply *reply, uint64_t bytes)
{
    unsigned mode = batch->mode < CM_METRICS_MODES ? batch->mode : 0;
    unsigned direction = batch->direction < CM_METRICS_DIRECTIONS ? batch->direction : 0;
    cm_metrics_add(&metrics->bytes[mode][direction], bytes);
    _Atomic uint64_t *row = metrics->items[mode][direction];
    if (reply->statuses == NULL) {
        cm_metrics_add(&row[CM_STATUS_OK], reply->count);
        return;
    }
    for (uint32_t i = 0; i < reply->count; i++)
        cm_metrics_add(&row[status_index(reply->statuses[i])], 1);
}

static uint64_t get(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Adds every thread's counters. The struct holds nothing but counters. */
static void sum(const struct cm_metrics_gauges *gauges, struct cm_metrics *ret_total)
{
    enum { COUNTERS = sizeof *ret_total / sizeof(_Atomic uint64_t) };
    _Atomic uint64_t *to = (_Atomic uint64_t *)ret_total;
    for (uint32_t t = 0; t < gauges->thread_count; t++) {
        const _Atomic uint64_t *from = (const _Atomic uint64_t *)gauges->threads[t];
        for (size_t i = 0; i < COUNTERS; i++)
            cm_metrics_add(&to[i], get(&from[i]));
    }
}

static void print_head(FILE *out, const char *name, const char *type, const char *help)
{
    fprintf(out, "# HELP ciphermill_%s %s\n# TYPE ciphermill_%s %s\n", name, help, name, type);
}

static void print_single(FILE *out, const char *name, const char *type, const char *help, uint64_t value)
{
    print_head(out, name, type, help);
    fprintf(out, "ciphermill_%s %" PRIu64 "\n", name, value);
}

/* A rate needs the series to exist before the first event, but the product of all labels would be mostly
 * zeros: what is well stands always, what went wrong from its first time. */
static bool shown(uint64_t value, uint32_t status)
{
    return value != 0 || status == CM_STATUS_OK;
}

static void print_requests(FILE *out, const struct cm_metrics *total)
{
    print_head(out, "requests_total", "counter", "Requests answered, by kind and status.");
    for (unsigned kind = 0; kind < CM_REQUEST_KINDS; kind++)
        for (uint32_t status = 0; status < CM_METRICS_STATUSES; status++) {
            uint64_t value = get(&total->requests[kind][status]);
            if (shown(value, status))
                fprintf(out, "ciphermill_requests_total{kind=\"%s\",status=\"%s\"} %" PRIu64 "\n",
                        kind_names[kind], cm_wire_status_word(status), value);
        }
}

static void print_items(FILE *out, const struct cm_metrics *total)
{
    print_head(out, "items_total", "counter", "Items of batches, by mode, direction and status.");
    for (unsigned mode = 0; mode < CM_METRICS_MODES; mode++)
        for (unsigned direction = 0; direction < CM_METRICS_DIRECTIONS; direction++)
            for (uint32_t status = 0; status < CM_METRICS_STATUSES; status++) {
                uint64_t value = get(&total->items[mode][direction][status]);
                if (value != 0 || (shown(value, status) && mode != 0 && direction != 0))
                    fprintf(
                        out,
                        "ciphermill_items_total{mode=\"%s\",direction=\"%s\",status=\"%s\"} %" PRIu64 "\n",
                        cm_mode_word(mode), cm_direction_word(direction), cm_wire_status_word(status), value);
            }
    print_head(out, "bytes_total", "counter", "Input bytes of batches, by mode and direction.");
    for (unsigned mode = 1; mode < CM_METRICS_MODES; mode++)
        for (unsigned direction = 1; direction < CM_METRICS_DIRECTIONS; direction++)
            fprintf(out, "ciphermill_bytes_total{mode=\"%s\",direction=\"%s\"} %" PRIu64 "\n",
                    cm_mode_word(mode), cm_direction_word(direction), get(&total->bytes[mode][direction]));
}

static void print_histogram(FILE *out, const struct cm_metrics *total)
{
    print_head(out, "request_seconds", "histogram",
               "Time from a request's last byte read to its reply being ready to leave.");
    uint64_t count = 0;
    for (unsigned i = 0; i < CM_METRICS_BUCKETS; i++) {
        count += get(&total->seconds[i]);
        fprintf(out, "ciphermill_request_seconds_bucket{le=\"%s\"} %" PRIu64 "\n", buckets[i].seconds, count);
    }
    uint64_t ns = get(&total->seconds_sum_ns);
    fprintf(out, "ciphermill_request_seconds_sum %" PRIu64 ".%09" PRIu64 "\n", ns / 1000000000,
            ns % 1000000000);
    fprintf(out, "ciphermill_request_seconds_count %" PRIu64 "\n", count);
}

static void print_workers(FILE *out, const struct cm_metrics_gauges *gauges, const struct cm_metrics *total)
{
    print_head(out, "worker_busy_seconds_total", "counter", "Time that a worker did not wait, by worker.");
    for (uint32_t t = 0; t < gauges->thread_count; t++) {
        uint64_t ns = get(&gauges->threads[t]->busy_ns);
        fprintf(out, "ciphermill_worker_busy_seconds_total{worker=\"%u\"} %" PRIu64 ".%09" PRIu64 "\n", t,
                ns / 1000000000, ns % 1000000000);
    }
    print_single(out, "jobs_shared_total", "counter", "Batches that several workers ran together.",
                 get(&total->jobs_shared));
    print_head(out, "wake_seconds", "gauge", "Cost of waking another worker, measured at start.");
    fprintf(out, "ciphermill_wake_seconds 0.%09" PRIu64 "\n", gauges->wake_ns % 1000000000);
}

static void print_connections(FILE *out, const struct cm_metrics_gauges *gauges,
                              const struct cm_metrics *total)
{
    print_single(out, "connections", "gauge", "Connections open now.", gauges->connections);
    print_single(out, "connections_total", "counter", "Connections accepted.", gauges->connections_total);
    print_single(out, "connections_refused_total", "counter", "Connections refused at a limit.",
                 gauges->connections_refused_total);
    print_single(out, "accept_paused_total", "counter",
                 "Times that accepting paused because descriptors or memory ran out.",
                 gauges->accept_paused_total);
    print_head(out, "connections_closed_total", "counter", "Connections closed, by reason.");
    for (unsigned reason = 0; reason < CM_CLOSE_REASONS; reason++)
        fprintf(out, "ciphermill_connections_closed_total{reason=\"%s\"} %" PRIu64 "\n", close_names[reason],
                get(&total->closed[reason]));
    print_single(out, "inflight_bytes", "gauge", "Bytes held for requests and replies.",
                 gauges->inflight_bytes);
    print_single(out, "inflight_limit_bytes", "gauge", "Limit of inflight_bytes.",
                 gauges->inflight_limit_bytes);
}

static void print_implementations(FILE *out)
{
    print_head(out, "implementation_info", "gauge",
               "The implementation in use, by mode, direction and size class of batches.");
    for (enum cm_aes_mode mode = 0; mode < CM_AES_MODE_COUNT; mode++)
        for (enum cm_aes_direction direction = 0; direction < CM_AES_DIRECTION_COUNT; direction++)
            for (enum cm_aes_size_class size = 0; size < CM_AES_SIZE_CLASS_COUNT; size++)
                fprintf(
                    out,
                    "ciphermill_implementation_info{mode=\"%s\",direction=\"%s\",batches=\"%s\",name=\"%s\"}"
                    " 1\n",
                    cm_mode_word(cm_mode_to_wire(mode)), cm_direction_word(cm_direction_to_wire(direction)),
                    class_words[size], cm_aes_row_name(cm_aes_row(mode, direction), size));
}

void cm_metrics_print(FILE *out, const struct cm_metrics_gauges *gauges)
{
    struct cm_metrics total = {0};
    sum(gauges, &total);
    print_head(out, "build_info", "gauge", "The version that runs.");
    fprintf(out, "ciphermill_build_info{version=\"%s\"} 1\n", gauges->version);
    print_head(out, "start_time_seconds", "gauge", "When the daemon started, in Unix time.");
    fprintf(out, "ciphermill_start_time_seconds %" PRIu64 ".%03" PRIu64 "\n", gauges->start_unix_ms / 1000,
            gauges->start_unix_ms % 1000);
    print_single(out, "ready", "gauge", "1 while requests are served.", gauges->ready);
    print_single(out, "draining", "gauge", "1 once the daemon is going away.", gauges->draining);
    print_requests(out, &total);
    print_items(out, &total);
    print_histogram(out, &total);
    print_connections(out, gauges, &total);
    print_workers(out, gauges, &total);
    print_implementations(out);
}
