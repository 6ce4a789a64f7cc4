/* SPDX-License-Identifier: Apache-2.0 */
/* Where the daemon listens: addresses, listening sockets, and who a peer on them is. */
#ifndef CM_ENDPOINT_H
#define CM_ENDPOINT_H

#include "service.h"

#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/un.h>

/* An address as its URI names it: unix:/path, tcp://127.0.0.1:7700, tcp://[::1]:7700. */
struct cm_endpoint {
    char scheme[8];
    union {
        struct sockaddr any;
        struct sockaddr_un un;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
    } address;
    socklen_t address_length;
};

/* One `listen` of the configuration. */
struct cm_listen {
    char *uri;
    char *group; /* NULL: the daemon's own */
    uint32_t mode;
    bool admin;
};

/* 0, or -1 with a one-line text that names the cause and the remedy. TCP takes loopback addresses alone. */
int cm_endpoint_parse(const char *uri, struct cm_endpoint *ret_endpoint, char *ret_text,
                      size_t text_capacity);
/* HOST:PORT, loopback, with scheme "tcp". */
int cm_endpoint_parse_host(const char *host_port, struct cm_endpoint *ret_endpoint, char *ret_text,
                           size_t text_capacity);

/* Which file a Unix socket is, so that on exit only that one is removed. */
struct cm_socket_file {
    dev_t device;
    ino_t inode;
    bool made;
};

/* Makes a listening socket, close-on-exec and not blocking; `settings` gives mode and group of a Unix socket
 * (NULL: defaults). A stale Unix socket is replaced; one that a daemon answers on, and a file that is no
 * socket, are left alone. Returns the descriptor, or -1 with a text. */
int cm_endpoint_listen(const struct cm_endpoint *endpoint, const struct cm_listen *settings,
                       struct cm_socket_file *ret_file, char *ret_text, size_t text_capacity);
/* Removes the Unix socket if it is still the one that `file` remembers. Before closing the descriptor: while
 * that is open, no other socket gets the same inode. */
void cm_endpoint_unlink(const struct cm_endpoint *endpoint, const struct cm_socket_file *file);

/* The URI of what a listening socket is bound to: the port that the system chose stands in it. */
void cm_endpoint_name(int fd, const struct cm_endpoint *endpoint, char *ret_name, size_t capacity);

/* Who is at the other end of an accepted connection, in the kernel's words. `ret_identity->name` also serves
 * to count the peer's connections. -1 if the kernel does not say. */
int cm_endpoint_identify(int fd, const struct cm_endpoint *endpoint, const struct cm_listen *settings,
                         struct cm_identity *ret_identity);

#endif
