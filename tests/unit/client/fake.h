/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon in a thread of the test, which speaks real frames and behaves as badly as a test wants. Its
 * "cipher" is an exclusive or with 0x5a; its tag is the last 16 bytes of that output behind the IV, so that
 * it depends on both. */
#ifndef CM_TEST_FAKE_H
#define CM_TEST_FAKE_H

#include "codec.h"
#include <pthread.h>
#include <stdatomic.h>

enum { FAKE_PEERS_MAX = 64, FAKE_MASK = 0x5a, FAKE_KEY_VERSION = 7 };

struct fake;

/* One connection, as its thread sees it. */
struct fake_peer {
    struct fake *fake;
    int fd, index; /* 0 for the first that ever connected */
    pthread_t thread;
    struct cm_frame frame; /* the last that was read */
    uint8_t *bytes, *header, *body;
    struct cm_arena arena;
    uint8_t *arena_memory;
    struct cm_batch batch; /* decoded from the last one */
    struct cm_call call;
};

struct fake {
    char folder[64], path[100], uri[128];
    int listener;
    pthread_t thread;
    struct cm_limits limits;
    /* Everything that a connection does; NULL: fake_serve. */
    void (*serve)(struct fake_peer *peer);
    atomic_int accepted, ended, joined, batches, items, opened, closed, cancelled, ephemeral, created;
    atomic_int sessions;           /* the current one's number, which its token repeats */
    atomic_int knob;               /* the test's */
    atomic_uint last_key_version;  /* asked for by the last batch */
    atomic_ullong peak_bytes;      /* longest body of a batch */
    uint8_t last_operation_id[16]; /* of the last call that changed the store */
    uint8_t last_key_bytes[32];
    char last_program[64];
    struct fake_peer peers[FAKE_PEERS_MAX];
    atomic_int peer_count;
};

/* Both abort the test when the system does not do its part. */
void fake_start(struct fake *fake, void (*serve)(struct fake_peer *peer));
void fake_stop(struct fake *fake);
/* Every connection ends and every session with it; the next ones are served by `serve`. */
void fake_restart(struct fake *fake, void (*serve)(struct fake_peer *peer));
/* Only stops listening and ends the connections; fake_restart or fake_stop follows. */
void fake_pause(struct fake *fake);

/* Reads a frame: its type, or 0 at the end of the connection. */
int fake_next(struct fake_peer *peer);
/* As fake_next, and decodes batches and calls. */
int fake_next_request(struct fake_peer *peer);
void fake_greet(struct fake_peer *peer);
void fake_answer_batch(struct fake_peer *peer);
void fake_refuse_batch(struct fake_peer *peer, uint32_t status, const char *text);
void fake_answer_call(struct fake_peer *peer);
void fake_goodbye(struct fake_peer *peer, uint64_t last_request_id);
/* Greets and answers all there is. */
void fake_serve(struct fake_peer *peer);
/* Answers one request that was read. */
void fake_answer(struct fake_peer *peer, int type);

/* The frame with which fake_answer_batch would answer. Free it. */
uint8_t *fake_batch_reply(struct fake_peer *peer, size_t *ret_length);
void fake_write(int fd, const void *bytes, size_t length);

#endif
