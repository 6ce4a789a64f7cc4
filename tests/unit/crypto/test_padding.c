/* SPDX-License-Identifier: Apache-2.0 */
/* PKCS#7: every good length, and every way of being wrong, with one status and a wiped destination. */
#include "reference.h"

#include <stdio.h>
#include <string.h>

enum { MOST_BLOCKS = 20 };

struct bench {
    const char *implementation;
    enum cm_aes_mode mode;
    uint8_t key[16], iv[16];
    struct harness_key memory;
    struct cm_aes_key *decrypting;
    struct harness_stage stage;
    size_t tried;
};

static void bench_begin(struct bench *bench, const char *implementation, enum cm_aes_mode mode)
{
    struct harness_random random = {.state = 99};
    memset(bench, 0, sizeof *bench);
    bench->implementation = implementation;
    bench->mode = mode;
    harness_random_fill(&random, bench->key, 16);
    harness_random_fill(&random, bench->iv, 16);
    bench->decrypting =
        harness_key_init(&bench->memory, implementation, mode, CM_AES_DECRYPT, bench->key, sizeof bench->key);
    harness_stage_init(&bench->stage, (MOST_BLOCKS + 1) * 16, 0);
}

static void bench_end(struct bench *bench)
{
    harness_stage_done(&bench->stage);
    cm_aes_key_done(bench->decrypting);
}

/* Decrypts what OpenSSL makes of `padded` (whole blocks, padding and all) and expects `output_length` bytes
 * of it back, or with `status` other than CM_AES_OK a refusal. */
static void expect(struct bench *bench, const uint8_t *padded, size_t length, int status,
                   size_t output_length, const char *what)
{
    uint8_t cipher[(MOST_BLOCKS + 1) * 16], tag[16];
    struct harness_message message = {.text = padded, .length = length, .iv = bench->iv, .iv_length = 16};
    reference_encrypt(bench->mode, CM_AES_NO_PADDING, bench->key, sizeof bench->key, &message, cipher, tag);
    message.text = cipher;
    for (int in_place = 0; in_place < 2; in_place++) {
        char where[160];
        snprintf(where, sizeof where, "%s: %s, %zu bytes, %s", bench->implementation,
                 harness_mode_name(bench->mode), length, what);
        struct cm_aes_item item;
        harness_stage_place(&bench->stage, &message, CM_AES_DECRYPT, CM_AES_PKCS7,
                            (struct harness_placement){.front = in_place, .shift = 0}, in_place, &item);
        size_t failed = cm_aes_batch(bench->decrypting, CM_AES_PKCS7, &item, 1);
        require(failed == (status != CM_AES_OK), "%s: %zu failed", where, failed);
        if (status == CM_AES_OK)
            harness_check_output(&item, padded, output_length, NULL, where);
        else
            harness_check_refused(&item, status, length, where);
        harness_stage_check(&bench->stage, &item, where);
    }
    bench->tried++;
}

/* `blocks` blocks of 0x77 that end in `count` bytes of `value`. */
static void make_padded(uint8_t *padded, size_t blocks, size_t count, uint8_t value)
{
    memset(padded, 0x77, blocks * 16);
    memset(padded + blocks * 16 - count, value, count);
}

static void try_all_values(struct bench *bench, size_t blocks)
{
    uint8_t padded[MOST_BLOCKS * 16];
    for (int value = 0; value < 256; value++) {
        /* As many as say so, where that many fit; for 0 and over 16 as many as can be. */
        size_t fits = value == 0 ? 1 : (size_t)value < blocks * 16 ? (size_t)value : blocks * 16;
        make_padded(padded, blocks, fits, (uint8_t)value);
        if (value >= 1 && value <= 16)
            expect(bench, padded, blocks * 16, CM_AES_OK, blocks * 16 - (size_t)value, "good padding");
        else
            expect(bench, padded, blocks * 16, CM_AES_BAD_PADDING, 0, "a padding byte over 16, or 0");
    }
    make_padded(padded, blocks, 16, 0);
    expect(bench, padded, blocks * 16, CM_AES_BAD_PADDING, 0, "a block of zeros");
}

/* Each byte of each padding wrong in turn. The last one says the padding's length, so a wrong value there can
 * be a right padding of another length only if it is 1. */
static void try_wrong_fillers(struct bench *bench, size_t blocks)
{
    static const uint8_t changes[] = {0x01, 0x80, 0x10, 0xff};
    uint8_t padded[MOST_BLOCKS * 16];
    for (size_t count = 2; count <= 16; count++)
        for (size_t position = 2; position <= count; position++)
            for (size_t i = 0; i < sizeof changes; i++) {
                make_padded(padded, blocks, count, (uint8_t)count);
                padded[blocks * 16 - position] ^= changes[i];
                expect(bench, padded, blocks * 16, CM_AES_BAD_PADDING, 0, "a wrong filler byte");
            }
    for (size_t count = 1; count < 16; count++) {
        make_padded(padded, blocks, count, (uint8_t)(count + 1));
        expect(bench, padded, blocks * 16, CM_AES_BAD_PADDING, 0, "one filler byte too few");
    }
    for (size_t count = 2; count <= 16; count++) {
        make_padded(padded, blocks, count, (uint8_t)(count - 1));
        expect(bench, padded, blocks * 16, CM_AES_OK, blocks * 16 - (count - 1), "one filler byte more");
    }
}

START_TEST(every_form)
{
    static struct bench bench;
    static const size_t blocks[] = {1, 2, 3, 8, 9, 16, MOST_BLOCKS};
    const char *implementation = harness_implementation((size_t)_i);
    for (int mode = CM_AES_ECB; mode <= CM_AES_CBC; mode++) {
        bench_begin(&bench, implementation, (enum cm_aes_mode)mode);
        for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
            try_all_values(&bench, blocks[i]);
            try_wrong_fillers(&bench, blocks[i]);
        }
        require(bench.tried == 7 * (257 + 4 * 120 + 15 + 15), "%zu forms", bench.tried);
        bench_end(&bench);
    }
}
END_TEST

START_TEST(no_ciphertext_that_padding_could_be_in)
{
    static const uint8_t bytes[64];
    const char *implementation = harness_implementation((size_t)_i);
    for (int mode = CM_AES_ECB; mode <= CM_AES_CBC; mode++) {
        static struct bench bench;
        bench_begin(&bench, implementation, (enum cm_aes_mode)mode);
        for (size_t length = 0; length < sizeof bytes; length++) {
            if (length > 0 && length % 16 == 0)
                continue;
            struct harness_message message = {.text = bytes, .length = length, .iv = bytes, .iv_length = 16};
            struct cm_aes_item item;
            harness_stage_place(&bench.stage, &message, CM_AES_DECRYPT, CM_AES_PKCS7,
                                (struct harness_placement){.front = false, .shift = 0}, false, &item);
            ck_assert_uint_eq(cm_aes_batch(bench.decrypting, CM_AES_PKCS7, &item, 1), 1);
            harness_check_refused(&item, CM_AES_BAD_LENGTH, 0, implementation);
            harness_stage_check(&bench.stage, &item, implementation);
        }
        bench_end(&bench);
    }
}
END_TEST

START_TEST(whole_blocks_are_asked_for_without_padding)
{
    static const uint8_t bytes[64];
    const char *implementation = harness_implementation((size_t)_i);
    for (int mode = CM_AES_ECB; mode <= CM_AES_CBC; mode++)
        for (int direction = 0; direction < CM_AES_DIRECTION_COUNT; direction++) {
            struct harness_key memory;
            struct cm_aes_key *key = harness_key_init(&memory, implementation, (enum cm_aes_mode)mode,
                                                      (enum cm_aes_direction)direction, bytes, 16);
            for (size_t length = 0; length < sizeof bytes; length++) {
                uint8_t output[sizeof bytes];
                struct cm_aes_item item = {
                    .source = bytes, .destination = output, .length = length, .iv = bytes, .iv_length = 16};
                int status = length % 16 == 0 ? CM_AES_OK : CM_AES_BAD_LENGTH;
                size_t failed = cm_aes_batch(key, CM_AES_NO_PADDING, &item, 1);
                ck_assert_uint_eq(failed, status != CM_AES_OK);
                ck_assert_int_eq(item.ret_status, status);
                ck_assert_uint_eq(item.ret_length, status == CM_AES_OK ? length : 0);
            }
            cm_aes_key_done(key);
        }
}
END_TEST

START_TEST(output_bounds)
{
    for (size_t length = 0; length < 100; length++) {
        ck_assert_uint_eq(cm_aes_output_bound(CM_AES_ENCRYPT, CM_AES_NO_PADDING, length), length);
        ck_assert_uint_eq(cm_aes_output_bound(CM_AES_ENCRYPT, CM_AES_PKCS7, length), length / 16 * 16 + 16);
        ck_assert_uint_ge(cm_aes_output_bound(CM_AES_DECRYPT, CM_AES_NO_PADDING, length), length);
        if (length > 0 && length % 16 == 0)
            ck_assert_uint_ge(cm_aes_output_bound(CM_AES_DECRYPT, CM_AES_PKCS7, length), length - 1);
    }
}
END_TEST

static void add_tests(TCase *test_case)
{
    harness_add_for_each(test_case, every_form);
    harness_add_for_each(test_case, no_ciphertext_that_padding_could_be_in);
    harness_add_for_each(test_case, whole_blocks_are_asked_for_without_padding);
    tcase_add_test(test_case, output_bounds);
}

int main(void)
{
    return harness_run_initialised("PKCS#7", add_tests);
}
