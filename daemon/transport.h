/* SPDX-License-Identifier: Apache-2.0 */
/* The transport table: how the bytes of a connection travel. A new transport is one file that ends in a row.
 */
#ifndef CM_TRANSPORT_H
#define CM_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct cm_channel;

/* What a channel tells the connection that owns it; all on the loop's thread, none after `on_closed`. */
struct cm_channel_events {
    /* Where the next bytes go. A length of 0 pauses: `on_received` then gets UV_ENOBUFS. */
    void (*on_room)(struct cm_channel *channel, uv_buf_t *ret_room);
    /* `length` bytes have arrived in that room; negative: UV_EOF or another error. */
    void (*on_received)(struct cm_channel *channel, ssize_t length);
    /* What `write` was given has left, or `status` is negative. */
    void (*on_written)(struct cm_channel *channel, int status);
    void (*on_closed)(struct cm_channel *channel);
};

struct cm_transport {
    const char *scheme; /* of the URIs that it serves */
    /* Takes over a connected descriptor. On failure the descriptor is closed, and `close` is still due. */
    int (*open)(struct cm_channel *channel, uv_loop_t *loop, int fd);
    int (*read_start)(struct cm_channel *channel);
    void (*read_stop)(struct cm_channel *channel);
    /* Writes what can be written now: how many bytes, or negative (UV_EAGAIN: none). Not while a `write`
     * runs. */
    ssize_t (*try_write)(struct cm_channel *channel, const uv_buf_t parts[], unsigned count);
    /* Writes everything; the memory must stay until on_written. One at a time. */
    int (*write)(struct cm_channel *channel, const uv_buf_t parts[], unsigned count);
    /* Looks at what waits to be read and leaves it there: copies the first bytes, tells how many wait in all,
     * and how many could be written at once. Returns how many were copied, or negative if it can't tell. */
    ssize_t (*peek)(struct cm_channel *channel, uint8_t *first, size_t length, size_t *ret_waiting,
                    size_t *ret_sendable);
    /* Bytes of the running `write` that have not left. */
    size_t (*queued)(const struct cm_channel *channel);
    /* Nothing more will be written; the peer sees the end. */
    void (*end)(struct cm_channel *channel);
    /* A running `write` ends with UV_ECANCELED, then on_closed comes. */
    void (*close)(struct cm_channel *channel);
};

/* One connection's; stands inside its owner, which fills `transport` and `events` before `open`. */
struct cm_channel {
    const struct cm_transport *transport;
    const struct cm_channel_events *events;
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_pipe_t pipe;
        uv_tcp_t tcp;
    } uv;
    uv_write_t write;
};

extern const struct cm_transport cm_transport_unix, cm_transport_tcp; /* transport_stream.c */

#endif
