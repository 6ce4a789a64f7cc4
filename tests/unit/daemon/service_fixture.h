/* SPDX-License-Identifier: Apache-2.0 */
/* A service in a scratch folder, with a host that is a queue for each worker, and OpenSSL to compare with. */
#ifndef SERVICE_FIXTURE_H
#define SERVICE_FIXTURE_H

#include "service_internal.h"
#include <check.h>

enum { FIXTURE_WORKERS = 2, FIXTURE_ARENA_BYTES = 1 << 20, FIXTURE_TEXT_BYTES = 512 };

struct posted {
    struct posted *next;
    void (*function)(void *argument);
    void *argument;
};

struct fixture {
    char folder[64];
    struct cm_service_options options;
    struct cm_service *service;
    struct cm_service_worker *workers[FIXTURE_WORKERS];
    char text[FIXTURE_TEXT_BYTES]; /* why it did not start */
    char log[FIXTURE_TEXT_BYTES];  /* the last line */

    pthread_mutex_t mutex;
    pthread_cond_t wake;
    struct posted *first[FIXTURE_WORKERS], **end[FIXTURE_WORKERS];
};

/* A scratch folder, default limits; nothing runs yet. */
void fixture_init(struct fixture *f);
/* Removes the folder. */
void fixture_done(struct fixture *f);
/* 0, or negative with f->text. */
int fixture_start(struct fixture *f);
void fixture_stop(struct fixture *f);
/* Runs what was posted to a worker, as its thread; returns how many. */
unsigned fixture_pump(struct fixture *f, uint32_t worker);
/* Until something was posted to it, then as above. */
void fixture_wait(struct fixture *f, uint32_t worker);

extern const struct cm_identity fixture_root, fixture_user, fixture_anonymous;

/* Greets on a worker; aborts the test if refused. */
struct cm_peer_state *fixture_greet(struct fixture *f, uint32_t worker, const struct cm_identity *identity,
                                    struct cm_bytes token);
struct cm_peer_state *fixture_peer(struct fixture *f, const struct cm_identity *identity); /* on worker 0 */

/* An answer, kept. */
struct answered {
    bool done;
    uint32_t status, handle, key_count, implementation_count;
    enum cm_answer_kind kind;
    bool more;
    char text[FIXTURE_TEXT_BYTES];
    struct cm_server_status server;
    bool used[64]; /* of the first implementations */
    uint8_t used_for[64];
    struct {
        char name[CM_KEY_NAME_MAX + 1];
        size_t id_length;
        struct cm_key_attributes attributes;
        uint32_t key_bits, version_count, version, state;
    } keys[8]; /* the first ones */
};
void fixture_on_answer(void *answered, const struct cm_answer *answer);
/* Calls, and runs the workers until the answer is there. */
struct answered fixture_call(struct fixture *f, struct cm_peer_state *peer, const struct cm_call *call,
                             const void *body, size_t body_length);
/* The usual calls. */
uint32_t fixture_ephemeral(struct fixture *f, struct cm_peer_state *peer, uint32_t modes, bool caller_iv,
                           uint32_t tag_length, const uint8_t *key, uint32_t key_bits); /* the handle */
struct answered fixture_import(struct fixture *f, struct cm_peer_state *peer, const char *name,
                               uint32_t modes, const uint8_t *key, uint32_t key_bits, uint8_t operation);
struct answered fixture_named(struct fixture *f, struct cm_peer_state *peer, enum cm_call_kind kind,
                              const char *name, uint8_t operation);

/* A batch with all its memory. Columns point into it. */
enum { RUN_ITEMS = 64 };
struct run {
    struct cm_batch batch;
    uint32_t lengths[RUN_ITEMS], iv_lengths[RUN_ITEMS], aad_lengths[RUN_ITEMS], operations[RUN_ITEMS];
    uint8_t parts[RUN_ITEMS];
    uint8_t ivs[RUN_ITEMS * 64], tags[RUN_ITEMS * 16];
    uint8_t *body; /* slots, then additional data */
    size_t body_length;
    struct cm_arena arena;
    struct cm_job job;
};
/* `count` items of `length` bytes, filled with a pattern that depends on `seed`; NULL-able columns unset. */
void run_init(struct run *run, uint32_t handle, uint8_t mode, uint8_t direction, uint32_t count,
              uint32_t length, uint8_t seed);
/* After changing lengths, padding, gap, aad_lengths: lays the body out anew and fills it. */
void run_layout(struct run *run, uint8_t seed);
void run_done(struct run *run);
uint8_t *run_slot(const struct run *run, uint32_t index);
uint8_t *run_aad(const struct run *run, uint32_t index);
void run_plan(struct run *run, struct fixture *f, struct cm_peer_state *peer, uint64_t share_ns);
void run_finish(struct run *run, struct fixture *f);
/* Plans, runs every task, last one first, and finishes; returns the reply. */
const struct cm_batch_reply *run_all(struct run *run, struct fixture *f, struct cm_peer_state *peer,
                                     uint64_t share_ns);
uint32_t run_status(const struct run *run, uint32_t index);

/* What OpenSSL makes of a message. `mode` as on the wire; the tag is written. Returns the output's length. */
size_t reference_encrypt(uint8_t mode, const uint8_t *key, uint32_t key_bits, bool padding, const uint8_t *iv,
                         size_t iv_length, const uint8_t *aad, size_t aad_length, const uint8_t *in,
                         size_t length, uint8_t *ret_out, uint8_t *ret_tag, size_t tag_length);

void fill(uint8_t *bytes, size_t length, uint8_t seed);

#define MODE_BIT(mode) (UINT32_C(1) << (mode))
enum { BLOCK_MODES = 1 << CM_WIRE_ECB | 1 << CM_WIRE_CBC | 1 << CM_WIRE_CTR, GCM_MODE = 1 << CM_WIRE_GCM };
enum { XTS_MODE = 1 << CM_WIRE_XTS }; /* its keys are twice as long as key_bits says */

/* Runs a suite; main's result. */
int fixture_main(Suite *suite);

#endif
