/* SPDX-License-Identifier: Apache-2.0 */
/* A thread beside each loader that compares answers with OpenSSL's, so that the timed path does not.
 *
 * It looks at its queue every millisecond and needs no waking: a wake-up would cost the loader more time than
 * sending a batch. */
#ifndef VERIFIER_H
#define VERIFIER_H

#include "unit.h"
#include <pthread.h>
#include <stdatomic.h>

struct verifier {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t returned;
    struct unit *todo, *done; /* under the mutex */
    bool ending;              /* under the mutex: finish what is there and return */
    struct reference reference;
    uint8_t *scratch;
    uint64_t checked, batches, wrong; /* the thread's own until verifier_stop */
    atomic_uint_fast64_t spent_ns;
};

/* False without memory or thread. */
bool verifier_start(struct verifier *verifier, const struct plan *plan, const struct keys *keys);
/* Hands over a unit whose batch is complete. */
void verifier_give(struct verifier *verifier, struct unit *unit);
/* Takes back what has been verified, a list; with `wait` for the first one, at most 10 ms. NULL if none is.
 */
struct unit *verifier_take(struct verifier *verifier, bool wait);
/* Verifies the rest and ends the thread; the counts are final then. */
void verifier_stop(struct verifier *verifier);

#endif
