/* SPDX-License-Identifier: Apache-2.0 */
/* What a load test shall do, and what came of it. */
#ifndef PLAN_H
#define PLAN_H

#include "histogram.h"
#include "options.h"
#include <ciphermill/admin.h>

enum { PLAN_STATUSES = 128, PLAN_MODES = CM_XTS + 1, PLAN_DIRECTIONS = CM_DECRYPT + 1 };
enum { PLAN_COMBINATIONS = 2 * CM_XTS };

/* Bits of `directions`. */
#define PLAN_DIRECTION_BIT(direction) (1U << (direction))

struct plan {
    const struct cli *cli;
    uint32_t modes;                 /* CM_MODE_BIT */
    uint32_t directions;            /* PLAN_DIRECTION_BIT */
    uint32_t key_bits;              /* of AES */
    uint64_t size_least, size_most; /* of an item: bytes of plaintext */
    uint32_t batch;                 /* items */
    uint32_t inflight;              /* batches a connection */
    uint32_t connections, threads;
    double duration_s, warmup_s;
    double rate;     /* batches a second over all connections; 0: closed loop */
    bool padding;    /* ECB and CBC: PKCS#7 */
    bool caller_iv;  /* the bench gives the IVs when encrypting */
    bool verify_all; /* wait for verification if need be */
};

/* One of the kinds of batches that a plan sends. */
struct combination {
    int mode, direction;
};
/* Fills `ret` and returns how many. */
uint32_t plan_combinations(const struct plan *plan, struct combination ret[PLAN_COMBINATIONS]);
/* "ctr", "cbc" ... or "mixed"; "encrypt", "decrypt" or "mixed". */
const char *plan_mode_name(const struct plan *plan);
const char *plan_direction_name(const struct plan *plan);

/* Items are what errors, verified and mismatches count. */
struct result {
    double seconds; /* really measured, after the warm-up */
    uint64_t batches, items, bytes;
    uint64_t errors, verified, verified_batches, mismatches;
    uint64_t unsent;                  /* open loop: batches that were due and never sent */
    uint64_t statuses[PLAN_STATUSES]; /* failed items by minus the status */
    int code;                         /* exit code that the worst error asks for */
    struct histogram latency;         /* ns, a batch */
    struct histogram lag;             /* open loop, ns: how late the bench itself was, with room to send */
    double openssl_bytes_per_s; /* the same batches by OpenSSL in this process, one thread; 0: not measured */
    char server[64];
    char implementations[PLAN_MODES][PLAN_DIRECTIONS][32]; /* that serve such batches; "" where unknown */
};

#endif
