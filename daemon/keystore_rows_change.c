/* SPDX-License-Identifier: Apache-2.0 */
/* Making one change of the SQLite key store. */
#include "keystore_rows_internal.h"

#include "status.h"
#include <stdio.h>
#include <string.h>

/* --- Changing: each step gives 0, or -1 for a failure of the store; a refusal is a status of the change. ---
 */

static void refuse(struct cm_store_change *change, uint32_t status, const char *text)
{
    change->ret_status = status;
    snprintf(change->ret_text, sizeof change->ret_text, "key \"%s\": %s", change->key.name, text);
}

static int find_operation(sqlite3 *database, struct cm_store_change *change)
{
    if (!change->has_operation_id)
        return 0;
    sqlite3_stmt *statement = cm_rows_prepare(
        database, "SELECT what, key_name, result, text FROM operations WHERE operation_id = ?1");
    cm_rows_bind_blob(statement, 1, change->operation_id, sizeof change->operation_id);
    int rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW) {
        change->ret_repeated = true;
        const char *name = (const char *)sqlite3_column_text(statement, 1);
        const char *text = (const char *)sqlite3_column_text(statement, 3);
        change->ret_status = (uint32_t)sqlite3_column_int64(statement, 2);
        snprintf(change->ret_text, sizeof change->ret_text, "%s", text != NULL ? text : "");
        if (sqlite3_column_int64(statement, 0) != (sqlite3_int64)change->kind || name == NULL ||
            strcmp(name, change->key.name) != 0) {
            change->ret_status = CM_STATUS_BAD_REQUEST;
            snprintf(change->ret_text, sizeof change->ret_text,
                     "the operation id was used for another change");
        }
    }
    sqlite3_finalize(statement);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : -1;
}

static int remember_operation(sqlite3 *database, const struct cm_store_change *change)
{
    if (!change->has_operation_id)
        return 0;
    sqlite3_stmt *statement = cm_rows_prepare(
        database, "INSERT INTO operations(operation_id, what, key_name, result, text, time_unix_s)"
                  " VALUES(?1, ?2, ?3, ?4, ?5, ?6)");
    cm_rows_bind_blob(statement, 1, change->operation_id, sizeof change->operation_id);
    cm_rows_bind_number(statement, 2, (uint64_t)change->kind);
    cm_rows_bind_text(statement, 3, change->key.name);
    cm_rows_bind_number(statement, 4, change->ret_status);
    cm_rows_bind_text(statement, 5, change->ret_text);
    cm_rows_bind_number(statement, 6, change->now_unix_s);
    if (cm_rows_finish(statement) != 0)
        return -1;
    statement = cm_rows_prepare(database, "DELETE FROM operations WHERE time_unix_s < ?1 OR"
                                          " sequence <= (SELECT max(sequence) FROM operations) - ?2");
    sqlite3_bind_int64(statement, 1, (sqlite3_int64)change->now_unix_s - CM_ROWS_OPERATIONS_KEPT_S);
    cm_rows_bind_number(statement, 2, CM_ROWS_OPERATIONS_KEPT);
    return cm_rows_finish(statement);
}

/* 1: there is a row, 0: none, -1: failure. */
static int any_row(sqlite3_stmt *statement)
{
    int rc = sqlite3_step(statement);
    sqlite3_finalize(statement);
    return rc == SQLITE_ROW ? 1 : rc == SQLITE_DONE ? 0 : -1;
}

static int insert_version(sqlite3 *database, const struct cm_stored_key *key,
                          const struct cm_stored_version *version)
{
    sqlite3_stmt *statement = cm_rows_prepare(
        database, "INSERT INTO versions(key_id, number, state, created_unix_s, fingerprint, nonce, wrapped)"
                  " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)");
    cm_rows_bind_blob(statement, 1, key->id, sizeof key->id);
    cm_rows_bind_number(statement, 2, version->number);
    cm_rows_bind_number(statement, 3, version->state);
    cm_rows_bind_number(statement, 4, version->created_unix_s);
    cm_rows_bind_blob(statement, 5, version->fingerprint, sizeof version->fingerprint);
    cm_rows_bind_blob(statement, 6, version->nonce, sizeof version->nonce);
    cm_rows_bind_blob(statement, 7, version->wrapped, version->wrapped_length);
    return cm_rows_finish(statement);
}

static int create(sqlite3 *database, struct cm_store_change *change)
{
    const struct cm_stored_key *key = &change->key;
    sqlite3_stmt *statement = cm_rows_prepare(database, "SELECT 1 FROM keys WHERE name = ?1");
    cm_rows_bind_text(statement, 1, key->name);
    int found = any_row(statement);
    if (found > 0)
        refuse(change, CM_STATUS_EXISTS, "it exists, or existed and was destroyed: names are not used twice");
    for (uint32_t v = 0; v < key->version_count && found == 0; v++) {
        statement = cm_rows_prepare(database, "SELECT 1 FROM versions WHERE fingerprint = ?1");
        cm_rows_bind_blob(statement, 1, key->versions[v].fingerprint, CM_FINGERPRINT_BYTES);
        found = any_row(statement);
        if (found > 0)
            refuse(change, CM_STATUS_EXISTS, "a key with the same bytes exists already");
    }
    if (found != 0)
        return found > 0 ? 0 : -1;
    statement = cm_rows_prepare(
        database, "INSERT INTO keys(id, name, key_bits, modes, encrypt, decrypt, caller_iv, tag_length,"
                  " unsafe_mixed_modes, revision) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)");
    cm_rows_bind_blob(statement, 1, key->id, sizeof key->id);
    cm_rows_bind_text(statement, 2, key->name);
    cm_rows_bind_number(statement, 3, key->key_bits);
    cm_rows_bind_number(statement, 4, key->attributes.modes);
    cm_rows_bind_number(statement, 5, key->attributes.encrypt);
    cm_rows_bind_number(statement, 6, key->attributes.decrypt);
    cm_rows_bind_number(statement, 7, key->attributes.caller_iv);
    cm_rows_bind_number(statement, 8, key->attributes.tag_length);
    cm_rows_bind_number(statement, 9, key->unsafe_mixed_modes);
    cm_rows_bind_number(statement, 10, key->revision);
    if (cm_rows_finish(statement) != 0)
        return -1;
    for (uint32_t v = 0; v < key->version_count; v++)
        if (insert_version(database, key, &key->versions[v]) != 0)
            return -1;
    change->ret_changed = true;
    return 0;
}

static int overwrite_version(sqlite3 *database, const struct cm_stored_key *key,
                             const struct cm_stored_version *version)
{
    sqlite3_stmt *statement =
        cm_rows_prepare(database, "UPDATE versions SET state = ?3, fingerprint = NULL, nonce = ?4,"
                                  " wrapped = ?5 WHERE key_id = ?1 AND number = ?2");
    cm_rows_bind_blob(statement, 1, key->id, sizeof key->id);
    cm_rows_bind_number(statement, 2, version->number);
    cm_rows_bind_number(statement, 3, version->state);
    cm_rows_bind_blob(statement, 4, version->nonce, sizeof version->nonce);
    cm_rows_bind_blob(statement, 5, version->wrapped, version->wrapped_length);
    return cm_rows_finish(statement);
}

static int destroy(sqlite3 *database, struct cm_store_change *change)
{
    const struct cm_stored_key *key = &change->key;
    sqlite3_stmt *statement = cm_rows_prepare(
        database, "SELECT revision, (SELECT count(*) FROM versions WHERE key_id = id AND state <> ?2)"
                  " FROM keys WHERE name = ?1");
    cm_rows_bind_text(statement, 1, key->name);
    cm_rows_bind_number(statement, 2, CM_WIRE_KEY_DESTROYED);
    int rc = sqlite3_step(statement);
    uint64_t revision = rc == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(statement, 0) : 0;
    bool alive = rc == SQLITE_ROW && sqlite3_column_int64(statement, 1) > 0;
    sqlite3_finalize(statement);
    if (rc == SQLITE_DONE) {
        refuse(change, CM_STATUS_NO_SUCH_KEY, "there is no such key");
        return 0;
    }
    if (rc != SQLITE_ROW)
        return -1;
    if (!alive) {
        refuse(change, CM_STATUS_KEY_UNUSABLE, "it is destroyed already");
        return 0;
    }
    if (key->version_count == 0 || revision + 1 != key->revision) {
        refuse(change, CM_STATUS_OVERLOADED, "it was changed at the same time; repeat");
        return 0;
    }
    for (uint32_t v = 0; v < key->version_count; v++)
        if (overwrite_version(database, key, &key->versions[v]) != 0)
            return -1;
    statement = cm_rows_prepare(database, "UPDATE keys SET revision = ?2 WHERE name = ?1");
    cm_rows_bind_text(statement, 1, key->name);
    cm_rows_bind_number(statement, 2, key->revision);
    if (cm_rows_finish(statement) != 0)
        return -1;
    change->ret_changed = true;
    return 0;
}

/* Old pages in the log still hold what was destroyed: the log is folded in and cut to nothing. */
static int empty_log(sqlite3 *database)
{
    int log = -1, done = -1;
    int rc = sqlite3_wal_checkpoint_v2(database, NULL, SQLITE_CHECKPOINT_TRUNCATE, &log, &done);
    return rc == SQLITE_OK ? 0 : -1;
}

/* SQLite writes on into a file that was removed or replaced, where nobody would ever find it again. */
static bool is_in_place(sqlite3 *database)
{
    int moved = 0;
    return sqlite3_file_control(database, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved == 0;
}

static void fail_moved(struct cm_store_change *change)
{
    change->ret_status = CM_STATUS_STORE_FAILED;
    snprintf(change->ret_text, sizeof change->ret_text,
             "the key store's file was removed or replaced while the daemon ran: put it back and restart");
}

void cm_rows_change(sqlite3 *database, struct cm_store_change *change)
{
    static int (*const changes[])(sqlite3 *, struct cm_store_change *) = {
        [CM_STORE_CREATE] = create, [CM_STORE_DESTROY] = destroy};
    change->ret_status = CM_STATUS_OK;
    change->ret_text[0] = '\0';
    if (!is_in_place(database)) {
        fail_moved(change);
        return;
    }
    if (cm_rows_run(database, "BEGIN IMMEDIATE") != 0)
        goto failed;
    if (find_operation(database, change) != 0)
        goto failed;
    if (!change->ret_repeated &&
        (changes[change->kind](database, change) != 0 ||
         (change->ret_status != CM_STATUS_OVERLOADED && remember_operation(database, change) != 0)))
        goto failed;
    if (cm_rows_run(database, "COMMIT") != 0)
        goto failed;
    if (change->kind == CM_STORE_DESTROY && change->ret_status == CM_STATUS_OK && empty_log(database) != 0) {
        change->ret_status = CM_STATUS_STORE_FAILED;
        snprintf(change->ret_text, sizeof change->ret_text,
                 "the key is destroyed, but its wrapped bytes may still stand in the store's log: %s; repeat",
                 sqlite3_errmsg(database));
    }
    return;
failed:
    change->ret_status = CM_STATUS_STORE_FAILED;
    change->ret_changed = change->ret_repeated = false;
    snprintf(change->ret_text, sizeof change->ret_text, "the key store failed: %s", sqlite3_errmsg(database));
    (void)cm_rows_run(database, "ROLLBACK");
}
