/* SPDX-License-Identifier: Apache-2.0 */
/* Reads with one byte of look-ahead, because a cipher's last part differs from the others. */
#include "input.h"
#include "report.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int input_open(struct input *input, const char *path)
{
    struct stat status;

    *input = (struct input){.descriptor = STDIN_FILENO, .name = "standard input"};
    if (path != NULL && strcmp(path, "-") != 0) {
        input->name = path;
        input->descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (input->descriptor < 0)
            return report_error(CODE_FAILED, "can't open %s: %s", path, strerror(errno));
    }
    if (fstat(input->descriptor, &status) == 0 && S_ISREG(status.st_mode)) {
        off_t position = lseek(input->descriptor, 0, SEEK_CUR);
        if (position >= 0 && position < status.st_size)
            input->size = (uint64_t)(status.st_size - position);
        (void)posix_fadvise(input->descriptor, 0, 0, POSIX_FADV_SEQUENTIAL);
    }
    return CODE_OK;
}

static int fill(struct input *input, uint8_t *buffer, size_t capacity, size_t *ret_length)
{
    size_t length = 0;

    while (length < capacity) {
        ssize_t got = read(input->descriptor, buffer + length, capacity - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return report_error(CODE_FAILED, "can't read %s: %s", input->name, strerror(errno));
        if (got == 0)
            break;
        length += (size_t)got;
    }
    *ret_length = length;
    return CODE_OK;
}

int input_fill(struct input *input, void *buffer, size_t capacity, size_t *ret_length)
{
    uint8_t *start = buffer;
    size_t before = 0;
    size_t length = 0;
    size_t extra = 0;
    int code = CODE_OK;

    if (input->has_ahead && capacity > 0) {
        start[0] = input->ahead;
        input->has_ahead = false;
        before = 1;
    }
    if (!input->ended)
        code = fill(input, start + before, capacity - before, &length);
    if (code == CODE_OK && !input->ended && !input->has_ahead) {
        code = before + length < capacity ? CODE_OK : fill(input, &input->ahead, 1, &extra);
        input->has_ahead = extra == 1;
        input->ended = extra == 0;
    }
    if (code == CODE_OK)
        *ret_length = before + length;
    return code;
}

void input_close(struct input *input)
{
    if (input->descriptor > STDIN_FILENO)
        close(input->descriptor);
    input->descriptor = -1;
    explicit_bzero(&input->ahead, sizeof input->ahead);
}
