/* SPDX-License-Identifier: Apache-2.0 */
/* The table of transports, and the choice by a URI's prefix. */
#include "transport.h"
#include "error.h"
#include <string.h>

static const struct cm_transport *const transports[] = {&cm_transport_unix, &cm_transport_tcp};

int cm_endpoint_parse(const char *uri, struct cm_endpoint *ret_endpoint, cm_error *error)
{
    struct cm_endpoint endpoint = {0};
    if (strlen(uri) >= sizeof endpoint.uri)
        return cm_fail_code(error, CM_ERR_ENDPOINT, "endpoint longer than %zu bytes",
                            sizeof endpoint.uri - 1);
    memcpy(endpoint.uri, uri, strlen(uri) + 1);
    for (size_t i = 0; i < sizeof transports / sizeof transports[0]; i++) {
        size_t length = strlen(transports[i]->prefix);
        if (strncmp(uri, transports[i]->prefix, length) != 0)
            continue;
        endpoint.transport = transports[i];
        int rc = transports[i]->parse(uri + length, &endpoint, error);
        if (rc == 0)
            *ret_endpoint = endpoint;
        return rc;
    }
    return cm_fail_code(error, CM_ERR_ENDPOINT,
                        "endpoint \"%.100s\" is neither unix:/path nor tcp://host:port", uri);
}
