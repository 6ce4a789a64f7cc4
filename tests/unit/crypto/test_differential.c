/* SPDX-License-Identifier: Apache-2.0 */
/* Every implementation against OpenSSL: each length, alignment, in place and apart, between guard pages. */
#include "reference.h"

#include <stdio.h>
#include <string.h>

enum { LONGEST = 65536 + 5, LONGEST_SHORT = 1024, LONGEST_AAD = 1100, SHIFTS = 16 };

struct shape {
    const char *name;
    enum cm_aes_mode mode;
    enum cm_aes_padding padding;
};

static const struct shape shapes[] = {
    {"ECB", CM_AES_ECB, CM_AES_NO_PADDING}, {"ECB, PKCS#7", CM_AES_ECB, CM_AES_PKCS7},
    {"CBC", CM_AES_CBC, CM_AES_NO_PADDING}, {"CBC, PKCS#7", CM_AES_CBC, CM_AES_PKCS7},
    {"CTR", CM_AES_CTR, CM_AES_NO_PADDING}, {"GCM", CM_AES_GCM, CM_AES_NO_PADDING},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* A message with OpenSSL's answer, and the keys to repeat it with. */
struct exam {
    const struct shape *shape;
    const char *implementation;
    struct harness_key key_memory[CM_AES_DIRECTION_COUNT];
    struct cm_aes_key *keys[CM_AES_DIRECTION_COUNT];
    uint8_t key[32];
    size_t key_length;
    struct harness_stage stage;
    struct harness_random random;
    uint8_t text[LONGEST], iv[512], aad[LONGEST_AAD];
    uint8_t answer[LONGEST + 16], tag[16];
    size_t answer_length;
    struct harness_message plain;
};

static void exam_begin(struct exam *exam, const struct shape *shape, const char *implementation,
                       size_t key_length, size_t longest)
{
    exam->shape = shape;
    exam->implementation = implementation;
    exam->key_length = key_length;
    exam->random.state = key_length * 1000 + (uint64_t)shape->mode;
    harness_random_fill(&exam->random, exam->key, sizeof exam->key);
    harness_random_fill(&exam->random, exam->text, sizeof exam->text);
    harness_random_fill(&exam->random, exam->iv, sizeof exam->iv);
    harness_random_fill(&exam->random, exam->aad, sizeof exam->aad);
    for (int direction = 0; direction < CM_AES_DIRECTION_COUNT; direction++)
        exam->keys[direction] =
            harness_key_init(&exam->key_memory[direction], implementation, shape->mode,
                             (enum cm_aes_direction)direction, exam->key, exam->key_length);
    harness_stage_init(&exam->stage, longest + 16, LONGEST_AAD);
}

static void exam_end(struct exam *exam)
{
    harness_stage_done(&exam->stage);
    cm_aes_key_done(exam->keys[CM_AES_ENCRYPT]);
    cm_aes_key_done(exam->keys[CM_AES_DECRYPT]);
}

/* Sets the question and asks OpenSSL. */
static void exam_set(struct exam *exam, size_t length, size_t iv_length, size_t aad_length, size_t tag_length)
{
    bool gcm = exam->shape->mode == CM_AES_GCM;
    exam->plain = (struct harness_message){
        .text = exam->text,
        .length = length,
        .iv = exam->iv,
        .iv_length = exam->shape->mode == CM_AES_ECB ? 0
                     : gcm                           ? iv_length
                                                     : 16,
        .aad = exam->aad,
        .aad_length = gcm ? aad_length : 0,
        .tag_length = gcm ? tag_length : 0,
    };
    exam->answer_length = reference_encrypt(exam->shape->mode, exam->shape->padding, exam->key,
                                            exam->key_length, &exam->plain, exam->answer, exam->tag);
}

/* Both directions at one placement. */
static void exam_take(struct exam *exam, struct harness_placement placement, bool in_place)
{
    char where[160];
    for (int i = 0; i < CM_AES_DIRECTION_COUNT; i++) {
        enum cm_aes_direction direction = (enum cm_aes_direction)i;
        bool encrypting = direction == CM_AES_ENCRYPT;
        struct harness_message message = exam->plain;
        if (!encrypting) {
            message.text = exam->answer;
            message.length = exam->answer_length;
            message.tag = exam->tag;
        }
        snprintf(where, sizeof where, "%s: %s-%zu %s, %zu bytes, %s, %u off the guard page %s",
                 exam->implementation, exam->shape->name, exam->key_length * 8,
                 encrypting ? "encryption" : "decryption", exam->plain.length,
                 in_place ? "in place" : "apart", placement.shift, placement.front ? "in front" : "behind");
        struct cm_aes_item item;
        harness_stage_place(&exam->stage, &message, direction, exam->shape->padding, placement, in_place,
                            &item);
        size_t failed = cm_aes_batch(exam->keys[direction], exam->shape->padding, &item, 1);
        require(failed == 0, "%s: %zu failed, status %d", where, failed, item.ret_status);
        if (encrypting)
            harness_check_output(&item, exam->answer, exam->answer_length,
                                 exam->shape->mode == CM_AES_GCM ? exam->tag : NULL, where);
        else
            harness_check_output(&item, exam->text, exam->plain.length, NULL, where);
        harness_stage_check(&exam->stage, &item, where);
    }
}

static bool takes_length(const struct shape *shape, size_t length)
{
    return shape->mode == CM_AES_CTR || shape->mode == CM_AES_GCM || shape->padding == CM_AES_PKCS7 ||
           length % 16 == 0;
}

/* Tag and IV lengths by the length of the text, so that all of them turn up with all remainders. */
static size_t some_tag_length(size_t length)
{
    static const size_t lengths[] = {16, 4, 12, 8, 13, 14, 15};
    return lengths[length % 7];
}

static size_t some_iv_length(size_t length)
{
    static const size_t lengths[] = {12, 1, 16, 12, 8, 60, 12, 128, 13, 12, 17};
    return lengths[length % 11];
}

static void exam_take_at_edges(struct exam *exam)
{
    for (int edge = 0; edge < 4; edge++)
        exam_take(exam, (struct harness_placement){.front = edge & 1, .shift = 0}, edge & 2);
}

/* Each shift in place and apart. Which side and which key size it meets changes with the length: all of both
 * would only repeat what the edges have shown. */
static void exam_take_off_edges(struct exam *exam)
{
    for (unsigned shift = 1; shift < SHIFTS; shift++) {
        size_t turn = exam->plain.length + shift;
        if (turn % 3 != exam->key_length / 8 - 2)
            continue;
        exam_take(exam, (struct harness_placement){.front = turn & 1, .shift = shift}, false);
        exam_take(exam, (struct harness_placement){.front = !(turn & 1), .shift = shift}, true);
    }
}

START_TEST(every_length_and_alignment)
{
    static struct exam exam;
    const char *implementation = harness_implementation((size_t)_i / SHAPES);
    const struct shape *shape = &shapes[_i % SHAPES];
    size_t questions = 0;
    for (size_t key_length = 16; key_length <= 32; key_length += 8) {
        exam_begin(&exam, shape, implementation, key_length, LONGEST_SHORT);
        for (size_t length = 0; length <= LONGEST_SHORT; length++) {
            if (!takes_length(shape, length))
                continue;
            questions++;
            exam_set(&exam, length, some_iv_length(length), length * 5 % 97, some_tag_length(length));
            exam_take_at_edges(&exam);
            exam_take_off_edges(&exam);
        }
        exam_end(&exam);
    }
    require(questions == (takes_length(shape, 1) ? 3 * 1025 : 3 * 65), "%zu questions", questions);
}
END_TEST

START_TEST(large_lengths)
{
    static struct exam exam;
    static const size_t lengths[] = {2047,  2048,  2049,  4095,  4096,  4097,  8191,  8192, 16383,
                                     16384, 16385, 32768, 33333, 65535, 65536, 65541, 1280, 3072};
    const char *implementation = harness_implementation((size_t)_i / SHAPES);
    const struct shape *shape = &shapes[_i % SHAPES];
    for (size_t key_length = 16; key_length <= 32; key_length += 8) {
        exam_begin(&exam, shape, implementation, key_length, LONGEST);
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            if (!takes_length(shape, lengths[i]))
                continue;
            exam_set(&exam, lengths[i], some_iv_length(i), lengths[i] % 1000, some_tag_length(i));
            exam_take_at_edges(&exam);
            exam_take(&exam, (struct harness_placement){.front = true, .shift = (unsigned)(1 + i % 15)},
                      i & 1);
        }
        exam_end(&exam);
    }
}
END_TEST

/* Additional data of every length before texts around one, two and nine blocks. */
START_TEST(gcm_every_additional_data_length)
{
    static struct exam exam;
    static const size_t texts[] = {0, 1, 16, 31, 144};
    exam_begin(&exam, &shapes[SHAPES - 1], harness_implementation((size_t)_i), 16, LONGEST_SHORT);
    for (size_t aad = 0; aad <= 1024; aad++)
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            exam_set(&exam, texts[i], 12, aad, 16);
            exam_take(&exam, (struct harness_placement){.front = false, .shift = 0}, false);
            exam_take(&exam, (struct harness_placement){.front = true, .shift = aad % SHIFTS}, true);
        }
    exam_end(&exam);
}
END_TEST

START_TEST(gcm_every_iv_length)
{
    static struct exam exam;
    exam_begin(&exam, &shapes[SHAPES - 1], harness_implementation((size_t)_i), 32, LONGEST_SHORT);
    /* OpenSSL takes no IV over 1,024 bits; longer ones are held against portable below. */
    for (size_t iv = 1; iv <= 128; iv++)
        for (size_t length = 0; length <= 160; length += 5) {
            exam_set(&exam, length, iv, length % 33, some_tag_length(length / 5));
            exam_take(&exam, (struct harness_placement){.front = false, .shift = 0}, false);
            exam_take(&exam, (struct harness_placement){.front = true, .shift = iv % SHIFTS}, true);
        }
    exam_end(&exam);
}
END_TEST

START_TEST(gcm_long_ivs_as_portable)
{
    const char *implementation = harness_implementation((size_t)_i);
    struct harness_random random = {.state = 77};
    uint8_t key[32], iv[512], text[100], outputs[2][100], tags[2][16];
    harness_random_fill(&random, key, sizeof key);
    harness_random_fill(&random, iv, sizeof iv);
    harness_random_fill(&random, text, sizeof text);
    for (size_t iv_length = 100; iv_length <= sizeof iv; iv_length++) {
        const char *names[2] = {"portable", implementation};
        for (size_t i = 0; i < 2; i++) {
            struct harness_key memory;
            struct cm_aes_key *expanded =
                harness_key_init(&memory, names[i], CM_AES_GCM, CM_AES_ENCRYPT, key, sizeof key);
            struct cm_aes_item item = {
                .source = text,
                .destination = outputs[i],
                .length = sizeof text,
                .iv = iv,
                .iv_length = iv_length,
                .tag = tags[i],
                .tag_length = 16,
            };
            require(cm_aes_batch(expanded, CM_AES_NO_PADDING, &item, 1) == 0, "%s: IV of %zu refused",
                    names[i], iv_length);
            cm_aes_key_done(expanded);
        }
        require(memcmp(outputs[0], outputs[1], sizeof text) == 0 && memcmp(tags[0], tags[1], 16) == 0,
                "%s: IV of %zu bytes differs from portable", implementation, iv_length);
    }
}
END_TEST

static void add_tests(TCase *test_case)
{
    int runs = (int)harness_implementation_count() * SHAPES;
    tcase_add_loop_test(test_case, every_length_and_alignment, 0, runs);
    tcase_add_loop_test(test_case, large_lengths, 0, runs);
    harness_add_for_each(test_case, gcm_every_additional_data_length);
    harness_add_for_each(test_case, gcm_every_iv_length);
    harness_add_for_each(test_case, gcm_long_ivs_as_portable);
}

int main(void)
{
    return harness_run_initialised("against OpenSSL", add_tests);
}
