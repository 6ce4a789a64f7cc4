/* SPDX-License-Identifier: Apache-2.0 */
/* The SQLite key store's tables: their schema, reading all rows, making a change. */
#ifndef CM_KEYSTORE_ROWS_H
#define CM_KEYSTORE_ROWS_H

#include "keystore.h"
#include <sqlite3.h>

enum {
    CM_ROWS_APPLICATION_ID = 0x434d4b53, /* "CMKS" */
    CM_ROWS_SCHEMA_VERSION = 1,
    CM_ROWS_OPERATIONS_KEPT = 10000,
    CM_ROWS_OPERATIONS_KEPT_S = 7 * 24 * 3600
};

/* Brings the tables from the version that the file has to the present one. 0 or -1. */
int cm_rows_migrate(sqlite3 *database);

/* The file's application id and schema version; 0 and 0 in a new one. 0 or -1. */
int cm_rows_identify(sqlite3 *database, int *ret_application_id, int *ret_version);
/* How many tables and indexes there are, whoever made them. 0 or -1. */
int cm_rows_count_tables(sqlite3 *database, int *ret_count);

enum cm_rows_result { CM_ROWS_OK = 0, CM_ROWS_FAILED = -1, CM_ROWS_STOPPED = -2 };

/* As the table's `load`. CM_ROWS_FAILED: see sqlite3_errmsg, or a row that no store would write.
 * CM_ROWS_STOPPED: `visit` did. *ret_has_check is false in a new file. */
int cm_rows_load(sqlite3 *database, cm_keystore_visit visit, void *context,
                 uint8_t ret_check[CM_MASTER_CHECK_BYTES], bool *ret_has_check);

int cm_rows_put_check(sqlite3 *database, const uint8_t check[CM_MASTER_CHECK_BYTES]); /* 0 or -1 */

/* Makes the change in one transaction and fills its results. */
void cm_rows_change(sqlite3 *database, struct cm_store_change *change);

#endif
