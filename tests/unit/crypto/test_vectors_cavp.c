/* SPDX-License-Identifier: Apache-2.0 */
/* Every case of NIST's response files (and RFC 3686's, in the same form) on every implementation. */
#include "vector.h"

#include <stdio.h>
#include <string.h>

struct file {
    const char *name;
    enum cm_aes_mode mode;
    struct vector_count expected;
    size_t left_out; /* texts whose bits fill no whole number of bytes */
};

static const struct file files[] = {
    {"cavp/ecb/ECBGFSbox128.rsp", CM_AES_ECB, {14, 0}, 0},
    {"cavp/ecb/ECBGFSbox192.rsp", CM_AES_ECB, {12, 0}, 0},
    {"cavp/ecb/ECBGFSbox256.rsp", CM_AES_ECB, {10, 0}, 0},
    {"cavp/ecb/ECBKeySbox128.rsp", CM_AES_ECB, {42, 0}, 0},
    {"cavp/ecb/ECBKeySbox192.rsp", CM_AES_ECB, {48, 0}, 0},
    {"cavp/ecb/ECBKeySbox256.rsp", CM_AES_ECB, {32, 0}, 0},
    {"cavp/ecb/ECBVarKey128.rsp", CM_AES_ECB, {256, 0}, 0},
    {"cavp/ecb/ECBVarKey192.rsp", CM_AES_ECB, {384, 0}, 0},
    {"cavp/ecb/ECBVarKey256.rsp", CM_AES_ECB, {512, 0}, 0},
    {"cavp/ecb/ECBVarTxt128.rsp", CM_AES_ECB, {256, 0}, 0},
    {"cavp/ecb/ECBVarTxt192.rsp", CM_AES_ECB, {256, 0}, 0},
    {"cavp/ecb/ECBVarTxt256.rsp", CM_AES_ECB, {256, 0}, 0},
    {"cavp/ecb/ECBMMT128.rsp", CM_AES_ECB, {20, 0}, 0},
    {"cavp/ecb/ECBMMT192.rsp", CM_AES_ECB, {20, 0}, 0},
    {"cavp/ecb/ECBMMT256.rsp", CM_AES_ECB, {20, 0}, 0},
    {"cavp/cbc/CBCGFSbox128.rsp", CM_AES_CBC, {14, 0}, 0},
    {"cavp/cbc/CBCGFSbox192.rsp", CM_AES_CBC, {12, 0}, 0},
    {"cavp/cbc/CBCGFSbox256.rsp", CM_AES_CBC, {10, 0}, 0},
    {"cavp/cbc/CBCKeySbox128.rsp", CM_AES_CBC, {42, 0}, 0},
    {"cavp/cbc/CBCKeySbox192.rsp", CM_AES_CBC, {48, 0}, 0},
    {"cavp/cbc/CBCKeySbox256.rsp", CM_AES_CBC, {32, 0}, 0},
    {"cavp/cbc/CBCVarKey128.rsp", CM_AES_CBC, {256, 0}, 0},
    {"cavp/cbc/CBCVarKey192.rsp", CM_AES_CBC, {384, 0}, 0},
    {"cavp/cbc/CBCVarKey256.rsp", CM_AES_CBC, {512, 0}, 0},
    {"cavp/cbc/CBCVarTxt128.rsp", CM_AES_CBC, {256, 0}, 0},
    {"cavp/cbc/CBCVarTxt192.rsp", CM_AES_CBC, {256, 0}, 0},
    {"cavp/cbc/CBCVarTxt256.rsp", CM_AES_CBC, {256, 0}, 0},
    {"cavp/cbc/CBCMMT128.rsp", CM_AES_CBC, {20, 0}, 0},
    {"cavp/cbc/CBCMMT192.rsp", CM_AES_CBC, {20, 0}, 0},
    {"cavp/cbc/CBCMMT256.rsp", CM_AES_CBC, {20, 0}, 0},
    {"ctr/aes-128-ctr.txt", CM_AES_CTR, {3, 0}, 0},
    {"ctr/aes-192-ctr.txt", CM_AES_CTR, {3, 0}, 0},
    {"ctr/aes-256-ctr.txt", CM_AES_CTR, {3, 0}, 0},
    {"cavp/gcm/gcmDecrypt128.rsp", CM_AES_GCM, {7875, 4011}, 0},
    {"cavp/gcm/gcmDecrypt256.rsp", CM_AES_GCM, {7875, 3919}, 0},
    {"cavp/xts/XTSGenAES128.rsp", CM_AES_XTS, {800, 0}, 200},
    {"cavp/xts/XTSGenAES256.rsp", CM_AES_XTS, {600, 0}, 400},
};

struct run {
    const struct file *file;
    const char *implementation;
    struct vector_count count;
    size_t left_out;
    struct vector vector; /* reused, since it is large */
};

static void check_lengths(const struct vector_record *record, const struct vector *vector)
{
    size_t lengths[4] = {vector->iv.length, vector->ciphertext.length, vector->aad.length,
                         vector->tag.length};
    for (size_t i = 0; i < 4; i++)
        require(record->lengths_bits[i] == (int)lengths[i] * 8, "%s: length %zu is not what the section says",
                vector->where, i);
}

static void on_gcm(const struct vector_record *record, struct vector *vector)
{
    vector_record_get(record, "Key", &vector->key);
    vector_record_get(record, "IV", &vector->iv);
    vector_record_get(record, "CT", &vector->ciphertext);
    vector_record_get(record, "AAD", &vector->aad);
    vector_record_get(record, "Tag", &vector->tag);
    bool refused = vector_record_has(record, "FAIL");
    vector->decrypt_status = refused ? CM_AES_BAD_TAG : CM_AES_OK;
    vector->encrypt = !refused;
    if (!refused)
        vector_record_get(record, "PT", &vector->plaintext);
    check_lengths(record, vector);
}

static void on_xts(const struct vector_record *record, struct vector *vector)
{
    vector_record_get(record, "Key", &vector->key);
    vector_record_get(record, "i", &vector->iv);
    vector_record_get(record, "PT", &vector->plaintext);
    vector_record_get(record, "CT", &vector->ciphertext);
    size_t bits = vector_record_number(record, "DataUnitLen");
    require(vector->plaintext.length * 8 == bits && vector->ciphertext.length * 8 == bits,
            "%s: the length is not what the record says", vector->where);
}

static void on_record(const struct vector_record *record, void *context)
{
    struct run *run = context;
    struct vector *vector = &run->vector;
    vector->mode = run->file->mode;
    vector->padding = CM_AES_NO_PADDING;
    vector->encrypt_status = vector->decrypt_status = CM_AES_OK;
    vector->encrypt = true;
    snprintf(vector->where, sizeof vector->where, "%s: %s %s %d", run->implementation, record->file,
             record->section, record->number);
    if (vector->mode == CM_AES_XTS && vector_record_number(record, "DataUnitLen") % 8 != 0) {
        run->left_out++;
        return;
    }
    if (vector->mode == CM_AES_GCM) {
        on_gcm(record, vector);
    } else if (vector->mode == CM_AES_XTS) {
        on_xts(record, vector);
    } else {
        require(strcmp(record->section, "ENCRYPT") == 0 || strcmp(record->section, "DECRYPT") == 0,
                "%s: in section \"%s\"", record->file, record->section);
        vector_record_get(record, "KEY", &vector->key);
        vector_record_get(record, "PLAINTEXT", &vector->plaintext);
        vector_record_get(record, "CIPHERTEXT", &vector->ciphertext);
        if (vector->mode != CM_AES_ECB)
            vector_record_get(record, "IV", &vector->iv);
        require(vector->plaintext.length > 0, "%s: no text", vector->where);
    }
    vector_check(vector, run->implementation, &run->count);
}

START_TEST(every_case_of_every_file)
{
    static struct run run;
    run.implementation = harness_implementation((size_t)_i);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        run.file = &files[i];
        if (!harness_has(run.implementation, run.file->mode))
            continue;
        run.count = (struct vector_count){0, 0};
        run.left_out = 0;
        vector_records_read(files[i].name, on_record, &run);
        require(run.count.cases == files[i].expected.cases, "%s: read %zu cases, not %zu", files[i].name,
                run.count.cases, files[i].expected.cases);
        require(run.count.refused == files[i].expected.refused, "%s: %zu cases refused, not %zu",
                files[i].name, run.count.refused, files[i].expected.refused);
        require(run.left_out == files[i].left_out, "%s: left out %zu cases, not %zu", files[i].name,
                run.left_out, files[i].left_out);
        if (run.left_out > 0)
            (void)printf("%s: left out %zu cases of %s, whose bits fill no whole number of bytes\n",
                         run.implementation, run.left_out, files[i].name);
    }
}
END_TEST

static void add_tests(TCase *test_case)
{
    harness_add_for_each(test_case, every_case_of_every_file);
}

int main(void)
{
    return harness_run_initialised("vectors of the validation programme", add_tests);
}
