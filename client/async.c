/* SPDX-License-Identifier: Apache-2.0 */
/* cm_submit, cm_poll and cm_fd. */
#include "async.h"
#include "batch.h"
#include "clock.h"
#include "error.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* A batch on its way, or done and not collected. */
struct flight {
    struct cm_request request; /* first: a request is its flight */
    struct flight *next;
    struct cm_async *async;
    struct cm_key *key;
    void *tag;
};

/* The descriptor that the caller waits on is an epoll of three: the socket, an event for completions that
 * came about outside of cm_poll, and a timer for the earliest deadline. So it outlives any connection. */
struct cm_async {
    int epoll, event, timer;
    struct cm_conn *conn; /* NULL: none, the next batch connects */
    uint32_t watched;     /* epoll events asked for; 0: the socket is not in there */
    bool signalled;
    int64_t timer_ms;   /* when the timer fires; 0: not set */
    uint32_t in_flight; /* submitted and not collected */
    struct flight *free;
    struct flight *done, **done_end;
};

static void close_all(struct cm_async *async)
{
    const int descriptors[] = {async->epoll, async->event, async->timer};
    for (int i = 0; i < 3; i++)
        if (descriptors[i] >= 0)
            close(descriptors[i]);
}

static void free_list(struct flight *flight)
{
    while (flight != NULL) {
        struct flight *next = flight->next;
        free(flight);
        flight = next;
    }
}

void cm_async_free(struct cm_async *async)
{
    if (async == NULL)
        return;
    cm_conn_free(async->conn);
    close_all(async);
    free_list(async->done);
    free_list(async->free);
    free(async);
}

static int open_async(struct cm_client *client, cm_error *error)
{
    if (client->async != NULL)
        return 0;
    struct cm_async *async = calloc(1, sizeof *async);
    if (async == NULL)
        return cm_fail_memory(error, "the asynchronous calls");
    async->done_end = &async->done;
    async->epoll = epoll_create1(EPOLL_CLOEXEC);
    async->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    async->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN};
    if (async->epoll < 0 || async->event < 0 || async->timer < 0 ||
        epoll_ctl(async->epoll, EPOLL_CTL_ADD, async->event, &event) != 0 ||
        epoll_ctl(async->epoll, EPOLL_CTL_ADD, async->timer, &event) != 0) {
        char memory[80];
        int rc = cm_fail_code(error, CM_ERR_NO_MEMORY, "no descriptor for the asynchronous calls: %s",
                              cm_errno_text(errno, memory, sizeof memory));
        close_all(async);
        free(async);
        return rc;
    }
    client->async = async;
    return 0;
}

/* Takes the socket into the epoll for what it waits for now. The connection takes it out when it closes it.
 */
static void watch(struct cm_async *async)
{
    if (async->conn == NULL || async->conn->broken) {
        async->watched = 0;
        return;
    }
    uint32_t wanted = EPOLLIN | (cm_conn_wants_write(async->conn) ? EPOLLOUT : 0);
    if (wanted == async->watched)
        return;
    struct epoll_event event = {.events = wanted};
    int change = async->watched == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    async->conn->epoll = async->epoll;
    if (epoll_ctl(async->epoll, change, async->conn->fd, &event) == 0)
        async->watched = wanted;
    else
        cm_conn_break(async->conn, CM_ERR_NO_MEMORY, "the socket can't be watched");
}

/* The timer is only moved when it fired, or is not set: deadlines only grow, so that it may fire early and
 * never late. */
static void set_timer(struct cm_async *async)
{
    const struct cm_request *first = async->conn != NULL ? async->conn->first : NULL;
    if (async->timer_ms != 0 && cm_now_ms() >= async->timer_ms) {
        uint64_t count;
        (void)!read(async->timer, &count, sizeof count);
        async->timer_ms = 0;
    }
    if (async->timer_ms != 0 || first == NULL)
        return;
    int64_t at_ms = first->deadline_ms + 1;
    struct itimerspec spec = {.it_value = {.tv_sec = at_ms / 1000, .tv_nsec = at_ms % 1000 * 1000000}};
    if (timerfd_settime(async->timer, TFD_TIMER_ABSTIME, &spec, NULL) == 0)
        async->timer_ms = at_ms;
}

/* The event is set while completions wait that the socket would not tell of. */
static void signal_done(struct cm_async *async)
{
    uint64_t count = 1;
    bool wanted = async->done != NULL;
    if (wanted == async->signalled)
        return;
    if (wanted)
        (void)!write(async->event, &count, sizeof count);
    else
        (void)!read(async->event, &count, sizeof count);
    async->signalled = wanted;
}

static void settle(struct cm_client *client)
{
    struct cm_async *async = client->async;
    watch(async);
    if (async->conn != NULL && async->conn->broken) {
        cm_pool_drop(client, async->conn);
        async->conn = NULL;
        async->watched = 0;
    }
    set_timer(async);
    signal_done(async);
}

static void on_done(struct cm_request *request)
{
    struct flight *flight = (struct flight *)request;
    flight->next = NULL;
    *flight->async->done_end = flight;
    flight->async->done_end = &flight->next;
}

int cm_fd(cm_client *client)
{
    if (client == NULL)
        return CM_ERR_ARGUMENT;
    if (cm_client_check(client, NULL) != 0)
        return CM_ERR_FORKED;
    int rc = open_async(client, NULL);
    return rc == 0 ? client->async->epoll : rc;
}

/* A connection that takes batches. One that is going away still answers what it has; until it has, there is
 * no other, since the descriptor and the order of completions are one. */
static int ready_conn(struct cm_client *client, cm_error *error)
{
    struct cm_async *async = client->async;
    if (async->conn != NULL && async->conn->going_away && async->conn->first == NULL) {
        cm_pool_drop(client, async->conn);
        async->conn = NULL;
        async->watched = 0;
    }
    if (async->conn != NULL && async->conn->going_away)
        return cm_fail_copy(error, &async->conn->failure);
    if (async->conn != NULL && async->conn->first == NULL)
        cm_conn_step(async->conn, 0);
    if (async->conn != NULL && (async->conn->broken || async->conn->going_away)) {
        cm_pool_drop(client, async->conn);
        async->conn = NULL;
        async->watched = 0;
    }
    return async->conn != NULL ? 0 : cm_pool_detach(client, &async->conn, error);
}

static struct flight *take_flight(struct cm_async *async)
{
    struct flight *flight = async->free;
    if (flight != NULL)
        async->free = flight->next;
    else
        flight = malloc(sizeof *flight);
    return flight;
}

static int start(struct cm_key *key, const struct cm_shape *shape, cm_item *items, size_t count, void *tag,
                 cm_error *error)
{
    struct cm_async *async = key->client->async;
    size_t planned;
    uint32_t handle;
    int rc = cm_key_handle(key, async->conn, &handle, error);
    if (rc == 0)
        rc = cm_frame_plan(&async->conn->limits, shape, items, count, UINT64_MAX, &planned, error);
    if (rc != 0)
        return rc;
    if (planned < count)
        return cm_fail_code(
            error, CM_ERR_TOO_LARGE,
            "%zu of the %zu items fit one frame of the daemon's limits, with alike IVs and tags", planned,
            count);
    struct flight *flight = take_flight(async);
    if (flight == NULL)
        return cm_fail_memory(error, "a batch");
    *flight = (struct flight){.async = async, .key = key, .tag = tag};
    flight->request = (struct cm_request){
        .deadline_ms = cm_request_deadline(key->client),
        .on_done = on_done,
        .shape = *shape,
        .key_handle = handle,
        .items = items,
        .count = (uint32_t)count,
    };
    async->in_flight++;
    cm_conn_add(async->conn, &flight->request);
    return 0;
}

int cm_submit(cm_key *key, int mode, int direction, unsigned flags, cm_item *items, size_t count, void *tag,
              cm_error *error)
{
    cm_error_clear(error);
    if (key == NULL || items == NULL || count == 0)
        return cm_fail_code(error, CM_ERR_ARGUMENT, "key or items is NULL, or there are no items");
    struct cm_client *client = key->client;
    struct cm_shape shape;
    int rc = cm_client_check(client, error);
    if (rc == 0)
        rc = cm_shape_of(key, mode, direction, flags, &shape, error);
    if (rc == 0)
        rc = cm_items_check(&shape, items, count, error);
    if (rc == 0)
        rc = open_async(client, error);
    if (rc != 0)
        return rc;
    if (client->async->in_flight >= client->inflight)
        return cm_fail_code(error, CM_ERR_BUSY,
                            "%u batches are in flight, as many as may be: collect some with cm_poll",
                            client->inflight);
    rc = ready_conn(client, error);
    if (rc == 0)
        rc = start(key, &shape, items, count, tag, error);
    settle(client);
    return rc;
}

static void fill_completion(struct flight *flight, cm_completion *completion)
{
    const struct cm_request *request = &flight->request;
    *completion = (cm_completion){
        .tag = flight->tag,
        .items = request->items,
        .count = request->count,
        .result = request->error.code,
        .error = request->error,
    };
    if (request->error.code == CM_OK && request->failed > 0)
        completion->result =
            cm_tell_failed_items(request->items, request->count, request->failed, &completion->error);
    if (request->error.code == CM_OK && request->shape.direction == CM_ENCRYPT &&
        request->failed < request->count)
        atomic_store(&flight->key->version_used, request->ret_key_version);
}

static size_t collect(struct cm_async *async, cm_completion *completions, size_t max)
{
    size_t count = 0;
    for (; count < max && async->done != NULL; count++) {
        struct flight *flight = async->done;
        async->done = flight->next;
        if (async->done == NULL)
            async->done_end = &async->done;
        fill_completion(flight, &completions[count]);
        flight->next = async->free;
        async->free = flight;
        async->in_flight--;
    }
    return count;
}

int cm_poll(cm_client *client, cm_completion *completions, size_t max, int timeout_ms, cm_error *error)
{
    cm_error_clear(error);
    if (client == NULL || (completions == NULL && max > 0) || max > INT32_MAX)
        return cm_fail_code(error, CM_ERR_ARGUMENT, "client or completions is NULL, or max is too large");
    if (cm_client_check(client, error) != 0)
        return CM_ERR_FORKED;
    struct cm_async *async = client->async;
    if (async == NULL)
        return 0;
    int64_t until_ms = timeout_ms > 0 ? cm_now_ms() + timeout_ms : 0;
    int left_ms = timeout_ms;
    while (async->conn != NULL) {
        bool waits = async->done == NULL && max > 0 && async->conn->first != NULL && left_ms != 0;
        cm_conn_step(async->conn, waits ? left_ms : 0);
        left_ms = timeout_ms > 0 ? cm_left_ms(until_ms) : timeout_ms;
        if (!waits || left_ms == 0 || async->done != NULL)
            break;
    }
    size_t count = collect(async, completions, max);
    settle(client);
    return (int)count;
}
