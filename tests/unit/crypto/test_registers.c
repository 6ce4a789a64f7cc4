/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel has to keep: its caller's registers and stack; and that it soils no more stack than it says.
 */
#include "canary.h"
#include "harness.h"
#include "impl.h"

#include <stdio.h>
#include <string.h>

/* Sanitizers put much of their own on the stack. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { STACK_IS_COUNTED = 0 };
#else
enum { STACK_IS_COUNTED = 1 };
#endif

/* The kernel under watch. A copy of it, with the functions below in the place of its own, is what the batch
 * runs; so nothing stands between the canaries and the kernel. */
static const struct cm_kernel *watched;
static size_t calls;
static const char *violation;
static size_t stack_bytes;

static uintptr_t call(void (*function)(void), uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e,
                      uintptr_t f)
{
    struct canary_call canary = {.function = function, .arguments = {a, b, c, d, e, f}};
    canary_run(&canary);
    calls++;
    if (canary.ret_violation != NULL)
        violation = canary.ret_violation;
    if (canary.ret_stack_bytes > stack_bytes)
        stack_bytes = canary.ret_stack_bytes;
    return canary.ret_result;
}

static void expand(void *form, const uint8_t *key, size_t key_length)
{
    (void)call((void (*)(void))watched->expand, (uintptr_t)form, (uintptr_t)key, key_length, 0, 0, 0);
}

static void run(const struct cm_kernel_key *key, struct cm_aes_item *items, size_t count)
{
    (void)call((void (*)(void))watched->run, (uintptr_t)key, (uintptr_t)items, count, 0, 0, 0);
}

static void part(const struct cm_kernel_key *key, struct cm_aes_parts *state, const struct cm_aes_item *item,
                 bool first, bool last, uint8_t ret_tag[16])
{
    (void)call((void (*)(void))watched->part, (uintptr_t)key, (uintptr_t)state, (uintptr_t)item, first, last,
               (uintptr_t)ret_tag);
}

/* --- What runs under watch --------------------------------------------------------------------------------
 */

enum { LONGEST = 5000, MOST_ITEMS = 33 };

struct exam {
    enum cm_aes_mode mode;
    enum cm_aes_direction direction;
    struct harness_key memory;
    struct cm_aes_key *key;
    uint8_t source[LONGEST], destination[MOST_ITEMS][LONGEST + 16], tags[MOST_ITEMS][16], iv[16], aad[40];
    struct cm_aes_item items[MOST_ITEMS];
};

/* Each length that takes another way through some kernel, as far as the mode has it. */
static const size_t lengths[] = {0,   1,   15,   16,   17,   31,   32,   48,   63,   64,     80,
                                 100, 128, 144,  150,  240,  255,  256,  257,  272,  300,    512,
                                 527, 777, 1024, 1039, 1536, 2048, 2064, 3001, 4096, LONGEST};
static const size_t counts[] = {1, 2, 3, 4, 8, 9, 16, 17, MOST_ITEMS};

static size_t length_for(enum cm_aes_mode mode, size_t length)
{
    if (mode == CM_AES_ECB || mode == CM_AES_CBC)
        return length / 16 * 16;
    return mode == CM_AES_XTS && length < CM_AES_XTS_MIN_BYTES ? CM_AES_XTS_MIN_BYTES : length;
}

/* With `unequal`, items of all lengths up to this one. */
static void set_items(struct exam *exam, size_t length, size_t count, bool unequal)
{
    for (size_t i = 0; i < count; i++)
        exam->items[i] = (struct cm_aes_item){
            .source = exam->source,
            .destination = exam->destination[i],
            .length = length_for(exam->mode, unequal ? length * (i + 1) / count : length),
            .iv = exam->iv,
            .iv_length = exam->mode == CM_AES_GCM && i % 3 > 0 ? 12 : 16,
            .aad = exam->aad,
            .aad_length = 20 * (i % 3),
            .tag = exam->tags[i],
            .tag_length = i % 5 == 4 ? 12 : 16};
}

static void run_batches(struct exam *exam, bool around_the_batch)
{
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
            for (int unequal = 0; unequal < 2; unequal++) {
                enum cm_aes_padding padding =
                    exam->mode <= CM_AES_CBC && exam->direction == CM_AES_ENCRYPT && (l & 1)
                        ? CM_AES_PKCS7
                        : CM_AES_NO_PADDING;
                set_items(exam, lengths[l], counts[c], unequal);
                size_t failed;
                if (around_the_batch)
                    failed = call((void (*)(void))cm_aes_batch, (uintptr_t)exam->key, padding,
                                  (uintptr_t)exam->items, counts[c], 0, 0);
                else
                    failed = cm_aes_batch(exam->key, padding, exam->items, counts[c]);
                bool refuses = exam->mode == CM_AES_GCM && exam->direction == CM_AES_DECRYPT;
                require(failed == (refuses ? counts[c] : 0), "%zu of %zu failed", failed, counts[c]);
            }
}

static void run_parts(struct exam *exam)
{
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        struct cm_aes_parts state;
        memset(&state, 0, sizeof state);
        for (int last = 0; last < 2; last++) {
            set_items(exam, last ? lengths[l] : lengths[l] / 16 * 16, 1, false);
            int status = cm_aes_part(exam->key, CM_AES_NO_PADDING, &state, exam->items, last);
            require(status == CM_AES_OK || (last && status == CM_AES_BAD_TAG), "a part: status %d", status);
        }
    }
}

static void expand_key(struct exam *exam, const struct cm_aes_row *row, const uint8_t *key, size_t length)
{
    exam->key = (struct cm_aes_key *)(void *)exam->memory.memory;
    require(cm_aes_key_size(row) <= sizeof exam->memory.memory, "no room for the key");
    ck_assert_int_eq(cm_aes_key_init(exam->key, row, key, length), CM_AES_OK);
}

/* Watches `kernel` in all that it does. */
static void watch(struct exam *exam, const struct cm_kernel *kernel)
{
    static const uint8_t key[CM_AES_MAX_KEY_BYTES] =
        "sixty-four bytes of key, the two halves of which differ";
    struct cm_kernel copy = *kernel;
    struct cm_aes_row row;
    watched = kernel;
    copy.expand = expand;
    copy.run = run;
    copy.part = kernel->part == NULL ? NULL : part;
    for (const size_t *length = harness_key_lengths(exam->mode); *length != 0; length++) {
        cm_row_init_uniform(&row, &copy);
        expand_key(exam, &row, key, *length);
        run_batches(exam, false);
        if (exam->mode == CM_AES_GCM)
            run_parts(exam);
        require(!STACK_IS_COUNTED || stack_bytes <= kernel->stack_bytes,
                "%s, %s: soils %zu bytes of stack, says %zu", kernel->name, harness_mode_name(exam->mode),
                stack_bytes, kernel->stack_bytes);
        cm_row_init_uniform(&row, kernel);
        expand_key(exam, &row, key, *length);
        run_batches(exam, true);
        stack_bytes = 0;
    }
}

#define for_each_direction(direction)                                                                        \
    for (enum cm_aes_direction direction = CM_AES_ENCRYPT; direction < CM_AES_DIRECTION_COUNT; direction++)

START_TEST(kernels_keep_what_is_the_callers)
{
    static struct exam exam;
    const char *implementation = harness_implementation((size_t)_i);
    for (exam.mode = CM_AES_ECB; exam.mode < CM_AES_MODE_COUNT; exam.mode++) {
        if (!harness_has(implementation, exam.mode))
            continue;
        for_each_direction(direction)
        {
            exam.direction = direction;
            for (int size_class = 0; size_class < CM_AES_SIZE_CLASS_COUNT; size_class++) {
                const struct cm_aes_row *row = harness_row(implementation, exam.mode, direction);
                calls = 0;
                violation = NULL;
                watch(&exam, row->kernel[size_class]);
                require(violation == NULL, "%s, %s, direction %d: does not keep %s", implementation,
                        harness_mode_name(exam.mode), direction, violation);
                require(calls > 1000, "only %zu calls under watch", calls);
                if (row->kernel[0] == row->kernel[CM_AES_SIZE_CLASS_COUNT - 1])
                    break;
            }
        }
    }
}
END_TEST

/* --- What must be found -----------------------------------------------------------------------------------
 */

/* Runs one batch under watch, of a kernel that is portable's but for `bad`. */
static void run_planted(void (*bad)(void))
{
    static struct exam exam;
    static const uint8_t key[16];
    struct cm_kernel planted = *cm_aes_row_named(CM_AES_ECB, CM_AES_ENCRYPT, "portable")->kernel[CM_AES_LONG];
    planted.run = (cm_run_fn *)bad;
    struct cm_kernel copy = planted;
    struct cm_aes_row row;
    watched = &planted;
    copy.expand = expand;
    copy.run = run;
    cm_row_init_uniform(&row, &copy);
    expand_key(&exam, &row, key, sizeof key);
    set_items(&exam, 16, 1, false);
    violation = NULL;
    stack_bytes = 0;
    (void)cm_aes_batch(exam.key, CM_AES_NO_PADDING, exam.items, 1);
}

START_TEST(what_is_planted_is_found)
{
    ck_assert_uint_ge(canary_culprit_count, 11);
    for (size_t i = 0; i < canary_culprit_count; i++) {
        run_planted(canary_culprits[i].function);
        require(violation != NULL && strcmp(violation, canary_culprits[i].violation) == 0,
                "%s was planted, found was %s", canary_culprits[i].violation,
                violation == NULL ? "nothing" : violation);
    }
    run_planted(canary_soils_deep);
    ck_assert_ptr_null(violation);
    require(stack_bytes > CM_MAX_STACK_BYTES, "a write deep down counts as %zu bytes", stack_bytes);
}
END_TEST

static void add_tests(TCase *test_case)
{
    harness_add_for_each(test_case, kernels_keep_what_is_the_callers);
    tcase_add_test(test_case, what_is_planted_is_found);
}

int main(void)
{
    if (!CANARY_HERE) {
        (void)printf("skipped: crypto: registers are watched on x86-64 only\n");
        return 77;
    }
    return harness_run_initialised("registers", add_tests);
}
