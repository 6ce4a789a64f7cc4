/* SPDX-License-Identifier: Apache-2.0 */
/* The store on disk: what was changed behind the daemon's back is refused, what is destroyed is gone from the
 * bytes, a start that is refused writes nothing, and a failing disk is a status. */
#include "keystore_rows.h"
#include "service_fixture.h"
#include "status.h"
#include <dirent.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static struct fixture f;
static struct cm_peer_state *root;
static uint8_t key[32];

static void greet(void)
{
    ck_assert_msg(fixture_start(&f) == 0, "%s", f.text);
    root = fixture_peer(&f, &fixture_root);
}

static void leave(void)
{
    cm_service_peer_free(root);
    fixture_stop(&f);
}

static void start(void)
{
    fixture_init(&f);
    fill(key, sizeof key, 55);
    greet();
    ck_assert_uint_eq(fixture_import(&f, root, "orders", BLOCK_MODES, key, 256, 1).status, CM_STATUS_OK);
}

static void stop(void)
{
    fixture_done(&f);
}

/* The file's bytes; NULL if it is not there. */
static uint8_t *slurp(const char *name, size_t *ret_length)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", f.folder, name);
    FILE *file = fopen(path, "rb");
    *ret_length = 0;
    if (file == NULL)
        return NULL;
    uint8_t *bytes = malloc(1 << 20);
    *ret_length = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    return bytes;
}

/* A digest of the folder: every name with its bytes. */
static void digest(uint8_t ret_digest[32])
{
    struct dirent **names;
    int count = scandir(f.folder, &names, NULL, alphasort);
    ck_assert_int_gt(count, 0);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    EVP_DigestInit_ex(context, EVP_sha256(), NULL);
    for (int i = 0; i < count; i++) {
        size_t length = 0;
        uint8_t *bytes = names[i]->d_name[0] != '.' ? slurp(names[i]->d_name, &length) : NULL;
        EVP_DigestUpdate(context, names[i]->d_name, strlen(names[i]->d_name) + 1);
        EVP_DigestUpdate(context, bytes, length);
        free(bytes);
        free(names[i]);
    }
    free(names);
    EVP_DigestFinal_ex(context, ret_digest, NULL);
    EVP_MD_CTX_free(context);
}

static void refused_and_unchanged(const char *says)
{
    uint8_t before[32], after[32];
    digest(before);
    ck_assert_int_lt(fixture_start(&f), 0);
    ck_assert_msg(strstr(f.text, says) != NULL, "%s", f.text);
    digest(after);
    ck_assert_mem_eq(before, after, 32);
}

static void tamper(const char *sql)
{
    char path[512];
    sqlite3 *database;
    char *error = NULL;
    snprintf(path, sizeof path, "%s/keys.db", f.folder);
    ck_assert_int_eq(sqlite3_open(path, &database), SQLITE_OK);
    sqlite3_exec(database, sql, NULL, NULL, &error);
    ck_assert_msg(error == NULL, "%s", error);
    ck_assert_int_gt(sqlite3_total_changes(database), 0);
    sqlite3_close(database);
}

static const char *const tamperings[] = {
    "UPDATE keys SET modes = 16",
    "UPDATE keys SET encrypt = 0",
    "UPDATE keys SET decrypt = 0",
    "UPDATE keys SET caller_iv = 0",
    "UPDATE keys SET tag_length = 4",
    "UPDATE keys SET unsafe_mixed_modes = 1",
    "UPDATE keys SET key_bits = 128",
    "UPDATE versions SET number = 2",
    "UPDATE versions SET state = 2",
    "UPDATE versions SET created_unix_s = 5",
    "UPDATE versions SET nonce = zeroblob(12)",
    "UPDATE versions SET wrapped = zeroblob(48)",
    "UPDATE versions SET wrapped = substr(wrapped, 1, 47)",
    "UPDATE versions SET wrapped = CAST(wrapped || x'00' AS BLOB)",
    "UPDATE versions SET wrapped = x''",
    "UPDATE versions SET fingerprint = zeroblob(32)",
    "UPDATE versions SET fingerprint = NULL",
    "UPDATE keys SET id = zeroblob(16); UPDATE versions SET key_id = zeroblob(16)",
    "DELETE FROM versions",
};

START_TEST(a_changed_row_is_refused)
{
    leave();
    tamper(tamperings[_i]);
    refused_and_unchanged("\"orders\"");
}
END_TEST

START_TEST(changed_names_are_refused)
{
    leave();
    tamper("UPDATE keys SET name = 'bills'");
    refused_and_unchanged("\"bills\"");
    tamper("UPDATE keys SET name = 'or\x1b[31mders'");
    refused_and_unchanged("invalid name");
}
END_TEST

START_TEST(swapped_rows_are_refused)
{
    ck_assert_uint_eq(fixture_import(&f, root, "aaa", BLOCK_MODES, NULL, 256, 2).status, CM_STATUS_OK);
    leave();
    tamper(
        "UPDATE keys SET name = 'x' WHERE name = 'aaa'; UPDATE keys SET name = 'aaa' WHERE name = 'orders';"
        "UPDATE keys SET name = 'orders' WHERE name = 'x'");
    refused_and_unchanged("\"aaa\"");
}
END_TEST

START_TEST(a_tombstone_cannot_be_raised)
{
    ck_assert_uint_eq(fixture_named(&f, root, CM_CALL_DESTROY_KEY, "orders", 2).status, CM_STATUS_OK);
    leave();
    tamper("UPDATE versions SET state = 1");
    refused_and_unchanged("\"orders\"");
}
END_TEST

START_TEST(foreign_and_newer_files_are_refused)
{
    leave();
    char path[512];
    sqlite3 *database;
    snprintf(path, sizeof path, "%s/keys.db", f.folder);
    ck_assert_int_eq(sqlite3_open(path, &database), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(database, "PRAGMA user_version = 2", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
    refused_and_unchanged("newer");
    ck_assert_int_eq(sqlite3_open(path, &database), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(database, "PRAGMA application_id = 7", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
    refused_and_unchanged("another program");
    ck_assert_int_eq(sqlite3_open(path, &database), SQLITE_OK);
    ck_assert_int_eq(
        sqlite3_exec(database, "PRAGMA application_id = 0; PRAGMA user_version = 0", NULL, NULL, NULL),
        SQLITE_OK);
    sqlite3_close(database);
    refused_and_unchanged("another program"); /* its tables tell */
    FILE *file = fopen(path, "wb");
    fputs("this is no database, whatever its name says, and it is long enough to be looked at", file);
    fclose(file);
    refused_and_unchanged(path);
}
END_TEST

START_TEST(a_second_daemon_is_refused)
{
    struct cm_service *second;
    const struct cm_service_host host = {0};
    char text[FIXTURE_TEXT_BYTES];
    ck_assert_int_lt(cm_service_new(&second, &f.options, &host, text, sizeof text), 0);
    ck_assert_ptr_nonnull(strstr(text, f.folder));
    ck_assert_ptr_nonnull(strstr(text, "another daemon"));
    ck_assert_uint_eq(fixture_named(&f, root, CM_CALL_DESCRIBE_KEY, "orders", 0).status, CM_STATUS_OK);
    leave();
}
END_TEST

START_TEST(the_file_is_private_and_holds_no_key)
{
    struct stat info;
    char path[512];
    static const char *const names[] = {"keys.db", "keys.db-wal", "keys.db-shm", "master.key"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t length;
        snprintf(path, sizeof path, "%s/%s", f.folder, names[i]);
        ck_assert_int_eq(stat(path, &info), 0);
        ck_assert_uint_eq(info.st_mode & 07777, 0600);
        uint8_t *bytes = slurp(names[i], &length);
        ck_assert_ptr_null(memmem(bytes, length, key, 16));
        free(bytes);
    }
    leave();
    int application_id, version;
    sqlite3 *database;
    snprintf(path, sizeof path, "%s/keys.db", f.folder);
    ck_assert_int_eq(sqlite3_open(path, &database), SQLITE_OK);
    ck_assert_int_eq(cm_rows_identify(database, &application_id, &version), 0);
    ck_assert_int_eq(application_id, CM_ROWS_APPLICATION_ID);
    ck_assert_int_eq(version, 1);
    sqlite3_close(database);
}
END_TEST

static bool on_disk(const uint8_t *bytes, size_t length)
{
    static const char *const names[] = {"keys.db", "keys.db-wal"};
    bool found = false;
    for (size_t i = 0; i < 2; i++) {
        size_t size;
        uint8_t *file = slurp(names[i], &size);
        found = found || (file != NULL && memmem(file, size, bytes, length) != NULL);
        free(file);
    }
    return found;
}

START_TEST(wrapped_bytes_of_a_destroyed_key_are_gone)
{
    /* What the store holds of it, as another reader sees it. */
    char path[512];
    uint8_t wrapped[48], fingerprint[32];
    sqlite3 *database;
    sqlite3_stmt *statement;
    snprintf(path, sizeof path, "%s/keys.db", f.folder);
    ck_assert_int_eq(sqlite3_open(path, &database), SQLITE_OK);
    ck_assert_int_eq(
        sqlite3_prepare_v2(database, "SELECT wrapped, fingerprint FROM versions", -1, &statement, NULL),
        SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(statement), SQLITE_ROW);
    ck_assert_int_eq(sqlite3_column_bytes(statement, 0), 48);
    memcpy(wrapped, sqlite3_column_blob(statement, 0), 48);
    memcpy(fingerprint, sqlite3_column_blob(statement, 1), 32);
    sqlite3_finalize(statement);
    sqlite3_close(database);
    ck_assert(on_disk(wrapped, 32));
    ck_assert(on_disk(fingerprint, 32));
    ck_assert_uint_eq(fixture_named(&f, root, CM_CALL_DESTROY_KEY, "orders", 2).status, CM_STATUS_OK);
    ck_assert(!on_disk(wrapped, 16));
    ck_assert(!on_disk(fingerprint, 16));
    leave();
    ck_assert(!on_disk(wrapped, 16));
}
END_TEST

/* A killed daemon leaves its log; the check before a start reads it without folding it in. */
START_TEST(a_log_that_was_left_counts)
{
    char command[512];
    snprintf(command, sizeof command,
             "cp -r '%s' '%s.copy' && rm -f '%s.copy/keys.db-shm' && test -s '%s.copy/keys.db-wal'", f.folder,
             f.folder, f.folder, f.folder);
    ck_assert_int_eq(system(command), 0); /* as a crash at this moment would leave it */
    leave();
    snprintf(command, sizeof command, "rm -rf '%s' && mv '%s.copy' '%s'", f.folder, f.folder, f.folder);
    ck_assert_int_eq(system(command), 0);

    char path[512], away[512];
    snprintf(path, sizeof path, "%s/master.key", f.folder);
    snprintf(away, sizeof away, "%s/away", f.folder);
    ck_assert_int_eq(rename(path, away), 0);
    refused_and_unchanged("missing");
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    ck_assert_int_eq(write(fd, key, 32), 32);
    close(fd);
    refused_and_unchanged("is not the one");
    ck_assert_int_eq(rename(away, path), 0);
    greet();
    ck_assert_uint_eq(fixture_named(&f, root, CM_CALL_DESCRIBE_KEY, "orders", 0).status, CM_STATUS_OK);
    leave();
}
END_TEST

/* No file may grow any further, as on a full disk. */
static void disk_full(bool full)
{
    struct rlimit limit;
    static rlim_t before;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    signal(SIGXFSZ, SIG_IGN);
    if (full)
        before = limit.rlim_cur;
    limit.rlim_cur = full ? 0 : before;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

START_TEST(a_full_disk_is_a_status)
{
    disk_full(true);
    struct answered created = fixture_import(&f, root, "new", 0, NULL, 256, 7);
    struct answered destroyed = fixture_named(&f, root, CM_CALL_DESTROY_KEY, "orders", 8);
    struct answered described = fixture_named(&f, root, CM_CALL_DESCRIBE_KEY, "orders", 0);
    disk_full(false);
    ck_assert_uint_eq(created.status, CM_STATUS_STORE_FAILED);
    ck_assert_uint_eq(destroyed.status, CM_STATUS_STORE_FAILED);
    ck_assert_uint_eq(described.status, CM_STATUS_OK); /* nothing of it took place */
    ck_assert_uint_eq(fixture_named(&f, root, CM_CALL_LIST_KEYS, "", 0).key_count, 1);
    /* The same again, with room. */
    ck_assert_uint_eq(fixture_import(&f, root, "new", 0, NULL, 256, 7).status, CM_STATUS_OK);
    ck_assert_uint_eq(fixture_named(&f, root, CM_CALL_DESTROY_KEY, "orders", 8).status, CM_STATUS_OK);
    leave();
    greet();
    struct answered list = fixture_named(&f, root, CM_CALL_LIST_KEYS, "", 0);
    ck_assert_uint_eq(list.key_count, 1);
    ck_assert_str_eq(list.keys[0].name, "new");
    leave();
}
END_TEST

START_TEST(a_folder_that_cannot_be_is_named)
{
    leave();
    char path[512];
    snprintf(path, sizeof path, "%s/keys.db/state", f.folder);
    f.options.state_folder = path;
    ck_assert_int_lt(fixture_start(&f), 0);
    ck_assert_ptr_nonnull(strstr(f.text, path));
    snprintf(path, sizeof path, "%s/no/such/state", f.folder);
    ck_assert_int_lt(fixture_start(&f), 0);
    ck_assert_ptr_nonnull(strstr(f.text, path));
    snprintf(path, sizeof path, "%s/odd ?name#%%41", f.folder);
    greet(); /* made, whatever its name means in a URI */
    ck_assert_uint_eq(fixture_import(&f, root, "orders", 0, NULL, 256, 1).status, CM_STATUS_OK);
    leave();
    greet();
    ck_assert_uint_eq(fixture_named(&f, root, CM_CALL_DESCRIBE_KEY, "orders", 0).status, CM_STATUS_OK);
    leave();
    f.options.state_folder = f.folder;
}
END_TEST

/* What would be written into a file that nobody finds again is not acknowledged. */
START_TEST(a_file_that_was_taken_away_is_a_failure)
{
    char path[512], aside[520];
    uint8_t other[32];
    fill(other, sizeof other, 56);
    snprintf(path, sizeof path, "%s/keys.db", f.folder);
    snprintf(aside, sizeof aside, "%s.aside", path);
    ck_assert_int_eq(rename(path, aside), 0);
    ck_assert_uint_eq(fixture_import(&f, root, "lost", BLOCK_MODES, other, 256, 2).status,
                      CM_STATUS_STORE_FAILED);
    fclose(fopen(path, "wb")); /* another file does not do either */
    ck_assert_uint_eq(fixture_import(&f, root, "lost", BLOCK_MODES, other, 256, 3).status,
                      CM_STATUS_STORE_FAILED);
    ck_assert_int_eq(rename(aside, path), 0);
    ck_assert_uint_eq(fixture_import(&f, root, "kept", BLOCK_MODES, other, 256, 4).status, CM_STATUS_OK);
    leave();
}
END_TEST

/* Who could put another store or master key there could choose the keys. */
START_TEST(a_folder_that_others_may_change_is_refused)
{
    leave();
    ck_assert_int_eq(chmod(f.folder, 0770), 0);
    refused_and_unchanged("0770");
    ck_assert_int_eq(chmod(f.folder, 0702), 0);
    refused_and_unchanged("chmod go-w");
    ck_assert_int_eq(chmod(f.folder, 0700), 0);
    if (geteuid() == 0) { /* only root can give it away */
        ck_assert_int_eq(chown(f.folder, 1234, (gid_t)-1), 0);
        refused_and_unchanged("uid 1234");
        ck_assert_int_eq(chown(f.folder, 0, (gid_t)-1), 0);
    }
    greet();
    leave();
}
END_TEST

START_TEST(old_operations_are_forgotten)
{
    leave();
    tamper("UPDATE operations SET time_unix_s = time_unix_s - 8 * 24 * 3600");
    greet();
    ck_assert_uint_eq(fixture_import(&f, root, "orders", BLOCK_MODES, NULL, 256, 1).status, CM_STATUS_OK);
    ck_assert_uint_eq(fixture_import(&f, root, "new", 0, NULL, 256, 2).status, CM_STATUS_OK); /* prunes */
    ck_assert_uint_eq(fixture_import(&f, root, "orders", BLOCK_MODES, NULL, 256, 1).status, CM_STATUS_EXISTS);
    leave();
    tamper("UPDATE operations SET sequence = sequence + 20000 WHERE operation_id = "
           "x'02020202020202020202020202020202'");
    greet();
    ck_assert_uint_eq(fixture_import(&f, root, "more", 0, NULL, 256, 3).status, CM_STATUS_OK); /* prunes */
    leave();
    char path[512];
    sqlite3 *database;
    sqlite3_stmt *statement;
    snprintf(path, sizeof path, "%s/keys.db", f.folder);
    ck_assert_int_eq(sqlite3_open(path, &database), SQLITE_OK);
    sqlite3_prepare_v2(database, "SELECT count(*) FROM operations", -1, &statement, NULL);
    ck_assert_int_eq(sqlite3_step(statement), SQLITE_ROW);
    ck_assert_int_eq(sqlite3_column_int(statement, 0), 2);
    sqlite3_finalize(statement);
    sqlite3_close(database);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("keystore");
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, start, stop);
    tcase_set_timeout(all, 240);
    tcase_add_loop_test(all, a_changed_row_is_refused, 0, sizeof tamperings / sizeof tamperings[0]);
    tcase_add_test(all, changed_names_are_refused);
    tcase_add_test(all, swapped_rows_are_refused);
    tcase_add_test(all, a_tombstone_cannot_be_raised);
    tcase_add_test(all, foreign_and_newer_files_are_refused);
    tcase_add_test(all, a_second_daemon_is_refused);
    tcase_add_test(all, the_file_is_private_and_holds_no_key);
    tcase_add_test(all, wrapped_bytes_of_a_destroyed_key_are_gone);
    tcase_add_test(all, a_log_that_was_left_counts);
    tcase_add_test(all, a_full_disk_is_a_status);
    tcase_add_test(all, a_folder_that_cannot_be_is_named);
    tcase_add_test(all, a_file_that_was_taken_away_is_a_failure);
    tcase_add_test(all, a_folder_that_others_may_change_is_refused);
    tcase_add_test(all, old_operations_are_forgotten);
    suite_add_tcase(suite, all);
    return fixture_main(suite);
}
