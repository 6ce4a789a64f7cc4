/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a file beside its target, then renames it. */
#include "output.h"
#include "report.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static const int deadly[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
enum { DEADLY_COUNT = sizeof deadly / sizeof deadly[0] };

/* What the handler removes; empty when there is nothing. Changed only while the signals are blocked. */
static char unfinished[PATH_MAX];

static void on_deadly(int number)
{
    if (unfinished[0] != '\0')
        unlink(unfinished);
    /* SA_RESETHAND has put the default back: the caller sees that a signal ended this. */
    raise(number);
}

static void block_deadly(sigset_t *before)
{
    sigset_t set;

    sigemptyset(&set);
    for (int i = 0; i < DEADLY_COUNT; i++)
        sigaddset(&set, deadly[i]);
    sigprocmask(SIG_BLOCK, &set, before);
}

static void handle_deadly(void)
{
    struct sigaction action = {.sa_handler = on_deadly, .sa_flags = (int)SA_RESETHAND};
    struct sigaction old;

    for (int i = 0; i < DEADLY_COUNT; i++) {
        if (sigaction(deadly[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(deadly[i], &action, NULL);
    }
    signal(SIGXFSZ, SIG_IGN); /* a file over the size limit is a write error, like a full disk */
}

/* Makes a file of an unused name in the target's folder, its mode as the umask leaves it. */
static int create_beside(struct output *output, mode_t mode)
{
    const char *slash = strrchr(output->target, '/');
    int folder = slash == NULL ? 0 : (int)(slash + 1 - output->target);

    for (int attempt = 0; attempt < 100; attempt++) {
        unsigned char bytes[8];
        char *path = NULL;

        if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
            return -1;
        if (asprintf(&path, "%.*s.ciphermill-%02x%02x%02x%02x%02x%02x%02x%02x", folder, output->target,
                     bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]) < 0)
            return -1;
        output->descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (output->descriptor >= 0 && strlen(path) < sizeof unfinished) {
            memcpy(unfinished, path, strlen(path) + 1);
            output->beside = path;
            return 0;
        }
        if (output->descriptor >= 0) {
            unlink(path);
            errno = ENAMETOOLONG;
        }
        free(path);
        if (errno != EEXIST)
            return -1;
    }
    return -1;
}

/* What was private stays so. Only root can give a file away; where the group can't be kept, its rights are
 * not meant for another one. A file system without owners and modes refuses, which is no worse than before.
 */
static void inherit(const struct output *output, const struct stat *old)
{
    mode_t mode = old->st_mode & 0777;

    if (fchown(output->descriptor, old->st_uid, old->st_gid) != 0 &&
        fchown(output->descriptor, (uid_t)-1, old->st_gid) != 0)
        mode &= ~(mode_t)0070;
    (void)fchmod(output->descriptor, mode);
}

static int open_straight(struct output *output, const char *path)
{
    output->descriptor = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (output->descriptor < 0)
        return report_error(CODE_FAILED, "can't open %s for writing: %s", path, strerror(errno));
    return CODE_OK;
}

int output_open(struct output *output, const char *path)
{
    struct stat status;
    sigset_t before;
    bool exists;
    int rc;

    *output = (struct output){.descriptor = -1};
    if (path == NULL || strcmp(path, "-") == 0) {
        output->name = strdup("standard output");
        output->descriptor = STDOUT_FILENO;
        return CODE_OK;
    }
    output->name = strdup(path);
    exists = stat(path, &status) == 0;
    if (exists) {
        if (!S_ISREG(status.st_mode))
            return open_straight(output, path);
        if (access(path, W_OK) != 0)
            return report_error(CODE_FAILED, "can't write %s: %s", path, strerror(errno));
        output->target = realpath(path, NULL); /* a symbolic link stays one: what it points to is replaced */
    } else if (errno == ENOENT) {
        output->target = strdup(path);
    }
    if (output->target == NULL)
        return report_error(CODE_FAILED, "can't write %s: %s", path, strerror(errno));
    block_deadly(&before);
    handle_deadly();
    rc = create_beside(output, exists ? 0600 : 0666);
    if (rc == 0 && exists)
        inherit(output, &status);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (rc != 0)
        return report_error(CODE_FAILED, "can't create a file beside %s: %s", path, strerror(errno));
    return CODE_OK;
}

static int write_failed(const struct output *output)
{
    if (errno == EPIPE)
        return CODE_FAILED; /* the reader has left; that is for the reader to explain */
    return report_error(CODE_FAILED, "can't write %s: %s", output->name, strerror(errno));
}

int output_write(struct output *output, const void *bytes, size_t length)
{
    const unsigned char *next = bytes;

    while (length > 0) {
        ssize_t written = write(output->descriptor, next, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return write_failed(output);
        next += written;
        length -= (size_t)written;
    }
    return CODE_OK;
}

static void release(struct output *output)
{
    free(output->name);
    free(output->target);
    free(output->beside);
    *output = (struct output){.descriptor = -1};
}

/* So that the new name, and not only the bytes, survives a power cut. Some file systems can't; the data is
 * there. */
static void sync_folder(const char *path)
{
    char *copy = strdup(path);
    char *slash = copy == NULL ? NULL : strrchr(copy, '/');
    int folder;

    if (slash != NULL)
        slash[slash == copy ? 1 : 0] = '\0';
    folder = open(slash != NULL ? copy : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) {
        (void)fsync(folder);
        close(folder);
    }
    free(copy);
}

int output_commit(struct output *output)
{
    int code = CODE_OK;
    sigset_t before;

    if (output->target != NULL && fsync(output->descriptor) != 0)
        code = write_failed(output);
    if (output->descriptor > STDOUT_FILENO) {
        if (close(output->descriptor) != 0 && code == CODE_OK)
            code = write_failed(output);
        output->descriptor = -1;
    }
    if (code == CODE_OK && output->target != NULL) {
        block_deadly(&before);
        if (rename(output->beside, output->target) != 0) {
            code = report_error(CODE_FAILED, "can't rename to %s: %s", output->name, strerror(errno));
        } else {
            unfinished[0] = '\0';
            free(output->beside);
            output->beside = NULL;
        }
        sigprocmask(SIG_SETMASK, &before, NULL);
        if (code == CODE_OK)
            sync_folder(output->target);
    }
    output_discard(output);
    return code;
}

void output_discard(struct output *output)
{
    sigset_t before;

    if (output->descriptor > STDOUT_FILENO)
        close(output->descriptor);
    if (output->beside != NULL) {
        block_deadly(&before);
        unlink(output->beside);
        unfinished[0] = '\0';
        sigprocmask(SIG_SETMASK, &before, NULL);
    }
    release(output);
}
