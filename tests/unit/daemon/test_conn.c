/* SPDX-License-Identifier: Apache-2.0 */
/* Connections on workers whose loops the test runs by hand, so that it sees what a round does and leaves. */
#include "conn.h"
#include "cost.h"

#include "cm_aes.h"
#include "log.h"
#include "suite.h"
#include "transport.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REPLY_BYTES_MAX = 8 * 1024 * 1024, MIB = 1024 * 1024 };

struct site {
    struct cm_common common;
    struct cm_worker *workers;
    struct cm_config config;
    uv_loop_t loop;
    char folder[64];
    bool helps; /* the second worker's thread runs */
    unsigned departed;
};

/* The other end of a connection. */
struct peer {
    int fd;
    struct cm_conn *conn;
    uint64_t next_id;
    uint8_t *received;
    size_t length;
    uint8_t frame[2 * MIB];
};

static struct site *site; /* of the running test, for the host's functions */

static void host_post(void *host, uint32_t worker, void (*function)(void *argument), void *argument)
{
    (void)host;
    cm_worker_post_function(&site->workers[worker], function, argument);
}

static void host_log(void *host, int level, const char *text)
{
    (void)host;
    (void)level;
    (void)text;
}

static void on_main_wake(uv_async_t *wake)
{
    (void)wake;
}

static void open_site(uint32_t workers, uint64_t inflight_bytes)
{
    char text[CM_CONFIG_TEXT];
    const struct cm_service_host host = {host_post, NULL, host_log, NULL};
    ck_assert_int_eq(cm_aes_init("portable"), 0);
    site = calloc(1, sizeof *site);
    site->workers = aligned_alloc(alignof(struct cm_worker), workers * sizeof *site->workers);
    memset(site->workers, 0, workers * sizeof *site->workers);
    strcpy(site->folder, "/tmp/cm-conn-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(site->folder));
    cm_log_init(CM_LOG_ERROR);
    signal(SIGPIPE, SIG_IGN); /* as the daemon does */
    ck_assert_int_eq(cm_config_init(&site->config), 0);
    ck_assert_int_eq(uv_loop_init(&site->loop), 0);
    ck_assert_int_eq(uv_async_init(&site->loop, &site->common.main_wake, on_main_wake), 0);
    const struct cm_service_options options = {.limits = site->config.limits,
                                               .workers = workers,
                                               .state_folder = site->folder,
                                               .operation_timeout_ms = 60000};
    ck_assert_int_eq(cm_service_new(&site->common.service, &options, &host, text, sizeof text), 0);
    site->common.config = &site->config;
    site->common.workers = site->workers;
    site->common.worker_count = workers;
    cm_budget_init(&site->common.budget, inflight_bytes, site->config.limits.frame_bytes);
    for (uint32_t i = 0; i < workers; i++) {
        site->workers[i].common = &site->common;
        site->workers[i].index = i;
        ck_assert_int_eq(cm_worker_init(&site->workers[i]), 0);
    }
    site->workers[0].service = cm_service_worker_new(site->common.service, 0);
    ck_assert_ptr_nonnull(site->workers[0].service);
    site->helps = workers > 1;
    if (site->helps)
        ck_assert_int_eq(cm_worker_start(&site->workers[1]), 0);
}

static void round_of_loop(void)
{
    uv_run(&site->workers[0].loop, UV_RUN_NOWAIT);
    cm_inbox_run(&site->common.main_inbox, site);
}

static void on_departed(struct cm_inbox_item *item, void *owner)
{
    struct site *of = owner;
    of->departed++;
    free(item);
}

static void send_all(struct peer *peer, const uint8_t *bytes, size_t length)
{
    while (length > 0) {
        ssize_t sent = send(peer->fd, bytes, length, MSG_NOSIGNAL);
        ck_assert_int_gt(sent, 0);
        bytes += sent;
        length -= (size_t)sent;
    }
}

/* What is there now. */
static void receive_some(struct peer *peer, size_t most)
{
    while (most > 0) {
        ssize_t got = recv(peer->fd, peer->received + peer->length, most, MSG_DONTWAIT);
        if (got <= 0)
            return;
        peer->length += (size_t)got;
        most -= (size_t)got;
        ck_assert_uint_lt(peer->length + MIB, REPLY_BYTES_MAX);
    }
}

/* Takes the first frame of what was received; its type, or 0 if it is not whole. */
static unsigned take_frame(struct peer *peer)
{
    struct cm_frame frame;
    if (cm_frame_parse(peer->received, peer->length, CM_HEADER_LIMIT, REPLY_BYTES_MAX, &frame) !=
            CM_FRAME_OK ||
        cm_frame_total(&frame) > peer->length)
        return 0;
    size_t total = cm_frame_total(&frame);
    memmove(peer->received, peer->received + total, peer->length - total);
    peer->length -= total;
    return frame.type;
}

static void await_frame(struct peer *peer, unsigned type)
{
    unsigned got = 0;
    while (got == 0) {
        round_of_loop();
        receive_some(peer, MIB);
        got = take_frame(peer);
    }
    ck_assert_uint_eq(got, type);
}

static uint8_t scratch[CM_ARENA_BYTES];

static struct cm_arena fresh_arena(void)
{
    struct cm_arena arena;
    cm_arena_init(&arena, scratch, sizeof scratch);
    return arena;
}

static size_t put_call(struct peer *peer, struct cm_call call, size_t at)
{
    struct cm_arena arena = fresh_arena();
    size_t length;
    call.request_id = ++peer->next_id;
    ck_assert_int_eq(cm_codec_put_call(&arena, &call, 0, peer->frame + at, sizeof peer->frame - at, &length),
                     CM_CODEC_OK);
    return at + length;
}

/* `count` items of `length` bytes each, in CTR with the daemon's IVs. */
static size_t put_batch(struct peer *peer, uint32_t count, uint32_t length, size_t at)
{
    static uint32_t lengths[1024];
    struct cm_arena arena = fresh_arena();
    size_t header;
    for (uint32_t i = 0; i < count; i++)
        lengths[i] = length;
    const struct cm_batch batch = {.request_id = ++peer->next_id,
                                   .key_handle = 1,
                                   .mode = CM_WIRE_CTR,
                                   .direction = CM_WIRE_ENCRYPT,
                                   .count = count,
                                   .lengths = lengths};
    size_t body = (size_t)cm_slot_total(&batch);
    ck_assert_int_eq(cm_codec_put_batch(&arena, &batch, (uint32_t)body, peer->frame + at,
                                        sizeof peer->frame - at - body, &header),
                     CM_CODEC_OK);
    memset(peer->frame + at + header, 0, body);
    return at + header + body;
}

/* Greeted, with key handle 1. */
static struct peer *connect_peer(void)
{
    int fds[2], bytes = 2 * MIB, reply_bytes = MIB / 2;
    struct cm_arena arena = fresh_arena();
    struct peer *peer = calloc(1, sizeof *peer);
    struct cm_admission *admission = calloc(1, sizeof *admission);
    const struct cm_hello hello = {.version_min = 1, .version_max = 1, .client = "test"};
    const struct cm_call key = {.kind = CM_CALL_EPHEMERAL_KEY,
                                .key_bits = 128,
                                .attributes = {1U << CM_WIRE_CTR, true, true, false, 0}};
    size_t length;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    ck_assert_int_eq(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes), 0);
    ck_assert_int_eq(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
    peer->fd = fds[0];
    peer->received = malloc(REPLY_BYTES_MAX);
    *admission = (struct cm_admission){.item.run = cm_conn_admit,
                                       .fd = fds[1],
                                       .transport = &cm_transport_unix,
                                       .identity = {"uid:0", true, true},
                                       .departed = on_departed};
    cm_worker_post(&site->workers[0], &admission->item);
    ck_assert_int_eq(cm_codec_put_hello(&arena, &hello, peer->frame, sizeof peer->frame, &length), 0);
    send_all(peer, peer->frame, length);
    await_frame(peer, CM_FRAME_WELCOME);
    peer->conn = site->workers[0].connections;
    /* How much of a reply leaves at once is what these tests turn on, so it is fixed here. */
    ck_assert_int_eq(setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &reply_bytes, sizeof reply_bytes), 0);
    send_all(peer, peer->frame, put_call(peer, key, 0));
    await_frame(peer, CM_FRAME_ANSWER);
    return peer;
}

/* Nothing happens because of the time from here on: the test may be kept from running for as long as it
 * likes. */
static void stop_clock(void)
{
    site->workers[0].hurried = true;
    uv_timer_stop(&site->workers[0].tick);
}

static void close_peer(struct peer *peer)
{
    close(peer->fd);
    free(peer->received);
    free(peer);
}

static void close_site(void)
{
    char path[128];
    while (site->workers[0].connections != NULL)
        round_of_loop();
    round_of_loop();
    ck_assert_uint_eq(cm_budget_used(&site->common.budget), 0);
    ck_assert(!cm_budget_is_lent(&site->common.budget));
    if (site->helps) {
        cm_worker_stop(&site->workers[1]);
        cm_worker_join(&site->workers[1]);
    }
    cm_service_worker_free(site->workers[0].service);
    cm_pool_put(&site->workers[0].pool, site->workers[0].spare);
    cm_pool_put(&site->workers[0].pool, site->workers[0].output.headers);
    cm_pool_put(&site->workers[0].pool, site->workers[0].arena_buffer);
    cm_pool_done(&site->workers[0].pool);
    cm_service_free(site->common.service);
    for (uint32_t i = 0; i < site->common.worker_count; i++)
        cm_worker_done(&site->workers[i]);
    uv_close((uv_handle_t *)&site->common.main_wake, NULL);
    uv_run(&site->loop, UV_RUN_DEFAULT);
    uv_loop_close(&site->loop);
    static const char *const files[] = {"keys.db", "keys.db.lock", "keys.db-wal", "keys.db-shm",
                                        "master.key"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", site->folder, files[i]);
        (void)unlink(path);
    }
    ck_assert_int_eq(rmdir(site->folder), 0);
    cm_config_done(&site->config);
    free(site->workers);
    free(site);
}

/* Whoever has a great many requests waiting is interrupted, others come first, and nothing gets lost. */
START_TEST(turns)
{
    enum { REQUESTS = 8000 };
    const struct cm_call call = {.kind = CM_CALL_CLOSE_KEY, .number = 77};
    open_site(1, 512 * (uint64_t)MIB);
    struct peer *greedy = connect_peer(), *modest = connect_peer();
    size_t length = 0;
    for (unsigned i = 0; i < REQUESTS; i++)
        length = put_call(greedy, call, length);
    send_all(greedy, greedy->frame, length);
    unsigned answered = 0, rounds = 0;
    while (!greedy->conn->waits_turn) {
        round_of_loop();
        ck_assert_uint_lt(++rounds, 100);
    }
    send_all(modest, modest->frame, put_call(modest, call, 0));
    for (rounds = 0; take_frame(modest) == 0; rounds++) {
        ck_assert_uint_lt(rounds, 3);
        ck_assert(greedy->conn->waits_turn);
        round_of_loop();
        receive_some(modest, MIB);
        receive_some(greedy, MIB);
    }
    while (answered < REQUESTS) {
        round_of_loop();
        receive_some(greedy, MIB);
        for (unsigned type; (type = take_frame(greedy)) != 0; answered++)
            ck_assert_uint_eq(type, CM_FRAME_ANSWER);
    }
    ck_assert_uint_eq(greedy->length, 0);
    for (rounds = 0; greedy->conn->waits_turn; rounds++) {
        ck_assert_uint_lt(rounds, 3);
        round_of_loop();
    }
    close_peer(greedy);
    close_peer(modest);
    close_site();
}
END_TEST

/* One whose turn has not come may go away meanwhile. */
START_TEST(gone_while_waiting_for_a_turn)
{
    const struct cm_call call = {.kind = CM_CALL_CLOSE_KEY, .number = 77};
    open_site(1, 512 * (uint64_t)MIB);
    struct peer *peers[3];
    for (unsigned p = 0; p < 3; p++)
        peers[p] = connect_peer();
    for (unsigned p = 0; p < 3; p++) {
        size_t length = 0;
        for (unsigned i = 0; i < 8000; i++)
            length = put_call(peers[p], call, length);
        send_all(peers[p], peers[p]->frame, length);
    }
    for (unsigned rounds = 0; site->workers[0].waiting < 2; rounds++) {
        ck_assert_uint_lt(rounds, 100);
        round_of_loop();
    }
    cm_conn_close(peers[1]->conn, CM_CLOSE_PRESSURE);
    for (unsigned p = 0; p < 3; p++)
        close_peer(peers[p]);
    close_site();
}
END_TEST

/* The peer dies when a shared job has ended and its reply waits for earlier ones to leave. */
START_TEST(gone_with_a_finished_job)
{
    open_site(2, 512 * (uint64_t)MIB);
    /* Waking costs so much that twice as much work as the small requests are is shared, whatever work costs
     * in this build. */
    struct cm_cost_model model;
    cm_cost_measure(&model);
    struct cm_cost cost = cm_cost_of(&model, CM_AES_CTR, CM_AES_ENCRYPT, 128);
    site->common.wake_ns = 1 + 1024 * cost.item_ps / 1000 / 5;
    bool seen = false;
    for (unsigned attempt = 0; attempt < 3000 && !seen; attempt++) {
        struct peer *peer = connect_peer();
        /* Small requests with large replies (the IVs of empty messages) that nobody reads, too short to be
         * shared, then a job that is, all in one read. With the right number of them, the job runs when the
         * socket is full. */
        size_t length = 0;
        for (unsigned i = 0; i < 47 + attempt % 16; i++)
            length = put_batch(peer, 1024, 0, length);
        length = put_batch(peer, 1, 140000, length);
        send_all(peer, peer->frame, length);
        for (unsigned i = 0; i < 50 && !peer->conn->unsent && !peer->conn->busy; i++)
            round_of_loop();
        /* Busy: a helper has the last task. Only rounds of ours change anything from here on. */
        seen = peer->conn->unsent && peer->conn->busy;
        for (unsigned i = 0; seen && i < 100; i++) {
            round_of_loop();
            usleep(1000);
        }
        seen = seen && peer->conn->unsent && peer->conn->busy;
        unsigned departed = site->departed;
        close_peer(peer);
        for (unsigned rounds = 0; site->departed == departed; rounds++) {
            ck_assert_uint_lt(rounds, 2000);
            round_of_loop();
            usleep(1000);
        }
    }
    ck_assert(seen);
    close_site();
}
END_TEST

/* The reserve is lent until what it was lent for is free again, not only until the frame is read. */
START_TEST(reserve_comes_back_late)
{
    open_site(1, 64 * (uint64_t)MIB);
    struct peer *peer = connect_peer();
    uint64_t others = 0;
    stop_clock();
    cm_budget_charge(&site->common.budget, &others, 64 * (uint64_t)MIB); /* there is no room at all */
    size_t length = put_batch(peer, 1, 1800000, 0), sent = 0;
    while (!peer->conn->unsent) {
        ssize_t more = send(peer->fd, peer->frame + sent, length - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        sent += more > 0 ? (size_t)more : 0;
        round_of_loop();
    }
    ck_assert_uint_eq(sent, length);
    ck_assert(peer->conn->borrows_reserve);
    ck_assert(!cm_budget_borrow(&site->common.budget));
    await_frame(peer, CM_FRAME_BATCH_REPLY);
    ck_assert(!peer->conn->borrows_reserve);
    ck_assert_ptr_null(peer->conn->input);
    ck_assert_uint_eq(peer->conn->charged, 0);
    cm_budget_charge(&site->common.budget, &others, 0);
    close_peer(peer);
    close_site();
}
END_TEST

/* Memory is short: who sends a byte now and then owes us the rest and goes; who has sent it waits for us. */
START_TEST(a_byte_is_no_excuse)
{
    enum { HALF = 900000, REST_WAITS = 100000 };
    open_site(1, 64 * (uint64_t)MIB);
    struct peer *miser = connect_peer(), *honest = connect_peer();
    size_t length = put_batch(miser, 1, 1800000, 0);
    ck_assert_uint_eq(put_batch(honest, 1, 1800000, 0), length);
    send_all(miser, miser->frame, HALF);
    send_all(honest, honest->frame, HALF);
    while (miser->conn->end < HALF || honest->conn->end < HALF)
        round_of_loop();
    uint64_t others = 0;
    cm_budget_charge(&site->common.budget, &others, 64 * (uint64_t)MIB);
    ck_assert(cm_budget_borrow(&site->common.budget)); /* nor is there the reserve */
    send_all(honest, honest->frame + HALF, REST_WAITS);
    for (size_t sent = HALF; site->departed == 0; sent++) {
        ck_assert_uint_lt(sent, HALF + 1000);
        if (sent % 10 == 0 && send(miser->fd, miser->frame + sent, 1, MSG_NOSIGNAL) != 1)
            break;
        round_of_loop();
        usleep(10000);
    }
    ck_assert_ptr_eq(site->workers[0].connections, honest->conn);
    ck_assert(!honest->conn->closing);
    cm_budget_give_back(&site->common.budget);
    cm_budget_charge(&site->common.budget, &others, 0);
    size_t sent = HALF + REST_WAITS;
    while (honest->conn->end != 0 || sent < length) {
        ssize_t more = send(honest->fd, honest->frame + sent, length - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        sent += more > 0 ? (size_t)more : 0;
        round_of_loop();
        receive_some(honest, MIB);
    }
    ck_assert_uint_eq(take_frame(honest), CM_FRAME_BATCH_REPLY);
    close_peer(miser);
    close_peer(honest);
    close_site();
}
END_TEST

static void add(TCase *test_case)
{
    tcase_set_timeout(test_case, 60);
    tcase_add_test(test_case, turns);
    tcase_add_test(test_case, gone_while_waiting_for_a_turn);
    tcase_add_test(test_case, gone_with_a_finished_job);
    tcase_add_test(test_case, reserve_comes_back_late);
    tcase_add_test(test_case, a_byte_is_no_excuse);
}

int main(void)
{
    return run_suite("conn", add);
}
