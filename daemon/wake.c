/* SPDX-License-Identifier: Apache-2.0 */
/* Measures what it costs to wake another worker: an item goes to and fro, and each way wakes a sleeper. */
#include "wake.h"

#include <stdlib.h>

enum {
    ROUNDS = 31,
    LEAST_NS = 1000,
    MOST_NS = 100000, /* more is a machine that was busy just now, not what waking costs */
};

struct measurement {
    struct cm_inbox_item item;
    struct cm_worker *one, *other;
    void (*on_measured)(void *context, uint64_t wake_ns);
    void *context;
    uint64_t sent_ns;
    uint64_t round_ns[ROUNDS];
    unsigned round;
    bool begun;
};

static int compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static void on_main(struct cm_inbox_item *item, void *common)
{
    struct measurement *measurement = (struct measurement *)item;
    (void)common;
    qsort(measurement->round_ns, ROUNDS, sizeof measurement->round_ns[0], compare);
    uint64_t wake_ns = measurement->round_ns[ROUNDS / 2] / 2;
    if (wake_ns < LEAST_NS)
        wake_ns = LEAST_NS;
    if (wake_ns > MOST_NS)
        wake_ns = MOST_NS;
    measurement->on_measured(measurement->context, wake_ns);
    free(measurement);
}

static void on_home(struct cm_inbox_item *item, void *worker);

static void on_away(struct cm_inbox_item *item, void *worker)
{
    struct measurement *measurement = (struct measurement *)item;
    (void)worker;
    item->run = on_home;
    cm_worker_post(measurement->one, item);
}

static void on_home(struct cm_inbox_item *item, void *worker)
{
    struct measurement *measurement = (struct measurement *)item;
    uint64_t now = uv_hrtime();
    if (measurement->begun)
        measurement->round_ns[measurement->round++] = now - measurement->sent_ns;
    measurement->begun = true;
    if (measurement->round == ROUNDS) {
        item->run = on_main;
        cm_common_post_main(((struct cm_worker *)worker)->common, item);
        return;
    }
    item->run = on_away;
    measurement->sent_ns = uv_hrtime();
    cm_worker_post(measurement->other, item);
}

int cm_wake_measure(struct cm_worker *one, struct cm_worker *other,
                    void (*on_measured)(void *context, uint64_t wake_ns), void *context)
{
    struct measurement *measurement = calloc(1, sizeof *measurement);
    if (measurement == NULL)
        return UV_ENOMEM;
    measurement->one = one;
    measurement->other = other;
    measurement->on_measured = on_measured;
    measurement->context = context;
    measurement->item.run = on_home;
    cm_worker_post(one, &measurement->item);
    return 0;
}
