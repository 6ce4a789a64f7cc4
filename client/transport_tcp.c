/* SPDX-License-Identifier: Apache-2.0 */
/* Plain TCP, "tcp://host:port", "tcp://[::1]:port". */
#include "clock.h"
#include "error.h"
#include "transport.h"
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int parse(const char *rest, struct cm_endpoint *endpoint, cm_error *error)
{
    const char *colon = strrchr(rest, ':');
    size_t host = colon != NULL ? (size_t)(colon - rest) : 0;
    const char *from = rest;
    if (host >= 2 && rest[0] == '[' && rest[host - 1] == ']') {
        from++;
        host -= 2;
    }
    size_t digits = colon != NULL ? strspn(colon + 1, "0123456789") : 0;
    bool well =
        host > 0 && host < sizeof endpoint->host && digits > 0 && digits <= 5 && colon[1 + digits] == 0;
    if (well) {
        unsigned long port = strtoul(colon + 1, NULL, 10);
        well = port >= 1 && port <= 65535;
    }
    if (!well)
        return cm_fail_code(error, CM_ERR_ENDPOINT, "endpoint \"%.100s\" is not of the form tcp://host:port",
                            endpoint->uri);
    memcpy(endpoint->host, from, host);
    endpoint->host[host] = 0;
    memcpy(endpoint->port, colon + 1, digits + 1);
    return 0;
}

static int fail_connect(int number, const struct cm_endpoint *endpoint, cm_error *error)
{
    char memory[80];
    switch (number) {
    case ECONNREFUSED:
        return cm_fail_code(error, CM_ERR_NOT_FOUND,
                            "nobody listens at %.150s; start ciphermilld or give another endpoint",
                            endpoint->uri);
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EADDRNOTAVAIL:
        return cm_fail_code(error, CM_ERR_NOT_FOUND, "%.150s can't be reached: %s", endpoint->uri,
                            cm_errno_text(number, memory, sizeof memory));
    case ETIMEDOUT:
        return cm_fail_code(error, CM_ERR_CONNECT_TIMEOUT,
                            "%.150s accepted no connection in the connect timeout", endpoint->uri);
    case EACCES:
    case EPERM:
        return cm_fail_code(error, CM_ERR_NO_ACCESS, "uid %u, gid %u may not connect to %.150s: %s",
                            (unsigned)geteuid(), (unsigned)getegid(), endpoint->uri,
                            cm_errno_text(number, memory, sizeof memory));
    default:
        return cm_fail(error, CM_ERR_DISCONNECTED, CM_RETRY_NOT_EXECUTED, "connecting to %.150s: %s",
                       endpoint->uri, cm_errno_text(number, memory, sizeof memory));
    }
}

/* 0 or an errno value. An interrupted connect goes on by itself, so that it is polled like one in progress.
 */
static int finish(int fd, int64_t deadline_ms)
{
    struct pollfd wait = {.fd = fd, .events = POLLOUT};
    int ready;
    do {
        ready = poll(&wait, 1, cm_left_ms(deadline_ms));
    } while (ready < 0 && errno == EINTR);
    if (ready < 0)
        return errno;
    if (ready == 0)
        return ETIMEDOUT;
    int number = 0;
    socklen_t length = sizeof number;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, &length) != 0)
        return errno;
    return number;
}

static int try_address(const struct addrinfo *address, int64_t deadline_ms, int *ret_fd)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return errno;
    int number = 0;
    if (connect(fd, address->ai_addr, address->ai_addrlen) != 0)
        number = errno == EINPROGRESS || errno == EINTR ? finish(fd, deadline_ms) : errno;
    if (number != 0) {
        close(fd);
        return number;
    }
    int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    *ret_fd = fd;
    return 0;
}

static int connect_tcp(const struct cm_endpoint *endpoint, int64_t deadline_ms, int *ret_fd, cm_error *error)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    int rc = getaddrinfo(endpoint->host, endpoint->port, &hints, &found);
    if (rc != 0)
        return cm_fail_code(error, CM_ERR_NOT_FOUND, "host \"%.100s\" of the endpoint: %s", endpoint->host,
                            gai_strerror(rc));
    int number = EADDRNOTAVAIL;
    for (const struct addrinfo *at = found; at != NULL; at = at->ai_next) {
        number = try_address(at, deadline_ms, ret_fd);
        if (number == 0)
            break;
    }
    freeaddrinfo(found);
    return number == 0 ? 0 : fail_connect(number, endpoint, error);
}

const struct cm_transport cm_transport_tcp = {"tcp://", parse, connect_tcp};
