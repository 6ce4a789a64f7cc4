/* SPDX-License-Identifier: Apache-2.0 */
/* Unix stream sockets, "unix:/path". */
#include "clock.h"
#include "error.h"
#include "transport.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* A Unix socket of the default size holds less than a good batch; the kernel cuts this down to its own limit.
 */
enum { SEND_BUFFER_BYTES = 1024 * 1024 };

static int parse(const char *rest, struct cm_endpoint *endpoint, cm_error *error)
{
    struct sockaddr_un address;
    if (rest[0] != '/')
        return cm_fail_code(error, CM_ERR_ENDPOINT, "endpoint \"%.100s\": the path must begin with /",
                            endpoint->uri);
    if (strlen(rest) >= sizeof address.sun_path)
        return cm_fail_code(error, CM_ERR_ENDPOINT,
                            "socket path \"%.60s…\" is longer than the %zu bytes of a Unix socket", rest,
                            sizeof address.sun_path - 1);
    memcpy(endpoint->host, rest, strlen(rest) + 1);
    return 0;
}

static int fail_access(const char *path, cm_error *error)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return cm_fail_code(error, CM_ERR_NO_ACCESS,
                            "uid %u, gid %u may not reach %s: a folder on the way to it can't be searched",
                            (unsigned)geteuid(), (unsigned)getegid(), path);
    char memory[1024];
    struct group group, *found = NULL;
    if (getgrgid_r(info.st_gid, &group, memory, sizeof memory, &found) != 0)
        found = NULL;
    return cm_fail_code(
        error, CM_ERR_NO_ACCESS,
        "uid %u, gid %u may not connect to %s: owner %u, group %u (%.20s), mode %04o; join the group",
        (unsigned)geteuid(), (unsigned)getegid(), path, (unsigned)info.st_uid, (unsigned)info.st_gid,
        found != NULL ? found->gr_name : "no name", (unsigned)(info.st_mode & 07777));
}

static int fail_connect(int number, const struct cm_endpoint *endpoint, cm_error *error)
{
    char memory[80];
    switch (number) {
    case ENOENT:
    case ENOTDIR:
        return cm_fail_code(error, CM_ERR_NOT_FOUND,
                            "there is no socket %s; start ciphermilld or give another endpoint",
                            endpoint->host);
    case ECONNREFUSED:
        return cm_fail_code(error, CM_ERR_NOT_FOUND,
                            "nobody listens at %s; start ciphermilld or give another endpoint",
                            endpoint->host);
    case EACCES:
    case EPERM:
        return fail_access(endpoint->host, error);
    case EAGAIN:
    case ETIMEDOUT:
        return cm_fail_code(error, CM_ERR_CONNECT_TIMEOUT,
                            "%s accepts no connection: its queue stayed full for the whole connect timeout",
                            endpoint->host);
    case EPROTOTYPE:
        return cm_fail_code(error, CM_ERR_NOT_CIPHERMILL, "%s is no stream socket", endpoint->host);
    default:
        return cm_fail(error, CM_ERR_DISCONNECTED, CM_RETRY_NOT_EXECUTED, "connecting to %s: %s",
                       endpoint->host, cm_errno_text(number, memory, sizeof memory));
    }
}

/* Blocking with a send timeout, since a non-blocking connect to a full queue fails at once and can't be
 * polled. */
static int connect_by(int fd, const struct cm_endpoint *endpoint, int64_t deadline_ms)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, endpoint->host, strlen(endpoint->host) + 1);
    for (;;) {
        int left = cm_left_ms(deadline_ms);
        if (left == 0)
            return ETIMEDOUT;
        struct timeval limit = {.tv_sec = left / 1000, .tv_usec = left % 1000 * 1000L};
        if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0)
            return errno;
        if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
            return 0;
        if (errno != EINTR)
            return errno;
    }
}

static int connect_unix(const struct cm_endpoint *endpoint, int64_t deadline_ms, int *ret_fd, cm_error *error)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return fail_connect(errno, endpoint, error);
    int number = connect_by(fd, endpoint, deadline_ms);
    if (number == 0) {
        int bytes = SEND_BUFFER_BYTES;
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
        if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
            number = errno;
    }
    if (number != 0) {
        close(fd);
        return fail_connect(number, endpoint, error);
    }
    *ret_fd = fd;
    return 0;
}

const struct cm_transport cm_transport_unix = {"unix:", parse, connect_unix};
