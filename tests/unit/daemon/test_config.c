/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration: what is taken, what is refused and with which line, and that what is printed reads back.
 */
#include "config.h"
#include "config_numbers.h"
#include "log.h"

#include "suite.h"
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static char path[] = "/tmp/cm-config-XXXXXX";
static char said[4096];
static char text[CM_CONFIG_TEXT];
static struct cm_config config;

static void begin(void)
{
    strcpy(path, "/tmp/cm-config-XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert_int_eq(cm_config_init(&config), 0);
}

static void end(void)
{
    cm_config_done(&config);
    unlink(path);
}

/* Reads `content` as a file; what was printed to stderr is in `said`. */
static int read_text(const char *content)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(content, file), 0);
    ck_assert_int_eq(fclose(file), 0);

    char caught[] = "/tmp/cm-config-said-XXXXXX";
    int fd = mkstemp(caught), before = dup(STDERR_FILENO);
    ck_assert(fd >= 0 && before >= 0);
    fflush(stderr);
    dup2(fd, STDERR_FILENO);
    int rc = cm_config_read(&config, path);
    fflush(stderr);
    dup2(before, STDERR_FILENO);
    close(before);
    ssize_t length = pread(fd, said, sizeof said - 1, 0);
    said[length > 0 ? length : 0] = '\0';
    close(fd);
    unlink(caught);
    return rc;
}

START_TEST(defaults)
{
    ck_assert_int_eq(read_text("# nothing\n"), 0);
    ck_assert_int_eq(cm_config_complete(&config, text, sizeof text), 0);
    ck_assert_uint_eq(config.listen_count, 1);
    ck_assert_str_eq(config.listen[0].uri, CM_CONFIG_LISTEN);
    ck_assert_uint_eq(config.listen[0].mode, 0660);
    ck_assert(config.listen[0].admin);
    ck_assert_str_eq(config.state, CM_CONFIG_STATE);
    ck_assert_ptr_null(config.metrics);
    ck_assert_uint_eq(config.limits.header_bytes, 65536);
    ck_assert_uint_eq(config.limits.frame_bytes, 16 << 20);
    ck_assert_uint_eq(config.limits.batch_items, 1024);
    ck_assert_uint_eq(config.limits.item_bytes, 8 << 20);
    ck_assert_uint_eq(config.limits.inflight_bytes, 32 << 20);
    ck_assert_uint_eq(config.inflight_bytes, 512 << 20);
    ck_assert_uint_eq(config.limits.operations, 64);
    ck_assert_uint_eq(config.limits.session_keys, 1024);
    ck_assert_uint_eq(config.connections, 4096);
    ck_assert_uint_eq(config.connections_per_peer, 2048);
    ck_assert_uint_eq(config.stall_timeout_ms, 30000);
    ck_assert_uint_eq(config.greeting_timeout_ms, 10000);
    ck_assert_uint_eq(config.drain_timeout_ms, 10000);
    ck_assert_int_eq(config.log_level, CM_LOG_INFO);
}
END_TEST

static const char everything[] =
    "listen \"unix:/tmp/a b\" { group = \"users\" mode = \"0600\" admin = false }\n"
    "listen \"tcp://[::1]:7700\" {}\n"
    "metrics = \"127.0.0.1:7701\"\n"
    "state = \"/tmp/st\\\"ate\\$x\"\n"
    "store { master-key = \"/tmp/key\" }\n"
    "workers = 3\n"
    "pin-workers = true\n"
    "log-level = \"debug\"\n"
    "stall-timeout = 1500ms\n"
    "drain-timeout = \"2min\"\n"
    "limits {\n"
    "  frame = 4MiB item = 1MiB header = \"32KiB\"\n"
    "  inflight = \"1GiB\" inflight-per-connection = 5000000\n"
    "  connections = 10 connections-per-peer = 5\n"
    "}\n";

static void check_everything(void)
{
    ck_assert_int_eq(cm_config_complete(&config, text, sizeof text), 0);
    ck_assert_uint_eq(config.listen_count, 2);
    ck_assert_str_eq(config.listen[0].uri, "unix:/tmp/a b");
    ck_assert_str_eq(config.listen[0].group, "users");
    ck_assert_uint_eq(config.listen[0].mode, 0600);
    ck_assert(!config.listen[0].admin);
    ck_assert_str_eq(config.listen[1].uri, "tcp://[::1]:7700");
    ck_assert_ptr_null(config.listen[1].group);
    ck_assert(!config.listen[1].admin);
    ck_assert_str_eq(config.metrics, "127.0.0.1:7701");
    ck_assert_str_eq(config.state, "/tmp/st\"ate$x");
    ck_assert_str_eq(config.master_key, "/tmp/key");
    ck_assert_uint_eq(config.workers, 3);
    ck_assert(config.pin_workers);
    ck_assert_int_eq(config.log_level, CM_LOG_DEBUG);
    ck_assert_uint_eq(config.stall_timeout_ms, 1500);
    ck_assert_uint_eq(config.drain_timeout_ms, 120000);
    ck_assert_uint_eq(config.limits.frame_bytes, 4 << 20);
    ck_assert_uint_eq(config.limits.item_bytes, 1 << 20);
    ck_assert_uint_eq(config.limits.header_bytes, 32768);
    ck_assert_uint_eq(config.limits.inflight_bytes, 5000000);
    ck_assert_uint_eq(config.inflight_bytes, 1 << 30);
    ck_assert_uint_eq(config.connections, 10);
    ck_assert_uint_eq(config.connections_per_peer, 5);
    ck_assert_uint_eq(config.limits.operations, 64); /* what the file does not say stays */
}

static char *print(void)
{
    char *printed = NULL;
    size_t length;
    FILE *out = open_memstream(&printed, &length);
    cm_config_print(&config, out);
    fclose(out);
    return printed;
}

START_TEST(everything_reads_and_prints)
{
    ck_assert_msg(read_text(everything) == 0, "%s", said);
    check_everything();
    char *first = print();
    cm_config_done(&config);
    ck_assert_int_eq(cm_config_init(&config), 0);
    ck_assert_msg(read_text(first) == 0, "%s\n%s", said, first);
    check_everything();
    char *second = print();
    ck_assert_str_eq(first, second);
    free(first);
    free(second);
}
END_TEST

/* Each with the line that must be named and a part of what must be said. */
static const struct {
    const char *content;
    int line;
    const char *says;
} bad[] = {
    {"\nworkerz = 3\n", 2, "workerz"},
    {"limits {\n  fram = 1MiB\n}\n", 2, "fram"},
    {"listen \"unix:/x\" {\n\n  color = red\n}\n", 3, "color"},
    {"workers = many\n", 1, "expected a whole number"},
    {"workers = 257\n", 1, "out of range: 0 to 256"},
    {"workers = -1\n", 1, "expected a whole number"},
    {"\n\nworkers = 99999999999999999999\n", 3, "workers"},
    {"limits {\n\n frame = 16MB }\n", 3, "a size such as"},
    {"limits { frame = 127KiB }\n", 1, "out of range: 128KiB to 256MiB"},
    {"limits { header = 65537 }\n", 1, "out of range: 4KiB to 64KiB"},
    {"limits { batch-items = 1025 }\n", 1, "out of range: 1 to 1024"},
    {"limits { batch-items = 0 }\n", 1, "out of range"},
    {"limits { inflight = 99999999999GiB }\n", 1, "inflight"},
    {"stall-timeout = 10\n", 1, "a time such as"},
    {"stall-timeout = 99ms\n", 1, "out of range: 100ms to 1440min"},
    {"listen \"tcp://0.0.0.0:1\" {}\n", 1, "loopback only"},
    {"listen \"tcp://127.0.0.1:1\" {\n mode = \"0600\" }\n", 2, "for unix: only"},
    {"listen \"unix:/x\" { mode = \"0999\" }\n", 1, "octal"},
    {"listen \"unix:/x\" { mode = \"1777\" }\n", 1, "octal"},
    {"listen \"unix:/x\" {}\nlisten \"unix:/x\" {}\n", 2, "unix:/x"},
    {"metrics = \"0.0.0.0:9\"\n", 1, "loopback only"},
    {"log-level = loud\n", 1, "expected error, warning, info or debug"},
    {"pin-workers = perhaps\n", 1, "pin-workers"},
    {"state = {\n", 1, ""},
    {"limits {\n", 3, "ends inside a section"},
    {"limits {\n frame = 1MiB", 3, "ends inside a section"},
    {"listen \"unix:/x\" {", 2, "ends inside a section"},
    {"workers = 2 /* never\n closed", 4, "ends inside a comment"},
    {"state = \"never closed\n", 4, "premature end of file"},
};

START_TEST(refused_with_line)
{
    char place[128];
    ck_assert_int_ne(read_text(bad[_i].content), 0);
    snprintf(place, sizeof place, "ciphermilld: %s:%d: ", path, bad[_i].line);
    ck_assert_msg(strncmp(said, place, strlen(place)) == 0, "%s said: %s", bad[_i].content, said);
    ck_assert_msg(strstr(said, bad[_i].says) != NULL, "%s said: %s", bad[_i].content, said);
    ck_assert_msg(strchr(said, '\n') == said + strlen(said) - 1, "more than one line: %s", said);
}
END_TEST

START_TEST(no_file)
{
    unlink(path);
    ck_assert_int_ne(cm_config_read(&config, path), 0);
}
END_TEST

static const struct {
    const char *content, *says; /* NULL: fine */
} together[] = {
    {"limits { item = 16MiB }", "does not fit frame"},
    /* 1 MiB - 16 - (16 + 65536, rounded up to 64) = 982960 */
    {"limits { frame = 1MiB item = 982960 }", NULL},
    {"limits { frame = 1MiB item = 982961 }", "does not fit frame"},
    {"limits { inflight-per-connection = 16MiB }", NULL},
    {"limits { inflight-per-connection = 16777215 }", "at least frame"},
    {"limits { inflight = 32MiB }", NULL},
    {"limits { inflight = 33554431 }", "at least twice frame"},
};

START_TEST(values_that_do_not_go_together)
{
    ck_assert_msg(read_text(together[_i].content) == 0, "%s", said);
    int rc = cm_config_complete(&config, text, sizeof text);
    ck_assert_int_eq(rc != 0, together[_i].says != NULL);
    if (rc != 0)
        ck_assert_msg(strstr(text, together[_i].says) != NULL, "%s", text);
}
END_TEST

START_TEST(numbers_one_by_one)
{
    const struct cm_number *number = &cm_numbers[_i];
    char shown[64];
    const uint64_t values[] = {number->least, number->standard, number->most};
    uint64_t value;
    for (int i = 0; i < 3; i++) {
        cm_number_print(number, values[i], shown, sizeof shown);
        ck_assert_msg(cm_number_parse(number, shown, &value, text, sizeof text) == 0, "%s", text);
        ck_assert_uint_eq(value, values[i]);
        cm_number_set(number, &config, value);
        ck_assert_uint_eq(cm_number_get(number, &config), value);
    }
    snprintf(shown, sizeof shown, "%llu%s", (unsigned long long)number->most + 1,
             number->unit == CM_NUMBER_TIME ? "ms" : "");
    ck_assert_int_eq(cm_number_parse(number, shown, &value, text, sizeof text), -1);
    ck_assert_int_eq(cm_number_parse(number, "", &value, text, sizeof text), -1);
    ck_assert_int_eq(cm_number_parse(number, " 5", &value, text, sizeof text), -1);
}
END_TEST

START_TEST(flags)
{
    ck_assert_int_eq(cm_config_add_listen(&config, "unix:/a", text, sizeof text), 0);
    ck_assert_int_eq(cm_config_add_listen(&config, "tcp://127.0.0.1:0", text, sizeof text), 0);
    ck_assert(!config.listen[1].admin);
    ck_assert_int_eq(cm_config_add_listen(&config, "unix:/a", text, sizeof text), -1);
    ck_assert_ptr_nonnull(strstr(text, "listed twice"));
    ck_assert_int_eq(cm_config_add_listen(&config, "nonsense", text, sizeof text), -1);
    ck_assert_uint_eq(config.listen_count, 2);
    ck_assert_int_eq(cm_config_set_number(&config, "workers", "7", text, sizeof text), 0);
    ck_assert_uint_eq(config.workers, 7);
    ck_assert_int_eq(cm_config_set_number(&config, "workers", "x", text, sizeof text), -1);
    /* A file's listeners replace those before it. */
    ck_assert_int_eq(read_text("listen \"unix:/b\" {}\n"), 0);
    ck_assert_uint_eq(config.listen_count, 1);
    ck_assert_str_eq(config.listen[0].uri, "unix:/b");
}
END_TEST

static void add(TCase *test_case)
{
    tcase_add_checked_fixture(test_case, begin, end);
    tcase_add_test(test_case, defaults);
    tcase_add_test(test_case, everything_reads_and_prints);
    tcase_add_loop_test(test_case, refused_with_line, 0, sizeof bad / sizeof bad[0]);
    tcase_add_test(test_case, no_file);
    tcase_add_loop_test(test_case, values_that_do_not_go_together, 0, sizeof together / sizeof together[0]);
    tcase_add_loop_test(test_case, numbers_one_by_one, 0, (int)cm_number_count);
    tcase_add_test(test_case, flags);
}

int main(void)
{
    return run_suite("config", add);
}
