/* SPDX-License-Identifier: Apache-2.0 */
/* Every case of the Wycheproof and ACVP files for these modes on every implementation. */
#include "vector.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *load(const char *name)
{
    char *text = vector_file_read(name);
    json_error_t error;
    json_t *root = json_loads(text, 0, &error);
    free(text);
    require(root != NULL, "%s, line %d: %s", name, error.line, error.text);
    return root;
}

static const char *string_of(const json_t *object, const char *name)
{
    const char *value = json_string_value(json_object_get(object, name));
    require(value != NULL, "no text \"%s\"", name);
    return value;
}

static void get_bytes(const json_t *object, const char *name, struct vector_bytes *ret_bytes)
{
    vector_bytes_read(ret_bytes, string_of(object, name));
}

static int number_of(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    require(json_is_integer(value), "no number \"%s\"", name);
    return (int)json_integer_value(value);
}

static void begin(struct vector *vector, enum cm_aes_mode mode, const char *implementation, const char *file,
                  const json_t *test)
{
    memset(vector, 0, sizeof *vector);
    vector->mode = mode;
    vector->encrypt = true;
    snprintf(vector->where, sizeof vector->where, "%s: %s, case %d", implementation, file,
             number_of(test, "tcId"));
}

static bool has_flag(const json_t *test, const char *flag)
{
    size_t index;
    json_t *value;
    json_array_foreach(json_object_get(test, "flags"), index, value)
    {
        if (strcmp(json_string_value(value), flag) == 0)
            return true;
    }
    return false;
}

static bool is_valid(const json_t *test)
{
    const char *result = string_of(test, "result");
    require(strcmp(result, "valid") == 0 || strcmp(result, "invalid") == 0, "result is \"%s\"", result);
    return strcmp(result, "valid") == 0;
}

/* Two of the kinds of invalid case can be held against encryption too: an empty IV has to be refused there as
 * well; a changed tag belongs to no message that encryption could make. */
static void wycheproof_gcm(const json_t *test, struct vector *vector)
{
    get_bytes(test, "key", &vector->key);
    get_bytes(test, "iv", &vector->iv);
    get_bytes(test, "aad", &vector->aad);
    get_bytes(test, "msg", &vector->plaintext);
    get_bytes(test, "ct", &vector->ciphertext);
    get_bytes(test, "tag", &vector->tag);
    if (is_valid(test))
        return;
    if (has_flag(test, "ZeroLengthIv")) {
        vector->encrypt_status = vector->decrypt_status = CM_AES_BAD_IV;
    } else {
        require(has_flag(test, "ModifiedTag"), "%s: invalid for a reason that is not known", vector->where);
        vector->decrypt_status = CM_AES_BAD_TAG;
        vector->encrypt = false;
    }
}

static void wycheproof_cbc(const json_t *test, struct vector *vector)
{
    vector->padding = CM_AES_PKCS7;
    get_bytes(test, "key", &vector->key);
    get_bytes(test, "iv", &vector->iv);
    get_bytes(test, "msg", &vector->plaintext);
    get_bytes(test, "ct", &vector->ciphertext);
    if (is_valid(test))
        return;
    vector->encrypt = false;
    bool whole_blocks = vector->ciphertext.length > 0 && vector->ciphertext.length % 16 == 0;
    vector->decrypt_status = whole_blocks ? CM_AES_BAD_PADDING : CM_AES_BAD_LENGTH;
}

/* IVs under 16 bytes are numbers of data units, little-endian. AES-192 is none of SP 800-38E's. */
static void wycheproof_xts(const json_t *test, struct vector *vector)
{
    get_bytes(test, "key", &vector->key);
    get_bytes(test, "iv", &vector->iv);
    get_bytes(test, "msg", &vector->plaintext);
    get_bytes(test, "ct", &vector->ciphertext);
    require(is_valid(test) && vector->iv.length <= 16, "%s: a case of a new kind", vector->where);
    memset(vector->iv.data + vector->iv.length, 0, 16 - vector->iv.length);
    vector->iv.length = 16;
    if (vector->key.length == 48)
        vector->key_status = CM_AES_BAD_KEY_LENGTH;
}

struct wycheproof_file {
    const char *name;
    enum cm_aes_mode mode;
    void (*read)(const json_t *test, struct vector *vector);
    struct vector_count expected;
};

static const struct wycheproof_file wycheproof_files[] = {
    {"wycheproof/aes_gcm_test.json", CM_AES_GCM, wycheproof_gcm, {316, 87}},
    {"wycheproof/aes_cbc_pkcs5_test.json", CM_AES_CBC, wycheproof_cbc, {216, 144}},
    {"wycheproof/aes_xts_test.json", CM_AES_XTS, wycheproof_xts, {123, 41}},
};

static void run_wycheproof(const struct wycheproof_file *file, const char *implementation)
{
    static struct vector vector;
    struct vector_count count = {0, 0};
    json_t *root = load(file->name);
    size_t group_index, test_index;
    json_t *group, *test;
    json_array_foreach(json_object_get(root, "testGroups"), group_index, group)
    {
        json_array_foreach(json_object_get(group, "tests"), test_index, test)
        {
            begin(&vector, file->mode, implementation, file->name, test);
            file->read(test, &vector);
            require(vector.key.length * 8 == (size_t)number_of(group, "keySize"), "%s: key size",
                    vector.where);
            vector_check(&vector, implementation, &count);
        }
    }
    json_decref(root);
    require(count.cases == file->expected.cases && count.refused == file->expected.refused,
            "%s: %zu cases, %zu refused", file->name, count.cases, count.refused);
}

START_TEST(wycheproof)
{
    const char *implementation = harness_implementation((size_t)_i);
    for (size_t i = 0; i < sizeof wycheproof_files / sizeof *wycheproof_files; i++)
        if (harness_has(implementation, wycheproof_files[i].mode))
            run_wycheproof(&wycheproof_files[i], implementation);
}
END_TEST

START_TEST(acvp_gcm)
{
    static const char name[] = "acvp/ACVP-AES-GCM-1.0/internalProjection.json";
    static struct vector vector;
    const char *implementation = harness_implementation((size_t)_i);
    struct vector_count count = {0, 0};
    json_t *root = load(name);
    size_t group_index, test_index;
    json_t *group, *test;
    json_array_foreach(json_object_get(root, "testGroups"), group_index, group)
    {
        json_array_foreach(json_object_get(group, "tests"), test_index, test)
        {
            begin(&vector, CM_AES_GCM, implementation, name, test);
            get_bytes(test, "key", &vector.key);
            get_bytes(test, "iv", &vector.iv);
            get_bytes(test, "aad", &vector.aad);
            get_bytes(test, "pt", &vector.plaintext);
            get_bytes(test, "ct", &vector.ciphertext);
            get_bytes(test, "tag", &vector.tag);
            require(vector.tag.length * 8 == (size_t)number_of(group, "tagLen"), "%s: tag", vector.where);
            if (!json_is_true(json_object_get(test, "testPassed"))) {
                vector.decrypt_status = CM_AES_BAD_TAG;
                vector.encrypt = false;
            }
            vector_check(&vector, implementation, &count);
        }
    }
    json_decref(root);
    require(count.cases == 60 && count.refused == 10, "%zu cases, %zu refused", count.cases, count.refused);
}
END_TEST

/* The answer of test case `id` in the other file of the pair. */
static const json_t *answer_of(const json_t *answers, int id)
{
    size_t group_index, test_index;
    json_t *group, *test;
    json_array_foreach(json_object_get(answers, "testGroups"), group_index, group)
    {
        json_array_foreach(json_object_get(group, "tests"), test_index, test)
        {
            if (number_of(test, "tcId") == id)
                return test;
        }
    }
    ck_abort_msg("no answer to case %d", id);
    return NULL;
}

START_TEST(acvp_ctr)
{
    static const char name[] = "acvp/ACVP-AES-CTR/vectors.json";
    static struct vector vector;
    const char *implementation = harness_implementation((size_t)_i);
    struct vector_count count = {0, 0};
    json_t *questions = load(name);
    json_t *answers = load("acvp/ACVP-AES-CTR/expected.json");
    size_t group_index, test_index;
    json_t *group, *test;
    json_array_foreach(json_object_get(json_array_get(questions, 1), "testGroups"), group_index, group)
    {
        bool encrypting = strcmp(string_of(group, "direction"), "encrypt") == 0;
        json_array_foreach(json_object_get(group, "tests"), test_index, test)
        {
            begin(&vector, CM_AES_CTR, implementation, name, test);
            const json_t *answer = answer_of(json_array_get(answers, 1), number_of(test, "tcId"));
            get_bytes(test, "key", &vector.key);
            get_bytes(test, "iv", &vector.iv);
            get_bytes(encrypting ? test : answer, "pt", &vector.plaintext);
            get_bytes(encrypting ? answer : test, "ct", &vector.ciphertext);
            require(vector.plaintext.length == vector.ciphertext.length && vector.plaintext.length > 0,
                    "%s: lengths", vector.where);
            vector_check(&vector, implementation, &count);
        }
    }
    json_decref(questions);
    json_decref(answers);
    require(count.cases == 48 && count.refused == 0, "%zu cases, %zu refused", count.cases, count.refused);
}
END_TEST

static void add_tests(TCase *test_case)
{
    harness_add_for_each(test_case, wycheproof);
    harness_add_for_each(test_case, acvp_gcm);
    harness_add_for_each(test_case, acvp_ctr);
}

int main(void)
{
    /* A fixed seed for its hash tables keeps runs alike. */
    json_object_seed(1);
    return harness_run_initialised("Wycheproof and ACVP", add_tests);
}
