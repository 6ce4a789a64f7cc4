/* SPDX-License-Identifier: Apache-2.0 */
/* Work-sharing: whoever runs the tasks, every byte is right, the job ends once, and nobody touches it
 * afterwards. */
#include "service_fixture.h"
#include "share.h"
#include "worker.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { WORKERS = 4, ROUNDS = 300, ITEM_BYTES = 200000 };

static struct fixture f;
static struct cm_config config;
static struct cm_common common;
static struct cm_worker *workers;
static pthread_t threads[WORKERS];
static struct cm_peer_state *peer;
static uint32_t handle;
static uint8_t key[16], expected[ITEM_BYTES], plain[ITEM_BYTES];
static unsigned done_count;

/* The same batch each time. */
static void make(struct run *run)
{
    run_init(run, handle, CM_WIRE_CTR, CM_WIRE_ENCRYPT, 1, ITEM_BYTES, 3);
    fill(run->ivs, 16, 5);
    run->iv_lengths[0] = 16;
    run->batch.iv_lengths = run->iv_lengths;
    run->batch.ivs = (struct cm_bytes){run->ivs, 16};
}

static void *run_loop(void *worker)
{
    uv_run(&((struct cm_worker *)worker)->loop, UV_RUN_DEFAULT);
    return NULL;
}

/* Worker 0 is this thread; the others have their own, and a loop that waits for invitations. */
static void start(void)
{
    uint8_t tag[16];
    fixture_init(&f);
    ck_assert_msg(fixture_start(&f) == 0, "%s", f.text);
    peer = fixture_peer(&f, &fixture_root);
    fill(key, sizeof key, 9);
    handle = fixture_ephemeral(&f, peer, BLOCK_MODES, true, 0, key, 128);

    common = (struct cm_common){.config = &config, .worker_count = WORKERS, .wake_ns = 1};
    workers = aligned_alloc(alignof(struct cm_worker), WORKERS * sizeof *workers);
    ck_assert_ptr_nonnull(workers);
    memset(workers, 0, WORKERS * sizeof *workers);
    common.workers = workers;
    for (uint32_t i = 0; i < WORKERS; i++) {
        workers[i].common = &common;
        workers[i].index = i;
        ck_assert_int_eq(cm_worker_init(&workers[i]), 0);
    }
    for (uint32_t i = 1; i < WORKERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, run_loop, &workers[i]), 0);

    struct run run;
    make(&run);
    memcpy(plain, run_slot(&run, 0), sizeof plain);
    ck_assert_uint_eq(reference_encrypt(CM_WIRE_CTR, key, 128, false, run.ivs, 16, NULL, 0, plain,
                                        sizeof plain, expected, tag, 0),
                      sizeof plain);
    run_done(&run);
}

static void stop(void)
{
    for (uint32_t i = 1; i < WORKERS; i++)
        cm_worker_stop(&workers[i]);
    for (uint32_t i = 1; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    for (uint32_t i = 0; i < WORKERS; i++)
        cm_worker_done(&workers[i]);
    free(workers);
    cm_service_peer_free(peer);
    fixture_stop(&f);
    fixture_done(&f);
}

static void on_done(struct cm_inbox_item *done, void *owner)
{
    ck_assert_ptr_eq(owner, &workers[0]);
    ck_assert_ptr_nonnull(done);
    done_count++;
}

/* Runs one job, with the share in memory that is wiped and freed as soon as the job has ended. Returns
 * whether the owner was told later. */
static bool share_once(uint64_t share_ns)
{
    struct run run;
    struct cm_share *share = malloc(sizeof *share);
    ck_assert_ptr_nonnull(share);
    make(&run);
    run_plan(&run, &f, peer, share_ns);
    unsigned before = done_count;
    bool later = !cm_share_run(share, &workers[0], &run.job, on_done);
    while (later && done_count == before)
        uv_run(&workers[0].loop, UV_RUN_ONCE);
    ck_assert_uint_eq(done_count, before + later);
    run_finish(&run, &f);
    ck_assert_uint_eq(run.job.reply.status, 0);
    ck_assert_ptr_null(run.job.reply.statuses);
    ck_assert_mem_eq(run_slot(&run, 0), expected, ITEM_BYTES);
    memset(share, 0xdb, sizeof *share);
    free(share);
    run_done(&run);
    return later;
}

static bool somebody_idle(void)
{
    for (uint32_t i = 1; i < WORKERS; i++)
        if (atomic_load_explicit(&workers[i].idle, memory_order_relaxed))
            return true;
    return false;
}

/* A task of almost no time, and one of a good part of the whole: ends meet in every order. */
START_TEST(right_whoever_runs_it)
{
    static const uint64_t quanta[] = {1, 2000, 20000};
    unsigned later = 0;
    for (int i = 0; i < ROUNDS; i++)
        later += share_once(quanta[i % 3]);
    while (!somebody_idle())
        sched_yield();
    ck_assert_uint_gt(cm_share_quantum(&workers[0]), 0);
    ck_assert_uint_gt(atomic_load(&workers[0].metrics.jobs_shared), 0);
    ck_assert_uint_eq(done_count, later);
}
END_TEST

START_TEST(nobody_idle)
{
    for (uint32_t i = 1; i < WORKERS; i++) {
        while (!atomic_load_explicit(&workers[i].idle, memory_order_relaxed))
            sched_yield();
        atomic_store_explicit(&workers[i].idle, false, memory_order_relaxed);
    }
    ck_assert_uint_eq(cm_share_quantum(&workers[0]), 0);
    ck_assert(!share_once(1));
    ck_assert_uint_eq(atomic_load(&workers[0].metrics.jobs_shared), 0);
}
END_TEST

/* Ten wake-ups are the border, and one task can't be shared. */
START_TEST(pays)
{
    struct cm_job job = {.task_count = 2, .cost_ns = 10000};
    common.wake_ns = 1000;
    ck_assert(!cm_share_pays(&workers[0], &job));
    job.cost_ns = 10001;
    ck_assert(cm_share_pays(&workers[0], &job));
    job.task_count = 1;
    ck_assert(!cm_share_pays(&workers[0], &job));
    common.wake_ns = 0;
    ck_assert_uint_eq(cm_share_quantum(&workers[0]), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("share");
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, start, stop);
    tcase_set_timeout(all, 120);
    tcase_add_test(all, right_whoever_runs_it);
    tcase_add_test(all, nobody_idle);
    tcase_add_test(all, pays);
    suite_add_tcase(suite, all);
    return fixture_main(suite);
}
