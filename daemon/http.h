/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics and health over HTTP, on the main thread's loop. */
#ifndef CM_HTTP_H
#define CM_HTTP_H

#include <stdbool.h>
#include <stdio.h>
#include <uv.h>

/* Where the answers come from; called on the loop's thread. */
struct cm_http_source {
    void (*print_metrics)(void *context, FILE *out);
    bool (*is_ready)(void *context);
    void *context;
};

struct cm_http;

/* 0 or negative. */
int cm_http_open(struct cm_http **ret_http, uv_loop_t *loop, const struct cm_http_source *source);
/* Serves an accepted connection; takes the descriptor. */
void cm_http_serve(struct cm_http *http, int fd);
/* Ends all connections; the memory goes when the loop has turned once more. NULL is fine. */
void cm_http_close(struct cm_http *http);

#endif
