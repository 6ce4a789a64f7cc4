/* SPDX-License-Identifier: Apache-2.0 */
/* URIs, listening sockets, stale ones and those that are somebody else's. */
#include "endpoint.h"

#include "suite.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static char folder[] = "/tmp/cm-endpoint-XXXXXX";
static char path[64], uri[80];
static char text[512];
static struct cm_endpoint endpoint;
static struct cm_socket_file file, other_file;
static struct cm_listen settings = {.mode = 0600, .admin = true};

static void make_folder(void)
{
    strcpy(folder, "/tmp/cm-endpoint-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/s", folder);
    snprintf(uri, sizeof uri, "unix:%s", path);
    ck_assert_int_eq(cm_endpoint_parse(uri, &endpoint, text, sizeof text), 0);
}

static void remove_folder(void)
{
    unlink(path);
    rmdir(folder);
}

START_TEST(good_uris)
{
    ck_assert_str_eq(endpoint.scheme, "unix");
    ck_assert_int_eq(endpoint.address.any.sa_family, AF_UNIX);
    ck_assert_str_eq(endpoint.address.un.sun_path, path);
    static const char *const uris[] = {"tcp://127.0.0.1:7700", "tcp://127.9.9.9:0", "tcp://[::1]:65535"};
    for (size_t i = 0; i < 3; i++) {
        char name[80];
        ck_assert_msg(cm_endpoint_parse(uris[i], &endpoint, text, sizeof text) == 0, "%s", text);
        ck_assert_str_eq(endpoint.scheme, "tcp");
        cm_endpoint_name(-1, &endpoint, name, sizeof name);
        ck_assert_str_eq(name, uris[i]);
    }
    ck_assert_int_eq(cm_endpoint_parse_host("127.0.0.1:80", &endpoint, text, sizeof text), 0);
    ck_assert_uint_eq(ntohs(endpoint.address.in.sin_port), 80);
}
END_TEST

static const struct {
    const char *uri, *says;
} bad[] = {
    {"", "expected unix:"},
    {"/run/x", "expected unix:"},
    {"unix:", "must be absolute"},
    {"unix:relative", "must be absolute"},
    {"tls://127.0.0.1:1", "expected unix:"},
    {"tcp://127.0.0.1", "an address and a port"},
    {"tcp://:7700", "an address and a port"},
    {"tcp://127.0.0.1:", "port must be a number"},
    {"tcp://127.0.0.1:65536", "port must be a number"},
    {"tcp://127.0.0.1:+5", "port must be a number"},
    {"tcp://127.0.0.1:7x", "port must be a number"},
    {"tcp://localhost:7700", "numeric address"},
    {"tcp://0.0.0.0:7700", "loopback only"},
    {"tcp://10.0.0.1:7700", "loopback only"},
    {"tcp://128.0.0.1:7700", "loopback only"},
    {"tcp://[::]:7700", "loopback only"},
    {"tcp://[::ffff:127.0.0.1]:7700", "loopback only"},
    {"tcp://[x]:7700", "no IPv6 address"},
};

START_TEST(bad_uris)
{
    ck_assert_int_eq(cm_endpoint_parse(bad[_i].uri, &endpoint, text, sizeof text), -1);
    ck_assert_msg(strstr(text, bad[_i].says) != NULL, "%s: %s", bad[_i].uri, text);
}
END_TEST

START_TEST(path_length)
{
    char longest[200];
    size_t most = sizeof endpoint.address.un.sun_path - 1;
    memset(longest, 'x', sizeof longest);
    memcpy(longest, "unix:/", 6);
    longest[5 + most] = '\0';
    ck_assert_int_eq(cm_endpoint_parse(longest, &endpoint, text, sizeof text), 0);
    longest[5 + most] = 'x';
    longest[5 + most + 1] = '\0';
    ck_assert_int_eq(cm_endpoint_parse(longest, &endpoint, text, sizeof text), -1);
    ck_assert_ptr_nonnull(strstr(text, "shorter"));
}
END_TEST

static int listen_here(struct cm_socket_file *ret_file)
{
    return cm_endpoint_listen(&endpoint, &settings, ret_file, text, sizeof text);
}

static unsigned mode_of(const char *name)
{
    struct stat status;
    ck_assert_int_eq(lstat(name, &status), 0);
    return status.st_mode & 07777;
}

START_TEST(socket_mode_and_group)
{
    struct stat status;
    mode_t before = umask(0077);
    const struct group *group = getgrgid(getegid());
    settings.mode = 0664;
    settings.group = group != NULL ? group->gr_name : NULL;
    int fd = listen_here(&file);
    umask(before);
    ck_assert_msg(fd >= 0, "%s", text);
    ck_assert_uint_eq(mode_of(path), 0664);
    ck_assert_int_eq(lstat(path, &status), 0);
    ck_assert_uint_eq(status.st_gid, getegid());
    ck_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    ck_assert(fcntl(fd, F_GETFL) & O_NONBLOCK);
    close(fd);
    cm_endpoint_unlink(&endpoint, &file);
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

START_TEST(unknown_group)
{
    settings.group = (char[]){"no-such-group-here"};
    ck_assert_int_eq(listen_here(&file), -1);
    ck_assert_ptr_nonnull(strstr(text, "no group no-such-group-here"));
    ck_assert_int_ne(access(path, F_OK), 0);
    settings.group = NULL;
}
END_TEST

START_TEST(live_and_stale)
{
    int first = listen_here(&file);
    ck_assert_int_ge(first, 0);
    ck_assert_int_eq(listen_here(&other_file), -1);
    ck_assert_ptr_nonnull(strstr(text, "already listens"));
    ck_assert_int_eq(access(path, F_OK), 0);
    close(first); /* and leaves the file behind */
    int second = listen_here(&other_file);
    ck_assert_msg(second >= 0, "%s", text);
    cm_endpoint_unlink(&endpoint, &other_file);
    ck_assert_int_ne(access(path, F_OK), 0);
    close(second);
}
END_TEST

/* Somebody removed the socket of a running daemon, and another one took its place. */
START_TEST(unlink_only_ones_own)
{
    int first = listen_here(&file);
    ck_assert_int_ge(first, 0);
    ck_assert_int_eq(unlink(path), 0);
    int second = listen_here(&other_file);
    ck_assert_msg(second >= 0, "%s", text);
    cm_endpoint_unlink(&endpoint, &file);
    ck_assert_int_eq(access(path, F_OK), 0);
    cm_endpoint_unlink(&endpoint, &other_file);
    ck_assert_int_ne(access(path, F_OK), 0);
    close(first);
    close(second);
}
END_TEST

START_TEST(full_backlog_is_alive)
{
    int fd = listen_here(&file);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(listen(fd, 0), 0);
    int waiting = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(waiting, &endpoint.address.any, endpoint.address_length), 0);
    ck_assert_int_eq(listen_here(&other_file), -1);
    ck_assert_ptr_nonnull(strstr(text, "already listens"));
    close(waiting);
    close(fd);
}
END_TEST

START_TEST(no_socket_there)
{
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    ck_assert_int_eq((int)write(fd, "precious", 8), 8);
    close(fd);
    ck_assert_int_eq(listen_here(&file), -1);
    ck_assert_ptr_nonnull(strstr(text, "no socket"));
    struct stat status;
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq((int)status.st_size, 8);
    unlink(path);
    ck_assert_int_eq(symlink("/dev/null", path), 0);
    ck_assert_int_eq(listen_here(&file), -1);
    ck_assert_ptr_nonnull(strstr(text, "no socket"));
}
END_TEST

START_TEST(no_folder)
{
    snprintf(uri, sizeof uri, "unix:%s/none/s", folder);
    ck_assert_int_eq(cm_endpoint_parse(uri, &endpoint, text, sizeof text), 0);
    ck_assert_int_eq(listen_here(&file), -1);
    ck_assert_ptr_nonnull(strstr(text, "/none does not exist: create it"));
}
END_TEST

START_TEST(tcp_port)
{
    char name[80];
    ck_assert_int_eq(cm_endpoint_parse("tcp://127.0.0.1:0", &endpoint, text, sizeof text), 0);
    int fd = cm_endpoint_listen(&endpoint, &settings, &file, text, sizeof text);
    ck_assert_msg(fd >= 0, "%s", text);
    ck_assert(!file.made);
    cm_endpoint_name(fd, &endpoint, name, sizeof name);
    ck_assert_str_ne(name, "tcp://127.0.0.1:0");
    ck_assert_int_eq(cm_endpoint_parse(name, &endpoint, text, sizeof text), 0);
    ck_assert_int_eq(cm_endpoint_listen(&endpoint, &settings, &file, text, sizeof text), -1);
    ck_assert_ptr_nonnull(strstr(text, "another program listens there"));
    close(fd);
}
END_TEST

static struct cm_identity identify(bool admin)
{
    struct cm_identity identity;
    settings.admin = admin;
    int fd = listen_here(&file);
    int client = socket(endpoint.address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct cm_endpoint bound = endpoint;
    socklen_t length = sizeof bound.address;
    ck_assert_int_eq(getsockname(fd, &bound.address.any, &length), 0);
    ck_assert_int_eq(connect(client, &bound.address.any, endpoint.address_length), 0);
    int server = accept(fd, NULL, NULL);
    ck_assert_int_ge(server, 0);
    ck_assert_int_eq(cm_endpoint_identify(server, &endpoint, &settings, &identity), 0);
    cm_endpoint_unlink(&endpoint, &file);
    close(server);
    close(client);
    close(fd);
    return identity;
}

START_TEST(identity)
{
    char name[32];
    snprintf(name, sizeof name, "uid:%u", getuid());
    struct cm_identity own = identify(true);
    ck_assert_str_eq(own.name, name);
    ck_assert_int_eq(own.may_administer, getuid() != 65534);
    ck_assert(own.may_send_keys);
    own = identify(false);
    ck_assert(!own.may_administer);
    ck_assert(own.may_send_keys);
    ck_assert_int_eq(cm_endpoint_parse("tcp://127.0.0.1:0", &endpoint, text, sizeof text), 0);
    own = identify(true);
    ck_assert_str_eq(own.name, "tcp:anonymous");
    ck_assert(!own.may_administer);
    ck_assert(!own.may_send_keys);
}
END_TEST

static void add(TCase *test_case)
{
    tcase_add_checked_fixture(test_case, make_folder, remove_folder);
    tcase_add_test(test_case, good_uris);
    tcase_add_loop_test(test_case, bad_uris, 0, sizeof bad / sizeof bad[0]);
    tcase_add_test(test_case, path_length);
    tcase_add_test(test_case, socket_mode_and_group);
    tcase_add_test(test_case, unknown_group);
    tcase_add_test(test_case, live_and_stale);
    tcase_add_test(test_case, unlink_only_ones_own);
    tcase_add_test(test_case, full_backlog_is_alive);
    tcase_add_test(test_case, no_socket_there);
    tcase_add_test(test_case, no_folder);
    tcase_add_test(test_case, tcp_port);
    tcase_add_test(test_case, identity);
}

int main(void)
{
    return run_suite("endpoint", add);
}
