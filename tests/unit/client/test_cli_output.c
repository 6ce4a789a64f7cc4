/* SPDX-License-Identifier: Apache-2.0 */
/* A file appears complete or not at all: after success, failure and signals. */
#include "output.h"
#include "report.h"
#include "suite.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[32];
static char path[64];

static void setup(void)
{
    strcpy(folder, "/tmp/cm-output-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
}

/* Files in the folder. */
static int count(void)
{
    DIR *entries = opendir(folder);
    int files = 0;

    ck_assert_ptr_nonnull(entries);
    for (struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries))
        files += entry->d_type != DT_DIR;
    closedir(entries);
    return files;
}

static void teardown(void)
{
    char command[64];

    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static void put(const char *text)
{
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static void expect(const char *text)
{
    char found[64] = "";
    FILE *file = fopen(path, "r");

    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fread(found, 1, sizeof found - 1, file), strlen(text));
    fclose(file);
    ck_assert_str_eq(found, text);
}

START_TEST(test_appears_at_the_end)
{
    struct output output;
    struct stat status;

    umask(027);
    ck_assert_int_eq(output_open(&output, path), CODE_OK);
    ck_assert_int_eq(output_write(&output, "hello", 5), CODE_OK);
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_int_eq(output_commit(&output), CODE_OK);
    expect("hello");
    ck_assert_int_eq(count(), 1);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_uint_eq(status.st_mode & 07777, 0640);
    output_discard(&output); /* after a commit it does nothing */
    expect("hello");
}
END_TEST

START_TEST(test_failure_leaves_the_old_one)
{
    struct output output;

    put("old");
    ck_assert_int_eq(output_open(&output, path), CODE_OK);
    ck_assert_int_eq(output_write(&output, "new", 3), CODE_OK);
    expect("old");
    output_discard(&output);
    expect("old");
    ck_assert_int_eq(count(), 1);
}
END_TEST

START_TEST(test_a_private_file_stays_private)
{
    struct output output;
    struct stat status;

    umask(022);
    put("old");
    ck_assert_int_eq(chmod(path, 0600), 0);
    if (getuid() == 0)
        ck_assert_int_eq(chown(path, 12345, 23456), 0);
    ck_assert_int_eq(output_open(&output, path), CODE_OK);
    ck_assert_int_eq(output_write(&output, "new", 3), CODE_OK);
    ck_assert_int_eq(output_commit(&output), CODE_OK);
    expect("new");
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_uint_eq(status.st_mode & 07777, 0600);
    if (getuid() == 0) {
        ck_assert_uint_eq(status.st_uid, 12345);
        ck_assert_uint_eq(status.st_gid, 23456);
    }
}
END_TEST

START_TEST(test_full_disk_leaves_nothing)
{
    const struct rlimit limit = {4, 4};
    struct output output;

    ck_assert_int_eq(output_open(&output, path), CODE_OK);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_int_eq(output_write(&output, "too long", 8), CODE_FAILED);
    output_discard(&output);
    ck_assert_int_eq(count(), 0);
}
END_TEST

START_TEST(test_signal_leaves_nothing)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct rlimit no_core = {0, 0};
    int status = 0;
    pid_t child;

    put("old");
    setrlimit(RLIMIT_CORE, &no_core);
    child = fork();
    if (child == 0) {
        struct output output;

        if (output_open(&output, path) == CODE_OK && output_write(&output, "new", 3) == CODE_OK &&
            count() == 2)
            raise(signals[_i]);
        _exit(1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(WTERMSIG(status), signals[_i]);
    expect("old");
    ck_assert_int_eq(count(), 1);
}
END_TEST

START_TEST(test_ignored_signals_stay_ignored)
{
    struct output output;

    signal(SIGHUP, SIG_IGN);
    ck_assert_int_eq(output_open(&output, path), CODE_OK);
    ck_assert_int_eq(raise(SIGHUP), 0);
    ck_assert_int_eq(output_commit(&output), CODE_OK);
    expect("");
}
END_TEST

START_TEST(test_devices_are_written_straight)
{
    struct output output;

    ck_assert_int_eq(output_open(&output, "/dev/null"), CODE_OK);
    ck_assert_ptr_null(output.target);
    ck_assert_int_eq(output_write(&output, "x", 1), CODE_OK);
    ck_assert_int_eq(output_commit(&output), CODE_OK);
    ck_assert_int_eq(output_open(&output, "/dev/full"), CODE_OK);
    ck_assert_int_eq(output_write(&output, "x", 1), CODE_FAILED);
    output_discard(&output);
}
END_TEST

START_TEST(test_symbolic_link_stays)
{
    struct output output;
    struct stat status;
    char link[64];

    put("old");
    snprintf(link, sizeof link, "%s/link", folder);
    ck_assert_int_eq(symlink("file", link), 0);
    ck_assert_int_eq(output_open(&output, link), CODE_OK);
    ck_assert_int_eq(output_write(&output, "new", 3), CODE_OK);
    ck_assert_int_eq(output_commit(&output), CODE_OK);
    ck_assert_int_eq(lstat(link, &status), 0);
    ck_assert(S_ISLNK(status.st_mode));
    expect("new");
}
END_TEST

START_TEST(test_bad_places)
{
    struct output output;

    snprintf(path, sizeof path, "%s/absent/file", folder);
    ck_assert_int_eq(output_open(&output, path), CODE_FAILED);
    output_discard(&output);
    ck_assert_int_eq(output_open(&output, folder), CODE_FAILED);
    output_discard(&output);
}
END_TEST

static void add(TCase *test_case)
{
    tcase_add_checked_fixture(test_case, setup, teardown);
    tcase_add_test(test_case, test_appears_at_the_end);
    tcase_add_test(test_case, test_failure_leaves_the_old_one);
    tcase_add_test(test_case, test_a_private_file_stays_private);
    tcase_add_test(test_case, test_full_disk_leaves_nothing);
    tcase_add_loop_test(test_case, test_signal_leaves_nothing, 0, 4);
    tcase_add_test(test_case, test_ignored_signals_stay_ignored);
    tcase_add_test(test_case, test_devices_are_written_straight);
    tcase_add_test(test_case, test_symbolic_link_stays);
    tcase_add_test(test_case, test_bad_places);
}

int main(void)
{
    return run_suite("cli_output", add);
}
