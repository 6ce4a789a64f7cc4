/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoints ("unix:/path", "tcp://host:port") and the table of ways to reach one. */
#ifndef CM_CLIENT_TRANSPORT_H
#define CM_CLIENT_TRANSPORT_H

#include <ciphermill/ciphermill.h>

struct cm_transport;

/* Where the daemon is; plain memory, no pointers into the caller's. */
struct cm_endpoint {
    const struct cm_transport *transport;
    char uri[256];  /* as given, for texts */
    char host[256]; /* tcp: the host; unix: the path */
    char port[8];   /* tcp */
};

struct cm_transport {
    const char *prefix; /* of the URI */
    /* Takes what follows the prefix apart. 0 or CM_ERR_ENDPOINT. */
    int (*parse)(const char *rest, struct cm_endpoint *endpoint, cm_error *error);
    /* Connects before the deadline. On success *ret_fd is a non-blocking close-on-exec stream socket. */
    int (*connect)(const struct cm_endpoint *endpoint, int64_t deadline_ms, int *ret_fd, cm_error *error);
};

extern const struct cm_transport cm_transport_unix, cm_transport_tcp;

/* 0 or CM_ERR_ENDPOINT. */
int cm_endpoint_parse(const char *uri, struct cm_endpoint *ret_endpoint, cm_error *error);

#endif
