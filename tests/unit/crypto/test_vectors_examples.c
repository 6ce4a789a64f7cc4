/* SPDX-License-Identifier: Apache-2.0 */
/* The worked examples of SP 800-38A and of GCM on every implementation, read out of NIST's text. */
#include "vector.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The text came out of a PDF: page breaks leave dashes, intermediate values stand between. Only the values
 * under the headings below count, and each must have the length that the examples have. */
struct label {
    const char *text;
    size_t offset; /* of the struct vector_bytes in struct vector */
};

static const struct label labels[] = {
    {"Key is", offsetof(struct vector, key)},
    {"K is", offsetof(struct vector, key)},
    {"IV is", offsetof(struct vector, iv)},
    {"Initial Counter is", offsetof(struct vector, iv)},
    {"Plaintext is", offsetof(struct vector, plaintext)},
    {"P is", offsetof(struct vector, plaintext)},
    {"Ciphertext is", offsetof(struct vector, ciphertext)},
    {"C is", offsetof(struct vector, ciphertext)},
    {"A is", offsetof(struct vector, aad)},
    {"Tag is", offsetof(struct vector, tag)},
};

struct example_file {
    const char *name;
    enum cm_aes_mode mode;
    const char *heading; /* begins a line that begins a case */
    size_t cases;
};

static const struct example_file example_files[] = {
    {"nist-examples/AES_ECB.txt", CM_AES_ECB, "ECB-AES", 6},
    {"nist-examples/AES_CBC.txt", CM_AES_CBC, "CBC-AES", 6},
    {"nist-examples/AES_CTR.txt", CM_AES_CTR, "CTR-AES", 6},
    {"nist-examples/AES_GCM.txt", CM_AES_GCM, "Example #", 18},
};

struct run {
    const struct example_file *file;
    const char *implementation;
    struct vector vector;
    struct vector_bytes *target; /* what hex lines are added to; NULL: they are intermediate values */
    int text_bits, aad_bits, tag_bits;
    size_t headings, by_key_size[3];
    struct vector_count count;
};

static void end_case(struct run *run)
{
    struct vector *vector = &run->vector;
    if (run->headings == 0)
        return;
    snprintf(vector->where, sizeof vector->where, "%s: %s, case %zu", run->implementation, run->file->name,
             run->headings);
    size_t text = 64, aad = 0, tag = 0;
    if (vector->mode == CM_AES_GCM) {
        text = (size_t)run->text_bits / 8;
        aad = (size_t)run->aad_bits / 8;
        tag = (size_t)run->tag_bits / 8;
    } else if (vector->mode != CM_AES_ECB) {
        require(vector->iv.length == 16, "%s: IV of %zu bytes", vector->where, vector->iv.length);
    }
    require(vector->plaintext.length == text && vector->ciphertext.length == text, "%s: texts of %zu and %zu",
            vector->where, vector->plaintext.length, vector->ciphertext.length);
    require(vector->aad.length == aad && vector->tag.length == tag, "%s: AAD or tag", vector->where);
    vector_check(vector, run->implementation, &run->count);
    run->by_key_size[vector->key.length / 8 - 2]++;
}

static void begin_case(struct run *run)
{
    end_case(run);
    run->headings++;
    run->target = NULL;
    struct vector_bytes iv = run->vector.iv; /* SP 800-38A gives it once, before the first case */
    memset(&run->vector, 0, sizeof run->vector);
    run->vector.iv = iv;
    run->vector.mode = run->file->mode;
    run->vector.encrypt = true;
}

static bool is_hex_line(const char *line)
{
    return strlen(line) >= 8 && strspn(line, "0123456789ABCDEF ") == strlen(line);
}

static void read_line(struct run *run, char *line)
{
    for (size_t length = strlen(line); length > 0 && line[length - 1] == ' ';)
        line[--length] = '\0';
    if (*line == '\0' || strncmp(line, "----", 4) == 0)
        return;
    if (strncmp(line, run->file->heading, strlen(run->file->heading)) == 0) {
        begin_case(run);
        return;
    }
    if (is_hex_line(line)) {
        if (run->target != NULL)
            vector_bytes_append(run->target, line);
        return;
    }
    run->target = NULL;
    if (sscanf(line, "Taglen = %d", &run->tag_bits) == 1 ||
        sscanf(line, "AADlen = %d", &run->aad_bits) == 1 || sscanf(line, "PTlen = %d", &run->text_bits) == 1)
        return;
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
        if (strcmp(line, labels[i].text) == 0) {
            run->target = (struct vector_bytes *)(void *)((char *)&run->vector + labels[i].offset);
            run->target->length = 0;
        }
}

START_TEST(worked_examples)
{
    const struct example_file *file = &example_files[_i];
    for (size_t i = 0; i < harness_implementation_count(); i++) {
        static struct run run;
        memset(&run, 0, sizeof run);
        run.file = file;
        run.implementation = harness_implementation(i);
        char *text = vector_file_read(file->name);
        for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"))
            read_line(&run, line);
        end_case(&run);
        free(text);
        require(run.count.cases == file->cases && run.count.refused == 0, "%s: %zu cases", file->name,
                run.count.cases);
        for (size_t size = 0; size < 3; size++)
            require(run.by_key_size[size] == file->cases / 3, "%s: %zu cases of key size %zu", file->name,
                    run.by_key_size[size], size);
    }
}
END_TEST

static void add_tests(TCase *test_case)
{
    tcase_add_loop_test(test_case, worked_examples, 0, sizeof example_files / sizeof *example_files);
}

int main(void)
{
    return harness_run_initialised("worked examples", add_tests);
}
