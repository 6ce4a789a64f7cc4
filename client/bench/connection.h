/* SPDX-License-Identifier: Apache-2.0 */
/* One connection of the load test: its own client and session, its units, and what is in flight.
 *
 * Belongs to one loader's thread. */
#ifndef CONNECTION_H
#define CONNECTION_H

#include "schedule.h"
#include "unit.h"

struct connection {
    const struct plan *plan;
    cm_client *client;
    cm_key *keys[KEYS_FAMILIES];
    int descriptor;
    struct unit *units;
    uint32_t unit_count;
    struct unit *idle, **idle_end; /* a queue: the unit that rested longest goes first */
    uint32_t inflight;
    struct schedule schedule; /* open loop */
    uint64_t resume_ns;       /* after an overload: not before then */
    uint64_t room_ns;         /* when it last had as many in flight as it may, and one came back */
    bool ended;               /* it broke: nothing more is sent */
};

/* Why a batch could not be sent or came back failed. */
struct connection_trouble {
    uint64_t items;
    cm_error error;
};

/* Connects, opens keys, makes units. CODE_OK, or an exit code, having said why; connection_close in any case.
 */
int connection_open(struct connection *connection, const struct plan *plan, const struct keys *keys,
                    uint32_t unit_count, struct reference *reference);
void connection_close(struct connection *connection);

/* How many units a connection takes: those in flight, and some that are verified meanwhile. */
uint32_t connection_units(const struct plan *plan);
/* Whether it may send: not ended, fewer in flight than allowed, a unit at rest, no pause. */
bool connection_can_send(const struct connection *connection, uint64_t now_ns);
/* Sends a batch that was meant to leave at intended_ns. False if the library refused; *ret_trouble says why.
 */
bool connection_send(struct connection *connection, uint64_t intended_ns,
                     struct connection_trouble *ret_trouble);
/* A batch failed as a whole: pauses after an overload, ends after anything else. */
void connection_suffer(struct connection *connection, const cm_error *error);
/* Puts a unit at the end of the queue. */
void connection_rest(struct connection *connection, struct unit *unit);

#endif
