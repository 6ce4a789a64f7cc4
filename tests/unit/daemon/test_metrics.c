/* SPDX-License-Identifier: Apache-2.0 */
/* Prometheus text: sums over threads, exact integers, histogram, and which series stand there. */
#include "metrics.h"

#include "cm_aes.h"
#include "status.h"

#include "suite.h"
#include <string.h>

static struct cm_metrics threads[2];

static char *print(void)
{
    const struct cm_metrics *pointers[2] = {&threads[0], &threads[1]};
    const struct cm_metrics_gauges gauges = {.threads = pointers,
                                             .thread_count = 2,
                                             .inflight_bytes = 123,
                                             .inflight_limit_bytes = UINT64_C(9007199254740993),
                                             .connections = 4,
                                             .connections_total = 5,
                                             .connections_refused_total = 6,
                                             .accept_paused_total = 7,
                                             .wake_ns = 16500,
                                             .ready = true,
                                             .start_unix_ms = 1700000000042,
                                             .version = "1.2.3"};
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    cm_metrics_print(out, &gauges);
    fclose(out);
    return text;
}

/* The text has this line, whole. */
static void expect(const char *text, const char *line)
{
    char wanted[256];
    snprintf(wanted, sizeof wanted, "\n%s\n", line);
    ck_assert_msg(strstr(text, wanted) != NULL, "missing: %s\n%s", line, text);
}

START_TEST(samples)
{
    static const uint32_t statuses[3] = {CM_STATUS_OK, CM_STATUS_BAD_TAG, CM_STATUS_OK};
    const struct cm_batch batch = {.mode = CM_WIRE_GCM, .direction = CM_WIRE_DECRYPT, .count = 3};
    const struct cm_batch strange = {.mode = 77, .direction = 9, .count = 1};
    const struct cm_batch_reply mixed = {.count = 3, .statuses = statuses};
    const struct cm_batch_reply well = {.count = 3};
    const uint32_t refused[1] = {CM_STATUS_UNSUPPORTED};
    const struct cm_batch_reply unknown = {.count = 1, .statuses = refused};
    cm_metrics_request(&threads[0], CM_REQUEST_BATCH, CM_STATUS_OK, 2500);
    cm_metrics_request(&threads[1], CM_REQUEST_BATCH, CM_STATUS_OK, 2501);
    cm_metrics_request(&threads[1], CM_REQUEST_CALL + CM_CALL_CREATE_KEY, CM_STATUS_EXISTS,
                       UINT64_C(3000000000));
    cm_metrics_request(&threads[1], 4000, 5000, 0);
    cm_metrics_batch(&threads[0], &batch, &mixed, UINT64_C(9007199254740992));
    cm_metrics_batch(&threads[1], &batch, &well, 1);
    cm_metrics_batch(&threads[1], &strange, &unknown, 0);
    cm_metrics_add(&threads[1].busy_ns, 1500000000);
    cm_metrics_add(&threads[1].jobs_shared, 9);
    cm_metrics_add(&threads[0].closed[CM_CLOSE_STALLED], 2);

    char *text = print();
    expect(text, "ciphermill_build_info{version=\"1.2.3\"} 1");
    expect(text, "ciphermill_start_time_seconds 1700000000.042");
    expect(text, "ciphermill_ready 1");
    expect(text, "ciphermill_draining 0");
    expect(text, "# TYPE ciphermill_requests_total counter");
    expect(text, "ciphermill_requests_total{kind=\"batch\",status=\"ok\"} 2");
    expect(text, "ciphermill_requests_total{kind=\"hello\",status=\"ok\"} 0");
    expect(text, "ciphermill_requests_total{kind=\"create_key\",status=\"exists\"} 1");
    expect(text, "ciphermill_requests_total{kind=\"unknown_call\",status=\"unknown\"} 1");
    expect(text, "ciphermill_items_total{mode=\"gcm\",direction=\"decrypt\",status=\"ok\"} 5");
    expect(text, "ciphermill_items_total{mode=\"gcm\",direction=\"decrypt\",status=\"bad_tag\"} 1");
    expect(text, "ciphermill_items_total{mode=\"unknown\",direction=\"unknown\",status=\"unsupported\"} 1");
    /* 2^53 + 1, which no double can hold */
    expect(text, "ciphermill_bytes_total{mode=\"gcm\",direction=\"decrypt\"} 9007199254740993");
    expect(text, "ciphermill_inflight_limit_bytes 9007199254740993");
    expect(text, "ciphermill_request_seconds_bucket{le=\"2.5e-06\"} 2");
    expect(text, "ciphermill_request_seconds_bucket{le=\"5e-06\"} 3");
    expect(text, "ciphermill_request_seconds_bucket{le=\"2.5\"} 3");
    expect(text, "ciphermill_request_seconds_bucket{le=\"+Inf\"} 4");
    expect(text, "ciphermill_request_seconds_sum 3.000005001");
    expect(text, "ciphermill_request_seconds_count 4");
    expect(text, "ciphermill_worker_busy_seconds_total{worker=\"0\"} 0.000000000");
    expect(text, "ciphermill_worker_busy_seconds_total{worker=\"1\"} 1.500000000");
    expect(text, "ciphermill_jobs_shared_total 9");
    expect(text, "ciphermill_wake_seconds 0.000016500");
    expect(text, "ciphermill_connections_closed_total{reason=\"stalled\"} 2");
    expect(text, "ciphermill_connections 4");
    ck_assert_ptr_nonnull(strstr(
        text,
        "\nciphermill_implementation_info{mode=\"ctr\",direction=\"encrypt\",batches=\"short\",name=\""));
    ck_assert_ptr_nonnull(strstr(
        text,
        "\nciphermill_implementation_info{mode=\"xts\",direction=\"decrypt\",batches=\"long\",name=\""));
    free(text);
}
END_TEST

/* Every line is a comment or a sample, and no series stands twice. */
START_TEST(well_formed)
{
    char *text = print(), *save = NULL;
    static char *lines[2048];
    size_t count = 0;
    for (char *line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
        if (line[0] == '#')
            continue;
        char *space = strrchr(line, ' ');
        ck_assert_ptr_nonnull(space);
        ck_assert_uint_eq(strspn(space + 1, "0123456789."), strlen(space + 1));
        ck_assert_int_eq(strncmp(line, "ciphermill_", 11), 0);
        *space = '\0';
        for (size_t i = 0; i < count; i++)
            ck_assert_str_ne(lines[i], line);
        lines[count++] = line;
    }
    ck_assert_uint_gt(count, 50);
    free(text);
}
END_TEST

static void add(TCase *test_case)
{
    tcase_add_test(test_case, samples);
    tcase_add_test(test_case, well_formed);
}

int main(void)
{
    if (cm_aes_init(NULL) != CM_AES_OK)
        return EXIT_FAILURE;
    return run_suite("metrics", add);
}
