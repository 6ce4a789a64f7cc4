/* SPDX-License-Identifier: Apache-2.0 */
/* Running calls and batches through a service without a loop, and judging what comes out. */
#include "service_fixture.h"

#include "change.h"
#include "status.h"
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const struct cm_identity fixture_root = {"uid:0", true, true};
const struct cm_identity fixture_user = {"uid:1000", false, true};
const struct cm_identity fixture_anonymous = {"tcp:anonymous", false, false};

/* --- The host --- */

static void host_post(void *host, uint32_t worker, void (*function)(void *argument), void *argument)
{
    struct fixture *f = host;
    struct posted *posted = calloc(1, sizeof *posted);
    ck_assert_ptr_nonnull(posted);
    posted->function = function;
    posted->argument = argument;
    pthread_mutex_lock(&f->mutex);
    *f->end[worker] = posted;
    f->end[worker] = &posted->next;
    pthread_cond_broadcast(&f->wake);
    pthread_mutex_unlock(&f->mutex);
}

static void host_describe(void *host, struct cm_server_status *status)
{
    (void)host;
    status->connections = 7;
    status->uptime_ms = 1234;
}

static void host_log(void *host, int level, const char *text)
{
    struct fixture *f = host;
    (void)level;
    pthread_mutex_lock(&f->mutex);
    snprintf(f->log, sizeof f->log, "%s", text);
    pthread_mutex_unlock(&f->mutex);
}

static struct posted *take_posted(struct fixture *f, uint32_t worker, bool wait)
{
    pthread_mutex_lock(&f->mutex);
    while (wait && f->first[worker] == NULL)
        pthread_cond_wait(&f->wake, &f->mutex);
    struct posted *posted = f->first[worker];
    if (posted != NULL) {
        f->first[worker] = posted->next;
        if (f->first[worker] == NULL)
            f->end[worker] = &f->first[worker];
    }
    pthread_mutex_unlock(&f->mutex);
    return posted;
}

static bool run_posted(struct posted *posted)
{
    if (posted == NULL)
        return false;
    posted->function(posted->argument);
    free(posted);
    return true;
}

unsigned fixture_pump(struct fixture *f, uint32_t worker)
{
    unsigned count = 0;
    while (run_posted(take_posted(f, worker, false)))
        count++;
    return count;
}

void fixture_wait(struct fixture *f, uint32_t worker)
{
    run_posted(take_posted(f, worker, true));
    fixture_pump(f, worker);
}

/* --- The service --- */

void fixture_init(struct fixture *f)
{
    *f = (struct fixture){.options = {.limits = {.header_bytes = 65536,
                                                 .frame_bytes = 16 << 20,
                                                 .batch_items = RUN_ITEMS,
                                                 .item_bytes = 8 << 20,
                                                 .inflight_bytes = 32 << 20,
                                                 .operations = 4,
                                                 .session_keys = 6},
                                      .workers = FIXTURE_WORKERS,
                                      .operation_timeout_ms = 1000}};
    strcpy(f->folder, "/tmp/cm-service-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(f->folder));
    f->options.state_folder = f->folder;
    pthread_mutex_init(&f->mutex, NULL);
    pthread_cond_init(&f->wake, NULL);
    for (uint32_t i = 0; i < FIXTURE_WORKERS; i++)
        f->end[i] = &f->first[i];
}

int fixture_start(struct fixture *f)
{
    const struct cm_service_host host = {host_post, host_describe, host_log, f};
    int rc = cm_service_new(&f->service, &f->options, &host, f->text, sizeof f->text);
    for (uint32_t i = 0; rc == 0 && i < FIXTURE_WORKERS; i++) {
        f->workers[i] = cm_service_worker_new(f->service, i);
        ck_assert_ptr_nonnull(f->workers[i]);
    }
    return rc;
}

void fixture_stop(struct fixture *f)
{
    for (uint32_t i = 0; i < FIXTURE_WORKERS; i++)
        cm_service_worker_free(f->workers[i]);
    cm_service_free(f->service);
    f->service = NULL;
    for (uint32_t i = 0; i < FIXTURE_WORKERS; i++)
        for (struct posted *posted; (posted = take_posted(f, i, false)) != NULL;)
            free(posted); /* dropped, as the contract allows */
}

void fixture_done(struct fixture *f)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", f->folder);
    ck_assert_int_eq(system(command), 0);
    pthread_cond_destroy(&f->wake);
    pthread_mutex_destroy(&f->mutex);
}

struct cm_peer_state *fixture_greet(struct fixture *f, uint32_t worker, const struct cm_identity *identity,
                                    struct cm_bytes token)
{
    const struct cm_hello hello = {
        .version_min = 1, .version_max = 1, .session_token = token, .client = "test"};
    struct cm_welcome welcome;
    struct cm_refusal refusal;
    struct cm_peer_state *peer = cm_service_hello(f->workers[worker], identity, &hello, &welcome, &refusal);
    ck_assert_ptr_nonnull(peer);
    return peer;
}

struct cm_peer_state *fixture_peer(struct fixture *f, const struct cm_identity *identity)
{
    return fixture_greet(f, 0, identity, (struct cm_bytes){NULL, 0});
}

/* --- Calls --- */

void fixture_on_answer(void *context, const struct cm_answer *answer)
{
    struct answered *kept = context;
    ck_assert(!kept->done);
    *kept = (struct answered){.done = true,
                              .status = answer->status,
                              .handle = answer->handle,
                              .key_count = answer->key_count,
                              .implementation_count = answer->implementation_count,
                              .kind = answer->kind,
                              .more = answer->more,
                              .server = answer->server};
    snprintf(kept->text, sizeof kept->text, "%s", answer->text);
    for (uint32_t i = 0; i < answer->implementation_count && i < sizeof kept->used; i++) {
        kept->used[i] = answer->implementations[i].used;
        kept->used_for[i] = answer->implementations[i].used_for;
    }
    for (uint32_t i = 0; i < answer->key_count && i < 8; i++) {
        const struct cm_key_info *key = &answer->keys[i];
        snprintf(kept->keys[i].name, sizeof kept->keys[i].name, "%s", key->name);
        kept->keys[i].id_length = key->id.length;
        kept->keys[i].attributes = key->attributes;
        kept->keys[i].key_bits = key->key_bits;
        kept->keys[i].version_count = key->version_count;
        kept->keys[i].version = key->versions[0].version;
        kept->keys[i].state = key->versions[0].state;
    }
}

struct answered fixture_call(struct fixture *f, struct cm_peer_state *peer, const struct cm_call *call,
                             const void *body, size_t body_length)
{
    struct answered kept = {0};
    uint8_t copy[64] = {0};
    if (body_length > 0)
        memcpy(copy, body, body_length);
    struct cm_call complete = *call;
    if (complete.name == NULL)
        complete.name = "";
    cm_service_call(peer->worker, peer, &complete, copy, body_length, fixture_on_answer, &kept);
    for (size_t i = 0; i < body_length; i++)
        ck_assert_uint_eq(copy[i], 0); /* whatever became of it, the bytes are wiped */
    while (!kept.done) {
        pthread_mutex_lock(&f->mutex);
        while (f->first[0] == NULL && f->first[1] == NULL)
            pthread_cond_wait(&f->wake, &f->mutex);
        pthread_mutex_unlock(&f->mutex);
        fixture_pump(f, 0);
        fixture_pump(f, 1);
    }
    return kept;
}

uint32_t fixture_ephemeral(struct fixture *f, struct cm_peer_state *peer, uint32_t modes, bool caller_iv,
                           uint32_t tag_length, const uint8_t *key, uint32_t key_bits)
{
    const struct cm_call call = {
        .kind = CM_CALL_EPHEMERAL_KEY,
        .key_bits = key_bits,
        .attributes = {.modes = modes, .caller_iv = caller_iv, .tag_length = tag_length}};
    struct answered answered =
        fixture_call(f, peer, &call, key, key != NULL ? cm_key_bytes(&call.attributes, key_bits) : 0);
    ck_assert_msg(answered.status == CM_STATUS_OK, "%s", answered.text);
    ck_assert_int_eq(answered.kind, CM_ANSWER_KEY_HANDLE);
    return answered.handle;
}

static struct cm_bytes operation_id(uint8_t operation, uint8_t memory[16])
{
    memset(memory, operation, 16);
    return (struct cm_bytes){memory, operation != 0 ? 16 : 0};
}

struct answered fixture_import(struct fixture *f, struct cm_peer_state *peer, const char *name,
                               uint32_t modes, const uint8_t *key, uint32_t key_bits, uint8_t operation)
{
    uint8_t id[16];
    const struct cm_call call = {.kind = CM_CALL_CREATE_KEY,
                                 .operation_id = operation_id(operation, id),
                                 .name = name,
                                 .key_bits = key_bits,
                                 .attributes = {.modes = modes, .caller_iv = true},
                                 .import = key != NULL};
    return fixture_call(f, peer, &call, key, key != NULL ? cm_key_bytes(&call.attributes, key_bits) : 0);
}

struct answered fixture_named(struct fixture *f, struct cm_peer_state *peer, enum cm_call_kind kind,
                              const char *name, uint8_t operation)
{
    uint8_t id[16];
    const struct cm_call call = {.kind = kind, .operation_id = operation_id(operation, id), .name = name};
    return fixture_call(f, peer, &call, NULL, 0);
}

/* --- Batches --- */

void fill(uint8_t *bytes, size_t length, uint8_t seed)
{
    uint32_t state = seed * UINT32_C(2654435761) + 1;
    for (size_t i = 0; i < length; i++) {
        state = state * UINT32_C(1664525) + UINT32_C(1013904223);
        bytes[i] = (uint8_t)(state >> 24);
    }
}

void run_init(struct run *run, uint32_t handle, uint8_t mode, uint8_t direction, uint32_t count,
              uint32_t length, uint8_t seed)
{
    memset(run, 0, sizeof *run);
    ck_assert_uint_le(count, RUN_ITEMS);
    run->batch = (struct cm_batch){.request_id = 42,
                                   .key_handle = handle,
                                   .mode = mode,
                                   .direction = direction,
                                   .count = count,
                                   .lengths = run->lengths};
    for (uint32_t i = 0; i < count; i++)
        run->lengths[i] = length;
    fill(run->ivs, sizeof run->ivs, (uint8_t)(seed + 1));
    cm_arena_init(&run->arena, malloc(FIXTURE_ARENA_BYTES), FIXTURE_ARENA_BYTES);
    run_layout(run, seed);
}

void run_layout(struct run *run, uint8_t seed)
{
    uint64_t total = cm_slot_total(&run->batch);
    ck_assert(total != UINT64_MAX);
    for (uint32_t i = 0; run->batch.aad_lengths != NULL && i < run->batch.count; i++)
        total += run->batch.aad_lengths[i];
    size_t ivs = 0;
    for (uint32_t i = 0; run->batch.iv_lengths != NULL && i < run->batch.count; i++)
        ivs += run->batch.iv_lengths[i];
    run->batch.ivs = (struct cm_bytes){run->ivs, ivs};
    free(run->body);
    run->body = malloc(total + 1);
    run->body_length = total;
    ck_assert_ptr_nonnull(run->body);
    fill(run->body, total, seed); /* filler too: nobody may rely on its being zero */
}

void run_done(struct run *run)
{
    free(run->arena.memory);
    free(run->body);
}

uint8_t *run_slot(const struct run *run, uint32_t index)
{
    uint64_t offset = 0;
    for (uint32_t i = 0; i < index; i++)
        offset += cm_slot_stride(&run->batch, i);
    return run->body + offset;
}

uint8_t *run_aad(const struct run *run, uint32_t index)
{
    uint64_t offset = cm_slot_total(&run->batch);
    for (uint32_t i = 0; i < index; i++)
        offset += run->aad_lengths[i];
    return run->body + offset;
}

void run_plan(struct run *run, struct fixture *f, struct cm_peer_state *peer, uint64_t share_ns)
{
    (void)f;
    cm_arena_reset(&run->arena);
    cm_job_plan(&run->job, peer->worker, peer, &run->batch, run->body, run->body_length, &run->arena,
                share_ns);
}

void run_finish(struct run *run, struct fixture *f)
{
    (void)f;
    cm_job_finish(&run->job, run->job.peer->worker);
}

const struct cm_batch_reply *run_all(struct run *run, struct fixture *f, struct cm_peer_state *peer,
                                     uint64_t share_ns)
{
    run_plan(run, f, peer, share_ns);
    for (uint32_t task = run->job.task_count; task > 0; task--)
        cm_job_run(&run->job, task - 1);
    run_finish(run, f);
    return &run->job.reply;
}

uint32_t run_status(const struct run *run, uint32_t index)
{
    return run->job.reply.statuses != NULL ? run->job.reply.statuses[index] : CM_STATUS_OK;
}

/* --- OpenSSL --- */

size_t reference_encrypt(uint8_t mode, const uint8_t *key, uint32_t key_bits, bool padding, const uint8_t *iv,
                         size_t iv_length, const uint8_t *aad, size_t aad_length, const uint8_t *in,
                         size_t length, uint8_t *ret_out, uint8_t *ret_tag, size_t tag_length)
{
    static const char *const names[] = {"", "ecb", "cbc", "ctr", "gcm", "xts"};
    char name[32];
    int done = 0, more = 0;
    snprintf(name, sizeof name, "aes-%u-%s", key_bits, names[mode]);
    const EVP_CIPHER *cipher = EVP_get_cipherbyname(name);
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    ck_assert_ptr_nonnull(cipher);
    ck_assert_int_eq(EVP_EncryptInit_ex(context, cipher, NULL, NULL, NULL), 1);
    if (mode == CM_WIRE_GCM)
        ck_assert_int_eq(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_SET_IVLEN, (int)iv_length, NULL), 1);
    ck_assert_int_eq(EVP_EncryptInit_ex(context, NULL, NULL, key, iv), 1);
    EVP_CIPHER_CTX_set_padding(context, padding);
    if (aad_length > 0)
        ck_assert_int_eq(EVP_EncryptUpdate(context, NULL, &done, aad, (int)aad_length), 1);
    done = 0;
    if (length > 0)
        ck_assert_int_eq(EVP_EncryptUpdate(context, ret_out, &done, in, (int)length), 1);
    ck_assert_int_eq(EVP_EncryptFinal_ex(context, ret_out + done, &more), 1);
    if (mode == CM_WIRE_GCM)
        ck_assert_int_eq(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, (int)tag_length, ret_tag), 1);
    EVP_CIPHER_CTX_free(context);
    return (size_t)(done + more);
}

int fixture_main(Suite *suite)
{
    if (cm_aes_init(NULL) != CM_AES_OK)
        return 1;
    SRunner *runner = srunner_create(suite);
    /* One process, so that the sanitizers see everything, threads and leaks included. */
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
