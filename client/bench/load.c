/* SPDX-License-Identifier: Apache-2.0 */
/* Sets up the loaders of a run, lets them go together, and adds up what they counted. */
#include "load.h"
#include "clock.h"
#include "connect.h"
#include "loader.h"
#include "report.h"
#include "text.h"
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

struct load {
    struct course course;
    const struct keys *keys;
    struct connection *connections;
    struct loader *loaders;
    uint32_t connection_count, loader_count, verifier_count;
};

static atomic_bool *interrupt_flag;
static atomic_bool interrupted;

static void on_interrupt(int number)
{
    (void)number;
    atomic_store(&interrupted, true);
    atomic_store(interrupt_flag, true);
}

bool load_interrupted(void)
{
    return atomic_load(&interrupted);
}

int load_code(const struct result *result)
{
    if (result->mismatches > 0)
        return report_error(CODE_FAILED,
                            "%" PRIu64 " of %" PRIu64 " verified items differ from what OpenSSL computes",
                            result->mismatches, result->verified);
    if (result->errors == 0 && result->verified == 0)
        return report_error(CODE_FAILED, "no batch came back, so nothing was verified");
    return result->code;
}

static void handle_interrupt(struct course *course)
{
    const struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};

    interrupt_flag = &course->stop;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* A thousand connections need more descriptors than the usual soft limit. */
static void raise_descriptors(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int check_memory(const struct plan *plan)
{
    double wanted = (double)unit_bytes(plan) * connection_units(plan) * plan->connections;
    double there = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    char wanted_text[TEXT_BYTES_MAX];
    char there_text[TEXT_BYTES_MAX];

    if (wanted <= there / 2)
        return CODE_OK;
    text_format_bytes(wanted, wanted_text);
    text_format_bytes(there, there_text);
    return report_error(
        CODE_USAGE,
        "the batches of all connections would take %s, more than half of this machine's %s: lower "
        "--connections, --inflight, --batch or --size",
        wanted_text, there_text);
}

static int open_connections(struct load *load)
{
    const struct plan *plan = load->course.plan;
    struct reference reference;
    int code = CODE_OK;

    load->connections = calloc(plan->connections, sizeof load->connections[0]);
    load->loaders = calloc(plan->threads, sizeof load->loaders[0]);
    if (load->connections == NULL || load->loaders == NULL)
        return report_error(CODE_FAILED, "no memory");
    reference_init(&reference, load->keys);
    for (uint32_t i = 0; i < plan->connections && code == CODE_OK && !load_interrupted(); i++) {
        load->connection_count++;
        code = connection_open(&load->connections[i], plan, load->keys, connection_units(plan), &reference);
    }
    reference_done(&reference);
    return load_interrupted() ? report_error(CODE_FAILED, "interrupted before the load began") : code;
}

/* Shares out the connections and starts the verifiers. */
static int prepare_loaders(struct load *load)
{
    const struct plan *plan = load->course.plan;
    uint32_t first = 0;

    for (uint32_t i = 0; i < plan->threads; i++) {
        struct loader *loader = &load->loaders[i];
        uint32_t after = (uint32_t)((uint64_t)plan->connections * (i + 1) / plan->threads);

        loader->course = &load->course;
        loader->connections = &load->connections[first];
        loader->connection_count = after - first;
        first = after;
        if (!verifier_start(&loader->verifier, plan, load->keys))
            return report_error(CODE_FAILED, "can't start a thread for verification");
        load->verifier_count++;
    }
    return CODE_OK;
}

static int run_loaders(struct load *load)
{
    const struct plan *plan = load->course.plan;
    const uint64_t head_start_ns = 2000000; /* the threads are there by then */
    int code = CODE_OK;

    load->course.start_ns = clock_now() + head_start_ns;
    load->course.begin_ns = load->course.start_ns + (uint64_t)(plan->warmup_s * 1e9);
    load->course.end_ns = load->course.begin_ns + (uint64_t)(plan->duration_s * 1e9);
    for (uint32_t i = 0; i < plan->connections && plan->rate > 0; i++)
        schedule_init(&load->connections[i].schedule, load->course.start_ns, plan->rate, i,
                      plan->connections);
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); /* inherited by the threads; an open loop wants its times */
    for (; load->loader_count < plan->threads && code == CODE_OK; load->loader_count++) {
        struct loader *loader = &load->loaders[load->loader_count];

        if (pthread_create(&loader->thread, NULL, loader_run, loader) != 0) {
            code = report_error(CODE_FAILED, "can't start a thread");
            atomic_store(&load->course.stop, true);
            break;
        }
    }
    for (uint32_t i = 0; i < load->loader_count; i++)
        pthread_join(load->loaders[i].thread, NULL);
    return code;
}

static void add_up(const struct load *load, struct result *result)
{
    const struct course *course = &load->course;
    const cm_error *first_error = NULL;
    uint64_t stopped_ns = course->begin_ns;

    for (uint32_t i = 0; i < load->loader_count; i++) {
        const struct loader *loader = &load->loaders[i];

        result->batches += loader->batches;
        result->items += loader->items;
        result->bytes += loader->bytes;
        result->unsent += loader->unsent;
        result->verified += loader->verifier.checked;
        result->verified_batches += loader->verifier.batches;
        result->mismatches += loader->verifier.wrong;
        for (int status = 0; status < PLAN_STATUSES; status++) {
            result->statuses[status] += loader->statuses[status];
            result->errors += loader->statuses[status];
        }
        histogram_merge(&result->latency, &loader->latency);
        histogram_merge(&result->lag, &loader->lag);
        if (loader->stopped_ns > stopped_ns)
            stopped_ns = loader->stopped_ns;
        if (first_error == NULL && loader->first_error.code != 0)
            first_error = &loader->first_error;
        if (result->code == CODE_OK || result->code == CODE_REPEAT || loader->code == CODE_UNKNOWN)
            result->code = loader->code == CODE_OK ? result->code : loader->code;
    }
    if (stopped_ns > course->end_ns)
        stopped_ns = course->end_ns;
    result->seconds = (double)(stopped_ns - course->begin_ns) * 1e-9;
    if (first_error != NULL)
        report_failure(first_error, "a batch failed (the first such error; the result counts the others)");
}

/* Which size classes the plan's batches fall into, as admin.h has them; a range may fall into several. */
static uint32_t classes_of(const struct plan *plan)
{
    enum { SHORT_ITEMS = 2, SHORT_BYTES = 128, SMALL_BYTES = 224 };
    bool few = plan->batch <= SHORT_ITEMS;
    uint32_t classes = 0;

    if (few && plan->batch * plan->size_least <= SHORT_BYTES)
        classes |= CM_USED_SHORT;
    if (few && plan->batch * plan->size_most <= SHORT_BYTES)
        return classes;
    if (plan->size_least <= SMALL_BYTES)
        classes |= CM_USED_SMALL;
    if (plan->size_most > SMALL_BYTES)
        classes |= CM_USED_LONG;
    return classes;
}

/* Where several classes are at work, their names stand with a plus between. */
static void name_implementation(char name[32], const char *implementation)
{
    size_t used = strlen(name);

    snprintf(name + used, 32 - used, "%s%.15s", used == 0 ? "" : "+", implementation);
}

/* What the result says of the daemon. Not knowing it is no failure of the measurement. */
static void look_at_daemon(cm_client *client, const struct plan *plan, struct result *result)
{
    cm_server_details status = {.size = sizeof status};
    cm_implementation_details *rows = NULL;
    size_t count = 0;

    if (cm_get_status(client, &status, NULL) == 0)
        snprintf(result->server, sizeof result->server, "%s", status.server);
    if (cm_get_implementations(client, &rows, &count, NULL) == 0) {
        for (size_t i = 0; i < count; i++) {
            if ((rows[i].used & classes_of(plan)) == 0 || rows[i].mode <= 0 || rows[i].mode >= PLAN_MODES ||
                rows[i].direction <= 0 || rows[i].direction >= PLAN_DIRECTIONS)
                continue;
            name_implementation(result->implementations[rows[i].mode][rows[i].direction],
                                rows[i].implementation);
        }
    }
    free(rows);
}

int load_run(const struct plan *plan, const struct keys *keys, struct result *ret_result)
{
    struct load load = {.course = {.plan = plan}, .keys = keys};
    int code;

    memset(ret_result, 0, sizeof *ret_result);
    raise_descriptors();
    handle_interrupt(&load.course);
    code = check_memory(plan);
    if (code == CODE_OK)
        code = open_connections(&load);
    if (code == CODE_OK)
        code = prepare_loaders(&load);
    if (code == CODE_OK) {
        look_at_daemon(load.connections[0].client, plan, ret_result);
        code = run_loaders(&load);
    }
    for (uint32_t i = 0; i < load.verifier_count; i++)
        verifier_stop(&load.loaders[i].verifier);
    if (code == CODE_OK)
        add_up(&load, ret_result);
    for (uint32_t i = 0; i < load.connection_count; i++)
        connection_close(&load.connections[i]);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    free(load.connections);
    free(load.loaders);
    return code;
}
