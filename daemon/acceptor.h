/* SPDX-License-Identifier: Apache-2.0 */
/* Accepts connections on the listening sockets of the main thread, and pauses where descriptors run out. */
#ifndef CM_ACCEPTOR_H
#define CM_ACCEPTOR_H

#include "endpoint.h"

#include <uv.h>

struct cm_acceptor;

struct cm_listener {
    struct cm_acceptor *acceptor;
    uv_poll_t poll;
    int fd;
    struct cm_endpoint endpoint;
    const struct cm_listen *settings; /* the configuration's; NULL for metrics */
    struct cm_socket_file file;
    /* Takes the descriptor of a new connection, which is close-on-exec and does not block. */
    void (*on_connection)(struct cm_listener *listener, int fd);
};

enum { CM_REFUSED_MAX = 32 };

struct cm_acceptor {
    uv_loop_t *loop;
    void *context; /* the owner's, for on_connection */
    struct cm_listener *listeners;
    size_t count;
    bool accepting, paused;
    uv_timer_t timer;
    uint64_t paused_total, logged_ms;
    struct {
        int fd;
        uint64_t until_ms;
    } refused[CM_REFUSED_MAX];
    size_t refused_count;
};

/* Room for `capacity` listeners. 0 or negative. */
int cm_acceptor_init(struct cm_acceptor *acceptor, uv_loop_t *loop, size_t capacity, void *context);
/* Binds and listens; connections wait in the kernel until cm_acceptor_start. 0, or -1 with a text. */
int cm_acceptor_listen(struct cm_acceptor *acceptor, const struct cm_endpoint *endpoint,
                       const struct cm_listen *settings,
                       void (*on_connection)(struct cm_listener *listener, int fd), char *ret_text,
                       size_t text_capacity);
int cm_acceptor_start(struct cm_acceptor *acceptor);
/* A connection has ended: there may be a descriptor again. */
void cm_acceptor_retry(struct cm_acceptor *acceptor);
/* Sends a last frame and closes a little later, so that a peer which is just writing its greeting reads the
 * frame before it sees an error. Takes the descriptor. */
void cm_acceptor_refuse(struct cm_acceptor *acceptor, int fd, const uint8_t *frame, size_t length);
/* Closes the listeners that have `settings` and removes their sockets. */
void cm_acceptor_end(struct cm_acceptor *acceptor);
/* Closes everything else; the handles need one more turn of the loop. */
void cm_acceptor_close(struct cm_acceptor *acceptor);
/* After that turn. */
void cm_acceptor_done(struct cm_acceptor *acceptor);

#endif
