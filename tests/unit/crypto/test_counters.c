/* SPDX-License-Identifier: Apache-2.0 */
/* Counters that wrap in whole batches, each message's at another block: CTR's in any number of its bytes,
 * GCM's within 32 bits. Kernels run short messages beside each other, so the counters of one must not reach
 * another.
 */
#include "gcm_iv.h"
#include "reference.h"

#include <stdio.h>
#include <string.h>

enum { MOST_ITEMS = 33, BLOCKS = 40, LONGEST = 1104, AAD = 20 };

struct crowd {
    const char *implementation;
    enum cm_aes_mode mode;
    uint8_t key[32];
    size_t key_length;
    struct harness_random random;
    struct gcm_iv gcm_iv;
    struct harness_key memory[CM_AES_DIRECTION_COUNT];
    struct cm_aes_key *keys[CM_AES_DIRECTION_COUNT];
    uint8_t text[MOST_ITEMS][LONGEST], cipher[MOST_ITEMS][LONGEST + 16], output[MOST_ITEMS][LONGEST];
    uint8_t ivs[MOST_ITEMS][16], tags[MOST_ITEMS][16], got_tags[MOST_ITEMS][16], aad[AAD];
    size_t lengths[MOST_ITEMS], wraps[MOST_ITEMS];
};

static void crowd_begin(struct crowd *crowd, const char *implementation, enum cm_aes_mode mode,
                        size_t key_length)
{
    crowd->implementation = implementation;
    crowd->mode = mode;
    crowd->key_length = key_length;
    crowd->random.state = key_length + (uint64_t)mode;
    harness_random_fill(&crowd->random, crowd->key, sizeof crowd->key);
    harness_random_fill(&crowd->random, crowd->aad, sizeof crowd->aad);
    harness_random_fill(&crowd->random, &crowd->text[0][0], sizeof crowd->text);
    for (int direction = 0; direction < CM_AES_DIRECTION_COUNT; direction++)
        crowd->keys[direction] = harness_key_init(&crowd->memory[direction], implementation, mode,
                                                  (enum cm_aes_direction)direction, crowd->key, key_length);
    gcm_iv_init(&crowd->gcm_iv, crowd->key, key_length);
}

static void crowd_end(struct crowd *crowd)
{
    cm_aes_key_done(crowd->keys[CM_AES_ENCRYPT]);
    cm_aes_key_done(crowd->keys[CM_AES_DECRYPT]);
}

/* Item `i`: its counter block is all ones in the low `bits` after `blocks` blocks of text more. Where these
 * are not all 128, the byte above them is random, or all ones too. */
static void set_iv(struct crowd *crowd, size_t i, unsigned bits, size_t blocks)
{
    uint8_t counter[16];
    harness_random_fill(&crowd->random, counter, sizeof counter);
    if (harness_random_below(&crowd->random, 3) == 0)
        memset(counter, 0xff, sizeof counter);
    memset(counter + 16 - bits / 8, 0xff, bits / 8);
    counter[15] = (uint8_t)(0xff - blocks);
    crowd->wraps[i] = blocks;
    if (crowd->mode == CM_AES_GCM)
        gcm_iv_for_counter(&crowd->gcm_iv, counter, crowd->ivs[i]);
    else
        memcpy(crowd->ivs[i], counter, 16);
}

static void ask_openssl(struct crowd *crowd, size_t i, size_t length)
{
    bool gcm = crowd->mode == CM_AES_GCM;
    struct harness_message message = {.text = crowd->text[i],
                                      .length = length,
                                      .iv = crowd->ivs[i],
                                      .iv_length = 16,
                                      .aad = crowd->aad,
                                      .aad_length = gcm ? i % (AAD + 1) : 0,
                                      .tag_length = 16};
    crowd->lengths[i] = length;
    reference_encrypt(crowd->mode, CM_AES_NO_PADDING, crowd->key, crowd->key_length, &message,
                      crowd->cipher[i], crowd->tags[i]);
}

static void run(struct crowd *crowd, size_t count, bool in_place)
{
    bool gcm = crowd->mode == CM_AES_GCM;
    for (int direction = 0; direction < CM_AES_DIRECTION_COUNT; direction++) {
        bool encrypting = direction == CM_AES_ENCRYPT;
        struct cm_aes_item items[MOST_ITEMS];
        for (size_t i = 0; i < count; i++) {
            const uint8_t *source = encrypting ? crowd->text[i] : crowd->cipher[i];
            memset(crowd->output[i], HARNESS_STALE, LONGEST);
            if (in_place)
                memcpy(crowd->output[i], source, crowd->lengths[i]);
            memcpy(crowd->got_tags[i], crowd->tags[i], 16);
            if (encrypting)
                memset(crowd->got_tags[i], 0, 16);
            items[i] = (struct cm_aes_item){.source = in_place ? crowd->output[i] : source,
                                            .destination = crowd->output[i],
                                            .length = crowd->lengths[i],
                                            .iv = crowd->ivs[i],
                                            .iv_length = 16,
                                            .aad = crowd->aad,
                                            .aad_length = gcm ? i % (AAD + 1) : 0,
                                            .tag = crowd->got_tags[i],
                                            .tag_length = 16};
        }
        size_t failed = cm_aes_batch(crowd->keys[direction], CM_AES_NO_PADDING, items, count);
        for (size_t i = 0; i < count; i++) {
            char where[160];
            snprintf(where, sizeof where, "%s: %s-%zu, direction %d, item %zu of %zu, wraps after block %zu",
                     crowd->implementation, harness_mode_name(crowd->mode), crowd->key_length * 8, direction,
                     i, count, crowd->wraps[i]);
            harness_check_output(&items[i], encrypting ? crowd->cipher[i] : crowd->text[i], crowd->lengths[i],
                                 gcm ? crowd->tags[i] : NULL, where);
        }
        ck_assert_uint_eq(failed, 0);
    }
}

static unsigned some_bits(struct crowd *crowd)
{
    static const unsigned bits[] = {32, 64, 128, 8, 40, 96, 16, 120};
    return crowd->mode == CM_AES_GCM ? 32 : bits[harness_random_below(&crowd->random, 8)];
}

/* Lengths at which batches are cut differently, around one block, a kernel's stride and the shared lanes'
 * end. */
static const size_t lengths[] = {1,   16,  17,  32,  48,  64,  65,  100, 127, 128,  129,  240,
                                 255, 256, 257, 272, 384, 511, 512, 513, 768, 1023, 1024, 1025};
static const enum cm_aes_mode modes[] = {CM_AES_CTR, CM_AES_GCM};

/* Equal lengths, and each message's counter wraps one block later than that of the one before. */
START_TEST(batches_of_equal_messages)
{
    static const size_t counts[] = {2, 3, 8, 9, MOST_ITEMS};
    static struct crowd crowd;
    const char *implementation = harness_implementation((size_t)_i / 2);
    for (size_t key_length = 16; key_length <= 32; key_length += 8) {
        crowd_begin(&crowd, implementation, modes[_i % 2], key_length);
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
            for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
                unsigned bits = some_bits(&crowd);
                for (size_t i = 0; i < counts[c]; i++) {
                    set_iv(&crowd, i, bits, (l + i) % (lengths[l] / 16 + 2));
                    ask_openssl(&crowd, i, lengths[l]);
                }
                run(&crowd, counts[c], (l + c) % 2);
            }
        crowd_end(&crowd);
    }
}
END_TEST

START_TEST(batches_of_unequal_messages)
{
    static struct crowd crowd;
    const char *implementation = harness_implementation((size_t)_i / 2);
    for (size_t key_length = 16; key_length <= 32; key_length += 8) {
        crowd_begin(&crowd, implementation, modes[_i % 2], key_length);
        for (int round = 0; round < 60; round++) {
            static const size_t bounds[] = {33, 130, 260, LONGEST - 1};
            size_t bound = bounds[round % 4];
            size_t count = 1 + harness_random_below(&crowd.random, MOST_ITEMS);
            for (size_t i = 0; i < count; i++) {
                size_t length = 1 + harness_random_below(&crowd.random, bound);
                set_iv(&crowd, i, some_bits(&crowd), harness_random_below(&crowd.random, length / 16 + 2));
                ask_openssl(&crowd, i, length);
            }
            run(&crowd, count, round % 2);
        }
        crowd_end(&crowd);
    }
}
END_TEST

/* One message at each place of the wrap, at every length around it. */
START_TEST(each_block_of_one_message)
{
    static struct crowd crowd;
    const char *implementation = harness_implementation((size_t)_i / 2);
    for (size_t key_length = 16; key_length <= 32; key_length += 8) {
        crowd_begin(&crowd, implementation, modes[_i % 2], key_length);
        for (unsigned bits = 32; bits <= (crowd.mode == CM_AES_GCM ? 32 : 128); bits *= 2)
            for (size_t blocks = 0; blocks <= BLOCKS; blocks++) {
                set_iv(&crowd, 0, bits, blocks);
                for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
                    ask_openssl(&crowd, 0, lengths[l]);
                    run(&crowd, 1, l % 2);
                }
                for (size_t length = 16 * blocks; length <= 16 * blocks + 49; length += 7) {
                    ask_openssl(&crowd, 0, length);
                    run(&crowd, 1, length % 2);
                }
            }
        crowd_end(&crowd);
    }
}
END_TEST

/* The state between parts holds the next counter: at, before and behind its wrap. */
START_TEST(parts)
{
    static struct crowd crowd;
    const char *implementation = harness_implementation((size_t)_i / 2);
    crowd_begin(&crowd, implementation, modes[_i % 2], 32);
    for (size_t blocks = 0; blocks <= BLOCKS; blocks++)
        for (size_t cut = 0; cut <= LONGEST / 16; cut++) {
            set_iv(&crowd, 0, some_bits(&crowd), blocks);
            ask_openssl(&crowd, 0, LONGEST - blocks % 16);
            struct cm_aes_parts state;
            memset(&state, 0, sizeof state);
            struct cm_aes_item item = {.source = crowd.text[0],
                                       .destination = crowd.output[0],
                                       .length = 16 * cut < crowd.lengths[0] ? 16 * cut : 0,
                                       .iv = crowd.ivs[0],
                                       .iv_length = 16,
                                       .tag = crowd.got_tags[0],
                                       .tag_length = 16};
            size_t first = item.length;
            struct cm_aes_key *key = crowd.keys[CM_AES_ENCRYPT];
            ck_assert_int_eq(cm_aes_part(key, CM_AES_NO_PADDING, &state, &item, false), CM_AES_OK);
            item.source += first;
            item.destination += first;
            item.length = crowd.lengths[0] - first;
            ck_assert_int_eq(cm_aes_part(key, CM_AES_NO_PADDING, &state, &item, true), CM_AES_OK);
            require(memcmp(crowd.output[0], crowd.cipher[0], crowd.lengths[0]) == 0 &&
                        (crowd.mode != CM_AES_GCM || memcmp(crowd.got_tags[0], crowd.tags[0], 16) == 0),
                    "%s: %s cut at block %zu, wraps after block %zu", implementation,
                    harness_mode_name(crowd.mode), cut, blocks);
        }
    crowd_end(&crowd);
}
END_TEST

static void add_tests(TCase *test_case)
{
    int runs = 2 * (int)harness_implementation_count();
    tcase_add_loop_test(test_case, batches_of_equal_messages, 0, runs);
    tcase_add_loop_test(test_case, batches_of_unequal_messages, 0, runs);
    tcase_add_loop_test(test_case, each_block_of_one_message, 0, runs);
    tcase_add_loop_test(test_case, parts, 0, runs);
}

int main(void)
{
    return harness_run_initialised("counters that wrap", add_tests);
}
