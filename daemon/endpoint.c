/* SPDX-License-Identifier: Apache-2.0 */
/* Where the daemon listens: addresses, listening sockets, and who a peer on them is. */
#include "endpoint.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { LOCK_TRIES = 50, LOCK_PAUSE_NS = 20000000, OVERFLOW_UID = 65534 };

#define FAIL(...) (snprintf(ret_text, text_capacity, __VA_ARGS__), -1)

static int parse_unix(const char *path, struct cm_endpoint *endpoint, char *ret_text, size_t text_capacity)
{
    struct sockaddr_un *address = &endpoint->address.un;
    if (path[0] != '/')
        return FAIL("unix:%s: the path must be absolute, as in unix:/run/ciphermill/ciphermill.sock", path);
    if (strlen(path) >= sizeof address->sun_path)
        return FAIL(
            "unix:%s: the path has %zu characters, a Unix socket's can have %zu: choose a shorter one", path,
            strlen(path), sizeof address->sun_path - 1);
    address->sun_family = AF_UNIX;
    memcpy(address->sun_path, path, strlen(path) + 1);
    endpoint->address_length = sizeof *address;
    memcpy(endpoint->scheme, "unix", sizeof "unix");
    return 0;
}

int cm_endpoint_parse_host(const char *host_port, struct cm_endpoint *ret_endpoint, char *ret_text,
                           size_t text_capacity)
{
    struct cm_endpoint endpoint = {.scheme = "tcp"};
    char host[64];
    const char *colon = strrchr(host_port, ':');
    size_t length = colon != NULL ? (size_t)(colon - host_port) : 0;
    if (colon == NULL || length == 0 || length >= sizeof host)
        return FAIL("%s: expected an address and a port, as in 127.0.0.1:7700 or [::1]:7700", host_port);
    memcpy(host, host_port, length);
    host[length] = '\0';

    char *end = NULL;
    errno = 0;
    unsigned long port = strtoul(colon + 1, &end, 10);
    if (colon[1] < '0' || colon[1] > '9' || *end != '\0' || errno != 0 || port > 65535)
        return FAIL("%s: the port must be a number from 0 to 65535", host_port);

    if (host[0] == '[' && host[length - 1] == ']') {
        host[length - 1] = '\0';
        struct sockaddr_in6 *in6 = &endpoint.address.in6;
        if (inet_pton(AF_INET6, host + 1, &in6->sin6_addr) != 1)
            return FAIL("%s: no IPv6 address in the brackets", host_port);
        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons((uint16_t)port);
        endpoint.address_length = sizeof *in6;
        if (!IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr))
            return FAIL("%s: plain TCP is for loopback only ([::1]), because it is not encrypted", host_port);
    } else {
        struct sockaddr_in *in = &endpoint.address.in;
        if (inet_pton(AF_INET, host, &in->sin_addr) != 1)
            return FAIL("%s: expected a numeric address such as 127.0.0.1 or [::1]", host_port);
        in->sin_family = AF_INET;
        in->sin_port = htons((uint16_t)port);
        endpoint.address_length = sizeof *in;
        if (ntohl(in->sin_addr.s_addr) >> 24 != IN_LOOPBACKNET)
            return FAIL("%s: plain TCP is for loopback only (127.0.0.1), because it is not encrypted",
                        host_port);
    }
    *ret_endpoint = endpoint;
    return 0;
}

int cm_endpoint_parse(const char *uri, struct cm_endpoint *ret_endpoint, char *ret_text, size_t text_capacity)
{
    if (strncmp(uri, "tcp://", 6) == 0)
        return cm_endpoint_parse_host(uri + 6, ret_endpoint, ret_text, text_capacity);
    if (strncmp(uri, "unix:", 5) == 0) {
        struct cm_endpoint endpoint = {0};
        if (parse_unix(uri + 5, &endpoint, ret_text, text_capacity) != 0)
            return -1;
        *ret_endpoint = endpoint;
        return 0;
    }
    return FAIL("%s: expected unix:/path or tcp://127.0.0.1:PORT", uri);
}

/* Two daemons that start at once must not both find the same stale socket and then remove each other's. The
 * folder itself is the lock, so that no lock file stays behind; whoever may open the folder could hold it, so
 * the wait is short and then ends. */
static int lock_folder(const char *path)
{
    char copy[sizeof((struct sockaddr_un *)0)->sun_path];
    snprintf(copy, sizeof copy, "%s", path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; fd >= 0 && i < LOCK_TRIES && flock(fd, LOCK_EX | LOCK_NB) != 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = LOCK_PAUSE_NS}, NULL);
    return fd;
}

/* Removes a socket that nobody listens on. 0 if the path is free now. */
static int clear_stale(const struct sockaddr_un *address, char *ret_text, size_t text_capacity)
{
    const char *path = address->sun_path;
    struct stat status;
    if (lstat(path, &status) != 0)
        return errno == ENOENT ? 0 : FAIL("unix:%s: %s", path, strerror(errno));
    if (!S_ISSOCK(status.st_mode))
        return FAIL(
            "unix:%s: there is a file of that name that is no socket: remove it or choose another path",
            path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return FAIL("unix:%s: %s", path, strerror(errno));
    int error = connect(fd, (const struct sockaddr *)address, sizeof *address) == 0 ? 0 : errno;
    close(fd);
    if (error == 0 || error == EAGAIN || error == EINPROGRESS)
        return FAIL("unix:%s: a daemon already listens there: stop it or choose another path", path);
    if (error != ECONNREFUSED)
        return FAIL("unix:%s: can't tell whether a daemon listens there: %s", path, strerror(error));
    if (unlink(path) != 0 && errno != ENOENT)
        return FAIL("unix:%s: can't remove the stale socket: %s", path, strerror(errno));
    return 0;
}

static int explain_bind(const char *path, int error, char *ret_text, size_t text_capacity)
{
    char folder[sizeof((struct sockaddr_un *)0)->sun_path];
    snprintf(folder, sizeof folder, "%s", path);
    if (error == ENOENT || error == ENOTDIR)
        return FAIL("unix:%s: the folder %s does not exist: create it", path, dirname(folder));
    if (error == EACCES || error == EPERM || error == EROFS)
        return FAIL("unix:%s: user %u may not create a socket in %s: change its owner or mode", path,
                    geteuid(), dirname(folder));
    return FAIL("unix:%s: %s", path, strerror(error));
}

static int set_owner(const char *path, const struct cm_listen *settings, char *ret_text, size_t text_capacity)
{
    if (settings->group != NULL) {
        const struct group *group = getgrnam(settings->group);
        if (group == NULL)
            return FAIL("unix:%s: there is no group %s: create it or name another one", path,
                        settings->group);
        if (lchown(path, (uid_t)-1, group->gr_gid) != 0)
            return FAIL("unix:%s: user %u can't give it to group %s (%s): be a member of it", path, geteuid(),
                        settings->group, strerror(errno));
    }
    if (chmod(path, settings->mode) != 0)
        return FAIL("unix:%s: can't set mode %04o: %s", path, settings->mode, strerror(errno));
    return 0;
}

static int bind_unix(int fd, const struct sockaddr_un *address, const struct cm_listen *settings,
                     struct cm_socket_file *ret_file, char *ret_text, size_t text_capacity)
{
    /* The file takes the socket's mode, so nobody can connect before owner and mode are set. */
    if (fchmod(fd, 0600) != 0)
        return FAIL("unix:%s: %s", address->sun_path, strerror(errno));
    if (bind(fd, (const struct sockaddr *)address, sizeof *address) != 0)
        return explain_bind(address->sun_path, errno, ret_text, text_capacity);
    struct stat status;
    if (lstat(address->sun_path, &status) == 0)
        *ret_file = (struct cm_socket_file){.device = status.st_dev, .inode = status.st_ino, .made = true};
    if (listen(fd, SOMAXCONN) != 0)
        return FAIL("unix:%s: %s", address->sun_path, strerror(errno));
    return settings != NULL ? set_owner(address->sun_path, settings, ret_text, text_capacity) : 0;
}

static int listen_unix(const struct cm_endpoint *endpoint, const struct cm_listen *settings,
                       struct cm_socket_file *ret_file, char *ret_text, size_t text_capacity)
{
    const struct sockaddr_un *address = &endpoint->address.un;
    int lock = lock_folder(address->sun_path);
    int fd = -1;
    if (clear_stale(address, ret_text, text_capacity) == 0) {
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
            snprintf(ret_text, text_capacity, "unix:%s: %s", address->sun_path, strerror(errno));
    }
    if (fd >= 0 && bind_unix(fd, address, settings, ret_file, ret_text, text_capacity) != 0) {
        cm_endpoint_unlink(endpoint, ret_file);
        ret_file->made = false;
        close(fd);
        fd = -1;
    }
    if (lock >= 0)
        close(lock);
    return fd;
}

static int listen_tcp(const struct cm_endpoint *endpoint, char *ret_text, size_t text_capacity)
{
    char name[80];
    const int on = 1;
    int family = endpoint->address.any.sa_family;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return FAIL("%s: %s", endpoint->scheme, strerror(errno));
    if (family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, &endpoint->address.any, endpoint->address_length) == 0 && listen(fd, SOMAXCONN) == 0)
        return fd;
    int error = errno;
    close(fd);
    cm_endpoint_name(-1, endpoint, name, sizeof name);
    if (error == EADDRINUSE)
        return FAIL("%s: another program listens there: stop it or choose another port", name);
    if (error == EACCES)
        return FAIL("%s: ports below 1024 need a privilege: choose a higher one", name);
    return FAIL("%s: %s", name, strerror(error));
}

int cm_endpoint_listen(const struct cm_endpoint *endpoint, const struct cm_listen *settings,
                       struct cm_socket_file *ret_file, char *ret_text, size_t text_capacity)
{
    *ret_file = (struct cm_socket_file){0};
    if (endpoint->address.any.sa_family == AF_UNIX)
        return listen_unix(endpoint, settings, ret_file, ret_text, text_capacity);
    return listen_tcp(endpoint, ret_text, text_capacity);
}

void cm_endpoint_unlink(const struct cm_endpoint *endpoint, const struct cm_socket_file *file)
{
    struct stat status;
    if (file->made && lstat(endpoint->address.un.sun_path, &status) == 0 && S_ISSOCK(status.st_mode) &&
        status.st_dev == file->device && status.st_ino == file->inode)
        (void)unlink(endpoint->address.un.sun_path);
}

void cm_endpoint_name(int fd, const struct cm_endpoint *endpoint, char *ret_name, size_t capacity)
{
    struct cm_endpoint bound = *endpoint;
    char host[INET6_ADDRSTRLEN] = "";
    if (fd >= 0 && endpoint->address.any.sa_family != AF_UNIX) {
        socklen_t length = sizeof bound.address;
        (void)getsockname(fd, &bound.address.any, &length);
    }
    switch (bound.address.any.sa_family) {
    case AF_UNIX:
        snprintf(ret_name, capacity, "%s:%s", bound.scheme, bound.address.un.sun_path);
        break;
    case AF_INET:
        inet_ntop(AF_INET, &bound.address.in.sin_addr, host, sizeof host);
        snprintf(ret_name, capacity, "%s://%s:%u", bound.scheme, host, ntohs(bound.address.in.sin_port));
        break;
    default:
        inet_ntop(AF_INET6, &bound.address.in6.sin6_addr, host, sizeof host);
        snprintf(ret_name, capacity, "%s://[%s]:%u", bound.scheme, host, ntohs(bound.address.in6.sin6_port));
        break;
    }
}

int cm_endpoint_identify(int fd, const struct cm_endpoint *endpoint, const struct cm_listen *settings,
                         struct cm_identity *ret_identity)
{
    struct cm_identity identity = {.name = "tcp:anonymous"};
    if (endpoint->address.any.sa_family == AF_UNIX) {
        struct ucred peer;
        socklen_t length = sizeof peer;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
            return -1;
        snprintf(identity.name, sizeof identity.name, "uid:%u", peer.uid);
        identity.may_send_keys = true;
        /* The overflow uid stands for every user that this namespace can't name: nobody in particular. */
        identity.may_administer =
            settings->admin && (peer.uid == 0 || peer.uid == geteuid()) && peer.uid != OVERFLOW_UID;
    }
    *ret_identity = identity;
    return 0;
}
