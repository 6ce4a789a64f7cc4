/* SPDX-License-Identifier: Apache-2.0 */
/* The master key: its file, made once, refused when it is not as it has to be; wrapping and fingerprints. */
#include "cm_aes.h"
#include "service_fixture.h"
#include "status.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct fixture f;
static char path[128];
static char text[FIXTURE_TEXT_BYTES];

static void start(void)
{
    fixture_init(&f);
    snprintf(path, sizeof path, "%s/master.key", f.folder);
}

static void stop(void)
{
    fixture_done(&f);
}

static void write_file(size_t length, mode_t mode)
{
    uint8_t bytes[64];
    fill(bytes, sizeof bytes, 1);
    (void)unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, bytes, length), (ssize_t)length);
    ck_assert_int_eq(fchmod(fd, mode), 0);
    close(fd);
}

static int load(bool may_make, struct cm_master *ret_master, bool *ret_made)
{
    text[0] = '\0';
    return cm_master_load(ret_master, path, may_make, ret_made, text, sizeof text);
}

START_TEST(made_once_complete_and_closed)
{
    struct cm_master first, second;
    bool made = false;
    struct stat info;
    ck_assert_msg(load(true, &first, &made) == 0, "%s", text);
    ck_assert(made);
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_uint_eq(info.st_mode & 07777, 0600);
    ck_assert_int_eq(info.st_size, 32);
    ck_assert_int_eq(load(false, &second, &made), 0);
    ck_assert(!made);
    ck_assert_mem_eq(&first, &second, sizeof first);
    ck_assert_mem_ne(first.wrapping, first.fingerprint, 32);
    ck_assert_mem_ne(first.wrapping, first.check, 32);
    char temporary[160];
    snprintf(temporary, sizeof temporary, "%s.new", path);
    ck_assert_int_ne(access(temporary, F_OK), 0);
    cm_master_done(&first);
    for (size_t i = 0; i < sizeof first; i++)
        ck_assert_uint_eq(((const uint8_t *)&first)[i], 0);
}
END_TEST

START_TEST(a_start_cut_short_is_taken_up)
{
    struct cm_master master;
    bool made = false;
    char temporary[160];
    snprintf(temporary, sizeof temporary, "%s.new", path);
    FILE *file = fopen(temporary, "wb");
    fputs("half", file);
    fclose(file);
    ck_assert_msg(load(true, &master, &made) == 0, "%s", text);
    ck_assert(made);
}
END_TEST

START_TEST(modes)
{
    static const struct {
        mode_t mode;
        bool good;
    } cases[] = {{0600, true},  {0400, true},  {0644, false}, {0640, false}, {0604, false},
                 {0660, false}, {0700, false}, {0200, false}, {0000, false}, {04600, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cm_master master;
        bool made = false;
        char mode[8];
        write_file(32, cases[i].mode);
        ck_assert_int_eq(load(true, &master, &made), cases[i].good ? 0 : -1);
        ck_assert(!made);
        if (cases[i].good)
            continue;
        if (cases[i].mode & 0400 || geteuid() == 0) { /* else it is not even opened */
            snprintf(mode, sizeof mode, "%04o", (unsigned)cases[i].mode);
            ck_assert_msg(strstr(text, mode) != NULL, "%s", text);
            ck_assert_ptr_nonnull(strstr(text, "chmod 600"));
        }
        ck_assert_ptr_nonnull(strstr(text, path));
    }
}
END_TEST

START_TEST(sizes_owners_and_kinds)
{
    struct cm_master master;
    bool made = false;
    for (size_t length = 31; length <= 33; length++) {
        write_file(length, 0600);
        ck_assert_int_eq(load(true, &master, &made), length == 32 ? 0 : -1);
        ck_assert(length == 32 || strstr(text, path) != NULL);
    }
    if (geteuid() == 0) {
        write_file(32, 0600);
        ck_assert_int_eq(chown(path, 12345, 12345), 0);
        ck_assert_int_eq(load(true, &master, &made), -1);
        ck_assert_msg(strstr(text, "12345") != NULL && strstr(text, "chown") != NULL, "%s", text);
    }
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkdir(path, 0600), 0);
    ck_assert_int_eq(load(true, &master, &made), -1);
    ck_assert_int_eq(rmdir(path), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(load(true, &master, &made), -1);
    ck_assert_ptr_nonnull(strstr(text, path));
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(load(false, &master, &made), -1);
    ck_assert_ptr_nonnull(strstr(text, "missing"));
    ck_assert_ptr_nonnull(strstr(text, "0600"));
    snprintf(path, sizeof path, "%s/no/folder/master.key", f.folder);
    ck_assert_int_eq(load(true, &master, &made), -1);
    ck_assert_ptr_nonnull(strstr(text, path));
    ck_assert(!made);
}
END_TEST

START_TEST(wrapping_binds_the_row)
{
    struct cm_master master;
    bool made;
    uint8_t bytes[64], back[64];
    size_t length = 0;
    ck_assert_int_eq(load(true, &master, &made), 0);
    fill(bytes, sizeof bytes, 2);
    struct cm_stored_version version = {.number = 1, .state = CM_WIRE_KEY_ENABLED, .created_unix_s = 77};
    struct cm_stored_key key = {.name = "orders", .key_bits = 256, .version_count = 1, .versions = &version};
    ck_assert_int_eq(cm_master_fingerprint(&master, bytes, 32, version.fingerprint), 0);
    ck_assert_int_eq(cm_master_wrap(&master, &key, &version, bytes, 32), 0);
    ck_assert_uint_eq(version.wrapped_length, 48);
    ck_assert_mem_ne(version.wrapped, bytes, 32);
    ck_assert_int_eq(cm_master_unwrap(&master, &key, &version, back, &length), 0);
    ck_assert_uint_eq(length, 32);
    ck_assert_mem_eq(back, bytes, 32);

    struct cm_stored_version again = version;
    ck_assert_int_eq(cm_master_wrap(&master, &key, &again, bytes, 32), 0);
    ck_assert_mem_ne(again.nonce, version.nonce, sizeof again.nonce);

    /* Every bit of the wrapping counts. */
    for (size_t bit = 0; bit < 48 * 8; bit++) {
        again = version;
        again.wrapped[bit / 8] ^= (uint8_t)(1 << bit % 8);
        ck_assert_int_eq(cm_master_unwrap(&master, &key, &again, back, &length), -1);
    }
    struct cm_stored_key changed = key;
    strcpy(changed.name, "orders2");
    ck_assert_int_eq(cm_master_unwrap(&master, &changed, &version, back, &length), -1);
    changed = key;
    changed.attributes.caller_iv = true;
    ck_assert_int_eq(cm_master_unwrap(&master, &changed, &version, back, &length), -1);
    struct cm_master other = master;
    other.wrapping[0] ^= 1;
    ck_assert_int_eq(cm_master_unwrap(&other, &key, &version, back, &length), -1);

    /* The longest key there is. */
    again = version;
    ck_assert_int_eq(cm_master_wrap(&master, &key, &again, bytes, 64), 0);
    ck_assert_uint_eq(again.wrapped_length, CM_WRAPPED_MAX_BYTES);
    ck_assert_int_eq(cm_master_unwrap(&master, &key, &again, back, &length), 0);
    ck_assert_uint_eq(length, 64);
    ck_assert_mem_eq(back, bytes, 64);
    again.wrapped_length++;
    ck_assert_int_eq(cm_master_unwrap(&master, &key, &again, back, &length), -1);

    /* A destroyed version is vouched for as well. */
    struct cm_stored_version stone = {.number = 1, .state = CM_WIRE_KEY_DESTROYED, .created_unix_s = 77};
    ck_assert_int_eq(cm_master_wrap(&master, &key, &stone, NULL, 0), 0);
    ck_assert_uint_eq(stone.wrapped_length, 16);
    ck_assert_int_eq(cm_master_unwrap(&master, &key, &stone, back, &length), 0);
    ck_assert_uint_eq(length, 0);
    stone.state = CM_WIRE_KEY_ENABLED;
    ck_assert_int_eq(cm_master_unwrap(&master, &key, &stone, back, &length), -1);
}
END_TEST

START_TEST(fingerprints_know_bytes_and_master)
{
    struct cm_master master, other;
    bool made;
    uint8_t bytes[32] = {0}, a[32], b[32];
    ck_assert_int_eq(load(true, &master, &made), 0);
    ck_assert_int_eq(cm_master_fingerprint(&master, bytes, 32, a), 0);
    ck_assert_int_eq(cm_master_fingerprint(&master, bytes, 32, b), 0);
    ck_assert_mem_eq(a, b, 32);
    ck_assert_int_eq(cm_master_fingerprint(&master, bytes, 16, b), 0);
    ck_assert_mem_ne(a, b, 32);
    write_file(32, 0600);
    ck_assert_int_eq(load(false, &other, &made), 0);
    ck_assert_int_eq(cm_master_fingerprint(&other, bytes, 32, b), 0);
    ck_assert_mem_ne(a, b, 32);
}
END_TEST

START_TEST(a_service_makes_one_over_an_empty_store_only)
{
    ck_assert_msg(fixture_start(&f) == 0, "%s", f.text);
    ck_assert_msg(strstr(f.log, "back this up") != NULL, "%s", f.log);
    fixture_stop(&f);
    f.log[0] = '\0';
    ck_assert_int_eq(unlink(path), 0); /* nothing was wrapped yet, so a new one may come */
    ck_assert_msg(fixture_start(&f) == 0, "%s", f.text);
    ck_assert_ptr_nonnull(strstr(f.log, "back this up"));
    struct cm_peer_state *root = fixture_peer(&f, &fixture_root);
    ck_assert_uint_eq(fixture_import(&f, root, "k", 0, NULL, 256, 1).status, CM_STATUS_OK);
    ck_assert_uint_eq(fixture_named(&f, root, CM_CALL_DESTROY_KEY, "k", 2).status, CM_STATUS_OK);
    cm_service_peer_free(root);
    fixture_stop(&f);
    ck_assert_int_eq(unlink(path), 0); /* a destroyed key is still vouched for under it */
    ck_assert_int_lt(fixture_start(&f), 0);
    ck_assert_ptr_nonnull(strstr(f.text, "missing"));
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

START_TEST(a_file_of_another_name)
{
    char elsewhere[160];
    snprintf(elsewhere, sizeof elsewhere, "%s/other", f.folder);
    f.options.master_key_file = elsewhere;
    ck_assert_msg(fixture_start(&f) == 0, "%s", f.text);
    ck_assert_int_eq(access(elsewhere, F_OK), 0);
    ck_assert_int_ne(access(path, F_OK), 0);
    fixture_stop(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("master");
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, start, stop);
    tcase_set_timeout(all, 120);
    tcase_add_test(all, made_once_complete_and_closed);
    tcase_add_test(all, a_start_cut_short_is_taken_up);
    tcase_add_test(all, modes);
    tcase_add_test(all, sizes_owners_and_kinds);
    tcase_add_test(all, wrapping_binds_the_row);
    tcase_add_test(all, fingerprints_know_bytes_and_master);
    tcase_add_test(all, a_service_makes_one_over_an_empty_store_only);
    tcase_add_test(all, a_file_of_another_name);
    suite_add_tcase(suite, all);
    return fixture_main(suite);
}
