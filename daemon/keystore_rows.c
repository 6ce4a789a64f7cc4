/* SPDX-License-Identifier: Apache-2.0 */
/* The SQLite key store's schema, and reading all of its rows. */
#include "keystore_rows_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VERSIONS_OF_A_KEY_MAX = 65536 };

/* Entry i leads from version i of the schema to version i + 1, and is never changed once it was released. */
static const char *const migrations[CM_ROWS_SCHEMA_VERSION] = {
    "CREATE TABLE meta("
    " id INTEGER PRIMARY KEY CHECK(id = 1),"
    " master_check BLOB NOT NULL"
    ") STRICT;"
    "CREATE TABLE keys("
    " id BLOB PRIMARY KEY,"
    " name TEXT NOT NULL UNIQUE,"
    " key_bits INTEGER NOT NULL,"
    " modes INTEGER NOT NULL,"
    " encrypt INTEGER NOT NULL,"
    " decrypt INTEGER NOT NULL,"
    " caller_iv INTEGER NOT NULL,"
    " tag_length INTEGER NOT NULL,"
    " unsafe_mixed_modes INTEGER NOT NULL,"
    " revision INTEGER NOT NULL"
    ") STRICT;"
    "CREATE TABLE versions("
    " key_id BLOB NOT NULL REFERENCES keys(id),"
    " number INTEGER NOT NULL,"
    " state INTEGER NOT NULL,"
    " created_unix_s INTEGER NOT NULL,"
    " fingerprint BLOB UNIQUE," /* NULL once it is destroyed */
    " nonce BLOB NOT NULL,"
    " wrapped BLOB NOT NULL,"
    " PRIMARY KEY(key_id, number)"
    ") STRICT;"
    "CREATE TABLE operations("
    " sequence INTEGER PRIMARY KEY,"
    " operation_id BLOB NOT NULL UNIQUE,"
    " what INTEGER NOT NULL,"
    " key_name TEXT NOT NULL,"
    " result INTEGER NOT NULL,"
    " text TEXT NOT NULL,"
    " time_unix_s INTEGER NOT NULL"
    ") STRICT;",
};

/* --- Statements --- */

int cm_rows_run(sqlite3 *database, const char *sql)
{
    return sqlite3_exec(database, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : -1;
}

sqlite3_stmt *cm_rows_prepare(sqlite3 *database, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK)
        return NULL;
    return statement;
}

/* Steps a statement that gives no rows, and is done with it. */
int cm_rows_finish(sqlite3_stmt *statement)
{
    int rc = sqlite3_step(statement);
    sqlite3_finalize(statement);
    return rc == SQLITE_DONE ? 0 : -1;
}

void cm_rows_bind_blob(sqlite3_stmt *statement, int at, const void *bytes, size_t length)
{
    sqlite3_bind_blob(statement, at, bytes, (int)length, SQLITE_STATIC);
}

void cm_rows_bind_text(sqlite3_stmt *statement, int at, const char *text)
{
    sqlite3_bind_text(statement, at, text, -1, SQLITE_STATIC);
}

void cm_rows_bind_number(sqlite3_stmt *statement, int at, uint64_t number)
{
    sqlite3_bind_int64(statement, at, (sqlite3_int64)number);
}

static int number_of(sqlite3 *database, const char *sql, int *ret_number)
{
    sqlite3_stmt *statement = cm_rows_prepare(database, sql);
    int rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW)
        *ret_number = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    return rc == SQLITE_ROW ? 0 : -1;
}

/* --- Schema --- */

int cm_rows_identify(sqlite3 *database, int *ret_application_id, int *ret_version)
{
    return number_of(database, "PRAGMA application_id", ret_application_id) == 0 &&
                   number_of(database, "PRAGMA user_version", ret_version) == 0
               ? 0
               : -1;
}

int cm_rows_count_tables(sqlite3 *database, int *ret_count)
{
    return number_of(database, "SELECT count(*) FROM sqlite_schema", ret_count);
}

int cm_rows_migrate(sqlite3 *database)
{
    int application_id = 0, version = 0;
    if (cm_rows_identify(database, &application_id, &version) != 0)
        return -1;
    for (; version < CM_ROWS_SCHEMA_VERSION; version++) {
        char sql[96];
        snprintf(sql, sizeof sql, "PRAGMA application_id = %d; PRAGMA user_version = %d",
                 CM_ROWS_APPLICATION_ID, version + 1);
        if (cm_rows_run(database, "BEGIN IMMEDIATE") != 0)
            return -1;
        if (cm_rows_run(database, migrations[version]) != 0 || cm_rows_run(database, sql) != 0 ||
            cm_rows_run(database, "COMMIT") != 0) {
            (void)cm_rows_run(database, "ROLLBACK");
            return -1;
        }
    }
    return 0;
}

int cm_rows_put_check(sqlite3 *database, const uint8_t check[CM_MASTER_CHECK_BYTES])
{
    sqlite3_stmt *statement = cm_rows_prepare(database, "INSERT INTO meta(id, master_check) VALUES(1, ?1)"
                                                        " ON CONFLICT(id) DO UPDATE SET master_check = ?1"
                                                        " WHERE master_check <> ?1");
    cm_rows_bind_blob(statement, 1, check, CM_MASTER_CHECK_BYTES);
    return cm_rows_finish(statement);
}

/* --- Loading --- */

/* A blob that is too long is cut, one that is too short zero-filled: it fails to authenticate then. */
static size_t take_blob(sqlite3_stmt *statement, int column, void *ret_bytes, size_t capacity)
{
    const void *bytes = sqlite3_column_blob(statement, column);
    size_t length = (size_t)sqlite3_column_bytes(statement, column);
    memset(ret_bytes, 0, capacity);
    if (length > 0 && bytes != NULL)
        memcpy(ret_bytes, bytes, length < capacity ? length : capacity);
    return length;
}

static int read_versions(sqlite3_stmt *statement, struct cm_stored_key *key)
{
    uint32_t capacity = 0;
    int rc;
    cm_rows_bind_blob(statement, 1, key->id, sizeof key->id);
    while ((rc = sqlite3_step(statement)) == SQLITE_ROW && key->version_count < VERSIONS_OF_A_KEY_MAX) {
        if (key->version_count == capacity) {
            capacity = capacity > 0 ? capacity * 2 : 4;
            struct cm_stored_version *versions = realloc(key->versions, capacity * sizeof *versions);
            if (versions == NULL)
                return -1;
            key->versions = versions;
        }
        struct cm_stored_version *version = &key->versions[key->version_count++];
        *version = (struct cm_stored_version){.number = (uint32_t)sqlite3_column_int64(statement, 0),
                                              .state = (uint32_t)sqlite3_column_int64(statement, 1),
                                              .created_unix_s = (uint64_t)sqlite3_column_int64(statement, 2)};
        take_blob(statement, 3, version->fingerprint, sizeof version->fingerprint);
        take_blob(statement, 4, version->nonce, sizeof version->nonce);
        version->wrapped_length = take_blob(statement, 5, version->wrapped, sizeof version->wrapped);
    }
    sqlite3_reset(statement);
    return rc == SQLITE_DONE ? 0 : -1;
}

static void read_key(sqlite3_stmt *statement, struct cm_stored_key *ret_key)
{
    const char *name = (const char *)sqlite3_column_text(statement, 1);
    *ret_key = (struct cm_stored_key){
        .key_bits = (uint32_t)sqlite3_column_int64(statement, 2),
        .attributes = {.modes = (uint32_t)sqlite3_column_int64(statement, 3),
                       .encrypt = sqlite3_column_int64(statement, 4) != 0,
                       .decrypt = sqlite3_column_int64(statement, 5) != 0,
                       .caller_iv = sqlite3_column_int64(statement, 6) != 0,
                       .tag_length = (uint32_t)sqlite3_column_int64(statement, 7)},
        .unsafe_mixed_modes = sqlite3_column_int64(statement, 8) != 0,
        .revision = (uint64_t)sqlite3_column_int64(statement, 9),
    };
    take_blob(statement, 0, ret_key->id, sizeof ret_key->id);
    snprintf(ret_key->name, sizeof ret_key->name, "%s", name != NULL ? name : "");
}

static int load_keys(sqlite3 *database, cm_keystore_visit visit, void *context)
{
    int result = CM_ROWS_FAILED, rc = SQLITE_ERROR;
    sqlite3_stmt *keys =
        cm_rows_prepare(database, "SELECT id, name, key_bits, modes, encrypt, decrypt, caller_iv, tag_length,"
                                  " unsafe_mixed_modes, revision FROM keys ORDER BY name");
    sqlite3_stmt *versions = cm_rows_prepare(
        database, "SELECT number, state, created_unix_s, fingerprint, nonce, wrapped FROM versions"
                  " WHERE key_id = ?1 ORDER BY number");
    if (keys == NULL || versions == NULL)
        goto out;
    while ((rc = sqlite3_step(keys)) == SQLITE_ROW) {
        struct cm_stored_key key;
        read_key(keys, &key);
        rc = read_versions(versions, &key);
        if (rc == 0 && visit(context, &key) != 0) {
            result = CM_ROWS_STOPPED;
            rc = -1;
        }
        free(key.versions);
        if (rc != 0)
            goto out;
    }
    if (rc == SQLITE_DONE)
        result = CM_ROWS_OK;
out:
    sqlite3_finalize(keys);
    sqlite3_finalize(versions);
    return result;
}

int cm_rows_load(sqlite3 *database, cm_keystore_visit visit, void *context,
                 uint8_t ret_check[CM_MASTER_CHECK_BYTES], bool *ret_has_check)
{
    int application_id, version;
    *ret_has_check = false;
    if (cm_rows_identify(database, &application_id, &version) != 0)
        return CM_ROWS_FAILED;
    if (version == 0)
        return CM_ROWS_OK;
    sqlite3_stmt *statement = cm_rows_prepare(database, "SELECT master_check FROM meta");
    if (statement == NULL)
        return CM_ROWS_FAILED;
    int rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW)
        *ret_has_check = take_blob(statement, 0, ret_check, CM_MASTER_CHECK_BYTES) == CM_MASTER_CHECK_BYTES;
    sqlite3_finalize(statement);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return CM_ROWS_FAILED;
    return load_keys(database, visit, context);
}
