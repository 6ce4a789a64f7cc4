/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of more than 4 GiB in ECB and CTR: no count of bytes may be kept in 32 bits. */
#include "impl.h"
#include "reference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A little memory that looks like a lot: one file, mapped over and over. Source and destination repeat at
 * different distances, neither of which divides 4 GiB, so that what is read or written 4 GiB too early is
 * also at the wrong place in the file. */
enum { SOURCE_BYTES = (64 << 20) + 4096, DESTINATION_BYTES = (64 << 20) + 3 * 4096 };
#define TEXT_BYTES ((UINT64_C(1) << 32) + (1 << 20) + 16)

static uint8_t *map_over_and_over(size_t file_bytes, uint64_t bytes, size_t *ret_mapped)
{
    size_t times = (size_t)((bytes + file_bytes - 1) / file_bytes);
    int file = memfd_create("text", 0);
    require(file >= 0 && ftruncate(file, (off_t)file_bytes) == 0, "no memory file");
    uint8_t *memory =
        mmap(NULL, times * file_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    require(memory != MAP_FAILED, "no room for %zu times %zu bytes", times, file_bytes);
    for (size_t i = 0; i < times; i++)
        require(mmap(memory + i * file_bytes, file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                     file, 0) != MAP_FAILED,
                "mapping %zu failed", i);
    close(file);
    *ret_mapped = times * file_bytes;
    return memory;
}

struct exam {
    uint8_t key[16], iv[16];
    uint8_t *source, *destination;
    size_t source_mapped, destination_mapped;
};

static void exam_begin(struct exam *exam)
{
    struct harness_random random = {.state = 4};
    harness_random_fill(&random, exam->key, sizeof exam->key);
    harness_random_fill(&random, exam->iv, sizeof exam->iv);
    exam->iv[8] = 0x7f;             /* the upper half stays as it is ... */
    memset(exam->iv + 12, 0xff, 3); /* ... and 32 bits carry soon */
    exam->source = map_over_and_over(SOURCE_BYTES, TEXT_BYTES + 16, &exam->source_mapped);
    exam->destination = map_over_and_over(DESTINATION_BYTES, TEXT_BYTES + 16, &exam->destination_mapped);
    harness_random_fill(&random, exam->source, SOURCE_BYTES);
}

static void exam_end(struct exam *exam)
{
    munmap(exam->source, exam->source_mapped);
    munmap(exam->destination, exam->destination_mapped);
}

/* The counter of the block at `offset`; the IV is such that the lower half does not carry. */
static void counter_at(const uint8_t iv[16], uint64_t offset, uint8_t ret_counter[16])
{
    uint64_t low = 0;
    for (size_t i = 0; i < 8; i++)
        low = low << 8 | iv[8 + i];
    low += offset / 16;
    memcpy(ret_counter, iv, 8);
    for (size_t i = 0; i < 8; i++)
        ret_counter[15 - i] = (uint8_t)(low >> 8 * i);
}

/* Whether the destination's file holds what it must in the end: of each of its bytes the last that was to be
 * written there. */
static bool is_right(const struct exam *exam, enum cm_aes_mode mode, uint64_t length)
{
    enum { WINDOW = 1 << 20 };
    static uint8_t answer[WINDOW + 16];
    uint8_t unused[16], counter[16];
    for (uint64_t at = (length - DESTINATION_BYTES + 15) / 16 * 16; at < length; at += WINDOW) {
        size_t bytes = length - at < WINDOW ? (size_t)(length - at) : WINDOW;
        counter_at(exam->iv, at, counter);
        struct harness_message message = {
            .text = exam->source + at, .length = bytes, .iv = counter, .iv_length = 16};
        reference_encrypt(mode, CM_AES_NO_PADDING, exam->key, sizeof exam->key, &message, answer, unused);
        if (memcmp(answer, exam->destination + at, bytes) != 0)
            return false;
    }
    return true;
}

static void run(const struct exam *exam, const struct cm_aes_key *key, uint64_t length)
{
    struct cm_aes_item item = {.source = exam->source,
                               .destination = exam->destination,
                               .length = (size_t)length,
                               .iv = exam->iv,
                               .iv_length = 16};
    require(cm_aes_batch(key, CM_AES_NO_PADDING, &item, 1) == 0 && item.ret_length == length, "status %d",
            item.ret_status);
}

/* Whole blocks in ECB, a ragged end in CTR. */
static uint64_t length_for(enum cm_aes_mode mode)
{
    return mode == CM_AES_ECB ? TEXT_BYTES : TEXT_BYTES + 5;
}

START_TEST(over_4_gib)
{
    struct exam exam;
    const char *implementation = harness_implementation((size_t)_i);
    if (strcmp(implementation, "portable") == 0 && getenv("CIPHERMILL_TEST_LARGE") == NULL) {
        (void)printf("skipped: crypto: messages over 4 GiB with portable (set CIPHERMILL_TEST_LARGE)\n");
        return;
    }
    exam_begin(&exam);
    static const enum cm_aes_mode modes[] = {CM_AES_ECB, CM_AES_CTR};
    for (size_t i = 0; i < 2; i++) {
        struct harness_key memory;
        struct cm_aes_key *key =
            harness_key_init(&memory, implementation, modes[i], CM_AES_ENCRYPT, exam.key, sizeof exam.key);
        run(&exam, key, length_for(modes[i]));
        require(is_right(&exam, modes[i], length_for(modes[i])), "%s: %s is wrong", implementation,
                harness_mode_name(modes[i]));
        cm_aes_key_done(key);
    }
    exam_end(&exam);
}
END_TEST

/* --- What must be found -----------------------------------------------------------------------------------
 */

static const struct cm_kernel *healthy;

/* Counts bytes in 32 bits. */
static void run_cut(const struct cm_kernel_key *key, struct cm_aes_item *items, size_t count)
{
    for (size_t i = 0; i < count; i++)
        items[i].length = (uint32_t)items[i].length;
    healthy->run(key, items, count);
}

START_TEST(a_count_of_32_bits_is_found)
{
    struct exam exam;
    exam_begin(&exam);
    healthy = cm_aes_row_named(CM_AES_CTR, CM_AES_ENCRYPT, "portable")->kernel[CM_AES_LONG];
    struct cm_kernel cut = *healthy;
    struct cm_aes_row row;
    struct harness_key memory;
    struct cm_aes_key *key = (struct cm_aes_key *)(void *)memory.memory;
    cut.run = run_cut;
    cm_row_init_uniform(&row, &cut);
    ck_assert_int_eq(cm_aes_key_init(key, &row, exam.key, sizeof exam.key), CM_AES_OK);
    run(&exam, key, length_for(CM_AES_CTR));
    ck_assert(!is_right(&exam, CM_AES_CTR, length_for(CM_AES_CTR)));
    cm_aes_key_done(key);
    exam_end(&exam);
}
END_TEST

static void add_tests(TCase *test_case)
{
    harness_add_for_each(test_case, over_4_gib);
    tcase_add_test(test_case, a_count_of_32_bits_is_found);
}

/* They would take minutes, and what they look at has no guard pages. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

int main(void)
{
    if (SANITIZED) {
        (void)printf("skipped: crypto: messages over 4 GiB under a sanitizer\n");
        return 77;
    }
    if (sizeof(size_t) < 8) {
        (void)printf("skipped: crypto: no messages over 4 GiB with 32-bit sizes\n");
        return 77;
    }
    return harness_run_initialised("messages over 4 GiB", add_tests);
}
