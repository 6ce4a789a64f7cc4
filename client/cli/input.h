/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a file or a pipe in pieces, knowing with each piece whether it is the last one. */
#ifndef INPUT_H
#define INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct input {
    int descriptor;
    const char *name; /* for texts */
    uint64_t size;    /* of a regular file; 0 if it is none */
    bool ended;       /* nothing follows what was filled last */
    bool has_ahead;   /* one byte was read ahead, to know that */
    uint8_t ahead;
};

/* NULL and "-" are standard input. CODE_OK, or an exit code, having said why. */
int input_open(struct input *input, const char *path);
/* Reads until the buffer is full or the input ends, and sets input->ended. CODE_OK, or an exit code. */
int input_fill(struct input *input, void *buffer, size_t capacity, size_t *ret_length);
void input_close(struct input *input);

#endif
