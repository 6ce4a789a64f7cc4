/* SPDX-License-Identifier: Apache-2.0 */
/* Codec: the answers to calls. */
#include "codec_wire.h"

/* Every field of an answer has two bytes at least: for lists the arena is the only bound. */
enum { ANSWER_FIELDS_MAX = CM_HEADER_LIMIT };

/* --- Decoding --- */

static int get_key(struct cm_arena *arena, const Ciphermill__Wire__KeyInfo *wire, struct cm_key_info *ret_key)
{
    struct cm_key_version_info *versions;

    if (wire->id.len != 0 && wire->id.len != CM_KEY_ID_BYTES)
        return CM_CODEC_MALFORMED;
    versions = cm_arena_take(arena, wire->n_versions * sizeof *versions);
    if (versions == NULL)
        return CM_CODEC_TOO_COMPLEX;
    for (size_t i = 0; i < wire->n_versions; i++)
        versions[i] = (struct cm_key_version_info){.version = wire->versions[i]->version,
                                                   .state = wire->versions[i]->state,
                                                   .created_unix_s = wire->versions[i]->created_unix_s};
    *ret_key = (struct cm_key_info){.name = wire->name,
                                    .id = cm_codec_bytes(wire->id),
                                    .key_bits = wire->key_bits,
                                    .version_count = (uint32_t)wire->n_versions,
                                    .versions = versions};
    cm_codec_attributes_from(&ret_key->attributes, wire->attributes);
    return CM_CODEC_OK;
}

static int get_keys(struct cm_arena *arena, Ciphermill__Wire__KeyInfo *const *wire, size_t count,
                    struct cm_answer *answer)
{
    struct cm_key_info *keys = cm_arena_take(arena, count * sizeof *keys);

    if (keys == NULL)
        return CM_CODEC_TOO_COMPLEX;
    for (size_t i = 0; i < count; i++) {
        int rc = get_key(arena, wire[i], &keys[i]);

        if (rc != CM_CODEC_OK)
            return rc;
    }
    answer->key_count = (uint32_t)count;
    answer->keys = keys;
    return CM_CODEC_OK;
}

static int get_implementations(struct cm_arena *arena, const Ciphermill__Wire__ImplementationList *wire,
                               struct cm_answer *answer)
{
    struct cm_implementation_info *rows = cm_arena_take(arena, wire->n_rows * sizeof *rows);

    if (rows == NULL)
        return CM_CODEC_TOO_COMPLEX;
    for (size_t i = 0; i < wire->n_rows; i++) {
        const Ciphermill__Wire__Implementation *row = wire->rows[i];

        rows[i] = (struct cm_implementation_info){.mode = cm_codec_enum_byte((int)row->mode),
                                                  .direction = cm_codec_enum_byte((int)row->direction),
                                                  .implementation = row->implementation,
                                                  .compiled = row->compiled,
                                                  .available = row->available,
                                                  .used = row->used,
                                                  .used_for = (uint8_t)(row->used_for & 0xff),
                                                  .reason = row->reason};
    }
    answer->implementation_count = (uint32_t)wire->n_rows;
    answer->implementations = rows;
    return CM_CODEC_OK;
}

static void get_server_status(const Ciphermill__Wire__ServerStatus *wire, struct cm_server_status *ret_status)
{
    *ret_status = (struct cm_server_status){.server = wire->server,
                                            .identity = wire->identity,
                                            .may_administer = wire->may_administer,
                                            .draining = wire->draining,
                                            .uptime_ms = wire->uptime_ms,
                                            .inflight_bytes = wire->inflight_bytes,
                                            .inflight_limit_bytes = wire->inflight_limit_bytes,
                                            .workers = wire->workers,
                                            .connections = wire->connections,
                                            .keys = wire->keys};
}

static int get_content(struct cm_arena *arena, const Ciphermill__Wire__Answer *wire, struct cm_answer *answer)
{
    switch (wire->answer_case) {
    case CIPHERMILL__WIRE__ANSWER__ANSWER_KEY_HANDLE:
        if (wire->key_handle->key == NULL)
            return CM_CODEC_MALFORMED;
        answer->kind = CM_ANSWER_KEY_HANDLE;
        answer->handle = wire->key_handle->handle;
        return get_keys(arena, &wire->key_handle->key, 1, answer);
    case CIPHERMILL__WIRE__ANSWER__ANSWER_KEY:
        answer->kind = CM_ANSWER_KEY;
        return get_keys(arena, &wire->key, 1, answer);
    case CIPHERMILL__WIRE__ANSWER__ANSWER_KEY_LIST:
        answer->kind = CM_ANSWER_KEY_LIST;
        answer->more = wire->key_list->more;
        return get_keys(arena, wire->key_list->keys, wire->key_list->n_keys, answer);
    case CIPHERMILL__WIRE__ANSWER__ANSWER_IMPLEMENTATIONS:
        answer->kind = CM_ANSWER_IMPLEMENTATIONS;
        return get_implementations(arena, wire->implementations, answer);
    case CIPHERMILL__WIRE__ANSWER__ANSWER_SERVER_STATUS:
        answer->kind = CM_ANSWER_SERVER_STATUS;
        get_server_status(wire->server_status, &answer->server);
        return CM_CODEC_OK;
    default: /* none, or none that this side knows */
        return CM_CODEC_OK;
    }
}

int cm_codec_get_answer(struct cm_arena *arena, const uint8_t *header, size_t length,
                        struct cm_answer *ret_answer)
{
    struct cm_answer answer;
    int rc;
    Ciphermill__Wire__Answer *wire = cm_codec_unpack(arena, &ciphermill__wire__answer__descriptor, header,
                                                     length, ANSWER_FIELDS_MAX, &ret_answer->request_id, &rc);

    if (wire == NULL)
        return rc;
    answer = (struct cm_answer){
        .request_id = wire->request_id,
        .status = wire->status,
        .text = wire->text,
        .kind = CM_ANSWER_NONE,
        .server = {.server = protobuf_c_empty_string, .identity = protobuf_c_empty_string}};
    rc = get_content(arena, wire, &answer);
    if (rc == CM_CODEC_OK)
        *ret_answer = answer;
    return rc;
}

/* --- Encoding --- */

/* A key with the messages inside it, side by side. */
struct wire_key {
    Ciphermill__Wire__KeyInfo info;
    Ciphermill__Wire__KeyAttributes attributes;
};

static int put_key(struct cm_arena *arena, const struct cm_key_info *key,
                   Ciphermill__Wire__KeyInfo **ret_wire)
{
    struct wire_key *wire = cm_arena_take(arena, sizeof *wire);
    Ciphermill__Wire__KeyVersion *versions = cm_arena_take(arena, key->version_count * sizeof *versions);
    Ciphermill__Wire__KeyVersion **pointers =
        cm_arena_take(arena, key->version_count * sizeof(Ciphermill__Wire__KeyVersion *));

    if (wire == NULL || versions == NULL || pointers == NULL)
        return CM_CODEC_NO_ROOM;
    if (key->id.length != 0 && key->id.length != CM_KEY_ID_BYTES)
        return CM_CODEC_MALFORMED;
    for (uint32_t i = 0; i < key->version_count; i++) {
        ciphermill__wire__key_version__init(&versions[i]);
        versions[i].version = key->versions[i].version;
        versions[i].state = key->versions[i].state;
        versions[i].created_unix_s = key->versions[i].created_unix_s;
        pointers[i] = &versions[i];
    }
    ciphermill__wire__key_info__init(&wire->info);
    cm_codec_attributes_to(&wire->attributes, &key->attributes);
    wire->info.name = cm_codec_text(key->name);
    wire->info.id = cm_codec_binary(key->id);
    wire->info.key_bits = key->key_bits;
    wire->info.attributes = &wire->attributes;
    wire->info.n_versions = key->version_count;
    wire->info.versions = pointers;
    *ret_wire = &wire->info;
    return CM_CODEC_OK;
}

static int put_key_list(struct cm_arena *arena, const struct cm_answer *answer,
                        Ciphermill__Wire__KeyList *wire)
{
    ciphermill__wire__key_list__init(wire);
    wire->keys = cm_arena_take(arena, answer->key_count * sizeof(Ciphermill__Wire__KeyInfo *));
    if (wire->keys == NULL)
        return CM_CODEC_NO_ROOM;
    for (uint32_t i = 0; i < answer->key_count; i++) {
        int rc = put_key(arena, &answer->keys[i], &wire->keys[i]);

        if (rc != CM_CODEC_OK)
            return rc;
    }
    wire->n_keys = answer->key_count;
    wire->more = answer->more;
    return CM_CODEC_OK;
}

static int put_implementations(struct cm_arena *arena, const struct cm_answer *answer,
                               Ciphermill__Wire__ImplementationList *wire)
{
    size_t count = answer->implementation_count;
    Ciphermill__Wire__Implementation *rows = cm_arena_take(arena, count * sizeof *rows);
    Ciphermill__Wire__Implementation **pointers =
        cm_arena_take(arena, count * sizeof(Ciphermill__Wire__Implementation *));

    if (rows == NULL || pointers == NULL)
        return CM_CODEC_NO_ROOM;
    for (size_t i = 0; i < count; i++) {
        const struct cm_implementation_info *info = &answer->implementations[i];

        ciphermill__wire__implementation__init(&rows[i]);
        rows[i].mode = (Ciphermill__Wire__Mode)info->mode;
        rows[i].direction = (Ciphermill__Wire__Direction)info->direction;
        rows[i].implementation = cm_codec_text(info->implementation);
        rows[i].compiled = info->compiled;
        rows[i].available = info->available;
        rows[i].used = info->used;
        rows[i].used_for = info->used_for;
        rows[i].reason = cm_codec_text(info->reason);
        pointers[i] = &rows[i];
    }
    ciphermill__wire__implementation_list__init(wire);
    wire->n_rows = count;
    wire->rows = pointers;
    return CM_CODEC_OK;
}

static void put_server_status(const struct cm_server_status *status, Ciphermill__Wire__ServerStatus *wire)
{
    ciphermill__wire__server_status__init(wire);
    wire->server = cm_codec_text(status->server);
    wire->identity = cm_codec_text(status->identity);
    wire->may_administer = status->may_administer;
    wire->uptime_ms = status->uptime_ms;
    wire->workers = status->workers;
    wire->connections = status->connections;
    wire->inflight_bytes = status->inflight_bytes;
    wire->inflight_limit_bytes = status->inflight_limit_bytes;
    wire->keys = status->keys;
    wire->draining = status->draining;
}

/* The message inside an answer, of whichever kind: one of them is used. */
union answer_content {
    Ciphermill__Wire__KeyHandle key_handle;
    Ciphermill__Wire__KeyList key_list;
    Ciphermill__Wire__ImplementationList implementations;
    Ciphermill__Wire__ServerStatus server_status;
};

static int put_content(struct cm_arena *arena, const struct cm_answer *answer, union answer_content *content,
                       Ciphermill__Wire__Answer *wire)
{
    switch (answer->kind) {
    case CM_ANSWER_NONE:
        return CM_CODEC_OK;
    case CM_ANSWER_KEY_HANDLE:
        if (answer->key_count != 1)
            return CM_CODEC_MALFORMED;
        wire->answer_case = CIPHERMILL__WIRE__ANSWER__ANSWER_KEY_HANDLE;
        wire->key_handle = &content->key_handle;
        ciphermill__wire__key_handle__init(wire->key_handle);
        wire->key_handle->handle = answer->handle;
        return put_key(arena, answer->keys, &wire->key_handle->key);
    case CM_ANSWER_KEY:
        if (answer->key_count != 1)
            return CM_CODEC_MALFORMED;
        wire->answer_case = CIPHERMILL__WIRE__ANSWER__ANSWER_KEY;
        return put_key(arena, answer->keys, &wire->key);
    case CM_ANSWER_KEY_LIST:
        wire->answer_case = CIPHERMILL__WIRE__ANSWER__ANSWER_KEY_LIST;
        wire->key_list = &content->key_list;
        return put_key_list(arena, answer, wire->key_list);
    case CM_ANSWER_IMPLEMENTATIONS:
        wire->answer_case = CIPHERMILL__WIRE__ANSWER__ANSWER_IMPLEMENTATIONS;
        wire->implementations = &content->implementations;
        return put_implementations(arena, answer, wire->implementations);
    case CM_ANSWER_SERVER_STATUS:
        wire->answer_case = CIPHERMILL__WIRE__ANSWER__ANSWER_SERVER_STATUS;
        wire->server_status = &content->server_status;
        put_server_status(&answer->server, wire->server_status);
        return CM_CODEC_OK;
    }
    return CM_CODEC_MALFORMED;
}

int cm_codec_put_answer(struct cm_arena *arena, const struct cm_answer *answer, uint8_t *buffer,
                        size_t capacity, size_t *ret_length)
{
    Ciphermill__Wire__Answer wire = CIPHERMILL__WIRE__ANSWER__INIT;
    union answer_content content;
    size_t found = arena->used;
    int rc;

    wire.request_id = answer->request_id;
    wire.status = answer->status;
    wire.text = cm_codec_text(answer->text);
    rc = put_content(arena, answer, &content, &wire);
    if (rc == CM_CODEC_OK)
        rc = cm_codec_pack(&wire.base, CM_FRAME_ANSWER, 0, SIZE_MAX, buffer, capacity, ret_length);
    arena->used = found;
    return rc;
}
