/* SPDX-License-Identifier: Apache-2.0 */
/* Reading in pieces: every byte once, and the end known with the last piece. */
#include "input.h"
#include "report.h"
#include "suite.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/cm-input-XXXXXX";
static char path[64];

static void write_file(size_t size)
{
    FILE *file;

    snprintf(path, sizeof path, "%s/file", folder);
    file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    for (size_t i = 0; i < size; i++)
        fputc((int)(i % 251), file);
    ck_assert_int_eq(fclose(file), 0);
}

/* Pieces of four bytes: around one and two pieces, and nothing at all. */
START_TEST(test_pieces)
{
    size_t size = (size_t)_i;
    struct input input;
    uint8_t piece[4];
    size_t seen = 0;
    size_t length;

    write_file(size);
    ck_assert_int_eq(input_open(&input, path), CODE_OK);
    ck_assert_uint_eq(input.size, size);
    do {
        ck_assert_int_eq(input_fill(&input, piece, sizeof piece, &length), CODE_OK);
        for (size_t i = 0; i < length; i++)
            ck_assert_uint_eq(piece[i], (seen + i) % 251);
        seen += length;
        ck_assert_int_eq(input.ended, seen == size);
        /* Only the last piece may be short. */
        ck_assert(input.ended || length == sizeof piece);
    } while (!input.ended);
    ck_assert_int_eq(input_fill(&input, piece, sizeof piece, &length), CODE_OK);
    ck_assert_uint_eq(length, 0);
    input_close(&input);
}
END_TEST

START_TEST(test_pipe_in_dribs)
{
    struct input input = {.name = "pipe"};
    int ends[2];
    uint8_t piece[4];
    size_t length;

    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(write(ends[1], "abc", 3), 3);
    if (fork() == 0) {
        /* The reader has to wait for the rest. */
        ck_assert_int_eq(write(ends[1], "de", 2), 2);
        _exit(0);
    }
    close(ends[1]);
    input.descriptor = ends[0];
    ck_assert_int_eq(input_fill(&input, piece, sizeof piece, &length), CODE_OK);
    ck_assert_uint_eq(length, 4);
    ck_assert_mem_eq(piece, "abcd", 4);
    ck_assert(!input.ended);
    ck_assert_int_eq(input_fill(&input, piece, sizeof piece, &length), CODE_OK);
    ck_assert_uint_eq(length, 1);
    ck_assert_mem_eq(piece, "e", 1);
    ck_assert(input.ended);
    input_close(&input);
}
END_TEST

START_TEST(test_failures)
{
    struct input input;
    uint8_t piece[4];
    size_t length = 77;

    snprintf(path, sizeof path, "%s/absent", folder);
    ck_assert_int_eq(input_open(&input, path), CODE_FAILED);
    ck_assert_int_eq(input_open(&input, folder), CODE_OK); /* a folder can be opened, but not read */
    ck_assert_int_eq(input_fill(&input, piece, sizeof piece, &length), CODE_FAILED);
    ck_assert_uint_eq(length, 77);
    input_close(&input);
}
END_TEST

static void add(TCase *test_case)
{
    tcase_add_loop_test(test_case, test_pieces, 0, 14);
    tcase_add_test(test_case, test_pipe_in_dribs);
    tcase_add_test(test_case, test_failures);
}

int main(void)
{
    int code;

    if (mkdtemp(folder) == NULL)
        return EXIT_FAILURE;
    code = run_suite("cli_input", add);
    snprintf(path, sizeof path, "%s/file", folder);
    unlink(path);
    rmdir(folder);
    return code;
}
