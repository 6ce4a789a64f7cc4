/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that verifies. */
#include "verifier.h"
#include "clock.h"
#include <stdlib.h>
#include <time.h>

static void check(struct verifier *verifier, struct unit *unit)
{
    uint64_t checked;
    uint64_t begun_ns = clock_now();

    verifier->wrong += unit_verify(unit, &verifier->reference, verifier->scratch, &checked);
    verifier->checked += checked;
    verifier->batches += checked > 0;
    atomic_fetch_add_explicit(&verifier->spent_ns, clock_now() - begun_ns, memory_order_relaxed);
}

static void *run(void *argument)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    struct verifier *verifier = argument;
    bool ending = false;

    while (!ending) {
        struct unit *unit;

        pthread_mutex_lock(&verifier->mutex);
        unit = verifier->todo;
        verifier->todo = NULL;
        ending = unit == NULL && verifier->ending;
        pthread_mutex_unlock(&verifier->mutex);
        if (unit == NULL && !ending)
            nanosleep(&pause, NULL);
        while (unit != NULL) {
            struct unit *next = unit->next;

            check(verifier, unit);
            pthread_mutex_lock(&verifier->mutex);
            unit->next = verifier->done;
            verifier->done = unit;
            pthread_cond_signal(&verifier->returned);
            pthread_mutex_unlock(&verifier->mutex);
            unit = next;
        }
    }
    return NULL;
}

bool verifier_start(struct verifier *verifier, const struct plan *plan, const struct keys *keys)
{
    *verifier = (struct verifier){.scratch = malloc(plan->size_most + 64)};
    if (verifier->scratch == NULL)
        return false;
    reference_init(&verifier->reference, keys);
    pthread_mutex_init(&verifier->mutex, NULL);
    pthread_cond_init(&verifier->returned, NULL);
    if (pthread_create(&verifier->thread, NULL, run, verifier) == 0)
        return true;
    pthread_cond_destroy(&verifier->returned);
    pthread_mutex_destroy(&verifier->mutex);
    free(verifier->scratch);
    return false;
}

void verifier_give(struct verifier *verifier, struct unit *unit)
{
    pthread_mutex_lock(&verifier->mutex);
    unit->next = verifier->todo;
    verifier->todo = unit;
    pthread_mutex_unlock(&verifier->mutex);
}

struct unit *verifier_take(struct verifier *verifier, bool wait)
{
    struct timespec until;
    struct unit *units;

    pthread_mutex_lock(&verifier->mutex);
    if (wait && verifier->done == NULL) {
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 10000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        pthread_cond_timedwait(&verifier->returned, &verifier->mutex, &until);
    }
    units = verifier->done;
    verifier->done = NULL;
    pthread_mutex_unlock(&verifier->mutex);
    return units;
}

void verifier_stop(struct verifier *verifier)
{
    pthread_mutex_lock(&verifier->mutex);
    verifier->ending = true;
    pthread_mutex_unlock(&verifier->mutex);
    pthread_join(verifier->thread, NULL);
    pthread_cond_destroy(&verifier->returned);
    pthread_mutex_destroy(&verifier->mutex);
    reference_done(&verifier->reference);
    free(verifier->scratch);
}
