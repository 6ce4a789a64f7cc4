/* SPDX-License-Identifier: Apache-2.0 */
/* A file that appears only complete: written beside its place and renamed into it at the end.
 *
 * Until then nothing of it is seen under its name, and it is removed on failure and on SIGINT, SIGTERM,
 * SIGHUP and SIGQUIT. A file that is replaced passes its mode on, and its owner and group where that is
 * allowed. A path that exists and is no regular file (a device, a fifo) is written to straight
 * away, as is standard output. One output at a time in a process, because of the signal handler. */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <stddef.h>

struct output {
    int descriptor; /* -1: none open */
    char *name;     /* for texts */
    char *target;   /* where it shall appear; NULL: written straight */
    char *beside;   /* where it is until then */
};

/* NULL and "-" are standard output. CODE_OK, or an exit code, having said why. */
int output_open(struct output *output, const char *path);
int output_write(struct output *output, const void *bytes, size_t length);
/* Makes the file durable and lets it appear. CODE_OK, or an exit code; the output is closed in any case. */
int output_commit(struct output *output);
/* Closes and removes what is not committed; after output_commit it does nothing. */
void output_discard(struct output *output);

#endif
