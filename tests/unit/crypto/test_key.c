/* SPDX-License-Identifier: Apache-2.0 */
/* Keys: their lengths, what the row promises about their memory, and that nothing of them stays behind. */
#include "harness.h"

#include <string.h>

START_TEST(only_16_24_and_32_bytes)
{
    const char *implementation = harness_implementation((size_t)_i);
    static const uint8_t bytes[80];
    for (int mode = 0; mode < HARNESS_PLAIN_MODES; mode++)
        for (int direction = 0; direction < CM_AES_DIRECTION_COUNT; direction++)
            for (size_t length = 0; length <= sizeof bytes; length++) {
                struct harness_key memory;
                const struct cm_aes_row *row =
                    harness_row(implementation, (enum cm_aes_mode)mode, (enum cm_aes_direction)direction);
                int status = cm_aes_key_init((struct cm_aes_key *)(void *)memory.memory, row, bytes, length);
                bool right = length == 16 || length == 24 || length == 32;
                require(status == (right ? CM_AES_OK : CM_AES_BAD_KEY_LENGTH), "%s: a key of %zu bytes: %d",
                        implementation, length, status);
            }
}
END_TEST

/* The memory past the size that the row names is not the key's. */
START_TEST(stays_within_its_size_and_is_wiped)
{
    const char *implementation = harness_implementation((size_t)_i);
    static const uint8_t bytes[32] = "a key that is easy to find again";
    for (int mode = 0; mode < HARNESS_PLAIN_MODES; mode++)
        for (int direction = 0; direction < CM_AES_DIRECTION_COUNT; direction++)
            for (size_t length = 16; length <= 32; length += 8) {
                struct harness_key memory;
                memset(memory.memory, 0xa5, sizeof memory.memory);
                struct cm_aes_key *key = harness_key_init(&memory, implementation, (enum cm_aes_mode)mode,
                                                          (enum cm_aes_direction)direction, bytes, length);
                size_t size = cm_aes_key_size(cm_aes_key_row(key));
                for (size_t i = size; i < sizeof memory.memory; i++)
                    require(memory.memory[i] == 0xa5, "%s: byte %zu behind a key of %zu was written",
                            implementation, i, size);
                cm_aes_key_done(key);
                for (size_t i = 0; i < size; i++)
                    require(memory.memory[i] == 0, "%s: byte %zu of the key was not wiped", implementation,
                            i);
            }
}
END_TEST

/* Running a batch only reads the key: threads share it. */
START_TEST(is_only_read)
{
    const char *implementation = harness_implementation((size_t)_i);
    static const uint8_t bytes[64];
    for (int mode = 0; mode < HARNESS_PLAIN_MODES; mode++)
        for (int direction = 0; direction < CM_AES_DIRECTION_COUNT; direction++) {
            struct harness_key memory, before;
            uint8_t output[64], tag[16] = {0};
            struct cm_aes_key *key = harness_key_init(&memory, implementation, (enum cm_aes_mode)mode,
                                                      (enum cm_aes_direction)direction, bytes, 32);
            size_t size = cm_aes_key_size(cm_aes_key_row(key));
            memcpy(before.memory, memory.memory, size);
            struct cm_aes_item item = {.source = bytes,
                                       .destination = output,
                                       .length = 64,
                                       .iv = bytes,
                                       .iv_length = 16,
                                       .tag = tag,
                                       .tag_length = 16};
            size_t failed = cm_aes_batch(key, CM_AES_NO_PADDING, &item, 1);
            require(failed == (mode == CM_AES_GCM && direction == CM_AES_DECRYPT), "%s: status %d",
                    implementation, item.ret_status);
            require(memcmp(before.memory, memory.memory, size) == 0, "%s: a batch changed its key",
                    implementation);
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
    harness_add_for_each(test_case, only_16_24_and_32_bytes);
    harness_add_for_each(test_case, stays_within_its_size_and_is_wiped);
    harness_add_for_each(test_case, is_only_read);
    tcase_add_test(test_case, equal);
    tcase_add_test(test_case, wipe);
}

int main(void)
{
    return harness_run_initialised("keys", add_tests);
}
