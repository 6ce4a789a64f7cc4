/* SPDX-License-Identifier: Apache-2.0 */
/* Asserts that two messages say the same, field by field. */
#include "same.h"

#include <check.h>

#define SAME(field) ck_assert_uint_eq(a->field, b->field)

/* NULL and "" are one and the same to the codec. */
static void same_text(const char *a, const char *b)
{
    ck_assert_str_eq(a == NULL ? "" : a, b == NULL ? "" : b);
}

static void same_bytes(struct cm_bytes a, struct cm_bytes b)
{
    ck_assert_uint_eq(a.length, b.length);
    if (a.length != 0)
        ck_assert_mem_eq(a.data, b.data, a.length);
}

static void same_column(const void *a, const void *b, size_t length)
{
    ck_assert_int_eq(a == NULL, b == NULL);
    if (a != NULL && length != 0)
        ck_assert_mem_eq(a, b, length);
}

void same_hello(const struct cm_hello *a, const struct cm_hello *b)
{
    SAME(version_min);
    SAME(version_max);
    SAME(features);
    same_bytes(a->session_token, b->session_token);
    same_text(a->client, b->client);
}

void same_welcome(const struct cm_welcome *a, const struct cm_welcome *b)
{
    SAME(version);
    SAME(features);
    same_bytes(a->session_token, b->session_token);
    SAME(limits.header_bytes);
    SAME(limits.frame_bytes);
    SAME(limits.batch_items);
    SAME(limits.item_bytes);
    SAME(limits.inflight_bytes);
    SAME(limits.operations);
    SAME(limits.session_keys);
    same_text(a->server, b->server);
    same_text(a->identity, b->identity);
    SAME(may_administer);
}

void same_refusal(const struct cm_refusal *a, const struct cm_refusal *b)
{
    SAME(status);
    same_text(a->text, b->text);
    SAME(version_min);
    SAME(version_max);
}

void same_goodbye(const struct cm_goodbye *a, const struct cm_goodbye *b)
{
    SAME(last_request_id);
    same_text(a->reason, b->reason);
}

void same_batch(const struct cm_batch *a, const struct cm_batch *b)
{
    SAME(request_id);
    SAME(key_handle);
    SAME(key_version);
    SAME(mode);
    SAME(direction);
    SAME(padding);
    SAME(slot_align);
    SAME(slot_gap);
    SAME(count);
    if (a->count != 0)
        same_column(a->lengths, b->lengths, a->count * sizeof *a->lengths);
    same_column(a->iv_lengths, b->iv_lengths, a->count * sizeof *a->iv_lengths);
    same_column(a->aad_lengths, b->aad_lengths, a->count * sizeof *a->aad_lengths);
    same_bytes(a->ivs, b->ivs);
    same_bytes(a->tags, b->tags);
    same_column(a->parts, b->parts, a->count);
    same_column(a->operations, b->operations, a->count * sizeof *a->operations);
}

void same_batch_reply(const struct cm_batch_reply *a, const struct cm_batch_reply *b)
{
    SAME(request_id);
    SAME(status);
    same_text(a->text, b->text);
    SAME(key_version);
    SAME(count);
    if (a->count != 0)
        same_column(a->lengths, b->lengths, a->count * sizeof *a->lengths);
    same_column(a->statuses, b->statuses, a->count * sizeof *a->statuses);
    SAME(iv_length);
    SAME(tag_length);
    same_column(a->ivs, b->ivs, (size_t)a->count * a->iv_length);
    same_column(a->tags, b->tags, (size_t)a->count * a->tag_length);
}

static void same_attributes(const struct cm_key_attributes *a, const struct cm_key_attributes *b)
{
    SAME(modes);
    SAME(encrypt);
    SAME(decrypt);
    SAME(caller_iv);
    SAME(tag_length);
}

void same_call(const struct cm_call *a, const struct cm_call *b)
{
    SAME(request_id);
    same_bytes(a->operation_id, b->operation_id);
    SAME(kind);
    same_text(a->name, b->name);
    SAME(number);
    SAME(key_bits);
    same_attributes(&a->attributes, &b->attributes);
    SAME(unsafe_mixed_modes);
    SAME(import);
}

static void same_key(const struct cm_key_info *a, const struct cm_key_info *b)
{
    same_text(a->name, b->name);
    same_bytes(a->id, b->id);
    SAME(key_bits);
    same_attributes(&a->attributes, &b->attributes);
    SAME(version_count);
    for (uint32_t i = 0; i < a->version_count; i++) {
        SAME(versions[i].version);
        SAME(versions[i].state);
        SAME(versions[i].created_unix_s);
    }
}

static void same_implementation(const struct cm_implementation_info *a,
                                const struct cm_implementation_info *b)
{
    SAME(mode);
    SAME(direction);
    same_text(a->implementation, b->implementation);
    SAME(compiled);
    SAME(available);
    SAME(used);
    SAME(used_for);
    same_text(a->reason, b->reason);
}

static void same_server(const struct cm_server_status *a, const struct cm_server_status *b)
{
    same_text(a->server, b->server);
    same_text(a->identity, b->identity);
    SAME(may_administer);
    SAME(draining);
    SAME(uptime_ms);
    SAME(inflight_bytes);
    SAME(inflight_limit_bytes);
    SAME(workers);
    SAME(connections);
    SAME(keys);
}

void same_answer(const struct cm_answer *a, const struct cm_answer *b)
{
    SAME(request_id);
    SAME(status);
    same_text(a->text, b->text);
    SAME(kind);
    SAME(handle);
    SAME(key_count);
    for (uint32_t i = 0; i < a->key_count; i++)
        same_key(&a->keys[i], &b->keys[i]);
    SAME(more);
    SAME(implementation_count);
    for (uint32_t i = 0; i < a->implementation_count; i++)
        same_implementation(&a->implementations[i], &b->implementations[i]);
    same_server(&a->server, &b->server);
}
