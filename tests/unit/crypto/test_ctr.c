/* SPDX-License-Identifier: Apache-2.0 */
/* The counter of CTR: 128 bits, big-endian, carrying over every byte, at every place in a message. */
#include "reference.h"

#include <stdio.h>
#include <string.h>

enum { LONGEST_BLOCKS = 80, LONGEST = LONGEST_BLOCKS * 16 };

/* A counter whose low `bits` bits reach all ones after `blocks` blocks more, so that the carry then leaves
 * them; the rest is random or, where `ones`, all ones up to the end (the whole counter wraps). */
static void make_counter(struct harness_random *random, uint8_t counter[16], int bits, unsigned blocks,
                         bool ones)
{
    if (ones)
        memset(counter, 0xff, 16);
    else
        harness_random_fill(random, counter, 16);
    for (int i = 0; i < bits / 8; i++)
        counter[15 - i] = 0xff;
    if (bits < 128 && !ones)
        counter[15 - bits / 8] &= 0x7f; /* the carry ends there, and is seen there */
    counter[15] = (uint8_t)(counter[15] - blocks);
}

START_TEST(carries_at_every_place)
{
    static const int bits[] = {8, 16, 24, 32, 40, 56, 64, 72, 96, 104, 120, 128};
    /* One to seventeen blocks with and without a partial one, since kernels end in steps of each size. */
    static const size_t lengths[] = {1,   16,  17,  33,  48,  63,  64,  79,  96,  100, 112,  128,
                                     129, 150, 170, 180, 197, 215, 235, 249, 265, 500, 1024, LONGEST};
    const char *implementation = harness_implementation((size_t)_i);
    struct harness_random random = {.state = 5};
    uint8_t key[32], text[LONGEST], counter[16], answer[LONGEST + 16], output[LONGEST], unused[16];
    harness_random_fill(&random, text, sizeof text);
    for (size_t key_length = 16; key_length <= 32; key_length += 8) {
        struct harness_key memory[CM_AES_DIRECTION_COUNT];
        harness_random_fill(&random, key, sizeof key);
        struct cm_aes_key *keys[CM_AES_DIRECTION_COUNT];
        for (int i = 0; i < CM_AES_DIRECTION_COUNT; i++)
            keys[i] = harness_key_init(&memory[i], implementation, CM_AES_CTR, (enum cm_aes_direction)i, key,
                                       key_length);
        for (size_t b = 0; b < sizeof bits / sizeof *bits; b++)
            for (unsigned blocks = 0; blocks <= LONGEST_BLOCKS; blocks++)
                for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
                    make_counter(&random, counter, bits[b], blocks, blocks % 3 == 0);
                    struct harness_message message = {
                        .text = text, .length = lengths[l], .iv = counter, .iv_length = 16};
                    reference_encrypt(CM_AES_CTR, CM_AES_NO_PADDING, key, key_length, &message, answer,
                                      unused);
                    struct cm_aes_item item = {.source = text,
                                               .destination = output,
                                               .length = lengths[l],
                                               .iv = counter,
                                               .iv_length = 16};
                    char where[96];
                    snprintf(where, sizeof where, "%s: %zu bytes, %d bits carry after %u blocks",
                             implementation, lengths[l], bits[b], blocks);
                    size_t failed = cm_aes_batch(keys[(b + l) % 2], CM_AES_NO_PADDING, &item, 1);
                    require(failed == 0, "%s: status %d", where, item.ret_status);
                    harness_check_output(&item, answer, lengths[l], NULL, where);
                }
        cm_aes_key_done(keys[0]);
        cm_aes_key_done(keys[1]);
    }
}
END_TEST

/* The same against a count made here, not by OpenSSL: encrypting zeros gives the counters' own ciphertexts.
 */
START_TEST(the_counter_blocks_are_the_ones_counted_by_hand)
{
    static const int bits[] = {32, 64, 128};
    const char *implementation = harness_implementation((size_t)_i);
    struct harness_random random = {.state = 6};
    static const uint8_t zeros[LONGEST];
    uint8_t key[16], counter[16], counted[LONGEST], blocks_out[LONGEST], stream[LONGEST];
    harness_random_fill(&random, key, sizeof key);
    struct harness_key ctr_memory, ecb_memory;
    struct cm_aes_key *ctr =
        harness_key_init(&ctr_memory, implementation, CM_AES_CTR, CM_AES_ENCRYPT, key, sizeof key);
    struct cm_aes_key *ecb =
        harness_key_init(&ecb_memory, implementation, CM_AES_ECB, CM_AES_ENCRYPT, key, sizeof key);
    for (size_t b = 0; b < 3; b++)
        for (unsigned blocks = 0; blocks < LONGEST_BLOCKS; blocks++) {
            make_counter(&random, counter, bits[b], blocks, false);
            memcpy(counted, counter, 16);
            for (size_t i = 16; i < LONGEST; i += 16) {
                memcpy(counted + i, counted + i - 16, 16);
                for (size_t j = 16; j-- > 0 && ++counted[i + j] == 0;)
                    ;
            }
            struct cm_aes_item item = {
                .source = zeros, .destination = stream, .length = LONGEST, .iv = counter, .iv_length = 16};
            ck_assert_uint_eq(cm_aes_batch(ctr, CM_AES_NO_PADDING, &item, 1), 0);
            item = (struct cm_aes_item){.source = counted, .destination = blocks_out, .length = LONGEST};
            ck_assert_uint_eq(cm_aes_batch(ecb, CM_AES_NO_PADDING, &item, 1), 0);
            require(memcmp(stream, blocks_out, LONGEST) == 0, "%s: %d bits carry after %u blocks",
                    implementation, bits[b], blocks);
        }
    cm_aes_key_done(ctr);
    cm_aes_key_done(ecb);
}
END_TEST

static void add_tests(TCase *test_case)
{
    harness_add_for_each(test_case, carries_at_every_place);
    harness_add_for_each(test_case, the_counter_blocks_are_the_ones_counted_by_hand);
}

int main(void)
{
    return harness_run_initialised("the counter of CTR", add_tests);
}
