/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon in a thread of the test. */
#include "fake.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void must(bool well, const char *what)
{
    if (!well) {
        perror(what);
        abort();
    }
}

static void *must_allocate(size_t bytes)
{
    void *memory = malloc(bytes > 0 ? bytes : 1);
    must(memory != NULL, "malloc");
    return memory;
}

void fake_write(int fd, const void *bytes, size_t length)
{
    const uint8_t *at = bytes;
    while (length > 0) {
        ssize_t sent = send(fd, at, length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return; /* the client went away, which is its right */
        at += sent;
        length -= (size_t)sent;
    }
}

static bool read_all(int fd, uint8_t *to, size_t length)
{
    while (length > 0) {
        ssize_t got = recv(fd, to, length, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        to += got;
        length -= (size_t)got;
    }
    return true;
}

int fake_next(struct fake_peer *peer)
{
    uint8_t prefix[CM_FRAME_PREFIX_BYTES];
    free(peer->bytes);
    peer->bytes = NULL;
    if (!read_all(peer->fd, prefix, sizeof prefix))
        return 0;
    if (memcmp(prefix, "GET / HTTP/1.0", 14) == 0)
        return 0;
    must(cm_frame_parse(prefix, sizeof prefix, CM_HEADER_LIMIT, peer->fake->limits.frame_bytes,
                        &peer->frame) == 0,
         "a frame from the client");
    size_t total = cm_frame_total(&peer->frame);
    peer->bytes = must_allocate(total);
    memcpy(peer->bytes, prefix, sizeof prefix);
    peer->header = peer->bytes + sizeof prefix;
    peer->body = peer->bytes + cm_frame_body_offset(peer->frame.header_length);
    if (!read_all(peer->fd, peer->bytes + sizeof prefix, total - sizeof prefix))
        return 0;
    return peer->frame.type;
}

static void check_zero(const uint8_t *bytes, size_t length, const char *what)
{
    for (size_t i = 0; i < length; i++)
        must(bytes[i] == 0, what);
}

/* Slots and additional data must fill the body exactly, and filler be zero. */
static void check_body(struct fake_peer *peer)
{
    const struct cm_batch *batch = &peer->batch;
    uint64_t total = cm_slot_total(batch), at = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        uint64_t stride = cm_slot_stride(batch, i);
        check_zero(peer->body + at + batch->lengths[i], stride - batch->lengths[i], "filler is not zero");
        at += stride;
    }
    for (uint32_t i = 0; batch->aad_lengths != NULL && i < batch->count; i++)
        total += batch->aad_lengths[i];
    must(total == peer->frame.body_length, "length of a batch's body");
}

int fake_next_request(struct fake_peer *peer)
{
    int type = fake_next(peer);
    cm_arena_reset(&peer->arena);
    uint32_t length = peer->frame.header_length;
    if (type == CM_FRAME_BATCH) {
        must(cm_codec_get_batch(&peer->arena, peer->header, length, &peer->batch) == 0, "a batch");
        check_body(peer);
        peer->fake->batches++;
        peer->fake->last_key_version = peer->batch.key_version;
        peer->fake->items += (int)peer->batch.count;
        if (peer->frame.body_length > peer->fake->peak_bytes)
            peer->fake->peak_bytes = peer->frame.body_length;
    } else if (type == CM_FRAME_CALL) {
        must(cm_codec_get_call(&peer->arena, peer->header, length, &peer->call) == 0, "a call");
    } else {
        must(type == 0 || type == CM_FRAME_HELLO, "type of a frame");
    }
    return type;
}

static void refuse_session(struct fake_peer *peer)
{
    uint8_t frame[1024];
    size_t length;
    const struct cm_refusal refusal = {.status = CM_STATUS_NO_SUCH_SESSION, .text = "no such session"};
    must(cm_codec_put_refusal(&peer->arena, &refusal, frame, sizeof frame, &length) == 0, "a refusal");
    fake_write(peer->fd, frame, length);
}

void fake_greet(struct fake_peer *peer)
{
    struct fake *fake = peer->fake;
    struct cm_hello hello;
    int type = fake_next(peer);
    while (type == CM_FRAME_HELLO) {
        cm_arena_reset(&peer->arena);
        must(cm_codec_get_hello(&peer->arena, peer->header, peer->frame.header_length, &hello) == 0,
             "a hello");
        uint8_t token[CM_TOKEN_BYTES];
        (void)snprintf(fake->last_program, sizeof fake->last_program, "%s", hello.client);
        if (hello.session_token.length > 0) {
            memset(token, atomic_load(&fake->sessions), sizeof token);
            if (memcmp(token, hello.session_token.data, sizeof token) != 0) {
                refuse_session(peer);
                return;
            }
            fake->joined++;
        } else {
            fake->sessions++;
        }
        memset(token, atomic_load(&fake->sessions), sizeof token);
        const struct cm_welcome welcome = {.version = CM_PROTOCOL_VERSION,
                                           .session_token = {token, sizeof token},
                                           .limits = fake->limits,
                                           .server = "fake 1",
                                           .identity = "uid:0"};
        uint8_t frame[1024];
        size_t length;
        must(cm_codec_put_welcome(&peer->arena, &welcome, frame, sizeof frame, &length) == 0, "a welcome");
        fake_write(peer->fd, frame, length);
        return;
    }
}

/* One item of the batch, in its slot. Returns the output's length, or a status in *ret_status. */
static uint32_t transform(const struct cm_batch *batch, uint32_t i, uint8_t *slot, const uint8_t *iv,
                          uint8_t *tag, uint32_t *ret_status)
{
    uint32_t length = batch->lengths[i];
    uint8_t part = batch->parts != NULL ? batch->parts[i] : CM_WIRE_SINGLE;
    *ret_status = CM_STATUS_OK;
    if (batch->direction == CM_WIRE_ENCRYPT) {
        uint32_t output = cm_slot_output(batch->mode, batch->direction, batch->padding, part, length);
        memset(slot + length, (int)(output - length), output - length);
        for (uint32_t k = 0; k < output; k++)
            slot[k] ^= FAKE_MASK;
        memcpy(tag, iv, 16);
        for (uint32_t k = 0; k < output && k < 16; k++)
            tag[k] ^= slot[output - 1 - k];
        return output;
    }
    if (batch->mode == CM_WIRE_GCM) {
        uint8_t expected[16];
        memcpy(expected, iv, 16);
        for (uint32_t k = 0; k < length && k < 16; k++)
            expected[k] ^= slot[length - 1 - k];
        size_t tag_length = batch->tags.length / batch->count;
        if (tag_length != 16 || memcmp(expected, batch->tags.data + i * tag_length, 16) != 0) {
            *ret_status = CM_STATUS_BAD_TAG;
            memset(slot, 0, length);
            return 0;
        }
    }
    for (uint32_t k = 0; k < length; k++)
        slot[k] ^= FAKE_MASK;
    bool unpad = batch->padding && (part == CM_WIRE_SINGLE || part == CM_WIRE_LAST);
    return unpad && length > 0 ? length - slot[length - 1] : length;
}

static bool begins(const struct cm_batch *batch)
{
    return batch->parts == NULL || batch->parts[0] == CM_WIRE_SINGLE || batch->parts[0] == CM_WIRE_FIRST;
}

static void fill_reply(struct fake_peer *peer, uint32_t *lengths, uint32_t *statuses, uint8_t *ivs,
                       uint8_t *tags)
{
    const struct cm_batch *batch = &peer->batch;
    size_t at = 0, iv_at = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        uint8_t iv[16] = {0};
        if (batch->iv_lengths != NULL) {
            size_t length = batch->iv_lengths[i];
            memcpy(iv, batch->ivs.data + iv_at, length < 16 ? length : 16);
            iv_at += length;
        } else {
            memset(iv, 0x11 + (int)(i % 100), 12);
        }
        memcpy(ivs + (size_t)12 * i, iv, 12);
        lengths[i] = transform(batch, i, peer->body + at, iv, tags + (size_t)16 * i, &statuses[i]);
        uint64_t stride = cm_slot_stride(batch, i);
        memset(peer->body + at + lengths[i], 0, stride - lengths[i]);
        at += stride;
    }
}

uint8_t *fake_batch_reply(struct fake_peer *peer, size_t *ret_length)
{
    const struct cm_batch *batch = &peer->batch;
    uint32_t *lengths = must_allocate(batch->count * sizeof *lengths);
    uint32_t *statuses = must_allocate(batch->count * sizeof *statuses);
    uint8_t *ivs = must_allocate((size_t)batch->count * 12), *tags = must_allocate((size_t)batch->count * 16);
    fill_reply(peer, lengths, statuses, ivs, tags);
    bool makes_iv = batch->direction == CM_WIRE_ENCRYPT && batch->mode != CM_WIRE_ECB &&
                    batch->iv_lengths == NULL && begins(batch);
    bool makes_tag = batch->direction == CM_WIRE_ENCRYPT && batch->mode == CM_WIRE_GCM;
    const struct cm_batch_reply reply = {
        .request_id = batch->request_id,
        .key_version = FAKE_KEY_VERSION,
        .count = batch->count,
        .lengths = lengths,
        .statuses = statuses,
        .iv_length = makes_iv ? 12 : 0,
        .ivs = makes_iv ? ivs : NULL,
        .tag_length = makes_tag ? 16 : 0,
        .tags = makes_tag ? tags : NULL,
    };
    uint64_t body = cm_slot_total(batch);
    size_t capacity = CM_FRAME_PREFIX_BYTES + CM_HEADER_LIMIT + CM_FRAME_BODY_ALIGN + body, length;
    uint8_t *frame = must_allocate(capacity);
    must(cm_codec_put_batch_reply(&peer->arena, &reply, (uint32_t)body, frame, capacity, &length) == 0,
         "a reply");
    memcpy(frame + length, peer->body, body);
    *ret_length = length + body;
    free(lengths);
    free(statuses);
    free(ivs);
    free(tags);
    return frame;
}

void fake_answer_batch(struct fake_peer *peer)
{
    size_t length;
    uint8_t *frame = fake_batch_reply(peer, &length);
    fake_write(peer->fd, frame, length);
    free(frame);
}

void fake_refuse_batch(struct fake_peer *peer, uint32_t status, const char *text)
{
    uint8_t frame[1024];
    size_t length;
    const struct cm_batch_reply reply = {
        .request_id = peer->batch.request_id, .status = status, .text = text};
    must(cm_codec_put_batch_reply(&peer->arena, &reply, 0, frame, sizeof frame, &length) == 0,
         "a refused batch");
    fake_write(peer->fd, frame, length);
}

void fake_goodbye(struct fake_peer *peer, uint64_t last_request_id)
{
    uint8_t frame[1024];
    size_t length;
    const struct cm_goodbye goodbye = {.last_request_id = last_request_id, .reason = "a test"};
    must(cm_codec_put_goodbye(&peer->arena, &goodbye, frame, sizeof frame, &length) == 0, "a goodbye");
    fake_write(peer->fd, frame, length);
}

/* Keys k000 to k249, in pages as asked. */
static uint32_t list_page(const struct cm_call *call, struct cm_key_info *infos, char (*names)[8],
                          bool *ret_more)
{
    static const struct cm_key_version_info version = {1, CM_WIRE_KEY_ENABLED, 1700000000};
    uint32_t first = call->name[0] == 'k' ? (uint32_t)atoi(call->name + 1) + 1 : 0, count = 0;
    for (; count < call->number && first + count < 250; count++) {
        (void)snprintf(names[count], sizeof names[count], "k%03u", (first + count) % 1000);
        infos[count] = (struct cm_key_info){.name = names[count],
                                            .id = {(const uint8_t *)"0123456789abcdef", 16},
                                            .key_bits = 256,
                                            .attributes = {1U << CM_WIRE_GCM, true, true, false, 16},
                                            .version_count = 1,
                                            .versions = &version};
    }
    *ret_more = first + count < 250;
    return count;
}

static void fill_answer(struct fake_peer *peer, struct cm_answer *answer, struct cm_key_info *infos,
                        char (*names)[8])
{
    /* The first one is as a daemon writes it that knows no size classes. */
    static const struct cm_implementation_info rows[] = {
        {CM_WIRE_CTR, CM_WIRE_ENCRYPT, "portable", true, true, true, 0, ""},
        {CM_WIRE_XTS, CM_WIRE_ENCRYPT, "first", true, true, false, CM_WIRE_USED_SHORT, ""},
        {CM_WIRE_XTS, CM_WIRE_ENCRYPT, "second", true, true, true, CM_WIRE_USED_LONG, ""},
        {CM_WIRE_XTS, CM_WIRE_ENCRYPT, "third", true, true, false, 0, ""}};
    struct fake *fake = peer->fake;
    const struct cm_call *call = &peer->call;
    switch (call->kind) {
    case CM_CALL_EPHEMERAL_KEY:
        fake->ephemeral++;
        memcpy(fake->last_key_bytes, peer->body,
               peer->frame.body_length <= 32 ? peer->frame.body_length : 32);
        /* fall through */
    case CM_CALL_OPEN_KEY:
        if (call->kind == CM_CALL_OPEN_KEY && strcmp(call->name, "missing") == 0) {
            answer->status = CM_STATUS_NO_SUCH_KEY;
            answer->text = "no key of the name missing";
            break;
        }
        answer->kind = CM_ANSWER_KEY_HANDLE;
        answer->handle = (uint32_t)++fake->opened;
        infos[0] = (struct cm_key_info){
            .name = call->name, .key_bits = 256, .attributes = {1U << CM_WIRE_GCM, true, true, true, 12}};
        answer->keys = infos;
        answer->key_count = 1;
        break;
    case CM_CALL_CLOSE_KEY:
        fake->closed++;
        break;
    case CM_CALL_CANCEL_OPERATION:
        fake->cancelled++;
        break;
    case CM_CALL_CREATE_KEY:
    case CM_CALL_DESTROY_KEY:
        fake->created++;
        memcpy(fake->last_operation_id, call->operation_id.data, call->operation_id.length);
        break;
    case CM_CALL_LIST_KEYS:
        answer->kind = CM_ANSWER_KEY_LIST;
        answer->keys = infos;
        answer->key_count = list_page(call, infos, names, &answer->more);
        break;
    case CM_CALL_DESCRIBE_KEY:
        answer->kind = CM_ANSWER_KEY;
        infos[0] = (struct cm_key_info){.name = call->name, .key_bits = 192};
        answer->keys = infos;
        answer->key_count = 1;
        break;
    case CM_CALL_GET_IMPLEMENTATIONS:
        answer->kind = CM_ANSWER_IMPLEMENTATIONS;
        answer->implementations = rows;
        answer->implementation_count = sizeof rows / sizeof rows[0];
        break;
    case CM_CALL_GET_STATUS:
        answer->kind = CM_ANSWER_SERVER_STATUS;
        answer->server = (struct cm_server_status){.server = "fake 1", .identity = "uid:0", .workers = 3};
        break;
    default:
        answer->status = CM_STATUS_UNSUPPORTED;
    }
}

void fake_answer_call(struct fake_peer *peer)
{
    struct cm_key_info infos[256] = {0};
    char names[256][8];
    struct cm_answer answer = {.request_id = peer->call.request_id};
    fill_answer(peer, &answer, infos, names);
    size_t capacity = CM_FRAME_PREFIX_BYTES + CM_HEADER_LIMIT + CM_FRAME_BODY_ALIGN, length;
    uint8_t *frame = must_allocate(capacity);
    must(cm_codec_put_answer(&peer->arena, &answer, frame, capacity, &length) == 0, "an answer");
    fake_write(peer->fd, frame, length);
    free(frame);
}

void fake_answer(struct fake_peer *peer, int type)
{
    if (type == CM_FRAME_BATCH)
        fake_answer_batch(peer);
    else if (type == CM_FRAME_CALL)
        fake_answer_call(peer);
}

void fake_serve(struct fake_peer *peer)
{
    fake_greet(peer);
    for (int type; (type = fake_next_request(peer)) != 0;)
        fake_answer(peer, type);
}

static void *serve_peer(void *argument)
{
    struct fake_peer *peer = argument;
    peer->arena_memory = must_allocate(CM_ARENA_BYTES);
    cm_arena_init(&peer->arena, peer->arena_memory, CM_ARENA_BYTES);
    peer->fake->serve(peer);
    peer->fake->ended++;
    shutdown(peer->fd, SHUT_RDWR);
    free(peer->bytes);
    free(peer->arena_memory);
    return NULL;
}

static void *accept_all(void *argument)
{
    struct fake *fake = argument;
    for (;;) {
        int fd = accept(fake->listener, NULL, NULL);
        if (fd < 0)
            return NULL;
        int index = atomic_load(&fake->peer_count);
        must(index < FAKE_PEERS_MAX, "too many connections for the fake");
        struct fake_peer *peer = &fake->peers[index];
        *peer = (struct fake_peer){.fake = fake, .fd = fd, .index = fake->accepted++};
        must(pthread_create(&peer->thread, NULL, serve_peer, peer) == 0, "pthread_create");
        fake->peer_count++;
    }
}

static void begin(struct fake *fake, void (*serve)(struct fake_peer *peer))
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    fake->serve = serve != NULL ? serve : fake_serve;
    fake->peer_count = 0;
    fake->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memcpy(address.sun_path, fake->path, strlen(fake->path) + 1);
    must(bind(fake->listener, (const struct sockaddr *)&address, sizeof address) == 0, "bind");
    must(listen(fake->listener, 64) == 0, "listen");
    must(pthread_create(&fake->thread, NULL, accept_all, fake) == 0, "pthread_create");
}

void fake_start(struct fake *fake, void (*serve)(struct fake_peer *peer))
{
    memset(fake, 0, sizeof *fake);
    fake->limits = (struct cm_limits){.header_bytes = CM_HEADER_LIMIT,
                                      .frame_bytes = 16 << 20,
                                      .batch_items = 1024,
                                      .item_bytes = 8 << 20,
                                      .inflight_bytes = 32 << 20,
                                      .operations = 64,
                                      .session_keys = 1024};
    (void)snprintf(fake->folder, sizeof fake->folder, "/tmp/cm-client-test-XXXXXX");
    must(mkdtemp(fake->folder) != NULL, "mkdtemp");
    (void)snprintf(fake->path, sizeof fake->path, "%s/x.sock", fake->folder);
    (void)snprintf(fake->uri, sizeof fake->uri, "unix:%s", fake->path);
    begin(fake, serve);
}

void fake_pause(struct fake *fake)
{
    shutdown(fake->listener, SHUT_RDWR);
    pthread_join(fake->thread, NULL);
    close(fake->listener);
    unlink(fake->path);
    for (int i = 0; i < fake->peer_count; i++) {
        shutdown(fake->peers[i].fd, SHUT_RDWR);
        pthread_join(fake->peers[i].thread, NULL);
        close(fake->peers[i].fd);
    }
    fake->peer_count = 0;
    /* The sessions ended: the next one has another token. */
    fake->sessions++;
}

void fake_restart(struct fake *fake, void (*serve)(struct fake_peer *peer))
{
    if (access(fake->path, F_OK) == 0)
        fake_pause(fake);
    begin(fake, serve);
}

void fake_stop(struct fake *fake)
{
    if (access(fake->path, F_OK) == 0)
        fake_pause(fake);
    rmdir(fake->folder);
}
