/* SPDX-License-Identifier: Apache-2.0 */
/* The embedded key store: one SQLite file, and one thread that writes it. */
#include "keystore_rows.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct queued {
    struct queued *next;
    struct cm_store_change *change;
};

struct cm_keystore {
    char folder[PATH_MAX], path[PATH_MAX];
    int lock_fd;
    sqlite3 *database; /* the thread's, once started */
    pthread_t thread;
    bool started;

    pthread_mutex_t mutex; /* for the queue, below */
    pthread_cond_t wake;
    struct queued *first, **end;
    bool stop;
};

static int complain(struct cm_keystore *store, char *ret_text, size_t text_capacity, const char *cause,
                    const char *remedy)
{
    if (cause == NULL)
        cause = store->database != NULL ? sqlite3_errmsg(store->database) : strerror(errno);
    snprintf(ret_text, text_capacity, "key store %s: %s; %s", store->path, cause, remedy);
    return -1;
}

static void close_database(struct cm_keystore *store)
{
    sqlite3_close(store->database);
    store->database = NULL;
}

static int sqlite_open(struct cm_keystore **ret_store, const char *folder, char *ret_text,
                       size_t text_capacity)
{
    char lock[PATH_MAX];
    struct cm_keystore *store = calloc(1, sizeof *store);
    const char *cause;
    if (store == NULL) {
        snprintf(ret_text, text_capacity, "state folder %s: out of memory", folder);
        return -1;
    }
    store->lock_fd = -1;
    if (snprintf(store->folder, sizeof store->folder, "%s", folder) >= (int)sizeof store->folder ||
        snprintf(store->path, sizeof store->path, "%s/keys.db", folder) >= (int)sizeof store->path ||
        snprintf(lock, sizeof lock, "%s/keys.db.lock", folder) >= (int)sizeof lock) {
        cause = "its path is too long; choose a shorter one";
        goto failed;
    }
    store->lock_fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (store->lock_fd < 0) {
        snprintf(ret_text, text_capacity,
                 "state folder %s: cannot be written: %s; make it writable for the daemon's user", folder,
                 strerror(errno));
        free(store);
        return -1;
    }
    if (flock(store->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        cause = "another daemon uses it; stop that one or choose another folder";
        goto failed;
    }
    pthread_mutex_init(&store->mutex, NULL);
    pthread_cond_init(&store->wake, NULL);
    store->end = &store->first;
    *ret_store = store;
    return 0;
failed:
    snprintf(ret_text, text_capacity, "state folder %s: %s", folder, cause);
    if (store->lock_fd >= 0)
        close(store->lock_fd);
    free(store);
    return -1;
}

/* --- Reading: must leave every byte as it is, and make no file --- */

static void escape(const char *path, char *ret_uri)
{
    for (; *path != '\0'; path++)
        if (isalnum((unsigned char)*path) || strchr("/._-", *path) != NULL)
            *ret_uri++ = *path;
        else
            ret_uri += sprintf(ret_uri, "%%%02x", (unsigned)(unsigned char)*path);
    *ret_uri = '\0';
}

/* Without a log beside it the file is all there is, and SQLite may take it for immutable. With one (the
 * daemon was killed) the log belongs to the data: SQLite reads it, keeps its index in memory in exclusive
 * mode, and is told not to fold it in on closing. That mode takes a lock for which the file must be open for
 * writing. */
static int open_for_reading(struct cm_keystore *store)
{
    static const char careful[] = "PRAGMA locking_mode = EXCLUSIVE; PRAGMA query_only = ON";
    char uri[3 * PATH_MAX + 64], escaped[3 * PATH_MAX], log[PATH_MAX + 8];
    struct stat info;
    snprintf(log, sizeof log, "%s-wal", store->path);
    bool has_log = stat(log, &info) == 0 && info.st_size > 0;
    escape(store->path, escaped);
    snprintf(uri, sizeof uri, "file:%s?%s", escaped, has_log ? "mode=rw" : "mode=ro&immutable=1");
    int flags =
        (has_log ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(uri, &store->database, flags, NULL) != SQLITE_OK ||
        sqlite3_db_config(store->database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL) != SQLITE_OK)
        return -1;
    return !has_log || sqlite3_exec(store->database, careful, NULL, NULL, NULL) == SQLITE_OK ? 0 : -1;
}

static int sqlite_load(struct cm_keystore *store, cm_keystore_visit visit, void *context,
                       uint8_t ret_check[CM_MASTER_CHECK_BYTES], bool *ret_has_check, char *ret_text,
                       size_t text_capacity)
{
    struct stat info;
    *ret_has_check = false;
    if (stat(store->path, &info) != 0 && errno == ENOENT)
        return 0;
    int rc = -1, application_id = 0, version = 0, tables = 0;
    if (open_for_reading(store) != 0 || cm_rows_identify(store->database, &application_id, &version) != 0 ||
        cm_rows_count_tables(store->database, &tables) != 0) {
        complain(store, ret_text, text_capacity, NULL, "restore it from your backup");
    } else if (application_id != CM_ROWS_APPLICATION_ID &&
               (application_id != 0 || version != 0 || tables != 0)) {
        complain(store, ret_text, text_capacity, "is another program's database",
                 "name another state folder");
    } else if (version > CM_ROWS_SCHEMA_VERSION) {
        complain(store, ret_text, text_capacity, "was written by a newer daemon", "upgrade this one");
    } else {
        int result = cm_rows_load(store->database, visit, context, ret_check, ret_has_check);
        if (result == CM_ROWS_FAILED)
            complain(store, ret_text, text_capacity, NULL, "restore it from your backup");
        rc = result == CM_ROWS_OK ? 0 : -1;
    }
    close_database(store);
    return rc;
}

/* --- Writing --- */

static struct queued *take(struct cm_keystore *store)
{
    pthread_mutex_lock(&store->mutex);
    while (store->first == NULL && !store->stop)
        pthread_cond_wait(&store->wake, &store->mutex);
    struct queued *next = store->first;
    if (next != NULL) {
        store->first = next->next;
        if (store->first == NULL)
            store->end = &store->first;
    }
    pthread_mutex_unlock(&store->mutex);
    return next;
}

static void *write_changes(void *argument)
{
    struct cm_keystore *store = argument;
    struct queued *next;
    while ((next = take(store)) != NULL) {
        struct cm_store_change *change = next->change;
        free(next);
        cm_rows_change(store->database, change);
        change->done(change);
    }
    return NULL;
}

/* The file is there with its mode before SQLite sees it, which gives the same mode to the files beside it. */
static int make_file(const struct cm_keystore *store)
{
    int rc = -1;
    int fd = open(store->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int folder_fd = open(store->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && folder_fd >= 0 && fchmod(fd, 0600) == 0 && fsync(folder_fd) == 0)
        rc = 0;
    int saved = errno;
    if (folder_fd >= 0)
        close(folder_fd);
    if (fd >= 0)
        close(fd);
    errno = saved;
    return rc;
}

static int sqlite_start(struct cm_keystore *store, const uint8_t check[CM_MASTER_CHECK_BYTES], char *ret_text,
                        size_t text_capacity)
{
    /* secure_delete: what a change removes is overwritten in the file. FULL: a commit is on the disk when it
     * returns. */
    static const char pragmas[] =
        "PRAGMA secure_delete = ON; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
        "PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF";
    if (make_file(store) != 0)
        return complain(store, ret_text, text_capacity, NULL,
                        "make its folder writable for the daemon's user");
    if (sqlite3_open_v2(store->path, &store->database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
            SQLITE_OK ||
        sqlite3_busy_timeout(store->database, 5000) != SQLITE_OK ||
        sqlite3_exec(store->database, pragmas, NULL, NULL, NULL) != SQLITE_OK ||
        cm_rows_migrate(store->database) != 0 || cm_rows_put_check(store->database, check) != 0) {
        complain(store, ret_text, text_capacity, NULL,
                 "make its folder writable and see that its disk has room");
        close_database(store);
        return -1;
    }
    if (pthread_create(&store->thread, NULL, write_changes, store) != 0) {
        complain(store, ret_text, text_capacity, "its thread cannot be started", "check the system's limits");
        close_database(store);
        return -1;
    }
    store->started = true;
    return 0;
}

static void sqlite_submit(struct cm_keystore *store, struct cm_store_change *change)
{
    struct queued *queued = calloc(1, sizeof *queued);
    if (queued == NULL)
        abort(); /* a change that nobody would ever answer */
    queued->change = change;
    pthread_mutex_lock(&store->mutex);
    *store->end = queued;
    store->end = &queued->next;
    pthread_cond_signal(&store->wake);
    pthread_mutex_unlock(&store->mutex);
}

static void sqlite_close(struct cm_keystore *store)
{
    if (store == NULL)
        return;
    if (store->started) {
        pthread_mutex_lock(&store->mutex);
        store->stop = true;
        pthread_cond_signal(&store->wake);
        pthread_mutex_unlock(&store->mutex);
        pthread_join(store->thread, NULL);
    }
    close_database(store);
    pthread_cond_destroy(&store->wake);
    pthread_mutex_destroy(&store->mutex);
    close(store->lock_fd); /* the lock goes with it; its file stays, since removing it would race */
    free(store);
}

const struct cm_keystore_table cm_keystore_sqlite = {
    .name = "sqlite",
    .open = sqlite_open,
    .load = sqlite_load,
    .start = sqlite_start,
    .submit = sqlite_submit,
    .close = sqlite_close,
};
