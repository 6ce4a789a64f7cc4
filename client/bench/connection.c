/* SPDX-License-Identifier: Apache-2.0 */
/* Opens, feeds and closes one connection of the load test. */
#include "connection.h"
#include "clock.h"
#include "connect.h"
#include "report.h"
#include "text.h"
#include <stdlib.h>

uint32_t connection_units(const struct plan *plan)
{
    struct combination kinds[PLAN_COMBINATIONS];
    uint32_t kind_count = plan_combinations(plan, kinds);
    uint32_t spare = plan->inflight > 4 && !plan->verify_all ? plan->inflight / 4 : plan->inflight;
    uint32_t units = plan->inflight + spare;

    /* Every kind as often as any other. */
    return (units + kind_count - 1) / kind_count * kind_count;
}

void connection_rest(struct connection *connection, struct unit *unit)
{
    unit->next = NULL;
    *connection->idle_end = unit;
    connection->idle_end = &unit->next;
}

/* What the daemon announced has to take the batch; asking first gives a better text than a failing batch. */
static int check_limits(const struct plan *plan, cm_client *client)
{
    cm_limits_info limits = {.size = sizeof limits};
    cm_error error = CM_ERROR_INIT;
    char size[TEXT_BYTES_MAX];

    if (cm_get_limits(client, &limits, &error) != 0)
        return report_failure(&error, "can't ask for the daemon's limits");
    text_format_bytes((double)limits.item_bytes, size);
    if (plan->size_most > limits.item_bytes)
        return report_error(CODE_USAGE, "--size is over the daemon's limit for an item, %u bytes (%s)",
                            limits.item_bytes, size);
    if (plan->batch > limits.batch_items)
        return report_error(CODE_USAGE, "--batch is over the daemon's limit of %u items", limits.batch_items);
    text_format_bytes((double)limits.frame_bytes, size);
    if (plan->batch * (plan->size_most + 16) > limits.frame_bytes)
        return report_error(CODE_USAGE,
                            "--batch times --size is over the daemon's limit for a frame, %u bytes (%s)",
                            limits.frame_bytes, size);
    return CODE_OK;
}

static int make_units(struct connection *connection, const struct plan *plan, uint32_t unit_count,
                      uint32_t tag_length, struct reference *reference)
{
    struct combination kinds[PLAN_COMBINATIONS];
    uint32_t kind_count = plan_combinations(plan, kinds);

    connection->units = calloc(unit_count, sizeof connection->units[0]);
    if (connection->units == NULL)
        return report_error(CODE_FAILED, "no memory for the batches");
    for (uint32_t i = 0; i < unit_count; i++) {
        struct unit *unit = &connection->units[i];

        connection->unit_count++;
        if (!unit_init(unit, plan, kinds[i % kind_count], tag_length, reference))
            return report_error(CODE_FAILED, "no memory for the batches, or OpenSSL refuses this mode");
        unit->connection = connection;
        connection_rest(connection, unit);
    }
    return CODE_OK;
}

int connection_open(struct connection *connection, const struct plan *plan, const struct keys *keys,
                    uint32_t unit_count, struct reference *reference)
{
    uint32_t tag_length;
    int code;

    *connection = (struct connection){.plan = plan, .descriptor = -1};
    connection->idle_end = &connection->idle;
    code = connect_open(plan->cli, plan->inflight, &connection->client);
    if (code == CODE_OK)
        code = check_limits(plan, connection->client);
    if (code == CODE_OK)
        code = keys_open(keys, plan, connection->client, connection->keys, &tag_length);
    if (code == CODE_OK)
        code = make_units(connection, plan, unit_count, tag_length, reference);
    if (code == CODE_OK) {
        connection->descriptor = cm_fd(connection->client);
        if (connection->descriptor < 0)
            code = report_error(CODE_FAILED, "no descriptor to wait on: %s",
                                cm_status_description(connection->descriptor));
    }
    return code;
}

void connection_close(struct connection *connection)
{
    for (int family = 0; family < KEYS_FAMILIES; family++)
        cm_key_close(connection->keys[family]);
    cm_close(connection->client);
    for (uint32_t i = 0; i < connection->unit_count; i++)
        unit_done(&connection->units[i]);
    free(connection->units);
    *connection = (struct connection){.descriptor = -1};
}

bool connection_can_send(const struct connection *connection, uint64_t now_ns)
{
    return !connection->ended && connection->inflight < connection->plan->inflight &&
           connection->idle != NULL && now_ns >= connection->resume_ns;
}

bool connection_send(struct connection *connection, uint64_t intended_ns,
                     struct connection_trouble *ret_trouble)
{
    struct unit *unit = connection->idle;

    connection->idle = unit->next;
    if (connection->idle == NULL)
        connection->idle_end = &connection->idle;
    unit_prepare(unit, connection->plan);
    unit->intended_ns = intended_ns;
    ret_trouble->error = (cm_error)CM_ERROR_INIT;
    if (cm_submit(connection->keys[keys_family_of(unit->mode)], unit->mode, unit->direction, unit->flags,
                  unit->items, unit->count, unit, &ret_trouble->error) != 0) {
        ret_trouble->items = unit->count;
        connection_rest(connection, unit);
        return false;
    }
    connection->inflight++;
    return true;
}

void connection_suffer(struct connection *connection, const cm_error *error)
{
    const uint64_t pause_ns = 1000000;

    if (error->code == CM_ERR_OVERLOADED || error->code == CM_ERR_BUSY)
        connection->resume_ns = clock_now() + pause_ns;
    else
        connection->ended = true;
}
