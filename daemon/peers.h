/* SPDX-License-Identifier: Apache-2.0 */
/* Counts connections by peer, so that nobody takes them all. One thread's. */
#ifndef CM_PEERS_H
#define CM_PEERS_H

#include <stdint.h>

struct cm_peer_count {
    struct cm_peer_count *next;
    uint32_t count;
    char name[128];
};

/* Zeroed is empty. */
struct cm_peers {
    struct cm_peer_count *first;
};

/* Counts one more connection of `name`; NULL if that would be more than `limit`, or there is no memory. */
struct cm_peer_count *cm_peers_get(struct cm_peers *peers, const char *name, uint32_t limit);
void cm_peers_put(struct cm_peers *peers, struct cm_peer_count *peer);

#endif
