/* SPDX-License-Identifier: Apache-2.0 */
/* Connects, and says what is wrong if that fails. */
#include "connect.h"
#include "report.h"
#include <stdlib.h>

const char *connect_endpoint(const struct cli *cli)
{
    const char *named = getenv("CIPHERMILL_ENDPOINT");

    if (cli->endpoint != NULL)
        return cli->endpoint;
    return named != NULL && named[0] != '\0' ? named : CM_DEFAULT_ENDPOINT;
}

int connect_open(const struct cli *cli, uint32_t inflight, cm_client **ret_client)
{
    cm_options options = CM_OPTIONS_INIT;
    cm_error error = CM_ERROR_INIT;

    options.program = "ciphermill";
    options.inflight = inflight;
    if (cli->timeout_s > 0) {
        double wait_ms = cli->timeout_s * 1000;

        options.request_timeout_ms = wait_ms < 1 ? 1 : (uint32_t)wait_ms;
        if (options.request_timeout_ms < 5000)
            options.connect_timeout_ms = options.request_timeout_ms;
    }
    if (cm_connect(ret_client, connect_endpoint(cli), &options, &error) != 0)
        return report_failure(&error, "can't connect to %s", connect_endpoint(cli));
    return CODE_OK;
}
