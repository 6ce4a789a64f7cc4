/* SPDX-License-Identifier: Apache-2.0 */
/* Connecting: endpoints, wrong peers, refusals, versions, each with its own error within the connect timeout.
 */
#include "fake.h"
#include "fixture.h"
#include <ciphermill/ciphermill.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TIMEOUT_MS = 600 };

static struct fake fake;
static cm_error error;
static uint32_t timeout_ms = TIMEOUT_MS;

static void setup(void)
{
    fake_start(&fake, NULL);
}

static void teardown(void)
{
    fake_stop(&fake);
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int try(const char *uri)
{
    cm_options options = CM_OPTIONS_INIT;
    options.connect_timeout_ms = timeout_ms;
    cm_client *client = NULL;
    int64_t from = now_ms();
    int rc = cm_connect(&client, uri, &options, &error);
    int64_t took = now_ms() - from;
    ck_assert_msg(took < 20 * (int64_t)timeout_ms, "%lld ms", (long long)took);
    ck_assert((rc == 0) == (client != NULL));
    ck_assert_int_eq(error.code, rc);
    cm_close(client);
    return rc;
}

static void expect(const char *uri, int code, int retry, const char *text)
{
    int rc = try(uri);
    ck_assert_msg(rc == code, "%s: %d %s", uri, rc, error.text);
    ck_assert_msg(strstr(error.text, text) != NULL, "%s: %s", uri, error.text);
    ck_assert_int_eq(error.retry, retry);
}

START_TEST(endpoints_that_make_no_sense)
{
    static const char *const uris[] = {
        "",          "unix",         "unix:",       "unix:relative", "tcp://",      "tcp://host",
        "tcp://:1",  "tcp://h:",     "tcp://h:0",   "tcp://h:65536", "tcp://h:12x", "tcp://h:999999",
        "tcp:h:123", "http://h:123", "tcp://[::1]",
    };
    for (size_t i = 0; i < sizeof uris / sizeof uris[0]; i++) {
        ck_assert_msg(try(uris[i]) == CM_ERR_ENDPOINT, "%s: %s", uris[i], error.text);
        ck_assert_int_eq(error.retry, CM_RETRY_FINAL);
    }
    char longest[400] = "unix:/";
    memset(longest + 6, 'x', 107 - 1);
    expect(longest, CM_ERR_NOT_FOUND, CM_RETRY_NOT_EXECUTED, "xxx");
    longest[6 + 107 - 1] = 'x';
    expect(longest, CM_ERR_ENDPOINT, CM_RETRY_FINAL, "107 bytes of a Unix socket");
    memset(longest + 6, 'x', 300);
    expect(longest, CM_ERR_ENDPOINT, CM_RETRY_FINAL, "longer than 255");
}
END_TEST

START_TEST(options_are_checked)
{
    cm_client *client = NULL;
    cm_options options = CM_OPTIONS_INIT;
    options.connections = 257;
    ck_assert_int_eq(cm_connect(&client, fake.uri, &options, &error), CM_ERR_ARGUMENT);
    options = (cm_options)CM_OPTIONS_INIT;
    options.inflight = 4097;
    ck_assert_int_eq(cm_connect(&client, fake.uri, &options, &error), CM_ERR_ARGUMENT);
    options = (cm_options)CM_OPTIONS_INIT;
    options.slot_align = 48;
    ck_assert_int_eq(cm_connect(&client, fake.uri, &options, &error), CM_ERR_ARGUMENT);
    options = (cm_options)CM_OPTIONS_INIT;
    options.slot_gap = 65537;
    ck_assert_int_eq(cm_connect(&client, fake.uri, &options, &error), CM_ERR_ARGUMENT);
    options = (cm_options)CM_OPTIONS_INIT;
    options.size = 3;
    ck_assert_int_eq(cm_connect(&client, fake.uri, &options, &error), CM_ERR_ARGUMENT);
    ck_assert_int_eq(cm_connect(NULL, fake.uri, NULL, &error), CM_ERR_ARGUMENT);
    /* An older caller's shorter options. */
    options.size = offsetof(cm_options, program);
    options.slot_gap = 99999;
    ck_assert_int_eq(cm_connect(&client, fake.uri, &options, &error), 0);
    cm_close(client);
}
END_TEST

START_TEST(the_environment_names_an_endpoint)
{
    cm_client *client = NULL;
    setenv("CIPHERMILL_ENDPOINT", fake.uri, 1);
    ck_assert_int_eq(cm_connect(&client, NULL, NULL, &error), 0);
    cm_close(client);
    setenv("CIPHERMILL_ENDPOINT", "nonsense", 1);
    ck_assert_int_eq(cm_connect(&client, NULL, NULL, &error), CM_ERR_ENDPOINT);
    ck_assert_int_eq(cm_connect(&client, fake.uri, NULL, &error), 0);
    cm_close(client);
}
END_TEST

static int bind_tcp(bool listens, char uri[64])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    if (listens)
        ck_assert_int_eq(listen(fd, 8), 0);
    getsockname(fd, (struct sockaddr *)&address, &length);
    snprintf(uri, 64, "tcp://127.0.0.1:%u", ntohs(address.sin_port));
    return fd;
}

START_TEST(nobody_there)
{
    char uri[200];
    snprintf(uri, sizeof uri, "%s.not", fake.uri);
    expect(uri, CM_ERR_NOT_FOUND, CM_RETRY_NOT_EXECUTED, "start ciphermilld");
    ck_assert_ptr_nonnull(strstr(error.text, ".sock.not"));
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/stale", fake.folder);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
    snprintf(uri, sizeof uri, "unix:%s", address.sun_path);
    expect(uri, CM_ERR_NOT_FOUND, CM_RETRY_NOT_EXECUTED, "nobody listens");
    unlink(address.sun_path);
    fd = bind_tcp(false, uri);
    expect(uri, CM_ERR_NOT_FOUND, CM_RETRY_NOT_EXECUTED, "nobody listens at tcp://127.0.0.1:");
    close(fd);
    expect("tcp://no.such.host.invalid:7700", CM_ERR_NOT_FOUND, CM_RETRY_NOT_EXECUTED,
           "no.such.host.invalid");
}
END_TEST

/* In a child that gave up root, since nothing is denied to root. */
static int denied(void)
{
    char expected[100];
    if (getuid() == 0 && (setgid(54321) != 0 || setuid(54321) != 0))
        return 2;
    int rc = try(fake.uri);
    snprintf(expected, sizeof expected, "uid %u, gid %u", getuid(), getgid());
    if (rc != CM_ERR_NO_ACCESS || error.retry != CM_RETRY_FINAL || strstr(error.text, expected) == NULL)
        return 3;
    return strstr(error.text, "mode 0000") != NULL || strstr(error.text, "folder") != NULL ? 0 : 4;
}

START_TEST(no_permission)
{
    for (int closed_folder = 0; closed_folder < 2; closed_folder++) {
        chmod(fake.folder, closed_folder ? 0700 : 0711);
        chmod(fake.path, 0);
        pid_t child = fork();
        if (child == 0)
            _exit(denied());
        int status;
        waitpid(child, &status, 0);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
    }
    chmod(fake.path, 0600);
}
END_TEST

/* --- Others than a daemon --- */

static void serve_banner(struct fake_peer *peer)
{
    fake_write(peer->fd, "SSH-2.0-x\r\n", peer->fake->knob == 0 ? 11 : 2);
    uint8_t byte;
    while (recv(peer->fd, &byte, 1, 0) > 0)
        continue;
}

/* As HTTP servers do: nothing before the end of a line. */
static void serve_http(struct fake_peer *peer)
{
    uint8_t byte;
    while (recv(peer->fd, &byte, 1, 0) > 0)
        if (byte == '\n') {
            static const char reply[] = "HTTP/1.0 400 Bad Request\r\n\r\n";
            fake_write(peer->fd, reply, sizeof reply - 1);
            return;
        }
}

static void serve_nothing(struct fake_peer *peer)
{
    uint8_t byte;
    while (recv(peer->fd, &byte, 1, 0) > 0)
        continue;
}

static void serve_end(struct fake_peer *peer)
{
    (void)fake_next(peer);
}

START_TEST(who_is_no_daemon)
{
    fake_restart(&fake, serve_banner);
    for (fake.knob = 0; fake.knob < 2; fake.knob++)
        expect(fake.uri, CM_ERR_NOT_CIPHERMILL, CM_RETRY_FINAL, "not a ciphermilld");
    fake_restart(&fake, serve_http);
    expect(fake.uri, CM_ERR_NOT_CIPHERMILL, CM_RETRY_FINAL, "an HTTP server");
    fake_restart(&fake, serve_nothing);
    int64_t from = now_ms();
    expect(fake.uri, CM_ERR_CONNECT_TIMEOUT, CM_RETRY_NOT_EXECUTED, "no greeting");
    ck_assert_int_ge(now_ms() - from, TIMEOUT_MS);
    fake_restart(&fake, serve_end);
    expect(fake.uri, CM_ERR_DISCONNECTED, CM_RETRY_NOT_EXECUTED, "before the greeting");
}
END_TEST

/* A queue that nobody empties: the kernel lets a connect wait, on Unix sockets. */
START_TEST(a_full_queue)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char uri[150];
    snprintf(address.sun_path, sizeof address.sun_path, "%s/full", fake.folder);
    snprintf(uri, sizeof uri, "unix:%s", address.sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0), waiting[3];
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(fd, 0), 0);
    for (int i = 0; i < 3; i++) {
        waiting[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)!connect(waiting[i], (struct sockaddr *)&address, sizeof address);
    }
    expect(uri, CM_ERR_CONNECT_TIMEOUT, CM_RETRY_NOT_EXECUTED, "queue stayed full");
    for (int i = 0; i < 3; i++)
        close(waiting[i]);
    close(fd);
    unlink(address.sun_path);
}
END_TEST

/* --- Greetings of every kind --- */

static struct cm_refusal refusal;
static struct cm_welcome welcome;
static uint8_t greeting_version;

static void serve_greeting(struct fake_peer *peer)
{
    uint8_t frame[1024];
    size_t length;
    if (fake_next(peer) != CM_FRAME_HELLO)
        abort();
    int rc = refusal.status != 0 ? cm_codec_put_refusal(&peer->arena, &refusal, frame, sizeof frame, &length)
                                 : cm_codec_put_welcome(&peer->arena, &welcome, frame, sizeof frame, &length);
    if (rc != 0)
        abort();
    frame[4] = greeting_version;
    /* In two pieces, which must not matter. */
    fake_write(peer->fd, frame, 7);
    usleep(2000);
    fake_write(peer->fd, frame + 7, length - 7);
    serve_nothing(peer);
}

START_TEST(refusals_and_versions)
{
    static const uint8_t token[16] = {1};
    fake_restart(&fake, serve_greeting);
    greeting_version = CM_PROTOCOL_VERSION;
    refusal = (struct cm_refusal){.status = CM_STATUS_OVERLOADED, .text = "4,096 connections are open"};
    expect(fake.uri, CM_ERR_OVERLOADED, CM_RETRY_NOT_EXECUTED, "4,096 connections are open");
    refusal = (struct cm_refusal){.status = CM_STATUS_ACCESS_DENIED};
    expect(fake.uri, CM_ERR_ACCESS_DENIED, CM_RETRY_FINAL, "may not do that");
    refusal = (struct cm_refusal){.status = CM_STATUS_VERSION_MISMATCH, .version_min = 2, .version_max = 3};
    expect(fake.uri, CM_ERR_VERSION_MISMATCH, CM_RETRY_FINAL, "upgrade the client");
    refusal.version_min = refusal.version_max = 0;
    expect(fake.uri, CM_ERR_VERSION_MISMATCH, CM_RETRY_FINAL, "upgrade the daemon");
    greeting_version = 9;
    expect(fake.uri, CM_ERR_VERSION_MISMATCH, CM_RETRY_FINAL, "upgrade the client");
    greeting_version = CM_PROTOCOL_VERSION;
    refusal.status = 0;
    welcome = (struct cm_welcome){.version = 1, .limits = fake.limits};
    welcome.session_token = (struct cm_bytes){token, sizeof token};
    ck_assert_int_eq(try(fake.uri), 0);
    welcome.limits.item_bytes = 0;
    expect(fake.uri, CM_ERR_PROTOCOL, CM_RETRY_FINAL, "usable limits");
    welcome.version = 2;
    expect(fake.uri, CM_ERR_VERSION_MISMATCH, CM_RETRY_FINAL, "upgrade the client");
}
END_TEST

static void serve_slow_greeting(struct fake_peer *peer)
{
    if (peer->index == peer->fake->knob)
        usleep(6 * TIMEOUT_MS * 1000);
    fake_serve(peer);
}

/* A daemon that is only slow is not disturbed by the question in HTTP that a second connection asks. */
START_TEST(a_slow_daemon_is_a_daemon)
{
    timeout_ms = 10 * TIMEOUT_MS;
    fake_restart(&fake, serve_slow_greeting);
    ck_assert_int_eq(try(fake.uri), 0);
    ck_assert_int_eq(fake.accepted, 2);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        endpoints_that_make_no_sense,
        options_are_checked,
        the_environment_names_an_endpoint,
        nobody_there,
        no_permission,
        who_is_no_daemon,
        a_full_queue,
        refusals_and_versions,
        a_slow_daemon_is_a_daemon,
    };
    return RUN_WITH_FIXTURE("client/greet", setup, teardown, tests);
}
