/* SPDX-License-Identifier: Apache-2.0 */
/* Work-sharing: the tasks of a job, run by its owner together with workers that have nothing to do. */
#ifndef CM_SHARE_H
#define CM_SHARE_H

#include "inbox.h"
#include "service.h"

struct cm_worker;
struct cm_invitation;

enum { CM_SHARE_HELPERS_MAX = 63 };

struct cm_share {
    struct cm_inbox_item done; /* posted to the owner by whoever leaves last, if that is not the owner */
    struct cm_job *job;
    struct cm_worker *owner;
    _Atomic uint32_t next;    /* task */
    _Atomic uint32_t present; /* owner and helpers that may still touch this struct */
    uint32_t invited;
    struct cm_invitation *invitations[CM_SHARE_HELPERS_MAX];
};

/* How long a task should take so that sharing pays; 0: nobody is idle now, or there is nobody else. */
uint64_t cm_share_quantum(const struct cm_worker *owner);
/* Is this job worth the wake-ups? */
bool cm_share_pays(const struct cm_worker *owner, const struct cm_job *job);

/* Runs the job's tasks, with help. True: all have run. False: others still run some; `on_done` will be run on
 * the owner's thread with &share->done, and until then `share` and the job must stay. */
bool cm_share_run(struct cm_share *share, struct cm_worker *owner, struct cm_job *job,
                  void (*on_done)(struct cm_inbox_item *done, void *owner));

#endif
