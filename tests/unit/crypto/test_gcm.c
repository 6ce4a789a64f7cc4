/* SPDX-License-Identifier: Apache-2.0 */
/* GCM's refusals: every bit of a tag, of the text and of the additional data counts; odd lengths are named.
 */
#include "gcm_iv.h"
#include "reference.h"

#include <stdio.h>
#include <string.h>

enum { LONGEST = 300 };

struct sealed {
    uint8_t key[16], iv[12], aad[40], text[LONGEST], cipher[LONGEST + 16], tag[16];
    struct harness_message message; /* the ciphertext */
    struct harness_key memory;
    struct cm_aes_key *key_open;
    struct harness_stage stage;
    const char *implementation;
};

static void seal(struct sealed *sealed, const char *implementation, size_t length, size_t tag_length)
{
    struct harness_random random = {.state = length * 100 + tag_length};
    sealed->implementation = implementation;
    harness_random_fill(&random, sealed->key, sizeof sealed->key);
    harness_random_fill(&random, sealed->iv, sizeof sealed->iv);
    harness_random_fill(&random, sealed->aad, sizeof sealed->aad);
    harness_random_fill(&random, sealed->text, sizeof sealed->text);
    sealed->message = (struct harness_message){
        .text = sealed->text,
        .length = length,
        .iv = sealed->iv,
        .iv_length = sizeof sealed->iv,
        .aad = sealed->aad,
        .aad_length = sizeof sealed->aad,
        .tag_length = tag_length,
    };
    reference_encrypt(CM_AES_GCM, CM_AES_NO_PADDING, sealed->key, sizeof sealed->key, &sealed->message,
                      sealed->cipher, sealed->tag);
    sealed->message.text = sealed->cipher;
    sealed->message.tag = sealed->tag;
    sealed->key_open = harness_key_init(&sealed->memory, implementation, CM_AES_GCM, CM_AES_DECRYPT,
                                        sealed->key, sizeof sealed->key);
    if (sealed->stage.source.base == NULL)
        harness_stage_init(&sealed->stage, LONGEST, sizeof sealed->aad);
}

static void expect(struct sealed *sealed, int status, const char *what)
{
    for (int in_place = 0; in_place < 2; in_place++) {
        struct cm_aes_item item;
        char where[128];
        snprintf(where, sizeof where, "%s: %zu bytes, tag of %zu, %s", sealed->implementation,
                 sealed->message.length, sealed->message.tag_length, what);
        harness_stage_place(&sealed->stage, &sealed->message, CM_AES_DECRYPT, CM_AES_NO_PADDING,
                            (struct harness_placement){.front = false, .shift = 0}, in_place, &item);
        size_t failed = cm_aes_batch(sealed->key_open, CM_AES_NO_PADDING, &item, 1);
        require(failed == (status != CM_AES_OK), "%s: %zu failed", where, failed);
        if (status == CM_AES_OK)
            harness_check_output(&item, sealed->text, sealed->message.length, NULL, where);
        else
            harness_check_refused(&item, status, status == CM_AES_BAD_TAG ? item.length : 0, where);
        harness_stage_check(&sealed->stage, &item, where);
    }
}

static void flip_each_bit(struct sealed *sealed, uint8_t *bytes, size_t length, const char *what)
{
    for (size_t bit = 0; bit < length * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
        expect(sealed, CM_AES_BAD_TAG, what);
        bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    expect(sealed, CM_AES_OK, "put back");
}

START_TEST(every_bit_counts)
{
    static struct sealed sealed;
    static const size_t lengths[] = {0, 1, 16, 33, 150, LONGEST};
    static const size_t tag_lengths[] = {4, 8, 12, 13, 14, 15, 16};
    for (size_t i = 0; i < 6; i++)
        for (size_t j = 0; j < 7; j++) {
            seal(&sealed, harness_implementation((size_t)_i), lengths[i], tag_lengths[j]);
            flip_each_bit(&sealed, sealed.tag, tag_lengths[j], "a bit of the tag");
            if (tag_lengths[j] == 16) {
                flip_each_bit(&sealed, sealed.cipher, lengths[i], "a bit of the text");
                flip_each_bit(&sealed, sealed.aad, sizeof sealed.aad, "a bit of the additional data");
                flip_each_bit(&sealed, sealed.iv, sizeof sealed.iv, "a bit of the IV");
            }
            cm_aes_key_done(sealed.key_open);
        }
}
END_TEST

START_TEST(bytes_behind_a_short_tag_do_not_count)
{
    static struct sealed sealed;
    static const size_t tag_lengths[] = {4, 8, 12, 13, 14, 15};
    for (size_t j = 0; j < 6; j++) {
        seal(&sealed, harness_implementation((size_t)_i), 50, tag_lengths[j]);
        sealed.tag[tag_lengths[j]] ^= 0xff;
        expect(&sealed, CM_AES_OK, "the byte behind the tag changed");
        cm_aes_key_done(sealed.key_open);
    }
}
END_TEST

START_TEST(tag_and_iv_lengths)
{
    const char *implementation = harness_implementation((size_t)_i);
    static const uint8_t bytes[64];
    for (int direction = 0; direction < CM_AES_DIRECTION_COUNT; direction++) {
        struct harness_key memory;
        struct cm_aes_key *key = harness_key_init(&memory, implementation, CM_AES_GCM,
                                                  (enum cm_aes_direction)direction, bytes, 32);
        for (size_t tag_length = 0; tag_length <= 20; tag_length++) {
            uint8_t output[16], tag[20] = {0};
            struct cm_aes_item item = {.source = bytes,
                                       .destination = output,
                                       .length = 16,
                                       .iv = bytes,
                                       .iv_length = 12,
                                       .tag = tag,
                                       .tag_length = tag_length};
            size_t failed = cm_aes_batch(key, CM_AES_NO_PADDING, &item, 1);
            bool fine = tag_length == 4 || tag_length == 8 || (tag_length >= 12 && tag_length <= 16);
            int status = !fine                         ? CM_AES_BAD_TAG_LENGTH
                         : direction == CM_AES_ENCRYPT ? CM_AES_OK
                                                       : CM_AES_BAD_TAG;
            require(item.ret_status == status && failed == (status != CM_AES_OK),
                    "%s: tag of %zu bytes, direction %d: status %d", implementation, tag_length, direction,
                    item.ret_status);
        }
        uint8_t output[16], tag[16] = {0};
        struct cm_aes_item item = {.source = bytes,
                                   .destination = output,
                                   .length = 16,
                                   .iv = bytes,
                                   .iv_length = 0,
                                   .tag = tag,
                                   .tag_length = 16};
        ck_assert_uint_eq(cm_aes_batch(key, CM_AES_NO_PADDING, &item, 1), 1);
        ck_assert_int_eq(item.ret_status, CM_AES_BAD_IV);
        cm_aes_key_done(key);
    }
}
END_TEST

/* SP 800-38D, 5.2.1.1: found by the length alone, before any byte is read. */
START_TEST(too_long)
{
    const char *implementation = harness_implementation((size_t)_i);
    static const uint8_t bytes[32];
    for (int direction = 0; direction < CM_AES_DIRECTION_COUNT; direction++) {
        struct harness_key memory;
        struct cm_aes_key *key = harness_key_init(&memory, implementation, CM_AES_GCM,
                                                  (enum cm_aes_direction)direction, bytes, 16);
        uint8_t output[16], tag[16] = {0};
        struct cm_aes_item item = {.source = bytes,
                                   .destination = output,
                                   .length = (size_t)CM_AES_GCM_MAX_BYTES + 1,
                                   .iv = bytes,
                                   .iv_length = 12,
                                   .tag = tag,
                                   .tag_length = 16};
        ck_assert_uint_eq(cm_aes_batch(key, CM_AES_NO_PADDING, &item, 1), 1);
        ck_assert_int_eq(item.ret_status, CM_AES_BAD_LENGTH);
        ck_assert_uint_eq(item.ret_length, 0);
        cm_aes_key_done(key);
    }
}
END_TEST

/* What leads to IVs, and room for a question and its answers. */
struct wrap {
    const char *implementation;
    struct cm_aes_key *gcm;
    struct gcm_iv gcm_iv;
    uint8_t key[16], iv[16], text[1024], answer[1024 + 16], output[1024];
};

/* Puts an IV in place under which the last 32 bits of the counter are all ones after `blocks` blocks of text.
 * The first block of the answer tells that they are. */
static void wrap_after(struct wrap *wrap, struct harness_random *random, unsigned blocks)
{
    uint8_t counter[16], pad[16], unused[16];
    harness_random_fill(random, counter, sizeof counter);
    memset(counter + 11, 0xff, 5);
    counter[15] = (uint8_t)(0xff - blocks);
    gcm_iv_for_counter(&wrap->gcm_iv, counter, wrap->iv);

    uint32_t second = 0xffffffffU - blocks + 1;
    for (size_t i = 0; i < 4; i++)
        counter[15 - i] = (uint8_t)(second >> 8 * i);
    struct harness_message block = {.text = counter, .length = 16};
    reference_encrypt(CM_AES_ECB, CM_AES_NO_PADDING, wrap->key, sizeof wrap->key, &block, pad, unused);
    struct harness_message message = {
        .text = wrap->text, .length = 16, .iv = wrap->iv, .iv_length = 16, .tag_length = 16};
    reference_encrypt(CM_AES_GCM, CM_AES_NO_PADDING, wrap->key, sizeof wrap->key, &message, wrap->answer,
                      unused);
    for (size_t i = 0; i < 16; i++)
        require((pad[i] ^ wrap->text[i]) == wrap->answer[i], "the IV does not give the counter");
}

static void wrap_try(struct wrap *wrap, size_t length)
{
    uint8_t tag[16], answer_tag[16];
    struct harness_message message = {
        .text = wrap->text, .length = length, .iv = wrap->iv, .iv_length = 16, .tag_length = 16};
    reference_encrypt(CM_AES_GCM, CM_AES_NO_PADDING, wrap->key, sizeof wrap->key, &message, wrap->answer,
                      answer_tag);
    struct cm_aes_item item = {.source = wrap->text,
                               .destination = wrap->output,
                               .length = length,
                               .iv = wrap->iv,
                               .iv_length = 16,
                               .tag = tag,
                               .tag_length = 16};
    ck_assert_uint_eq(cm_aes_batch(wrap->gcm, CM_AES_NO_PADDING, &item, 1), 0);
    harness_check_output(&item, wrap->answer, length, answer_tag, wrap->implementation);
}

/* GCM's counter wraps within its last 32 bits and never carries into the rest, wherever in the text that is.
 */
START_TEST(counter_wraps_within_32_bits)
{
    static struct wrap wrap;
    struct harness_random random = {.state = 8};
    struct harness_key memory;
    wrap.implementation = harness_implementation((size_t)_i);
    harness_random_fill(&random, wrap.key, sizeof wrap.key);
    harness_random_fill(&random, wrap.text, sizeof wrap.text);
    gcm_iv_init(&wrap.gcm_iv, wrap.key, sizeof wrap.key);
    wrap.gcm =
        harness_key_init(&memory, wrap.implementation, CM_AES_GCM, CM_AES_ENCRYPT, wrap.key, sizeof wrap.key);
    for (unsigned blocks = 0; blocks < 60; blocks++) {
        wrap_after(&wrap, &random, blocks);
        for (size_t length = 1; length <= 300; length += 1 + length % 13)
            wrap_try(&wrap, length);
        wrap_try(&wrap, sizeof wrap.text);
    }
    cm_aes_key_done(wrap.gcm);
}
END_TEST

static void add_tests(TCase *test_case)
{
    harness_add_for_each(test_case, every_bit_counts);
    harness_add_for_each(test_case, bytes_behind_a_short_tag_do_not_count);
    harness_add_for_each(test_case, tag_and_iv_lengths);
    harness_add_for_each(test_case, too_long);
    harness_add_for_each(test_case, counter_wraps_within_32_bits);
}

int main(void)
{
    return harness_run_initialised("GCM", add_tests);
}
