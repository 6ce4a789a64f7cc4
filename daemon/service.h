/* SPDX-License-Identifier: Apache-2.0 */
/* Turns a plain request into a plain reply. Knows no libuv, no protobuf, no socket and no TLS.
 *
 * A batch becomes a job: planned once (key, attributes, IVs, the status of each bad item), cut into tasks
 * that any worker may run, then finished by the worker that planned it. */
#ifndef CM_SERVICE_H
#define CM_SERVICE_H

#include "codec.h"
#include "message.h"
#include <stdatomic.h>

struct cm_service;        /* one a process: keys, sessions, limits, store */
struct cm_service_worker; /* one a worker thread: snapshot, random pool, scratch */
struct cm_session;        /* shared by the connections that joined it */
struct cm_peer_state;     /* one a connection: its session, resolved key handles, multi-part operations */

/* Who is at the other end; filled by the transport. */
struct cm_identity {
    char name[128];      /* "uid:1000", "tcp:anonymous" */
    bool may_administer; /* root or the daemon's own user on a Unix socket that allows administration */
    bool may_send_keys;  /* raw key bytes may travel here: not over plain TCP */
};

struct cm_service_options {
    struct cm_limits limits;
    uint32_t workers;
    const char *state_folder;    /* holds the key store */
    const char *master_key_file; /* NULL: master.key in the state folder */
    uint32_t operation_timeout_ms;
};

/* The same numbers as syslog's. */
enum cm_service_log_level { CM_SERVICE_LOG_ERROR = 3, CM_SERVICE_LOG_WARNING = 4, CM_SERVICE_LOG_INFO = 6 };

/* What the service asks of its surroundings, so that it needs no event loop itself. `post` runs
 * function(argument) on the given worker's thread, soon, in order; it may be called from any thread, and for
 * a worker that has been freed: what is posted then may be run or dropped, but nothing runs after
 * cm_service_free. `log` may be called from any thread. `level` is an enum cm_service_log_level. */
struct cm_service_host {
    void (*post)(void *host, uint32_t worker, void (*function)(void *argument), void *argument);
    void (*describe)(void *host,
                     struct cm_server_status *status); /* fills connections, in-flight bytes, uptime */
    void (*log)(void *host, int level, const char *text);
    void *host;
};

/* Opens the store and makes the first snapshot; cm_aes_init comes first. 0, or negative with a text for the
 * operator that names path, cause and remedy. */
int cm_service_new(struct cm_service **ret_service, const struct cm_service_options *options,
                   const struct cm_service_host *host, char *ret_text, size_t text_capacity);
/* After every worker has stopped. */
void cm_service_free(struct cm_service *service);

/* On the worker's own thread, before its first request and after its last. */
struct cm_service_worker *cm_service_worker_new(struct cm_service *service, uint32_t index);
void cm_service_worker_free(struct cm_service_worker *worker);

/* --- Connections: everything about a peer happens on the thread of the worker that greeted it
 * ---------------- */

/* Greets: checks versions, makes or joins the session. On success fills *ret_welcome (strings and token live
 * as long as the peer state) and returns a peer state; else fills *ret_refusal and returns NULL. */
struct cm_peer_state *cm_service_hello(struct cm_service_worker *worker, const struct cm_identity *identity,
                                       const struct cm_hello *hello, struct cm_welcome *ret_welcome,
                                       struct cm_refusal *ret_refusal);
/* Wipes operations, drops the session's reference. No job of this peer may be running. */
void cm_service_peer_free(struct cm_peer_state *peer);
/* Ends multi-part operations that nobody touched for operation_timeout_ms; call about once a second. */
void cm_service_peer_tick(struct cm_peer_state *peer, uint64_t now_ms);

/* --- Batches --- */

/* A job lives in memory that its owner keeps until cm_job_finish; everything it points to (batch columns,
 * body) must stay as long. */
struct cm_job {
    struct cm_peer_state *peer;
    const struct cm_batch *batch;
    uint8_t *body;               /* slots, then additional data; output replaces input, slot by slot */
    uint32_t task_count;         /* 0: nothing to run, finish at once */
    uint64_t cost_ns;            /* estimated kernel time of all tasks */
    struct cm_batch_reply reply; /* filled by cm_job_finish; columns live in the arena given to plan */
    uint64_t items_ok, bytes_in; /* for metrics, filled by cm_job_finish */
    void *state;                 /* the service's, in that arena */
};

/* Several jobs of one peer may be unfinished at once, but while one whose batch has `parts` is unfinished, no
 * other batch of that peer with `parts` may be planned: a part starts from what the one before it left. */

/* Checks everything and prepares the tasks. Never fails: what is wrong becomes a status. `arena` gives memory
 * for the plan and the reply and must live as long as the job. `share_ns`: cut the work into tasks of about
 * this much estimated time where the mode allows; 0: one task. */
void cm_job_plan(struct cm_job *job, struct cm_service_worker *worker, struct cm_peer_state *peer,
                 const struct cm_batch *batch, uint8_t *body, size_t body_length, struct cm_arena *arena,
                 uint64_t share_ns);
/* Runs one task; tasks of one job may run on different threads at once, each exactly once. */
void cm_job_run(struct cm_job *job, uint32_t task);
/* After every task has run, on the worker that planned: fills job->reply, zeroes filler in the body's slots.
 */
void cm_job_finish(struct cm_job *job, struct cm_service_worker *worker);

/* --- Calls --- */

/* Answers a call, at once or later on the same worker's thread. The call, its strings and the body are copied
 * if need be; `key` bytes in the body are wiped by the service. The answer's pointers live during the
 * callback. Called once for each call, possibly before cm_service_call returns; not any more once the peer is
 * freed. */
typedef void (*cm_answer_function)(void *context, const struct cm_answer *answer);
void cm_service_call(struct cm_service_worker *worker, struct cm_peer_state *peer, const struct cm_call *call,
                     uint8_t *body, size_t body_length, cm_answer_function answer, void *context);

#endif
