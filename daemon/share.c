/* SPDX-License-Identifier: Apache-2.0 */
/* Work-sharing: the tasks of a job, run by its owner together with workers that have nothing to do. */
#include "share.h"

#include "worker.h"

#include <stdlib.h>

enum {
    PAYS_WAKES = 10, /* a job shorter than this many wake-ups is done before help is worth it */
    TASK_WAKES = 4,  /* a task much shorter would be all bookkeeping, one much longer would be waited for */
};

/* An idle worker is invited through its inbox, but may find something else to do first. So the invitation
 * lives apart from the job: whoever takes `share` out of it decides. The helper, and it helps; the owner, and
 * the helper will find nothing. */
struct cm_invitation {
    struct cm_inbox_item item;
    _Atomic(struct cm_share *) share;
    _Atomic uint32_t references; /* helper and owner */
};

static void invitation_put(struct cm_invitation *invitation)
{
    if (atomic_fetch_sub_explicit(&invitation->references, 1, memory_order_acq_rel) == 1)
        free(invitation);
}

static void run_tasks(struct cm_share *share)
{
    for (;;) {
        uint32_t task = atomic_fetch_add_explicit(&share->next, 1, memory_order_relaxed);
        if (task >= share->job->task_count)
            return;
        cm_job_run(share->job, task);
    }
}

/* True for the last of `count` to leave; what all the others did is visible to it then. */
static bool leave(struct cm_share *share, uint32_t count)
{
    return atomic_fetch_sub_explicit(&share->present, count, memory_order_acq_rel) == count;
}

static void on_invited(struct cm_inbox_item *item, void *worker)
{
    struct cm_invitation *invitation = (struct cm_invitation *)item;
    struct cm_share *share = atomic_exchange_explicit(&invitation->share, NULL, memory_order_acq_rel);
    (void)worker;
    invitation_put(invitation);
    if (share == NULL)
        return;
    run_tasks(share);
    if (leave(share, 1))
        cm_worker_post(share->owner, &share->done);
}

uint64_t cm_share_quantum(const struct cm_worker *owner)
{
    const struct cm_common *common = owner->common;
    if (common->wake_ns == 0)
        return 0;
    for (uint32_t i = 0; i < common->worker_count; i++)
        if (i != owner->index && atomic_load_explicit(&common->workers[i].idle, memory_order_relaxed))
            return TASK_WAKES * common->wake_ns;
    return 0;
}

bool cm_share_pays(const struct cm_worker *owner, const struct cm_job *job)
{
    return job->task_count > 1 && job->cost_ns > PAYS_WAKES * owner->common->wake_ns;
}

static void invite(struct cm_share *share)
{
    struct cm_common *common = share->owner->common;
    uint32_t most = share->job->task_count - 1;
    if (most > CM_SHARE_HELPERS_MAX)
        most = CM_SHARE_HELPERS_MAX;
    for (uint32_t i = 1; i < common->worker_count && share->invited < most; i++) {
        struct cm_worker *helper = &common->workers[(share->owner->index + i) % common->worker_count];
        /* Taking the mark keeps two owners from counting on the same helper. */
        if (!atomic_load_explicit(&helper->idle, memory_order_relaxed) ||
            !atomic_exchange_explicit(&helper->idle, false, memory_order_relaxed))
            continue;
        struct cm_invitation *invitation = malloc(sizeof *invitation);
        if (invitation == NULL)
            return; /* no help, then */
        invitation->item.run = on_invited;
        atomic_init(&invitation->share, share);
        atomic_init(&invitation->references, 2);
        atomic_fetch_add_explicit(&share->present, 1, memory_order_relaxed);
        share->invitations[share->invited++] = invitation;
        cm_worker_post(helper, &invitation->item);
    }
}

bool cm_share_run(struct cm_share *share, struct cm_worker *owner, struct cm_job *job,
                  void (*on_done)(struct cm_inbox_item *done, void *owner))
{
    share->done.run = on_done;
    share->job = job;
    share->owner = owner;
    share->invited = 0;
    atomic_init(&share->next, 0);
    atomic_init(&share->present, 1);
    invite(share);
    run_tasks(share);
    uint32_t leaving = 1;
    for (uint32_t i = 0; i < share->invited; i++) {
        struct cm_invitation *invitation = share->invitations[i];
        if (atomic_exchange_explicit(&invitation->share, NULL, memory_order_acq_rel) != NULL)
            leaving++;
        invitation_put(invitation);
    }
    if (share->invited > 0)
        cm_metrics_add(&owner->metrics.jobs_shared, 1);
    return leave(share, leaving);
}
