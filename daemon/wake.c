/* SPDX-License-Identifier: Apache-2.0 */
/* Measures what it costs to wake another worker: an item goes to and fro, and each way wakes a sleeper. */
#include "wake.h"

#include <stdlib.h>

enum {
    ROUNDS = 31,
    LEAST_NS = 1000,
    MOST_NS = 100000, /* more is a machine that was busy just now, not what waking costs */
};

struct cm_wake {
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
    struct cm_wake *wake = (struct cm_wake *)item;
    (void)common;
    qsort(wake->round_ns, ROUNDS, sizeof wake->round_ns[0], compare);
    uint64_t wake_ns = wake->round_ns[ROUNDS / 2] / 2;
    if (wake_ns < LEAST_NS)
        wake_ns = LEAST_NS;
    if (wake_ns > MOST_NS)
        wake_ns = MOST_NS;
    wake->on_measured(wake->context, wake_ns);
}

static void on_home(struct cm_inbox_item *item, void *worker);

static void on_away(struct cm_inbox_item *item, void *worker)
{
    struct cm_wake *wake = (struct cm_wake *)item;
    (void)worker;
    item->run = on_home;
    cm_worker_post(wake->one, item);
}

static void on_home(struct cm_inbox_item *item, void *worker)
{
    struct cm_wake *wake = (struct cm_wake *)item;
    uint64_t now = uv_hrtime();
    if (wake->begun)
        wake->round_ns[wake->round++] = now - wake->sent_ns;
    wake->begun = true;
    if (wake->round == ROUNDS) {
        item->run = on_main;
        cm_common_post_main(((struct cm_worker *)worker)->common, item);
        return;
    }
    item->run = on_away;
    wake->sent_ns = uv_hrtime();
    cm_worker_post(wake->other, item);
}

struct cm_wake *cm_wake_measure(struct cm_worker *one, struct cm_worker *other,
                                void (*on_measured)(void *context, uint64_t wake_ns), void *context)
{
    struct cm_wake *wake = calloc(1, sizeof *wake);
    if (wake == NULL)
        return NULL;
    wake->one = one;
    wake->other = other;
    wake->on_measured = on_measured;
    wake->context = context;
    wake->item.run = on_home;
    cm_worker_post(one, &wake->item);
    return wake;
}

void cm_wake_free(struct cm_wake *wake)
{
    free(wake);
}
