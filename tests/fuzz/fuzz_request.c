/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: a run of BATCH and CALL frames, decoded and handed to a real service over a scratch store.
 * Every request has to be answered, every reply must encode, and nothing but output may be left in the slots.
 *
 * Version 1 in a frame's prefix gives the service the body that is there; version 2 one of just the length
 * that the header asks for, so that the fuzzer need not learn to count. */
#include "fuzz_target.h"
#include "service.h"
#include "status.h"

#include "cm_aes.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BODY_MAX = 1 << 20, BUFFER_BYTES = CM_HEADER_LIMIT + 256, CHANGES_MAX = 500, FRAMES_MAX = 32 };

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                  \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

struct posted {
    struct posted *next;
    void (*function)(void *argument);
    void *argument;
};

static struct {
    char folder[64];
    struct cm_service *service;
    struct cm_service_worker *worker;
    unsigned changes;
    uint8_t *arena, *body, *buffer;
} target;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static struct posted *first, **end = &first;

static void host_post(void *host, uint32_t worker, void (*function)(void *argument), void *argument)
{
    struct posted *posted = malloc(sizeof *posted);
    CHECK(posted != NULL && worker == 0 && host == &target);
    *posted = (struct posted){NULL, function, argument};
    pthread_mutex_lock(&mutex);
    *end = posted;
    end = &posted->next;
    pthread_cond_signal(&wake);
    pthread_mutex_unlock(&mutex);
}

static void run_one_posted(void)
{
    pthread_mutex_lock(&mutex);
    while (first == NULL)
        pthread_cond_wait(&wake, &mutex);
    struct posted *posted = first;
    first = posted->next;
    if (first == NULL)
        end = &first;
    pthread_mutex_unlock(&mutex);
    posted->function(posted->argument);
    free(posted);
}

static void remove_folder(void)
{
    static const char *const names[] = {"keys.db", "keys.db-wal", "keys.db-shm", "keys.db.lock",
                                        "master.key"};
    char path[128];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", target.folder, names[i]);
        (void)remove(path);
    }
    (void)remove(target.folder);
}

static void stop(void)
{
    if (target.service == NULL)
        return;
    cm_service_worker_free(target.worker);
    cm_service_free(target.service);
    target.service = NULL;
    while (first != NULL) {
        struct posted *posted = first;
        first = posted->next;
        free(posted);
    }
    end = &first;
    remove_folder();
}

static void start(void)
{
    static bool begun;
    const struct cm_service_options options = {.limits = {.header_bytes = CM_HEADER_LIMIT,
                                                          .frame_bytes = 16 << 20,
                                                          .batch_items = 256,
                                                          .item_bytes = 65536,
                                                          .operations = 4,
                                                          .session_keys = 16},
                                               .workers = 1,
                                               .state_folder = target.folder,
                                               .operation_timeout_ms = 1000};
    const struct cm_service_host host = {.post = host_post, .host = &target};
    char text[512];
    if (!begun) {
        begun = true;
        CHECK(cm_aes_init(NULL) == CM_AES_OK);
        target.arena = malloc(CM_ARENA_BYTES);
        target.body = malloc(BODY_MAX);
        target.buffer = malloc(BUFFER_BYTES);
        CHECK(target.arena != NULL && target.body != NULL && target.buffer != NULL);
        CHECK(atexit(stop) == 0);
    }
    strcpy(target.folder, "/tmp/cm-fuzz-XXXXXX");
    CHECK(mkdtemp(target.folder) != NULL);
    CHECK(cm_service_new(&target.service, &options, &host, text, sizeof text) == 0);
    target.worker = cm_service_worker_new(target.service, 0);
    CHECK(target.worker != NULL);
    target.changes = 0;
}

/* --- Requests --- */

struct waiting {
    bool done;
    uint64_t request_id;
};

static void on_answer(void *context, const struct cm_answer *answer)
{
    struct waiting *waiting = context;
    struct cm_arena arena;
    size_t length;
    CHECK(!waiting->done && answer->request_id == waiting->request_id && answer->text != NULL);
    waiting->done = true;
    cm_arena_init(&arena, target.arena, CM_ARENA_BYTES);
    CHECK(cm_codec_put_answer(&arena, answer, target.buffer, BUFFER_BYTES, &length) == CM_CODEC_OK);
}

static void call(struct cm_peer_state *peer, const struct cm_call *asked, size_t body_length)
{
    struct waiting waiting = {false, asked->request_id};
    enum cm_call_kind kind = asked->kind; /* its memory is used again when the answer comes */
    cm_service_call(target.worker, peer, asked, target.body, body_length, on_answer, &waiting);
    for (size_t i = 0; i < body_length; i++)
        CHECK(target.body[i] == 0);
    while (!waiting.done)
        run_one_posted();
    if (kind == CM_CALL_CREATE_KEY || kind == CM_CALL_DESTROY_KEY)
        target.changes++;
}

static void check_slots(const struct cm_batch *batch, const struct cm_batch_reply *reply)
{
    uint64_t offset = 0;
    for (uint32_t i = 0; i < reply->count; i++) {
        uint64_t stride = cm_slot_stride(batch, i);
        bool failed = reply->statuses != NULL && reply->statuses[i] != CM_STATUS_OK;
        CHECK(reply->lengths[i] <= stride && (!failed || reply->lengths[i] == 0));
        for (uint64_t at = reply->lengths[i]; at < stride; at++)
            CHECK(target.body[offset + at] == 0);
        offset += stride;
    }
}

static void batch(struct cm_peer_state *peer, const struct cm_batch *asked, size_t body_length,
                  struct cm_arena *arena)
{
    struct cm_job job;
    size_t length;
    cm_job_plan(&job, target.worker, peer, asked, target.body, body_length, arena, asked->request_id & 1);
    for (uint32_t task = job.task_count; task > 0; task--)
        cm_job_run(&job, task - 1);
    cm_job_finish(&job, target.worker);
    const struct cm_batch_reply *reply = &job.reply;
    CHECK(reply->request_id == asked->request_id && reply->text != NULL);
    CHECK(reply->count == (reply->status == CM_STATUS_OK ? asked->count : 0));
    if (reply->status == CM_STATUS_OK)
        check_slots(asked, reply);
    CHECK(cm_codec_put_batch_reply(arena, reply, 0, target.buffer, BUFFER_BYTES, &length) == CM_CODEC_OK);
}

/* What the header asks for, where it is not too much. */
static size_t right_length(const struct cm_batch *asked)
{
    uint64_t total = cm_slot_total(asked);
    for (uint32_t i = 0; asked->aad_lengths != NULL && i < asked->count && total <= BODY_MAX; i++)
        total += asked->aad_lengths[i];
    return total <= BODY_MAX ? (size_t)total : 0;
}

static size_t take_body(const uint8_t *data, size_t length, size_t wanted)
{
    memset(target.body, 0x5a, wanted);
    if (length > 0)
        memcpy(target.body, data, length < wanted ? length : wanted);
    return wanted;
}

static void request(struct cm_peer_state *peer, const struct cm_frame *frame, const uint8_t *header,
                    const uint8_t *body, size_t body_length)
{
    struct cm_arena arena;
    cm_arena_init(&arena, target.arena, CM_ARENA_BYTES);
    if (frame->type == CM_FRAME_BATCH) {
        struct cm_batch asked;
        if (cm_codec_get_batch(&arena, header, frame->header_length, &asked) == CM_CODEC_OK)
            batch(peer, &asked,
                  take_body(body, body_length, frame->version == 2 ? right_length(&asked) : body_length),
                  &arena);
    } else if (frame->type == CM_FRAME_CALL) {
        struct cm_call asked;
        if (cm_codec_get_call(&arena, header, frame->header_length, &asked) == CM_CODEC_OK)
            call(peer, &asked, take_body(body, body_length, body_length));
    }
}

/* A session with handles 1: GCM, 2: ECB, CBC and CTR, 3: GCM with short tags and without a caller's IV. */
static struct cm_peer_state *greet(void)
{
    static const struct cm_identity identity = {"uid:0", true, true};
    static const struct cm_key_attributes attributes[] = {
        {16, true, true, true, 16}, {14, true, true, true, 0}, {16, true, true, false, 4}};
    const struct cm_hello hello = {.version_min = 1, .version_max = 1, .client = "fuzz"};
    struct cm_welcome welcome;
    struct cm_refusal refusal;
    struct cm_peer_state *peer = cm_service_hello(target.worker, &identity, &hello, &welcome, &refusal);
    CHECK(peer != NULL);
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++) {
        const struct cm_call asked = {.request_id = 1,
                                      .kind = CM_CALL_EPHEMERAL_KEY,
                                      .name = "",
                                      .key_bits = 128,
                                      .attributes = attributes[i]};
        memset(target.body, 7, 16);
        call(peer, &asked, 16);
    }
    return peer;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (target.service != NULL && target.changes > CHANGES_MAX)
        stop();
    if (target.service == NULL)
        start();
    struct cm_peer_state *peer = greet();
    for (int count = 0; count < FRAMES_MAX; count++) {
        struct cm_frame frame;
        int rc = cm_frame_parse(data, size, CM_HEADER_LIMIT, BODY_MAX, &frame);
        if (rc != CM_FRAME_OK && rc != CM_FRAME_BAD_VERSION)
            break;
        size_t body_offset = cm_frame_body_offset(frame.header_length);
        if (frame.header_length > CM_HEADER_LIMIT || body_offset > size)
            break;
        size_t body_length = size - body_offset < frame.body_length ? size - body_offset : frame.body_length;
        request(peer, &frame, data + CM_FRAME_PREFIX_BYTES, data + body_offset, body_length);
        cm_service_peer_tick(peer, (uint64_t)count * 300);
        data += body_offset + body_length;
        size -= body_offset + body_length;
    }
    cm_service_peer_free(peer);
    return 0;
}
