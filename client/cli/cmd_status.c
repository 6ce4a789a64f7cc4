/* SPDX-License-Identifier: Apache-2.0 */
/* ciphermill status: the daemon's version, load, and who it takes the caller for. */
#include "commands.h"
#include "connect.h"
#include "json.h"
#include "text.h"
#include <ciphermill/admin.h>

static const struct form form = {
    .command = "status",
    .arguments = "[--json]",
    .text = "Shows the daemon's version, where it was reached, who it takes you for, whether you may "
            "administer keys,\n"
            "and its load. Ends with 0 if the daemon answers.\n",
    .examples = "  ciphermill status\n"
                "  ciphermill --endpoint tcp://127.0.0.1:7700 status --json\n",
};

static void print_json(const cm_server_details *status, const char *endpoint)
{
    struct json json;

    json_init(&json, stdout);
    json_object_begin(&json, NULL);
    json_string(&json, "server", status->server);
    json_string(&json, "endpoint", endpoint);
    json_string(&json, "identity", status->identity);
    json_bool(&json, "may_administer", status->may_administer != 0);
    json_bool(&json, "draining", status->draining != 0);
    json_uint(&json, "uptime_ms", status->uptime_ms);
    json_uint(&json, "workers", status->workers);
    json_uint(&json, "connections", status->connections);
    json_uint(&json, "keys", status->keys);
    json_uint(&json, "inflight_bytes", status->inflight_bytes);
    json_uint(&json, "inflight_limit_bytes", status->inflight_limit_bytes);
    json_object_end(&json);
    json_done(&json);
}

static void print_text(const cm_server_details *status, const char *endpoint)
{
    char inflight[TEXT_BYTES_MAX];
    char limit[TEXT_BYTES_MAX];
    uint64_t up_s = status->uptime_ms / 1000;

    text_format_bytes((double)status->inflight_bytes, inflight);
    text_format_bytes((double)status->inflight_limit_bytes, limit);
    printf("server       %s%s\nendpoint     %s\nyou are      %s\nyou may      %s\n", status->server,
           status->draining != 0 ? " (going away)" : "", endpoint, status->identity,
           status->may_administer != 0 ? "use keys, administer keys" : "use keys");
    printf("up           %u d %02u:%02u:%02u\nworkers      %u\nconnections  %u\nkeys         %u\n"
           "in flight    %s of %s\n",
           (unsigned)(up_s / 86400), (unsigned)(up_s / 3600 % 24), (unsigned)(up_s / 60 % 60),
           (unsigned)(up_s % 60), status->workers, status->connections, status->keys, inflight, limit);
}

int cmd_status(struct cli *cli, int argc, char **argv)
{
    const char *words[OPTIONS_WORDS_MAX];
    cm_server_details status = {.size = sizeof status};
    cm_error error = CM_ERROR_INIT;
    cm_client *client = NULL;
    int code;

    if (!options_read(&form, cli, argc, argv, words, &code))
        return code;
    code = connect_open(cli, 0, &client);
    if (code != CODE_OK)
        return code;
    if (cm_get_status(client, &status, &error) != 0)
        code = report_failure(&error, "can't ask %s for its status", connect_endpoint(cli));
    else if (cli->json)
        print_json(&status, connect_endpoint(cli));
    else
        print_text(&status, connect_endpoint(cli));
    cm_close(client);
    return code;
}
