/* SPDX-License-Identifier: Apache-2.0 */
/* Keys: their lengths, what the row promises about their memory, and that nothing of them stays behind. */
#include "harness.h"

#include <string.h>

#define for_each_mode_of(implementation, mode)                                                               \
    for (enum cm_aes_mode mode = CM_AES_ECB; mode < CM_AES_MODE_COUNT; mode++)                               \
        if (harness_has(implementation, mode))

#define for_each_direction(direction)                                                                        \
    for (enum cm_aes_direction direction = CM_AES_ENCRYPT; direction < CM_AES_DIRECTION_COUNT; direction++)

START_TEST(only_the_lengths_of_the_mode)
{
    const char *implementation = harness_implementation((size_t)_i);
    static const uint8_t bytes[80];
    for_each_mode_of(implementation, mode) for_each_direction(direction)
    {
        const size_t *right = harness_key_lengths(mode);
        for (size_t length = 0; length <= sizeof bytes; length++) {
            struct harness_key memory;
            int status = cm_aes_key_init((struct cm_aes_key *)(void *)memory.memory,
                                         harness_row(implementation, mode, direction), bytes, length);
            require(status == (length == *right ? CM_AES_OK : CM_AES_BAD_KEY_LENGTH),
                    "%s, %s: a key of %zu bytes: %d", implementation, harness_mode_name(mode), length,
                    status);
            right += *right != 0 && length == *right;
        }
        require(*right == 0, "%s: a length was not reached", harness_mode_name(mode));
    }
}
END_TEST

/* The memory past the size that the row names is not the key's. */
START_TEST(stays_within_its_size_and_is_wiped)
{
    const char *implementation = harness_implementation((size_t)_i);
    static const uint8_t bytes[64] = "a key that is easy to find again, and has two different halves";
    for_each_mode_of(implementation, mode) for_each_direction(direction)
    {
        for (const size_t *length = harness_key_lengths(mode); *length != 0; length++) {
            struct harness_key memory;
            memset(memory.memory, 0xa5, sizeof memory.memory);
            struct cm_aes_key *key =
                harness_key_init(&memory, implementation, mode, direction, bytes, *length);
            size_t size = cm_aes_key_size(cm_aes_key_row(key));
            for (size_t i = size; i < sizeof memory.memory; i++)
                require(memory.memory[i] == 0xa5, "%s: byte %zu behind a key of %zu was written",
                        implementation, i, size);
            cm_aes_key_done(key);
            for (size_t i = 0; i < size; i++)
                require(memory.memory[i] == 0, "%s: byte %zu of the key was not wiped", implementation, i);
        }
    }
}
END_TEST

/* Running a batch, short or long, only reads the key: threads share it. */
START_TEST(is_only_read)
{
    static const size_t text_lengths[] = {64, 4 * CM_AES_SHORT_BYTES};
    const char *implementation = harness_implementation((size_t)_i);
    static const uint8_t bytes[4 * CM_AES_SHORT_BYTES];
    for_each_mode_of(implementation, mode) for_each_direction(direction)
    {
        struct harness_key memory, before;
        uint8_t output[sizeof bytes], tag[16] = {0};
        struct cm_aes_key *key = harness_key_init(&memory, implementation, mode, direction, bytes, 32);
        size_t size = cm_aes_key_size(cm_aes_key_row(key));
        memcpy(before.memory, memory.memory, size);
        for (size_t i = 0; i < sizeof text_lengths / sizeof *text_lengths; i++) {
            struct cm_aes_item item = {.source = bytes,
                                       .destination = output,
                                       .length = text_lengths[i],
                                       .iv = bytes,
                                       .iv_length = 16,
                                       .tag = tag,
                                       .tag_length = 16};
            size_t failed = cm_aes_batch(key, CM_AES_NO_PADDING, &item, 1);
            require(failed == (mode == CM_AES_GCM && direction == CM_AES_DECRYPT), "%s: status %d",
                    implementation, item.ret_status);
            require(memcmp(before.memory, memory.memory, size) == 0, "%s: a batch changed its key",
                    implementation);
        }
        cm_aes_key_done(key);
    }
}
END_TEST

START_TEST(equal)
{
    uint8_t a[64], b[64];
    for (size_t length = 0; length <= sizeof a; length++) {
        memset(a, 0x11, sizeof a);
        memset(b, 0x11, sizeof b);
        ck_assert(cm_aes_equal(a, b, length));
        for (size_t bit = 0; bit < length * 8; bit++) {
            b[bit / 8] ^= (uint8_t)(1U << bit % 8);
            require(!cm_aes_equal(a, b, length), "bit %zu of %zu bytes does not count", bit, length);
            b[bit / 8] ^= (uint8_t)(1U << bit % 8);
        }
        if (length < sizeof a) {
            b[length] ^= 0xff;
            ck_assert(cm_aes_equal(a, b, length));
        }
    }
    ck_assert(cm_aes_equal(NULL, NULL, 0));
}
END_TEST

START_TEST(wipe)
{
    uint8_t memory[80];
    for (size_t length = 0; length <= 64; length++)
        for (size_t offset = 0; offset < 8; offset++) {
            memset(memory, 0xa5, sizeof memory);
            cm_aes_wipe(memory + offset, length);
            for (size_t i = 0; i < sizeof memory; i++)
                require(memory[i] == (i >= offset && i < offset + length ? 0 : 0xa5),
                        "byte %zu after wiping %zu at %zu", i, length, offset);
        }
    cm_aes_wipe(NULL, 0);
}
END_TEST

static void add_tests(TCase *test_case)
{
    harness_add_for_each(test_case, only_the_lengths_of_the_mode);
    harness_add_for_each(test_case, stays_within_its_size_and_is_wiped);
    harness_add_for_each(test_case, is_only_read);
    tcase_add_test(test_case, equal);
    tcase_add_test(test_case, wipe);
}

int main(void)
{
    return harness_run_initialised("keys", add_tests);
}
