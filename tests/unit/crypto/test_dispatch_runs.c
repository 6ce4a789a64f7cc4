/* SPDX-License-Identifier: Apache-2.0 */
/* That the kernel which a row names is the one that runs: for each mode, direction and size class. */
#include "harness.h"
#include "impl.h"

#include <string.h>

#define for_each_mode_and_direction(mode, direction)                                                         \
    for (enum cm_aes_mode mode = CM_AES_ECB; mode < CM_AES_MODE_COUNT; mode++)                               \
        for (enum cm_aes_direction direction = CM_AES_ENCRYPT; direction < CM_AES_DIRECTION_COUNT;           \
             direction++)

#define for_each_size_class(size_class)                                                                      \
    for (enum cm_aes_size_class size_class = CM_AES_SHORT; size_class < CM_AES_SIZE_CLASS_COUNT; size_class++)

/* Where one class is: at both limits, on both sides. */
START_TEST(size_classes)
{
    enum { MOST = 9 };
    struct cm_aes_item items[MOST];
    memset(items, 0, sizeof items);
    for (size_t count = 0; count <= CM_AES_SHORT_ITEMS; count++)
        ck_assert_int_eq(cm_aes_size_class(items, count), CM_AES_SHORT);
    ck_assert_int_eq(cm_aes_size_class(items, CM_AES_SHORT_ITEMS + 1), CM_AES_SMALL);
    items[0].length = CM_AES_SHORT_BYTES;
    ck_assert_int_eq(cm_aes_size_class(items, 1), CM_AES_SHORT);
    items[1].length = 1;
    ck_assert_int_eq(cm_aes_size_class(items, 1), CM_AES_SHORT);
    ck_assert_int_eq(cm_aes_size_class(items, 2), CM_AES_SMALL);
    items[0].length = CM_AES_SHORT_BYTES + 1;
    ck_assert_int_eq(cm_aes_size_class(items, 1), CM_AES_SMALL);
    for (size_t count = 1; count <= MOST; count++) {
        for (size_t i = 0; i < MOST; i++)
            items[i].length = CM_AES_SMALL_BYTES;
        ck_assert_int_eq(cm_aes_size_class(items, count), CM_AES_SMALL);
        items[0].length = CM_AES_SMALL_BYTES + 1; /* the first one is always looked at */
        ck_assert_int_eq(cm_aes_size_class(items, count), CM_AES_LONG);
        items[0].length = SIZE_MAX;
        ck_assert_int_eq(cm_aes_size_class(items, count), CM_AES_LONG);
        items[0].length = 0;
        for (size_t i = 1; i < count; i++)
            items[i].length = SIZE_MAX;
        ck_assert_int_eq(cm_aes_size_class(items, count), count == 1 ? CM_AES_SHORT : CM_AES_LONG);
    }
}
END_TEST

/* A kernel's name is a text in a table. What it stands for is the functions, and each implementation has its
 * own: a row whose kernel bears a name has the functions of that implementation and of no other. */
START_TEST(a_name_stands_for_its_own_functions)
{
    for_each_mode_and_direction(mode, direction)
    {
        const struct cm_aes_row *row = cm_aes_row(mode, direction);
        for_each_size_class(size_class)
        {
            const struct cm_kernel *kernel = row->kernel[size_class];
            const char *name = cm_aes_row_name(row, size_class);
            struct cm_aes_implementation known;
            size_t same = 0;
            require(kernel->mode == mode && kernel->direction == direction, "%s has a kernel of another mode",
                    harness_mode_name(mode));
            for (size_t i = 0; cm_aes_implementation(i, mode, direction, &known); i++) {
                const struct cm_aes_row *named = cm_aes_row_named(mode, direction, known.name);
                if (named == NULL)
                    continue;
                bool runs = named->kernel[size_class]->run == kernel->run;
                require(runs == (strcmp(known.name, name) == 0), "%s, class %d: %s, yet %s has this function",
                        harness_mode_name(mode), size_class, name, known.name);
                same += runs;
            }
            require(same == 1, "%zu implementations have the function", same);
        }
    }
}
END_TEST

/* --- Counting ----------------------------------------------------------------------------------------------
 */

/* A row's own kernels, each replaced in an expanded key by a copy that counts and hands on. */
static const struct cm_kernel *counted[CM_AES_SIZE_CLASS_COUNT];
static size_t runs[CM_AES_SIZE_CLASS_COUNT];

static void run_short(const struct cm_kernel_key *key, struct cm_aes_item *items, size_t count)
{
    runs[CM_AES_SHORT]++;
    counted[CM_AES_SHORT]->run(key, items, count);
}

static void run_small(const struct cm_kernel_key *key, struct cm_aes_item *items, size_t count)
{
    runs[CM_AES_SMALL]++;
    counted[CM_AES_SMALL]->run(key, items, count);
}

static void run_long(const struct cm_kernel_key *key, struct cm_aes_item *items, size_t count)
{
    runs[CM_AES_LONG]++;
    counted[CM_AES_LONG]->run(key, items, count);
}

struct batch {
    size_t count, lengths[CM_AES_SHORT_ITEMS + 1];
    enum cm_aes_size_class size_class;
};

/* The limits of the classes, from both sides. */
static const struct batch batches[] = {
    {1, {16}, CM_AES_SHORT},
    {1, {CM_AES_SHORT_BYTES}, CM_AES_SHORT},
    {1, {CM_AES_SHORT_BYTES + 16}, CM_AES_SMALL},
    {2, {16, CM_AES_SHORT_BYTES - 16}, CM_AES_SHORT},
    {2, {16, CM_AES_SHORT_BYTES}, CM_AES_SMALL},
    {CM_AES_SHORT_ITEMS + 1, {16, 16, 16}, CM_AES_SMALL},
    {1, {CM_AES_SMALL_BYTES}, CM_AES_SMALL},
    {1, {CM_AES_SMALL_BYTES + 16}, CM_AES_LONG},
    {1, {1024}, CM_AES_LONG},
};

static void run_batch(const struct cm_aes_key *key, const struct batch *batch)
{
    static const uint8_t text[1024], iv[16];
    static uint8_t output[CM_AES_SHORT_ITEMS + 1][1024], tags[CM_AES_SHORT_ITEMS + 1][16];
    struct cm_aes_item items[CM_AES_SHORT_ITEMS + 1];
    for (size_t i = 0; i < batch->count; i++)
        items[i] = (struct cm_aes_item){.source = text,
                                        .destination = output[i],
                                        .length = batch->lengths[i],
                                        .iv = iv,
                                        .iv_length = 16,
                                        .tag = tags[i],
                                        .tag_length = 16};
    memset(runs, 0, sizeof runs);
    (void)cm_aes_batch(key, CM_AES_NO_PADDING, items, batch->count);
}

static struct cm_kernel counting(const struct cm_kernel *kernel, enum cm_aes_size_class size_class)
{
    struct cm_kernel copy = *kernel;
    counted[size_class] = kernel;
    static cm_run_fn *const counting_runs[CM_AES_SIZE_CLASS_COUNT] = {run_short, run_small, run_long};
    copy.run = counting_runs[size_class];
    return copy;
}

/* The last of the classes that have the same kernel: its copy is the one in their place. */
static enum cm_aes_size_class last_with_the_same(const struct cm_aes_row *row,
                                                 enum cm_aes_size_class size_class)
{
    enum cm_aes_size_class last = size_class;
    for_each_size_class(other) if (row->kernel[other] == row->kernel[size_class]) last = other;
    return last;
}

static void expect_runs(const char *where, const struct batch *batch, enum cm_aes_size_class runner)
{
    for_each_size_class(size_class) require(runs[size_class] == (size_class == runner),
                                            "%s: %zu items of %zu bytes: class %d ran %zu times", where,
                                            batch->count, batch->lengths[0], size_class, runs[size_class]);
}

/* In a key for the row that dispatch chose, the kernels that the row names are exchanged for counting ones:
 * whichever counts is the one that ran, once. A kernel that serves several classes has one place in the key.
 */
START_TEST(what_the_chosen_row_names_is_what_runs)
{
    static const uint8_t key[32];
    for_each_mode_and_direction(mode, direction)
    {
        struct harness_key memory;
        const struct cm_aes_row *row = cm_aes_row(mode, direction);
        struct cm_aes_key *expanded = (struct cm_aes_key *)(void *)memory.memory;
        ck_assert_int_eq(cm_aes_key_init(expanded, row, key, sizeof key), CM_AES_OK);
        struct cm_kernel copies[CM_AES_SIZE_CLASS_COUNT];
        for_each_size_class(size_class) for_each_size_class(other) ck_assert_int_eq(
            row->form_at[size_class] == row->form_at[other], row->kernel[size_class] == row->kernel[other]);
        for_each_size_class(size_class)
        {
            struct cm_kernel_key *place =
                (struct cm_kernel_key *)(void *)(expanded->forms + row->form_at[size_class]);
            if (last_with_the_same(row, size_class) != size_class)
                continue;
            require(place->kernel == row->kernel[size_class], "%s: the key has another kernel than its row",
                    harness_mode_name(mode));
            copies[size_class] = counting(place->kernel, size_class);
            place->kernel = &copies[size_class];
        }
        for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
            run_batch(expanded, &batches[i]);
            expect_runs(harness_mode_name(mode), &batches[i], last_with_the_same(row, batches[i].size_class));
        }
        cm_aes_key_done(expanded);
    }
}
END_TEST

/* A row of three counting kernels, whatever this processor's own row looks like. */
START_TEST(a_row_of_three_kernels_runs_each_for_its_class)
{
    static const uint8_t key[32];
    for_each_mode_and_direction(mode, direction)
    {
        const struct cm_kernel *portable = cm_aes_row_named(mode, direction, "portable")->kernel[CM_AES_LONG];
        struct cm_kernel copies[CM_AES_SIZE_CLASS_COUNT];
        const struct cm_kernel *kernels[CM_AES_SIZE_CLASS_COUNT];
        for_each_size_class(size_class)
        {
            copies[size_class] = counting(portable, size_class);
            kernels[size_class] = &copies[size_class];
        }
        struct cm_aes_row row;
        static struct harness_key memory[CM_AES_SIZE_CLASS_COUNT]; /* portable's form, once a class */
        struct cm_aes_key *expanded = (struct cm_aes_key *)(void *)memory[0].memory;
        cm_row_init(&row, kernels);
        ck_assert_uint_ge(sizeof memory, cm_aes_key_size(&row));
        ck_assert_int_eq(cm_aes_key_init(expanded, &row, key, sizeof key), CM_AES_OK);
        for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
            run_batch(expanded, &batches[i]);
            expect_runs(harness_mode_name(mode), &batches[i], batches[i].size_class);
        }
        cm_aes_key_done(expanded);
    }
}
END_TEST

static void add_tests(TCase *test_case)
{
    tcase_add_test(test_case, size_classes);
    tcase_add_test(test_case, a_name_stands_for_its_own_functions);
    tcase_add_test(test_case, what_the_chosen_row_names_is_what_runs);
    tcase_add_test(test_case, a_row_of_three_kernels_runs_each_for_its_class);
}

int main(void)
{
    return harness_run_initialised("what runs", add_tests);
}
