/* SPDX-License-Identifier: Apache-2.0 */
/* XTS, one data unit at a time: every length against OpenSSL, tweaks that carry, the limits, what it refuses.
 */
#include "reference.h"
#include "xts_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BLOCKS = 64, LONGEST = 16 * MOST_BLOCKS + 15, SHIFTS = 16 };

/* A data unit with its answer, and keys for both directions. */
struct exam {
    const char *implementation;
    struct harness_key key_memory[CM_AES_DIRECTION_COUNT];
    struct cm_aes_key *keys[CM_AES_DIRECTION_COUNT];
    uint8_t key[CM_AES_MAX_KEY_BYTES], iv[16], text[LONGEST], answer[LONGEST + 16];
    size_t key_length, length;
    struct harness_stage stage;
};

static void exam_begin(struct exam *exam, const char *implementation, size_t key_length, bool equal_halves)
{
    struct harness_random random = {.state = key_length};
    exam->implementation = implementation;
    exam->key_length = key_length;
    harness_random_fill(&random, exam->key, sizeof exam->key);
    harness_random_fill(&random, exam->text, sizeof exam->text);
    harness_random_fill(&random, exam->iv, sizeof exam->iv);
    if (equal_halves)
        memcpy(exam->key + key_length / 2, exam->key, key_length / 2);
    for (int direction = 0; direction < CM_AES_DIRECTION_COUNT; direction++)
        exam->keys[direction] = harness_key_init(&exam->key_memory[direction], implementation, CM_AES_XTS,
                                                 (enum cm_aes_direction)direction, exam->key, key_length);
    harness_stage_init(&exam->stage, LONGEST, 0);
}

static void exam_end(struct exam *exam)
{
    harness_stage_done(&exam->stage);
    cm_aes_key_done(exam->keys[CM_AES_ENCRYPT]);
    cm_aes_key_done(exam->keys[CM_AES_DECRYPT]);
}

static void exam_ask_openssl(struct exam *exam, size_t length)
{
    uint8_t unused[16];
    struct harness_message message = {.text = exam->text, .length = length, .iv = exam->iv, .iv_length = 16};
    exam->length = length;
    size_t made = reference_encrypt(CM_AES_XTS, CM_AES_NO_PADDING, exam->key, exam->key_length, &message,
                                    exam->answer, unused);
    require(made == length, "OpenSSL makes %zu bytes of %zu", made, length);
}

/* Both directions at one placement. */
static void exam_take(struct exam *exam, struct harness_placement placement, bool in_place)
{
    for (int i = 0; i < CM_AES_DIRECTION_COUNT; i++) {
        bool encrypting = i == CM_AES_ENCRYPT;
        struct harness_message message = {.text = encrypting ? exam->text : exam->answer,
                                          .length = exam->length,
                                          .iv = exam->iv,
                                          .iv_length = 16};
        char where[160];
        snprintf(where, sizeof where, "%s: XTS-%zu %s, %zu bytes, %s, %u off the guard page %s",
                 exam->implementation, exam->key_length * 4, encrypting ? "encryption" : "decryption",
                 exam->length, in_place ? "in place" : "apart", placement.shift,
                 placement.front ? "in front" : "behind");
        struct cm_aes_item item;
        harness_stage_place(&exam->stage, &message, (enum cm_aes_direction)i, CM_AES_NO_PADDING, placement,
                            in_place, &item);
        size_t failed = cm_aes_batch(exam->keys[i], CM_AES_NO_PADDING, &item, 1);
        require(failed == 0, "%s: %zu failed, status %d", where, failed, item.ret_status);
        harness_check_output(&item, encrypting ? exam->answer : exam->text, exam->length, NULL, where);
        harness_stage_check(&exam->stage, &item, where);
    }
}

/* Portable is one of the implementations, so each is held against it too. */
START_TEST(every_length_and_alignment)
{
    static struct exam exam;
    const char *implementation = harness_implementation((size_t)_i);
    if (!harness_has(implementation, CM_AES_XTS))
        return;
    for (const size_t *key_length = harness_key_lengths(CM_AES_XTS); *key_length != 0; key_length++) {
        exam_begin(&exam, implementation, *key_length, false);
        for (size_t length = CM_AES_XTS_MIN_BYTES; length <= LONGEST; length++) {
            exam_ask_openssl(&exam, length);
            for (int edge = 0; edge < 4; edge++)
                exam_take(&exam, (struct harness_placement){.front = edge & 1, .shift = 0}, edge & 2);
            for (unsigned shift = 1; shift < SHIFTS; shift++) {
                size_t turn = length + shift;
                exam_take(&exam, (struct harness_placement){.front = turn & 1, .shift = shift}, turn & 2);
            }
        }
        exam_end(&exam);
    }
}
END_TEST

/* --- Tweaks -----------------------------------------------------------------------------------------------
 */

static void try_lengths(struct exam *exam)
{
    static const size_t lengths[] = {16,  17,  31,  32,  33,  47,  48,  63,  64,  65,  112, 127,  128,
                                     129, 143, 144, 240, 255, 256, 257, 271, 300, 512, 515, 1024, LONGEST};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        exam_ask_openssl(exam, lengths[i]);
        exam_take(exam, (struct harness_placement){.front = false, .shift = 0}, i & 1);
    }
}

/* The block that is doubled is the encrypted IV; so IVs are sought for the blocks that matter: each single
 * bit, whose carry comes at another block of the message, and runs of ones up to each bit. */
START_TEST(doubling_carries_at_every_block)
{
    static struct exam exam;
    const char *implementation = harness_implementation((size_t)_i);
    if (!harness_has(implementation, CM_AES_XTS))
        return;
    for (const size_t *key_length = harness_key_lengths(CM_AES_XTS); *key_length != 0; key_length++) {
        exam_begin(&exam, implementation, *key_length, false);
        uint8_t single[16], ones[16] = {0};
        for (unsigned bit = 0; bit < 128; bit++) {
            memset(single, 0, sizeof single);
            single[bit / 8] = (uint8_t)(1U << bit % 8);
            ones[bit / 8] |= (uint8_t)(1U << bit % 8);
            xts_model_iv_for(exam.key, exam.key_length, single, exam.iv);
            try_lengths(&exam);
            xts_model_iv_for(exam.key, exam.key_length, ones, exam.iv);
            try_lengths(&exam);
        }
        memset(single, 0, sizeof single);
        xts_model_iv_for(exam.key, exam.key_length, single, exam.iv);
        try_lengths(&exam);
        exam_end(&exam);
    }
}
END_TEST

/* Data units' numbers, little-endian, and IVs that are no number one would count to. */
START_TEST(any_iv)
{
    static const uint8_t ivs[][16] = {
        {0},
        {1},
        {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
        {[8] = 1},
        {[15] = 0x80},
        {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
    };
    static struct exam exam;
    const char *implementation = harness_implementation((size_t)_i);
    if (!harness_has(implementation, CM_AES_XTS))
        return;
    for (const size_t *key_length = harness_key_lengths(CM_AES_XTS); *key_length != 0; key_length++) {
        exam_begin(&exam, implementation, *key_length, false);
        for (size_t i = 0; i < sizeof ivs / sizeof *ivs; i++) {
            memcpy(exam.iv, ivs[i], 16);
            try_lengths(&exam);
        }
        exam_end(&exam);
    }
}
END_TEST

/* Refusing such keys is for those who import them; OpenSSL does, so the answers are the model's. It is held
 * against OpenSSL first, with halves that differ. */
START_TEST(equal_halves)
{
    static struct exam exam;
    const char *implementation = harness_implementation((size_t)_i);
    if (!harness_has(implementation, CM_AES_XTS))
        return;
    for (const size_t *key_length = harness_key_lengths(CM_AES_XTS); *key_length != 0; key_length++) {
        for (int equal = 0; equal < 2; equal++) {
            exam_begin(&exam, implementation, *key_length, equal);
            for (size_t length = CM_AES_XTS_MIN_BYTES; length <= 300; length++) {
                uint8_t modelled[300];
                xts_model_encrypt(exam.key, *key_length, exam.iv, exam.text, length, modelled);
                if (!equal) {
                    exam_ask_openssl(&exam, length);
                    require(memcmp(modelled, exam.answer, length) == 0, "the model is wrong at %zu", length);
                }
                exam.length = length;
                memcpy(exam.answer, modelled, length);
                exam_take(&exam, (struct harness_placement){.front = false, .shift = 0}, exam.length & 1);
            }
            exam_end(&exam);
        }
    }
}
END_TEST

/* --- Limits ------------------------------------------------------------------------------------------------
 */

static size_t run_one(const struct cm_aes_key *key, enum cm_aes_padding padding, struct cm_aes_item *item)
{
    item->ret_status = 12345;
    item->ret_length = 12345;
    return cm_aes_batch(key, padding, item, 1);
}

/* The longest data unit, whole, against OpenSSL; both of its limits from both sides. */
START_TEST(shortest_and_longest)
{
    static struct exam exam;
    const char *implementation = harness_implementation((size_t)_i);
    if (!harness_has(implementation, CM_AES_XTS))
        return;
    size_t most = CM_AES_XTS_MAX_BYTES;
    ck_assert_uint_eq(most, (size_t)1 << 24);
    exam_begin(&exam, implementation, 64, false);
    uint8_t *text = malloc(most), *answer = malloc(most + 16), *output = malloc(most + 1), unused[16];
    require(text != NULL && answer != NULL && output != NULL, "no memory");
    struct harness_random random = {.state = 24};
    harness_random_fill(&random, text, most);
    for (size_t length = most - 1; length <= most; length++) {
        struct harness_message message = {.text = text, .length = length, .iv = exam.iv, .iv_length = 16};
        reference_encrypt(CM_AES_XTS, CM_AES_NO_PADDING, exam.key, 64, &message, answer, unused);
        for (int i = 0; i < CM_AES_DIRECTION_COUNT; i++) {
            struct cm_aes_item item = {.source = i == CM_AES_ENCRYPT ? text : answer,
                                       .destination = output,
                                       .length = length,
                                       .iv = exam.iv,
                                       .iv_length = 16};
            output[length] = HARNESS_STALE;
            require(run_one(exam.keys[i], CM_AES_NO_PADDING, &item) == 0, "%s: %zu bytes: status %d",
                    implementation, length, item.ret_status);
            harness_check_output(&item, i == CM_AES_ENCRYPT ? answer : text, length, NULL, implementation);
            require(output[length] == HARNESS_STALE, "%s: wrote behind %zu bytes", implementation, length);
        }
    }
    static const size_t refused[] = {0, 1, 15, ((size_t)1 << 24) + 1, ((size_t)1 << 32) + 16, SIZE_MAX};
    for (size_t j = 0; j < sizeof refused / sizeof *refused; j++)
        for (int i = 0; i < CM_AES_DIRECTION_COUNT; i++) {
            struct cm_aes_item item = {
                .source = text, .destination = output, .length = refused[j], .iv = exam.iv, .iv_length = 16};
            require(run_one(exam.keys[i], CM_AES_NO_PADDING, &item) == 1 &&
                        item.ret_status == CM_AES_BAD_LENGTH && item.ret_length == 0,
                    "%s: %zu bytes: status %d", implementation, refused[j], item.ret_status);
        }
    free(text);
    free(answer);
    free(output);
    exam_end(&exam);
}
END_TEST

START_TEST(iv_lengths)
{
    static struct exam exam;
    const char *implementation = harness_implementation((size_t)_i);
    if (!harness_has(implementation, CM_AES_XTS))
        return;
    static const uint8_t iv[32];
    exam_begin(&exam, implementation, 32, false);
    for (int i = 0; i < CM_AES_DIRECTION_COUNT; i++)
        for (size_t iv_length = 0; iv_length <= sizeof iv; iv_length++) {
            uint8_t output[32] = {0};
            struct cm_aes_item item = {.source = exam.text,
                                       .destination = output,
                                       .length = sizeof output,
                                       .iv = iv,
                                       .iv_length = iv_length};
            size_t failed = run_one(exam.keys[i], CM_AES_NO_PADDING, &item);
            int status = iv_length == 16 ? CM_AES_OK : CM_AES_BAD_IV;
            require(item.ret_status == status && failed == (status != CM_AES_OK), "%s: IV of %zu: status %d",
                    implementation, iv_length, item.ret_status);
        }
    exam_end(&exam);
}
END_TEST

/* --- What the mode does not have -------------------------------------------------------------------------
 */

START_TEST(no_padding_no_parts_no_slices)
{
    static struct exam exam;
    const char *implementation = harness_implementation((size_t)_i);
    if (!harness_has(implementation, CM_AES_XTS))
        return;
    exam_begin(&exam, implementation, 64, false);
    for (int i = 0; i < CM_AES_DIRECTION_COUNT; i++) {
        uint8_t output[64], stale[64], iv[16];
        memset(stale, HARNESS_STALE, sizeof stale);
        memcpy(output, stale, sizeof output);
        struct cm_aes_item item = {
            .source = exam.text, .destination = output, .length = 48, .iv = exam.iv, .iv_length = 16};
        ck_assert_uint_eq(run_one(exam.keys[i], CM_AES_PKCS7, &item), 1);
        harness_check_refused(&item, CM_AES_UNAVAILABLE, 0, "with padding");
        struct cm_aes_parts state, fresh;
        memset(&state, 0, sizeof state);
        memset(&fresh, 0, sizeof fresh);
        for (int last = 0; last < 2; last++) {
            ck_assert_int_eq(cm_aes_part(exam.keys[i], CM_AES_NO_PADDING, &state, &item, last),
                             CM_AES_UNAVAILABLE);
            harness_check_refused(&item, CM_AES_UNAVAILABLE, 0, "in parts");
            ck_assert_mem_eq(&state, &fresh, sizeof state);
        }
        struct cm_aes_item slice;
        for (size_t length = 16; length <= 48; length += 16)
            ck_assert_int_eq(cm_aes_slice(CM_AES_XTS, (enum cm_aes_direction)i, &item, 0, length, iv, &slice),
                             CM_AES_UNAVAILABLE);
        ck_assert_mem_eq(output, stale, sizeof output);
    }
    exam_end(&exam);
}
END_TEST

static void add_tests(TCase *test_case)
{
    harness_add_for_each(test_case, every_length_and_alignment);
    harness_add_for_each(test_case, doubling_carries_at_every_block);
    harness_add_for_each(test_case, any_iv);
    harness_add_for_each(test_case, equal_halves);
    harness_add_for_each(test_case, shortest_and_longest);
    harness_add_for_each(test_case, iv_lengths);
    harness_add_for_each(test_case, no_padding_no_parts_no_slices);
}

int main(void)
{
    return harness_run_initialised("XTS", add_tests);
}
