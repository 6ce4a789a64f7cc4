/* SPDX-License-Identifier: Apache-2.0 */
/* Counts connections by peer, so that nobody takes them all. */
#include "peers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A list: there are as many names as users who are connected at the moment. */
struct cm_peer_count *cm_peers_get(struct cm_peers *peers, const char *name, uint32_t limit)
{
    struct cm_peer_count *peer = peers->first;
    while (peer != NULL && strcmp(peer->name, name) != 0)
        peer = peer->next;
    if (peer == NULL) {
        if (limit == 0)
            return NULL;
        peer = calloc(1, sizeof *peer);
        if (peer == NULL)
            return NULL;
        snprintf(peer->name, sizeof peer->name, "%s", name);
        peer->next = peers->first;
        peers->first = peer;
    }
    if (peer->count >= limit)
        return NULL;
    peer->count++;
    return peer;
}

void cm_peers_put(struct cm_peers *peers, struct cm_peer_count *peer)
{
    if (--peer->count > 0)
        return;
    struct cm_peer_count **link = &peers->first;
    while (*link != peer)
        link = &(*link)->next;
    *link = peer->next;
    free(peer);
}
