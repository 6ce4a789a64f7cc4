/* SPDX-License-Identifier: Apache-2.0 */
/* Results of the load test for people and for programs. */
#include "show.h"
#include "connect.h"
#include "text.h"
#include <inttypes.h>
#include <string.h>

static const struct {
    const char *name;
    double part;
} percentiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p999", 0.999}};
enum { PERCENTILES = sizeof percentiles / sizeof percentiles[0] };

static double per_second(const struct result *result, uint64_t count)
{
    return result->seconds > 0 ? (double)count / result->seconds : 0;
}

static double microseconds(const struct histogram *histogram, double part)
{
    return (double)histogram_percentile(histogram, part) * 1e-3;
}

const char *show_cpu(void)
{
    static char model[128];
    char line[512];
    FILE *file = fopen("/proc/cpuinfo", "re");

    snprintf(model, sizeof model, "unknown");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        char *colon = strchr(line, ':');

        /* "model name" on x86, "cpu" on POWER. */
        if (colon == NULL || (strncmp(line, "model name", 10) != 0 && strncmp(line, "cpu\t", 4) != 0))
            continue;
        colon += 1 + strspn(colon + 1, " \t");
        colon[strcspn(colon, "\n")] = '\0';
        snprintf(model, sizeof model, "%s", colon);
        break;
    }
    if (file != NULL)
        fclose(file);
    return model;
}

const char *show_implementation(const struct plan *plan, const struct result *result)
{
    struct combination kinds[PLAN_COMBINATIONS];
    uint32_t count = plan_combinations(plan, kinds);
    const char *first = result->implementations[kinds[0].mode][kinds[0].direction];

    for (uint32_t i = 1; i < count; i++) {
        if (strcmp(first, result->implementations[kinds[i].mode][kinds[i].direction]) != 0)
            return "mixed";
    }
    return first[0] == '\0' ? "unknown" : first;
}

static void show_size(const struct plan *plan, char out[48])
{
    if (plan->size_least == plan->size_most)
        snprintf(out, 48, "%" PRIu64, plan->size_most);
    else
        snprintf(out, 48, "%" PRIu64 "-%" PRIu64, plan->size_least, plan->size_most);
}

static void show_errors(const struct result *result)
{
    printf("errors        %" PRIu64 " items\n", result->errors);
    for (int status = 0; status < PLAN_STATUSES; status++) {
        if (result->statuses[status] != 0)
            printf("              %" PRIu64 " %s\n", result->statuses[status], cm_status_name(-status));
    }
}

void show_text(const struct plan *plan, const struct result *result)
{
    char size[48];
    char rate[TEXT_BYTES_MAX];

    show_size(plan, size);
    text_format_bytes(per_second(result, result->bytes), rate);
    printf(
        "%s %s, %u bits, %u items of %s bytes a batch, %u in flight on each of %u connections, %u threads\n",
        plan_mode_name(plan), plan_direction_name(plan), plan->key_bits, plan->batch, size, plan->inflight,
        plan->connections, plan->threads);
    printf("daemon        %s at %s, implementation %s\nprocessor     %s\n", result->server,
           connect_endpoint(plan->cli), show_implementation(plan, result), show_cpu());
    printf("measured      %.2f s after %.2f s of warm-up, ", result->seconds, plan->warmup_s);
    if (plan->rate > 0)
        printf("open loop at %.0f batches/s\n", plan->rate);
    else
        printf("closed loop\n");
    printf("throughput    %.0f batches/s, %.0f items/s, %s/s\n", per_second(result, result->batches),
           per_second(result, result->items), rate);
    printf("latency us   ");
    for (int i = 0; i < PERCENTILES; i++)
        printf(" %s %.1f, ", percentiles[i].name, microseconds(&result->latency, percentiles[i].part));
    printf(" max %.1f  (a batch%s)\n", (double)result->latency.max * 1e-3,
           plan->rate > 0 ? ", from its intended start" : "");
    if (plan->rate > 0)
        printf("late us       p99 %.1f, max %.1f by the bench itself; %" PRIu64
               " batches due and never sent\n",
               microseconds(&result->lag, 0.99), (double)result->lag.max * 1e-3, result->unsent);
    printf("verified      %" PRIu64 " items in %" PRIu64 " batches against OpenSSL, %" PRIu64 " mismatches\n",
           result->verified, result->verified_batches, result->mismatches);
    show_errors(result);
}

static void json_latency(struct json *json, const char *key, const struct histogram *histogram)
{
    json_object_begin(json, key);
    for (int i = 0; i < PERCENTILES; i++)
        json_real(json, percentiles[i].name, microseconds(histogram, percentiles[i].part), 3);
    json_real(json, "max", (double)histogram->max * 1e-3, 3);
    json_object_end(json);
}

static void json_errors(struct json *json, const struct result *result)
{
    json_uint(json, "errors", result->errors);
    json_object_begin(json, "errors_by_status");
    for (int status = 0; status < PLAN_STATUSES; status++) {
        if (result->statuses[status] != 0)
            json_uint(json, cm_status_name(-status), result->statuses[status]);
    }
    json_object_end(json);
}

static void json_implementations(struct json *json, const struct plan *plan, const struct result *result)
{
    struct combination kinds[PLAN_COMBINATIONS];
    uint32_t count = plan_combinations(plan, kinds);

    json_string(json, "implementation", show_implementation(plan, result));
    json_array_begin(json, "implementations");
    for (uint32_t i = 0; i < count; i++) {
        json_object_begin(json, NULL);
        json_string(json, "mode", text_mode_name(kinds[i].mode));
        json_string(json, "direction", kinds[i].direction == CM_ENCRYPT ? "encrypt" : "decrypt");
        json_string(json, "implementation", result->implementations[kinds[i].mode][kinds[i].direction]);
        json_object_end(json);
    }
    json_array_end(json);
}

static void json_plan(struct json *json, const struct plan *plan)
{
    json_string(json, "mode", plan_mode_name(plan));
    json_string(json, "direction", plan_direction_name(plan));
    json_uint(json, "key_bits", plan->key_bits);
    json_uint(json, "size", plan->size_most);
    json_uint(json, "size_min", plan->size_least);
    json_uint(json, "batch", plan->batch);
    json_uint(json, "inflight", plan->inflight);
    json_uint(json, "connections", plan->connections);
    json_uint(json, "threads", plan->threads);
    json_bool(json, "padding", plan->padding);
    json_bool(json, "caller_iv", plan->caller_iv);
    if (plan->rate > 0)
        json_real(json, "rate", plan->rate, 3);
    json_real(json, "warmup_s", plan->warmup_s, 3);
}

void show_json(struct json *json, const struct plan *plan, const struct result *result)
{
    json_object_begin(json, NULL);
    json_plan(json, plan);
    json_real(json, "duration_s", result->seconds, 3);
    json_uint(json, "batches", result->batches);
    json_real(json, "batches_per_s", per_second(result, result->batches), 3);
    json_real(json, "items_per_s", per_second(result, result->items), 3);
    json_real(json, "bytes_per_s", per_second(result, result->bytes), 0);
    if (result->openssl_bytes_per_s > 0)
        json_real(json, "openssl_bytes_per_s", result->openssl_bytes_per_s, 0);
    json_latency(json, "latency_us", &result->latency);
    if (plan->rate > 0) {
        json_latency(json, "schedule_lag_us", &result->lag);
        json_uint(json, "unsent_batches", result->unsent);
    }
    json_errors(json, result);
    json_uint(json, "verified", result->verified);
    json_uint(json, "verified_batches", result->verified_batches);
    json_uint(json, "mismatches", result->mismatches);
    json_implementations(json, plan, result);
    json_string(json, "server", result->server);
    json_string(json, "endpoint", connect_endpoint(plan->cli));
    json_string(json, "cpu", show_cpu());
    json_object_end(json);
}

void show_csv_head(void)
{
    puts("mode,direction,key_bits,size_min,size,batch,inflight,connections,threads,rate,duration_s,batches_"
         "per_s,"
         "items_per_s,bytes_per_s,openssl_bytes_per_s,p50_us,p90_us,p99_us,p999_us,max_us,errors,verified,"
         "mismatches,implementation,"
         "server,cpu");
}

void show_csv(const struct plan *plan, const struct result *result)
{
    printf("%s,%s,%u,%" PRIu64 ",%" PRIu64 ",%u,%u,%u,%u,%.3f,%.3f,%.3f,%.3f,%.0f,%.0f", plan_mode_name(plan),
           plan_direction_name(plan), plan->key_bits, plan->size_least, plan->size_most, plan->batch,
           plan->inflight, plan->connections, plan->threads, plan->rate, result->seconds,
           per_second(result, result->batches), per_second(result, result->items),
           per_second(result, result->bytes), result->openssl_bytes_per_s);
    for (int i = 0; i < PERCENTILES; i++)
        printf(",%.3f", microseconds(&result->latency, percentiles[i].part));
    printf(",%.3f,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%s,\"%s\",\"%s\"\n", (double)result->latency.max * 1e-3,
           result->errors, result->verified, result->mismatches, show_implementation(plan, result),
           result->server, show_cpu());
}
