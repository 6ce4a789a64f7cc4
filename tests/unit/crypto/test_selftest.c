/* SPDX-License-Identifier: Apache-2.0 */
/* The self-test notices a kernel that is broken anywhere, and dispatch then leaves that kernel alone. */
#include "harness.h"
#include "impl.h"

#include <string.h>

/* --- The self-test itself ------------------------------------------------------------------------------ */

static const struct cm_kernel *healthy; /* what a sabotaged one stands on */

static void break_first_byte(const struct cm_kernel_key *key, struct cm_aes_item *items, size_t count)
{
    healthy->run(key, items, count);
    for (size_t i = 0; i < count; i++)
        if (items[i].ret_length > 0)
            items[i].destination[0] ^= 1;
}

static void break_last_byte(const struct cm_kernel_key *key, struct cm_aes_item *items, size_t count)
{
    healthy->run(key, items, count);
    for (size_t i = 0; i < count; i++)
        if (items[i].ret_length > 0)
            items[i].destination[items[i].ret_length - 1] ^= 0x80;
}

static void do_nothing(const struct cm_kernel_key *key, struct cm_aes_item *items, size_t count)
{
    (void)key;
    (void)items;
    (void)count;
}

/* Right for the first item of a batch only. */
static void forget_the_rest(const struct cm_kernel_key *key, struct cm_aes_item *items, size_t count)
{
    healthy->run(key, items, count > 0 ? 1 : 0);
}

/* Only long messages are wrong: the widest loop of a kernel, that a one-block answer never enters. */
static void break_long_ones(const struct cm_kernel_key *key, struct cm_aes_item *items, size_t count)
{
    healthy->run(key, items, count);
    for (size_t i = 0; i < count; i++)
        if (items[i].ret_length > 128)
            items[i].destination[130] ^= 4;
}

/* Right for whole messages; what one part leaves to the next is not. */
static void break_parts(const struct cm_kernel_key *key, struct cm_aes_parts *state,
                        const struct cm_aes_item *item, bool first, bool last, uint8_t ret_tag[16])
{
    healthy->part(key, state, item, first, last, ret_tag);
    state->hash[3] ^= 16;
}

/* A key schedule that is wrong for AES-192 alone, the size that tests of two sizes would miss. */
static void break_192(void *form, const uint8_t *key, size_t key_length)
{
    uint8_t other[CM_AES_MAX_KEY_BYTES];
    memcpy(other, key, key_length);
    if (key_length == 24)
        other[23] ^= 1;
    healthy->expand(form, other, key_length);
}

static void ignore_the_key(void *form, const uint8_t *key, size_t key_length)
{
    static const uint8_t other[CM_AES_MAX_KEY_BYTES];
    (void)key;
    healthy->expand(form, other, key_length);
}

static const struct {
    const char *name;
    cm_run_fn *run;
    cm_expand_fn *expand;
    bool needs_reference; /* known answers are short: portable, which has no row to compare with, passes */
    cm_part_fn *part;
} sabotages[] = {
    {"first byte", break_first_byte, NULL, false, NULL},
    {"last byte", break_last_byte, NULL, false, NULL},
    {"does nothing", do_nothing, NULL, false, NULL},
    {"first item only", forget_the_rest, NULL, false, NULL},
    {"long messages", break_long_ones, NULL, true, NULL},
    {"AES-192", NULL, break_192, false, NULL},
    {"another key", NULL, ignore_the_key, false, NULL},
    {"parts", NULL, NULL, true, break_parts},
};

static const struct cm_kernel *kernel_named(enum cm_aes_mode mode, enum cm_aes_direction direction,
                                            const char *name)
{
    return cm_aes_row_named(mode, direction, name)->kernel[CM_AES_LONG];
}

START_TEST(broken_kernels_are_noticed)
{
    ck_assert_int_eq(cm_aes_init(NULL), CM_AES_OK);
    for (size_t i = 0; i < harness_implementation_count(); i++)
        for (int mode = 0; mode < CM_AES_MODE_COUNT; mode++)
            for (int direction = 0; direction < CM_AES_DIRECTION_COUNT; direction++) {
                const struct cm_kernel *portable =
                    kernel_named((enum cm_aes_mode)mode, (enum cm_aes_direction)direction, "portable");
                healthy = kernel_named((enum cm_aes_mode)mode, (enum cm_aes_direction)direction,
                                       harness_implementation(i));
                const struct cm_kernel *reference = healthy == portable ? NULL : portable;
                const char *found = cm_selftest(healthy, reference);
                require(found == NULL, "%s, %s: %s", healthy->name, harness_mode_name((enum cm_aes_mode)mode),
                        found);
                for (size_t j = 0; j < sizeof sabotages / sizeof *sabotages; j++) {
                    struct cm_kernel broken = *healthy;
                    if (sabotages[j].needs_reference && reference == NULL)
                        continue;
                    if (sabotages[j].part != NULL && healthy->part == NULL)
                        continue;
                    if (sabotages[j].expand == break_192 && mode == CM_AES_XTS)
                        continue;
                    if (sabotages[j].run != NULL)
                        broken.run = sabotages[j].run;
                    if (sabotages[j].expand != NULL)
                        broken.expand = sabotages[j].expand;
                    if (sabotages[j].part != NULL)
                        broken.part = sabotages[j].part;
                    found = cm_selftest(&broken, reference);
                    require(found != NULL && *found != '\0', "%s, %s, direction %d passes, though broken: %s",
                            healthy->name, harness_mode_name((enum cm_aes_mode)mode), direction,
                            sabotages[j].name);
                }
            }
}
END_TEST

/* --- What dispatch makes of it ------------------------------------------------------------------------- */

/* The linker puts this in the self-test's place (--wrap), so that dispatch hears of a failure at will. */
const char *__real_cm_selftest(const struct cm_kernel *kernel, const struct cm_kernel *reference);
const char *__wrap_cm_selftest(const struct cm_kernel *kernel, const struct cm_kernel *reference);
static const char *failing_name;
static int failing_mode = -1;

const char *__wrap_cm_selftest(const struct cm_kernel *kernel, const struct cm_kernel *reference)
{
    if (failing_name != NULL && strcmp(kernel->name, failing_name) == 0 &&
        (failing_mode < 0 || kernel->mode == (enum cm_aes_mode)failing_mode))
        return "a failure for the test";
    return __real_cm_selftest(kernel, reference);
}

static bool find(const char *name, enum cm_aes_mode mode, struct cm_aes_implementation *ret_known)
{
    for (size_t i = 0; cm_aes_implementation(i, mode, CM_AES_ENCRYPT, ret_known); i++)
        if (strcmp(ret_known->name, name) == 0)
            return true;
    return false;
}

/* Whether this processor can run AES-NI has to be found out in another process: the table resolves once. */
START_TEST(failing_implementation_is_not_used)
{
    failing_name = "aesni";
    failing_mode = _i; /* -1: in every mode */
    ck_assert_int_eq(cm_aes_init("aesni"), CM_AES_OK);
    for (int mode = 0; mode < CM_AES_MODE_COUNT; mode++) {
        struct cm_aes_implementation known;
        if (!find("aesni", (enum cm_aes_mode)mode, &known) || !known.compiled ||
            strstr(known.reason, "lacks") != NULL)
            continue; /* then test_dispatch says whether that is right */
        bool failed = failing_mode < 0 || mode == failing_mode;
        require(known.available == !failed, "%s: available %d: \"%s\"",
                harness_mode_name((enum cm_aes_mode)mode), known.available, known.reason);
        for (int size_class = 0; size_class < CM_AES_SIZE_CLASS_COUNT; size_class++)
            require(known.used[size_class] == !failed, "%s, class %d: used %d",
                    harness_mode_name((enum cm_aes_mode)mode), size_class, known.used[size_class]);
        if (!failed)
            continue;
        require(strstr(known.reason, "self-test") != NULL, "the reason is \"%s\"", known.reason);
        for (int direction = 0; direction < CM_AES_DIRECTION_COUNT; direction++)
            for (int size_class = 0; size_class < CM_AES_SIZE_CLASS_COUNT; size_class++)
                ck_assert_str_eq(
                    cm_aes_row_name(cm_aes_row((enum cm_aes_mode)mode, (enum cm_aes_direction)direction),
                                    (enum cm_aes_size_class)size_class),
                    "portable");
    }
}
END_TEST

/* Nothing is left below portable: then there is no table at all. */
START_TEST(without_portable_nothing_runs)
{
    failing_name = "portable";
    failing_mode = _i;
    ck_assert_int_eq(cm_aes_init("portable"), CM_AES_UNAVAILABLE);
}
END_TEST

static void add_tests(TCase *test_case)
{
    tcase_add_test(test_case, broken_kernels_are_noticed);
    tcase_add_loop_test(test_case, failing_implementation_is_not_used, -1, CM_AES_MODE_COUNT);
    tcase_add_loop_test(test_case, without_portable_nothing_runs, -1, CM_AES_MODE_COUNT);
}

int main(void)
{
    return harness_run("self-test", add_tests);
}
