/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite statements in few words, for the files that read and write the store's rows. */
#ifndef CM_KEYSTORE_ROWS_INTERNAL_H
#define CM_KEYSTORE_ROWS_INTERNAL_H

#include "keystore_rows.h"

/* Statements without results and parameters. 0 or -1. */
int cm_rows_run(sqlite3 *database, const char *sql);
/* NULL on failure, which every function below, and SQLite's own, takes for one. */
sqlite3_stmt *cm_rows_prepare(sqlite3 *database, const char *sql);
/* What is bound must live until the statement is done with. */
void cm_rows_bind_blob(sqlite3_stmt *statement, int at, const void *bytes, size_t length);
void cm_rows_bind_text(sqlite3_stmt *statement, int at, const char *text);
void cm_rows_bind_number(sqlite3_stmt *statement, int at, uint64_t number);
/* Steps a statement that gives no rows, and is done with it. 0 or -1. */
int cm_rows_finish(sqlite3_stmt *statement);

#endif
