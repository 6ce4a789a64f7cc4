/* SPDX-License-Identifier: Apache-2.0 */
/* The main thread: starts everything, admits connections, and ends in good order. */
#ifndef CM_SERVER_H
#define CM_SERVER_H

#include "config.h"

enum { CM_EXIT_OK = 0, CM_EXIT_FAILURE = 1, CM_EXIT_USAGE = 2 };

/* Runs until a signal ends it; cm_aes_init comes first. Returns one of CM_EXIT_OK and CM_EXIT_FAILURE, whose
 * cause has been logged. */
int cm_server_run(const struct cm_config *config);

#endif
