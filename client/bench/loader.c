/* SPDX-License-Identifier: Apache-2.0 */
/* Sends batches in a closed or an open loop and takes the time of each. */
#include "loader.h"
#include "clock.h"
#include "report.h"
#include <poll.h>
#include <stdlib.h>

/* Completions taken at once, and the longest wait for one. */
enum { TAKE = 64, WAIT_MS = 10 };
static const uint64_t wait_ns_most = 10000000;

/* One batch in so many is verified, however high the rate. */
static const uint64_t verify_at_least = 1024;
/* Otherwise verification may take this part of the time. */
static const double verify_part = 0.1;

static void count_error(struct loader *loader, int status, uint64_t items)
{
    uint64_t index = status <= 0 && status > -PLAN_STATUSES ? (uint64_t)-status : PLAN_STATUSES - 1;

    loader->statuses[index] += items;
}

static void note_error(struct loader *loader, const cm_error *error, uint64_t items)
{
    int code = report_code_of(error->code, error->retry);

    count_error(loader, error->code, items);
    if (loader->first_error.code == 0)
        loader->first_error = *error;
    /* "Outcome unknown" is the worst of them, "safe to repeat" the least. */
    if (loader->code == CODE_OK || loader->code == CODE_REPEAT || code == CODE_UNKNOWN)
        loader->code = code;
}

/* Below the part of the time, whatever can be spared is verified: at low rates that is everything. */
static bool verification_is_due(struct loader *loader, const struct connection *connection, uint64_t now_ns)
{
    double spent_ns = (double)atomic_load_explicit(&loader->verifier.spent_ns, memory_order_relaxed);
    double elapsed_ns = (double)(now_ns - loader->course->start_ns);

    if (loader->course->plan->verify_all || ++loader->since_verified >= verify_at_least)
        return true;
    return connection->idle != NULL && spent_ns <= elapsed_ns * verify_part;
}

static void count_items(struct loader *loader, const struct unit *unit, uint64_t done_ns)
{
    const struct course *course = loader->course;
    uint64_t failed = 0;

    for (size_t i = 0; i < unit->count; i++) {
        const cm_item *item = &unit->items[i];

        if (item->status == CM_OK)
            continue;
        failed++;
        note_error(loader, &(cm_error){.code = item->status, .retry = cm_status_retry(item->status)}, 1);
    }
    if (unit->intended_ns >= course->begin_ns && unit->intended_ns < course->end_ns)
        histogram_add(&loader->latency, done_ns - unit->intended_ns);
    if (done_ns >= course->begin_ns && done_ns < course->end_ns) {
        loader->batches++;
        loader->items += unit->count - failed;
        loader->bytes += unit_bytes_done(unit);
    }
}

/* Counts a batch that came back. Returns the unit if it is to be verified, else it rests. */
static struct unit *take_completion(struct loader *loader, const cm_completion *completion, uint64_t done_ns)
{
    struct unit *unit = completion->tag;
    struct connection *connection = unit->connection;

    if (connection->inflight-- == connection->plan->inflight)
        connection->room_ns = done_ns;
    if (completion->result < 0) {
        note_error(loader, &completion->error, unit->count);
        connection_suffer(connection, &completion->error);
        connection_rest(connection, unit);
        return NULL;
    }
    count_items(loader, unit, done_ns);
    if (verification_is_due(loader, connection, done_ns)) {
        loader->since_verified = 0;
        return unit;
    }
    connection_rest(connection, unit);
    return NULL;
}

static void take_back(struct loader *loader, bool wait)
{
    struct unit *unit = loader->given == 0 ? NULL : verifier_take(&loader->verifier, wait);

    while (unit != NULL) {
        struct unit *next = unit->next;

        connection_rest(unit->connection, unit);
        loader->given--;
        unit = next;
    }
}

/* The intended time of the next batch, if it may be sent now; 0 if not. */
static uint64_t next_intended(const struct loader *loader, const struct connection *connection,
                              uint64_t now_ns)
{
    uint64_t due_ns;

    if (!connection_can_send(connection, now_ns))
        return 0;
    if (loader->course->plan->rate <= 0)
        return now_ns;
    due_ns = schedule_due(&connection->schedule);
    return due_ns <= now_ns ? due_ns : 0;
}

static void send_due(struct loader *loader, struct connection *connection)
{
    bool open_loop = loader->course->plan->rate > 0;
    uint64_t now_ns = clock_now();
    uint64_t intended_ns;

    while (now_ns < loader->course->end_ns &&
           (intended_ns = next_intended(loader, connection, now_ns)) != 0) {
        struct connection_trouble trouble;

        /* Waiting for room is the daemon's doing; being late in spite of it is the bench's. */
        if (open_loop && intended_ns >= connection->room_ns)
            histogram_add(&loader->lag, now_ns - intended_ns);
        if (!connection_send(connection, intended_ns, &trouble)) {
            note_error(loader, &trouble.error, trouble.items);
            connection_suffer(connection, &trouble.error);
        }
        if (open_loop)
            schedule_advance(&connection->schedule);
        now_ns = clock_now();
    }
}

/* Takes what has come back on one connection, sends what that made room for, and only then hands over what is
 * to be verified: the daemon works meanwhile. */
static void serve(struct loader *loader, struct connection *connection, bool sending, int wait_ms)
{
    cm_completion completions[TAKE];
    cm_error error = CM_ERROR_INIT;
    struct unit *to_verify = NULL;
    int count = cm_poll(connection->client, completions, TAKE, wait_ms, &error);
    uint64_t done_ns = clock_now();

    if (count < 0) {
        note_error(loader, &error, (uint64_t)connection->inflight * loader->course->plan->batch);
        connection->ended = true;
        connection->inflight = 0;
        return;
    }
    for (int i = 0; i < count; i++) {
        struct unit *unit = take_completion(loader, &completions[i], done_ns);

        if (unit == NULL)
            continue;
        loader->given++;
        unit->next = to_verify;
        to_verify = unit;
    }
    if (sending)
        send_due(loader, connection);
    while (to_verify != NULL) {
        struct unit *next = to_verify->next;

        verifier_give(&loader->verifier, to_verify);
        to_verify = next;
    }
}

/* How long nothing need be done unless a descriptor becomes readable. */
static uint64_t idle_ns(const struct loader *loader, bool sending)
{
    uint64_t now_ns = clock_now();
    uint64_t until_ns = now_ns + wait_ns_most;

    for (uint32_t i = 0; i < loader->connection_count && sending; i++) {
        const struct connection *connection = &loader->connections[i];
        uint64_t due_ns = connection->resume_ns;

        if (connection->ended || connection->idle == NULL ||
            connection->inflight >= connection->plan->inflight)
            continue;
        if (loader->course->plan->rate > 0 && schedule_due(&connection->schedule) > due_ns)
            due_ns = schedule_due(&connection->schedule);
        if (due_ns < until_ns)
            until_ns = due_ns;
    }
    if (sending && until_ns > loader->course->end_ns)
        until_ns = loader->course->end_ns;
    return until_ns > now_ns ? until_ns - now_ns : 0;
}

static uint32_t inflight_of(const struct loader *loader)
{
    uint32_t inflight = 0;

    for (uint32_t i = 0; i < loader->connection_count; i++)
        inflight += loader->connections[i].inflight;
    return inflight;
}

static bool all_ended(const struct loader *loader)
{
    for (uint32_t i = 0; i < loader->connection_count; i++) {
        if (!loader->connections[i].ended)
            return false;
    }
    return true;
}

/* Several connections, or a schedule finer than milliseconds: waits on all descriptors at once. */
static void wait_and_serve(struct loader *loader, struct pollfd *polls, bool sending)
{
    uint64_t wait_ns = idle_ns(loader, sending);
    struct timespec wait = {.tv_sec = (time_t)(wait_ns / 1000000000U),
                            .tv_nsec = (long)(wait_ns % 1000000000U)};
    int ready;

    for (uint32_t i = 0; i < loader->connection_count; i++) {
        const struct connection *connection = &loader->connections[i];
        bool waits = connection->inflight > 0;

        polls[i] = (struct pollfd){.fd = waits ? connection->descriptor : -1, .events = POLLIN};
    }
    ready = ppoll(polls, loader->connection_count, &wait, NULL);
    for (uint32_t i = 0; i < loader->connection_count; i++) {
        /* After a quiet wait all are looked at: a timeout of the library's makes no descriptor readable. */
        if (loader->connections[i].inflight > 0 && (ready <= 0 || polls[i].revents != 0))
            serve(loader, &loader->connections[i], sending, 0);
    }
}

static void turn(struct loader *loader, struct pollfd *polls, bool sending)
{
    const struct plan *plan = loader->course->plan;

    take_back(loader, false);
    for (uint32_t i = 0; i < loader->connection_count && sending; i++)
        send_due(loader, &loader->connections[i]);
    if (inflight_of(loader) == 0 && loader->given > 0 && plan->rate <= 0)
        take_back(loader, true);
    else if (loader->connection_count == 1 && plan->rate <= 0 && loader->connections[0].inflight > 0)
        serve(loader, &loader->connections[0], sending, WAIT_MS);
    else
        wait_and_serve(loader, polls, sending);
}

void *loader_run(void *argument)
{
    struct loader *loader = argument;
    struct course *course = loader->course;
    struct pollfd *polls = calloc(loader->connection_count, sizeof polls[0]);

    if (polls == NULL) {
        loader->code = report_error(CODE_FAILED, "no memory");
        return NULL;
    }
    while (clock_now() < course->end_ns && !atomic_load(&course->stop) && !all_ended(loader))
        turn(loader, polls, true);
    loader->stopped_ns = clock_now();
    for (uint32_t i = 0; i < loader->connection_count && course->plan->rate > 0; i++) {
        uint64_t until_ns = loader->stopped_ns < course->end_ns ? loader->stopped_ns : course->end_ns;
        loader->unsent += schedule_left(&loader->connections[i].schedule, until_ns);
    }
    while (inflight_of(loader) > 0)
        turn(loader, polls, false);
    while (loader->given > 0)
        take_back(loader, true);
    free(polls);
    return NULL;
}
