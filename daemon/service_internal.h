/* SPDX-License-Identifier: Apache-2.0 */
/* The service's own insides, shared by the files that make it up and by its tests. */
#ifndef CM_SERVICE_INTERNAL_H
#define CM_SERVICE_INTERNAL_H

#include "cost.h"
#include "keystore.h"
#include "master.h"
#include "peer.h"
#include "random_pool.h"

#define CM_SERVER_NAME "ciphermilld " CM_VERSION_TEXT

enum { CM_FORM_LIMIT = 4096 };

struct cm_publication;

struct cm_service {
    struct cm_service_options options; /* the strings are not kept */
    struct cm_service_host host;
    struct cm_cost_model cost;
    struct cm_form_budget forms;
    struct cm_sessions sessions;
    struct cm_master master;
    const struct cm_keystore_table *table;
    struct cm_keystore *store;
    atomic_bool closing; /* nobody waits for answers any more */

    pthread_mutex_t mutex; /* for the rest; administration and start only */
    struct cm_snapshot *snapshot;
    struct cm_service_worker **workers; /* options.workers of them; NULL: not there */
    struct cm_publication *publications;
    struct cm_change *changes;
};

struct cm_service_worker {
    struct cm_service *service;
    uint32_t index;
    struct cm_snapshot *snapshot;
    struct cm_random_pool random;
};

void cm_service_log(const struct cm_service *service, enum cm_service_log_level level, const char *format,
                    ...) __attribute__((format(printf, 3, 4)));

#endif
