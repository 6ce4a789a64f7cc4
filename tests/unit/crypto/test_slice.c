/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of one long message, run apart and in any order, give what the whole gives. */
#include "reference.h"

#include <stdio.h>
#include <string.h>

enum { LONGEST = 5000, MOST_SLICES = 12 };

struct whole {
    enum cm_aes_mode mode;
    enum cm_aes_padding padding;
    enum cm_aes_direction direction;
    uint8_t key[24], iv[16], text[LONGEST], cipher[LONGEST + 16], unused[16];
    size_t text_length, cipher_length;
    uint8_t source[LONGEST + 16], destination[LONGEST + 16];
};

static void whole_make(struct whole *whole, struct harness_random *random, size_t length)
{
    harness_random_fill(random, whole->key, sizeof whole->key);
    harness_random_fill(random, whole->iv, sizeof whole->iv);
    harness_random_fill(random, whole->text, sizeof whole->text);
    if (whole->mode == CM_AES_CTR) {
        /* Somewhere in the message the carry runs through 32, 64, 96 or all 128 bits. */
        memset(whole->iv + harness_random_below(random, 4) * 4, 0xff, 16 - 12);
        memset(whole->iv + 4 * harness_random_below(random, 4), 0xff, 4);
        size_t ones = (1 + harness_random_below(random, 4)) * 4;
        memset(whole->iv + 16 - ones, 0xff, ones);
        whole->iv[15] = (uint8_t)harness_random_below(random, 256);
    }
    struct harness_message message = {
        .text = whole->text, .length = length, .iv = whole->iv, .iv_length = 16};
    whole->text_length = length;
    whole->cipher_length = reference_encrypt(whole->mode, whole->padding, whole->key, sizeof whole->key,
                                             &message, whole->cipher, whole->unused);
}

/* Cuts [0, length) at random multiples of 16; returns the number of slices, at least one. */
static size_t choose_cuts(struct harness_random *random, size_t length, size_t cuts[MOST_SLICES + 1])
{
    size_t count = 0;
    cuts[0] = 0;
    while (count < MOST_SLICES - 1) {
        size_t blocks_left = (length - cuts[count]) / 16;
        if (blocks_left == 0 || harness_random_below(random, 8) == 0)
            break;
        /* Short and long ones; the last block stays for the last slice, where padding may need it. */
        size_t bound = harness_random_below(random, 2) ? blocks_left : (blocks_left < 3 ? blocks_left : 3);
        size_t next = cuts[count] + 16 * (1 + harness_random_below(random, bound));
        if (next >= length)
            break;
        cuts[++count] = next;
    }
    cuts[++count] = length;
    return count;
}

static void run_slices(struct whole *whole, const struct cm_aes_key *key, const char *implementation,
                       struct harness_random *random, bool in_place, bool backwards)
{
    bool encrypting = whole->direction == CM_AES_ENCRYPT;
    const uint8_t *input = encrypting ? whole->text : whole->cipher;
    size_t length = encrypting ? whole->text_length : whole->cipher_length;
    uint8_t *source = in_place ? whole->destination : whole->source;
    memset(whole->destination, 0x5c, sizeof whole->destination);
    memcpy(source, input, length);
    struct cm_aes_item item = {.source = source,
                               .destination = whole->destination,
                               .length = length,
                               .iv = whole->iv,
                               .iv_length = 16};

    size_t cuts[MOST_SLICES + 1];
    size_t count = choose_cuts(random, length, cuts);
    struct cm_aes_item slices[MOST_SLICES];
    uint8_t ivs[MOST_SLICES][16];
    for (size_t i = 0; i < count; i++) {
        int status = cm_aes_slice(whole->mode, whole->direction, &item, cuts[i], cuts[i + 1] - cuts[i],
                                  ivs[i], &slices[i]);
        require(status == CM_AES_OK, "%s: slice %zu refused: %d", implementation, i, status);
        require(slices[i].length == cuts[i + 1] - cuts[i] && slices[i].source == source + cuts[i] &&
                    slices[i].destination == whole->destination + cuts[i],
                "%s: slice %zu is another range", implementation, i);
    }
    size_t output = 0;
    for (size_t n = 0; n < count; n++) {
        size_t i = backwards ? count - 1 - n : n;
        size_t failed = cm_aes_batch(key, i + 1 == count ? whole->padding : CM_AES_NO_PADDING, &slices[i], 1);
        require(failed == 0, "%s: slice %zu: status %d", implementation, i, slices[i].ret_status);
        output += slices[i].ret_length;
    }
    const uint8_t *answer = encrypting ? whole->cipher : whole->text;
    size_t answer_length = encrypting ? whole->cipher_length : whole->text_length;
    require(output == answer_length && memcmp(whole->destination, answer, answer_length) == 0,
            "%s: %s of %zu bytes in %zu slices%s%s differs from the whole", implementation,
            harness_mode_name(whole->mode), length, count, in_place ? ", in place" : "",
            backwards ? ", backwards" : "");
}

struct cut {
    enum cm_aes_mode mode;
    enum cm_aes_padding padding;
    enum cm_aes_direction direction;
};

START_TEST(slices_equal_the_whole)
{
    static struct whole whole;
    static const struct cut cuts[] = {
        {CM_AES_ECB, CM_AES_NO_PADDING, CM_AES_ENCRYPT}, {CM_AES_ECB, CM_AES_NO_PADDING, CM_AES_DECRYPT},
        {CM_AES_ECB, CM_AES_PKCS7, CM_AES_ENCRYPT},      {CM_AES_ECB, CM_AES_PKCS7, CM_AES_DECRYPT},
        {CM_AES_CBC, CM_AES_NO_PADDING, CM_AES_DECRYPT}, {CM_AES_CBC, CM_AES_PKCS7, CM_AES_DECRYPT},
        {CM_AES_CTR, CM_AES_NO_PADDING, CM_AES_ENCRYPT}, {CM_AES_CTR, CM_AES_NO_PADDING, CM_AES_DECRYPT},
    };
    const char *implementation = harness_implementation((size_t)_i);
    struct harness_random random = {.state = 31};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++)
        for (int round = 0; round < 400; round++) {
            whole.mode = cuts[i].mode;
            whole.padding = cuts[i].padding;
            whole.direction = cuts[i].direction;
            size_t length = harness_random_below(&random, round % 4 == 0 ? LONGEST : 400);
            if (whole.mode != CM_AES_CTR && whole.padding == CM_AES_NO_PADDING)
                length = length / 16 * 16;
            whole_make(&whole, &random, length);
            struct harness_key memory;
            struct cm_aes_key *key = harness_key_init(&memory, implementation, whole.mode, whole.direction,
                                                      whole.key, sizeof whole.key);
            run_slices(&whole, key, implementation, &random, round & 1, round & 2);
            cm_aes_key_done(key);
        }
}
END_TEST

/* The counter of a slice far into a message that no test could hold: computed here with plain arithmetic. */
START_TEST(counters_far_away)
{
    static const uint64_t offsets[] = {
        0, 16, 1 << 20, UINT64_C(1) << 35, UINT64_C(1) << 36, UINT64_C(0xfffffffffffffff0) - 16};
    struct harness_random random = {.state = 32};
    for (int round = 0; round < 2000; round++) {
        uint8_t iv[16], slice_iv[16], expected[16];
        uint8_t text[16];
        harness_random_fill(&random, iv, sizeof iv);
        if (round % 2)
            memset(iv + 8 + round % 7, 0xff, (size_t)(8 - round % 7));
        if (round % 3 == 0)
            memset(iv, 0xff, 15);
        uint64_t offset = round < 6 ? offsets[round] : harness_random_next(&random) / 32 * 16;
        struct cm_aes_item whole = {
            .source = text, .destination = text, .length = SIZE_MAX, .iv = iv, .iv_length = 16};
        struct cm_aes_item slice;
        ck_assert_int_eq(
            cm_aes_slice(CM_AES_CTR, CM_AES_ENCRYPT, &whole, (size_t)offset, 16, slice_iv, &slice),
            CM_AES_OK);
        uint64_t blocks = offset / 16, carry = 0;
        for (size_t i = 16; i-- > 0;) {
            uint64_t sum = iv[i] + (blocks & 0xff) + carry;
            expected[i] = (uint8_t)sum;
            carry = sum >> 8;
            blocks >>= 8;
        }
        require(slice.iv == slice_iv && slice.iv_length == 16 && memcmp(slice_iv, expected, 16) == 0,
                "round %d: counter of the block at %llu", round, (unsigned long long)offset);
    }
}
END_TEST

START_TEST(what_cannot_be_cut)
{
    uint8_t bytes[64] = {0}, iv[16], tag[16];
    struct cm_aes_item whole = {.source = bytes,
                                .destination = bytes,
                                .length = sizeof bytes,
                                .iv = bytes,
                                .iv_length = 16,
                                .tag = tag,
                                .tag_length = 16};
    struct cm_aes_item slice;
    ck_assert_int_eq(cm_aes_slice(CM_AES_GCM, CM_AES_ENCRYPT, &whole, 16, 16, iv, &slice),
                     CM_AES_UNAVAILABLE);
    ck_assert_int_eq(cm_aes_slice(CM_AES_GCM, CM_AES_DECRYPT, &whole, 16, 16, iv, &slice),
                     CM_AES_UNAVAILABLE);
    ck_assert_int_eq(cm_aes_slice(CM_AES_CBC, CM_AES_ENCRYPT, &whole, 16, 16, iv, &slice),
                     CM_AES_UNAVAILABLE);
    ck_assert_int_eq(cm_aes_slice(CM_AES_CBC, CM_AES_ENCRYPT, &whole, 0, 64, iv, &slice), CM_AES_UNAVAILABLE);
}
END_TEST

static void add_tests(TCase *test_case)
{
    harness_add_for_each(test_case, slices_equal_the_whole);
    tcase_add_test(test_case, counters_far_away);
    tcase_add_test(test_case, what_cannot_be_cut);
}

int main(void)
{
    return harness_run_initialised("slices", add_tests);
}
