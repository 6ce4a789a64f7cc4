/* SPDX-License-Identifier: Apache-2.0 */
/* Connecting to the daemon as the global options say. */
#ifndef CONNECT_H
#define CONNECT_H

#include "options.h"
#include <ciphermill/ciphermill.h>

/* The endpoint in force, for texts; never NULL. */
const char *connect_endpoint(const struct cli *cli);
/* CODE_OK, or an exit code, having said why. `inflight` as in cm_options; 0: the library's default. */
int connect_open(const struct cli *cli, uint32_t inflight, cm_client **ret_client);

#endif
