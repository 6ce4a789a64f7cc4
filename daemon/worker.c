/* SPDX-License-Identifier: Apache-2.0 */
/* A worker: one thread with its own loop, which serves the connections that it was given. */
#include "worker.h"

#include "conn.h"
#include "log.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum {
    TICK_MS = 1000,
    HURRIED_TICK_MS = 20,
    ARENA_BYTES =
        2 * CM_ARENA_BYTES, /* what decoding may need, and as much again for the plan and the reply */
};

struct posted_function {
    struct cm_inbox_item item;
    void (*function)(void *argument);
    void *argument;
};

void cm_common_post_main(struct cm_common *common, struct cm_inbox_item *item)
{
    if (cm_inbox_put(&common->main_inbox, item))
        uv_async_send(&common->main_wake);
}

void cm_worker_post(struct cm_worker *worker, struct cm_inbox_item *item)
{
    if (cm_inbox_put(&worker->inbox, item))
        uv_async_send(&worker->wake);
}

static void run_posted(struct cm_inbox_item *item, void *worker)
{
    struct posted_function *posted = (struct posted_function *)item;
    (void)worker;
    posted->function(posted->argument);
    free(posted);
}

void cm_worker_post_function(struct cm_worker *worker, void (*function)(void *argument), void *argument)
{
    struct posted_function *posted = malloc(sizeof *posted);
    if (posted == NULL) {
        cm_log(CM_LOG_ERROR, "no memory for a message between threads");
        abort();
    }
    *posted = (struct posted_function){.item.run = run_posted, .function = function, .argument = argument};
    cm_worker_post(worker, &posted->item);
}

/* --- Scratch ----------------------------------------------------------------------------------------------
 */

struct cm_buffer *cm_worker_spare(struct cm_worker *worker)
{
    if (worker->spare == NULL)
        worker->spare = cm_pool_take(&worker->pool, CM_SPARE_BYTES);
    return worker->spare;
}

struct cm_arena *cm_worker_arena(struct cm_worker *worker)
{
    struct cm_buffer *buffer = worker->arena_buffer;
    if (buffer == NULL) {
        buffer = worker->arena_buffer = cm_pool_take(&worker->pool, ARENA_BYTES);
        if (buffer == NULL)
            return NULL;
        cm_arena_init((struct cm_arena *)(void *)buffer->data, buffer->data + CM_ARENA_HEAD,
                      buffer->capacity - CM_ARENA_HEAD);
    }
    struct cm_arena *arena = (struct cm_arena *)(void *)buffer->data;
    cm_buffer_touch(buffer, CM_ARENA_HEAD + arena->used);
    cm_arena_reset(arena);
    return arena;
}

static void wipe(struct cm_buffer *buffer, size_t from)
{
    if (buffer == NULL || buffer->used <= from)
        return;
    explicit_bzero(buffer->data + from, buffer->used - from);
    buffer->used = from;
}

/* Scratch is reused without wiping, which would double the cost of a small request; once a second is often
 * enough to leave nobody's message standing there. */
static void wipe_scratch(struct cm_worker *worker)
{
    wipe(worker->spare, 0);
    wipe(worker->output.headers, 0);
    if (worker->arena_buffer != NULL)
        (void)cm_worker_arena(worker);
    wipe(worker->arena_buffer, CM_ARENA_HEAD);
}

/* --- The loop ---------------------------------------------------------------------------------------------
 */

/* The loop calls back between its prepare and its check phase, so the first callback after a wait is where
 * work begins. */
void cm_worker_woke(struct cm_worker *worker)
{
    if (worker->awake)
        return;
    worker->awake = true;
    worker->woke_ns = uv_hrtime();
    atomic_store_explicit(&worker->idle, false, memory_order_relaxed);
}

static void on_wake(uv_async_t *wake)
{
    struct cm_worker *worker = wake->data;
    cm_worker_woke(worker);
    cm_inbox_run(&worker->inbox, worker);
}

static void on_tick(uv_timer_t *timer)
{
    struct cm_worker *worker = timer->data;
    cm_worker_woke(worker);
    uint64_t now = uv_now(&worker->loop);
    bool second = now - worker->second_ms >= TICK_MS;
    if (second) {
        worker->second_ms = now;
        wipe_scratch(worker);
    }
    cm_conn_tick_all(worker, second);
    if (worker->starved > 0)
        cm_conn_resume_starved(worker, true);
    if (worker->hurried && !worker->draining && worker->starved == 0 &&
        !cm_budget_is_lent(&worker->common->budget)) {
        worker->hurried = false;
        uv_timer_start(timer, on_tick, TICK_MS, TICK_MS);
    }
}

void cm_worker_hurry(struct cm_worker *worker)
{
    if (worker->hurried)
        return;
    worker->hurried = true;
    uv_timer_start(&worker->tick, on_tick, HURRIED_TICK_MS, HURRIED_TICK_MS);
}

/* Everyone who waits for a turn gets one, then whoever has sent something; who used up its turn waits again.
 */
static void on_turns(uv_idle_t *turns)
{
    struct cm_worker *worker = turns->data;
    cm_worker_woke(worker);
    worker->round++;
    for (size_t left = worker->waiting; left > 0 && worker->waiting > 0; left--) {
        struct cm_conn *conn = worker->first_waiting;
        cm_worker_leave_turn(worker, conn);
        if (!conn->closing)
            cm_conn_advance(conn);
    }
    if (worker->waiting == 0)
        uv_idle_stop(turns);
}

void cm_worker_wait_turn(struct cm_worker *worker, struct cm_conn *conn)
{
    if (conn->waits_turn)
        return;
    conn->waits_turn = true;
    conn->next_waiting = NULL;
    *worker->end_waiting = conn;
    worker->end_waiting = &conn->next_waiting;
    worker->waiting++;
    uv_idle_start(&worker->turns, on_turns);
}

void cm_worker_leave_turn(struct cm_worker *worker, struct cm_conn *conn)
{
    if (!conn->waits_turn)
        return;
    struct cm_conn **link = &worker->first_waiting;
    while (*link != conn)
        link = &(*link)->next_waiting;
    *link = conn->next_waiting;
    if (worker->end_waiting == &conn->next_waiting)
        worker->end_waiting = link;
    worker->waiting--;
    conn->waits_turn = false;
}

/* Before the loop waits: whatever this round has freed may let others go on. */
static void on_prepare(uv_prepare_t *prepare)
{
    struct cm_worker *worker = prepare->data;
    if (worker->starved > 0)
        cm_conn_resume_starved(worker, false);
    if (worker->awake)
        cm_metrics_add(&worker->metrics.busy_ns, uv_hrtime() - worker->woke_ns);
    worker->awake = false;
    worker->round++;
    atomic_store_explicit(&worker->idle, worker->waiting == 0, memory_order_relaxed);
}

static void on_drain(struct cm_inbox_item *item, void *owner)
{
    struct cm_worker *worker = owner;
    (void)item;
    worker->draining = true;
    cm_worker_hurry(worker);
    cm_conn_drain_all(worker);
}

static void on_close_all(struct cm_inbox_item *item, void *owner)
{
    struct cm_worker *worker = owner;
    (void)item;
    worker->closing = true;
    cm_conn_close_all(worker);
}

static void on_stop(struct cm_inbox_item *item, void *owner)
{
    struct cm_worker *worker = owner;
    (void)item;
    uv_stop(&worker->loop);
}

void cm_worker_drain(struct cm_worker *worker)
{
    worker->drain_item.run = on_drain;
    cm_worker_post(worker, &worker->drain_item);
}

void cm_worker_close_all(struct cm_worker *worker)
{
    worker->close_item.run = on_close_all;
    cm_worker_post(worker, &worker->close_item);
}

void cm_worker_stop(struct cm_worker *worker)
{
    worker->stop_item.run = on_stop;
    cm_worker_post(worker, &worker->stop_item);
}

/* --- The thread -------------------------------------------------------------------------------------------
 */

/* Worker n to the n-th processor that this process may use. */
static void pin(uint32_t index)
{
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    uint32_t nth = index % (uint32_t)CPU_COUNT(&allowed);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed) || nth-- != 0)
            continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        int rc = pthread_setaffinity_np(pthread_self(), sizeof one, &one);
        if (rc != 0)
            cm_log(CM_LOG_WARNING, "worker %u can't be pinned to processor %zu: %s", index, cpu,
                   strerror(rc));
        return;
    }
}

static void run(void *argument)
{
    struct cm_worker *worker = argument;
    if (worker->common->config->pin_workers)
        pin(worker->index);
    worker->service = cm_service_worker_new(worker->common->service, worker->index);
    worker->failed = worker->service == NULL;
    uv_sem_post(&worker->started);
    if (worker->failed)
        return;
    uv_run(&worker->loop, UV_RUN_DEFAULT);
    cm_service_worker_free(worker->service);
    cm_pool_put(&worker->pool, worker->spare);
    cm_pool_put(&worker->pool, worker->output.headers);
    if (worker->arena_buffer != NULL)
        (void)cm_worker_arena(worker);
    cm_pool_put(&worker->pool, worker->arena_buffer);
    cm_pool_done(&worker->pool);
}

int cm_worker_init(struct cm_worker *worker)
{
    int rc = uv_loop_init(&worker->loop);
    if (rc != 0)
        return rc;
    rc = uv_async_init(&worker->loop, &worker->wake, on_wake);
    if (rc != 0) {
        uv_loop_close(&worker->loop);
        return rc;
    }
    worker->wake.data = worker;
    uv_sem_init(&worker->started, 0);
    uv_prepare_init(&worker->loop, &worker->prepare);
    uv_timer_init(&worker->loop, &worker->tick);
    uv_idle_init(&worker->loop, &worker->turns);
    worker->prepare.data = worker->tick.data = worker->turns.data = worker;
    worker->end_waiting = &worker->first_waiting;
    uv_prepare_start(&worker->prepare, on_prepare);
    uv_timer_start(&worker->tick, on_tick, TICK_MS, TICK_MS);
    return 0;
}

int cm_worker_start(struct cm_worker *worker)
{
    /* Signals are the main thread's business. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = uv_thread_create(&worker->thread, run, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0)
        return rc;
    uv_sem_wait(&worker->started);
    if (!worker->failed)
        return 0;
    uv_thread_join(&worker->thread);
    return UV_ENOMEM;
}

void cm_worker_join(struct cm_worker *worker)
{
    uv_thread_join(&worker->thread);
}

static void drop_posted(struct cm_inbox_item *item)
{
    if (item->run == run_posted)
        free(item);
}

void cm_worker_done(struct cm_worker *worker)
{
    struct cm_inbox_item *item = atomic_exchange_explicit(&worker->inbox.newest, NULL, memory_order_acquire);
    while (item != NULL) {
        struct cm_inbox_item *next = item->next;
        drop_posted(item);
        item = next;
    }
    uv_close((uv_handle_t *)&worker->wake, NULL);
    uv_close((uv_handle_t *)&worker->prepare, NULL);
    uv_close((uv_handle_t *)&worker->tick, NULL);
    uv_close((uv_handle_t *)&worker->turns, NULL);
    uv_run(&worker->loop, UV_RUN_DEFAULT);
    uv_loop_close(&worker->loop);
    uv_sem_destroy(&worker->started);
}
