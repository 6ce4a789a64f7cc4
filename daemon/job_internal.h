/* SPDX-License-Identifier: Apache-2.0 */
/* A job's plan, shared by the file that checks a batch and the one that cuts it into tasks and runs them. */
#ifndef CM_JOB_INTERNAL_H
#define CM_JOB_INTERNAL_H

#include "service_internal.h"

/* A part of an operation. Its item is run here, unless it was cut into units. */
struct cm_job_part {
    struct cm_aes_item item;
    struct cm_operation *operation;
    const struct cm_aes_key *form;
    uint32_t index; /* of the batch's item */
    bool last, cut;
};

/* Runs of units and parts; a task runs on one thread. */
struct cm_job_task {
    uint32_t unit, unit_count, part, part_count;
    enum cm_aes_padding padding; /* the units' */
};

/* A form that found no place in its key: in the arena, wiped when the job ends. */
struct cm_job_form {
    struct cm_job_form *next;
    struct cm_aes_key *key;
};

/* Everything lies in the job's arena. A unit is a whole item, or a range of one; units stand in the order of
 * their items. */
struct cm_job_state {
    struct cm_live_key *key; /* a reference */
    struct cm_live_version *version;
    const struct cm_aes_key *form;
    struct cm_job_form *own_forms;
    enum cm_aes_mode mode;
    enum cm_aes_direction direction;
    enum cm_aes_padding padding;

    struct cm_aes_item *units;
    uint32_t *unit_items; /* which item a unit belongs to */
    uint32_t unit_count;
    struct cm_job_part *parts;
    uint32_t part_count;
    struct cm_job_task *tasks;
    uint32_t task_count;

    /* Columns of the reply. */
    uint32_t *lengths, *statuses;
    uint8_t *ivs, *tags;
    uint32_t iv_length, tag_length;
};

/* What planning needs beside its result. */
struct cm_job_plan {
    struct cm_job *job;
    struct cm_job_state *state;
    struct cm_service_worker *worker;
    struct cm_peer_state *peer;
    const struct cm_batch *batch;
    struct cm_arena *arena;
    size_t body_length;
    uint64_t slot_total;
    struct cm_cost cost; /* of this mode, direction and key */
    uint64_t share_ps;   /* 0: one task */
    uint64_t cost_ps;
    uint64_t task_cost_ps; /* of the task that is being filled */
    const char *text;      /* of the refusal */
};

/* Whether the batch is one that the protocol and the limits allow. A status. */
uint32_t cm_job_check(struct cm_job_plan *plan);

/* Finds key, version and form, and whether their attributes allow the batch. A status. */
uint32_t cm_job_check_key(struct cm_job_plan *plan);

/* Makes units, parts and tasks of the items. A status of the batch; an item that is wrong gets its own. */
uint32_t cm_job_cut(struct cm_job_plan *plan);

/* Says why the batch is refused: puts a text into the arena. Returns `status`. */
uint32_t cm_job_refuse(struct cm_job_plan *plan, uint32_t status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The form of a version, from the key or expanded into the arena. NULL when the arena is full. */
const struct cm_aes_key *cm_job_form(struct cm_job_plan *plan, struct cm_live_version *version);

#endif
