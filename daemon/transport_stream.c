/* SPDX-License-Identifier: Apache-2.0 */
/* Plain byte streams: Unix sockets and TCP. */
#include "transport.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* The kernel's default for Unix sockets holds less than a large item; TCP tunes itself. */
enum { UNIX_SEND_BYTES = 1024 * 1024 };

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_room)
{
    struct cm_channel *channel = handle->data;
    (void)suggested;
    *ret_room = uv_buf_init(NULL, 0);
    channel->events->on_room(channel, ret_room);
}

static void on_read(uv_stream_t *stream, ssize_t length, const uv_buf_t *room)
{
    struct cm_channel *channel = stream->data;
    (void)room;
    if (length != 0) /* 0 only says that nothing was there after all */
        channel->events->on_received(channel, length);
}

static void on_write(uv_write_t *write, int status)
{
    struct cm_channel *channel = write->data;
    channel->events->on_written(channel, status);
}

static void on_close(uv_handle_t *handle)
{
    struct cm_channel *channel = handle->data;
    channel->events->on_closed(channel);
}

static int opened(struct cm_channel *channel, int fd, int rc)
{
    channel->uv.handle.data = channel;
    if (rc != 0)
        close(fd);
    return rc;
}

static int open_unix(struct cm_channel *channel, uv_loop_t *loop, int fd)
{
    const int bytes = UNIX_SEND_BYTES;
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    uv_pipe_init(loop, &channel->uv.pipe, 0); /* can't fail */
    return opened(channel, fd, uv_pipe_open(&channel->uv.pipe, fd));
}

static int open_tcp(struct cm_channel *channel, uv_loop_t *loop, int fd)
{
    const int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    uv_tcp_init(loop, &channel->uv.tcp); /* can't fail: it makes no socket yet */
    return opened(channel, fd, uv_tcp_open(&channel->uv.tcp, fd));
}

static int stream_read_start(struct cm_channel *channel)
{
    return uv_read_start(&channel->uv.stream, on_alloc, on_read);
}

static void stream_read_stop(struct cm_channel *channel)
{
    uv_read_stop(&channel->uv.stream);
}

static ssize_t stream_try_write(struct cm_channel *channel, const uv_buf_t parts[], unsigned count)
{
    return uv_try_write(&channel->uv.stream, parts, count);
}

static int stream_write(struct cm_channel *channel, const uv_buf_t parts[], unsigned count)
{
    channel->write.data = channel;
    return uv_write(&channel->write, &channel->uv.stream, parts, count, on_write);
}

/* Both kinds of socket count what they hold with the kernel's overhead, or may hold less than they say: a
 * quarter of what is left surely fits. */
static ssize_t stream_peek(struct cm_channel *channel, uint8_t *first, size_t length, size_t *ret_waiting,
                           size_t *ret_sendable)
{
    uv_os_fd_t fd;
    int waiting = 0, unsent = 0, room = 0;
    socklen_t room_length = sizeof room;
    if (uv_fileno(&channel->uv.handle, &fd) != 0 || ioctl(fd, FIONREAD, &waiting) != 0 ||
        ioctl(fd, TIOCOUTQ, &unsent) != 0 || getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, &room_length) != 0)
        return UV_EINVAL;
    ssize_t copied = recv(fd, first, length, MSG_PEEK | MSG_DONTWAIT);
    *ret_waiting = (size_t)waiting;
    *ret_sendable = room > unsent ? (size_t)(room - unsent) / 4 : 0;
    return copied < 0 ? 0 : copied;
}

static size_t stream_queued(const struct cm_channel *channel)
{
    return uv_stream_get_write_queue_size(&channel->uv.stream);
}

static void stream_end(struct cm_channel *channel)
{
    uv_os_fd_t fd;
    if (uv_fileno(&channel->uv.handle, &fd) == 0)
        shutdown(fd, SHUT_WR);
}

static void stream_close(struct cm_channel *channel)
{
    uv_close(&channel->uv.handle, on_close);
}

const struct cm_transport cm_transport_unix = {
    "unix",       open_unix,   stream_read_start, stream_read_stop, stream_try_write,
    stream_write, stream_peek, stream_queued,     stream_end,       stream_close,
};

const struct cm_transport cm_transport_tcp = {
    "tcp",        open_tcp,    stream_read_start, stream_read_stop, stream_try_write,
    stream_write, stream_peek, stream_queued,     stream_end,       stream_close,
};
