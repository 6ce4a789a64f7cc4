/* SPDX-License-Identifier: Apache-2.0 */
/* Implementations by number, keys and random bytes for the tests of crypto/. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEST_TIMEOUT_S = 280, EXIT_SKIPPED = 77 };

static int run(const char *name, void (*add_tests)(TCase *test_case))
{
    Suite *suite = suite_create(name);
    TCase *test_case = tcase_create(name);
    tcase_set_timeout(test_case, TEST_TIMEOUT_S);
    add_tests(test_case);
    suite_add_tcase(suite, test_case);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    int count = srunner_ntests_run(runner);
    srunner_free(runner);
    return failed == 0 && count > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int harness_run(const char *name, void (*add_tests)(TCase *test_case))
{
    (void)unsetenv("CIPHERMILL_CPU");
    return run(name, add_tests);
}

static const char *limit(void)
{
    const char *name = getenv("CIPHERMILL_CPU");
    return name != NULL && *name != '\0' ? name : NULL;
}

int harness_run_initialised(const char *name, void (*add_tests)(TCase *test_case))
{
    if (cm_aes_init(limit()) != CM_AES_OK) {
        (void)fprintf(stderr, "no dispatch table: \"%s\" is no limit, or portable fails its self-test\n",
                      limit() != NULL ? limit() : "");
        return EXIT_FAILURE;
    }
    if (limit() != NULL && cm_aes_row_named(CM_AES_ECB, CM_AES_ENCRYPT, limit()) == NULL) {
        (void)printf("skipped: crypto: this processor can't run %s\n", limit());
        return EXIT_SKIPPED;
    }
    return run(name, add_tests);
}

/* Number `index` of those that can run, or NULL past the end. */
static const char *runnable(size_t index)
{
    struct cm_aes_implementation known;
    for (size_t i = 0; cm_aes_implementation(i, CM_AES_ECB, CM_AES_ENCRYPT, &known); i++)
        if (cm_aes_row_named(CM_AES_ECB, CM_AES_ENCRYPT, known.name) != NULL && index-- == 0)
            return known.name;
    return NULL;
}

size_t harness_implementation_count(void)
{
    size_t count = 0;
    if (limit() != NULL)
        return 1;
    while (runnable(count) != NULL)
        count++;
    if (count == 0)
        abort();
    return count;
}

const char *harness_implementation(size_t index)
{
    const char *name = limit() != NULL ? HARNESS_CHOSEN : runnable(index);
    require(name != NULL, "no implementation number %zu", index);
    for (int mode = 0; mode < CM_AES_MODE_COUNT; mode++)
        for (int direction = 0; direction < CM_AES_DIRECTION_COUNT; direction++)
            require(harness_row(name, (enum cm_aes_mode)mode, (enum cm_aes_direction)direction) != NULL,
                    "%s has no row for %s, direction %d", name, harness_mode_name((enum cm_aes_mode)mode),
                    direction);
    return name;
}

const struct cm_aes_row *harness_row(const char *implementation, enum cm_aes_mode mode,
                                     enum cm_aes_direction direction)
{
    return strcmp(implementation, HARNESS_CHOSEN) == 0 ? cm_aes_row(mode, direction)
                                                       : cm_aes_row_named(mode, direction, implementation);
}

bool harness_has(const char *implementation, enum cm_aes_mode mode)
{
    bool has = harness_row(implementation, mode, CM_AES_ENCRYPT) != NULL &&
               harness_row(implementation, mode, CM_AES_DECRYPT) != NULL;
    if (!has) {
        (void)printf("skipped: crypto: %s has no kernel for %s\n", implementation, harness_mode_name(mode));
        (void)fflush(stdout);
    }
    return has;
}

const char *harness_mode_name(enum cm_aes_mode mode)
{
    static const char *const names[CM_AES_MODE_COUNT] = {"ECB", "CBC", "CTR", "GCM", "XTS"};
    return names[mode];
}

const size_t *harness_key_lengths(enum cm_aes_mode mode)
{
    static const size_t plain[] = {16, 24, 32, 0}, doubled[] = {32, 64, 0};
    return mode == CM_AES_XTS ? doubled : plain;
}

/* Whether `name` is one that the limit allows: dispatch says that it is available, and it stands no further
 * down the table than the limit. */
static bool within_limit(enum cm_aes_mode mode, enum cm_aes_direction direction, const char *name)
{
    struct cm_aes_implementation known;
    for (size_t i = 0; cm_aes_implementation(i, mode, direction, &known); i++) {
        if (strcmp(known.name, name) == 0)
            return known.available;
        if (strcmp(known.name, limit()) == 0)
            break;
    }
    return false;
}

struct cm_aes_key *harness_key_init(struct harness_key *memory, const char *implementation,
                                    enum cm_aes_mode mode, enum cm_aes_direction direction,
                                    const uint8_t *key, size_t key_length)
{
    const struct cm_aes_row *row = harness_row(implementation, mode, direction);
    require(row != NULL, "%s has no row for %s", implementation, harness_mode_name(mode));
    size_t size = cm_aes_key_size(row);
    require(size > 0 && size <= sizeof memory->memory && size % CM_AES_KEY_ALIGN == 0, "%s: key of %zu bytes",
            implementation, size);
    struct cm_aes_key *expanded = (struct cm_aes_key *)(void *)memory->memory;
    int status = cm_aes_key_init(expanded, row, key, key_length);
    require(status == CM_AES_OK, "%s: key of %zu bytes refused: %d", implementation, key_length, status);
    require(cm_aes_key_row(expanded) == row, "%s: the key is bound to another row", implementation);
    for (int size_class = 0; size_class < CM_AES_SIZE_CLASS_COUNT; size_class++) {
        const char *name = cm_aes_row_name(row, (enum cm_aes_size_class)size_class);
        bool right = strcmp(implementation, HARNESS_CHOSEN) == 0 ? within_limit(mode, direction, name)
                                                                 : strcmp(name, implementation) == 0;
        require(right, "asked for %s, would run %s", implementation, name);
    }
    return expanded;
}

/* SplitMix64: enough for test data, and the same everywhere. */
uint64_t harness_random_next(struct harness_random *random)
{
    uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

size_t harness_random_below(struct harness_random *random, size_t bound)
{
    return (size_t)(harness_random_next(random) % bound);
}

void harness_random_fill(struct harness_random *random, uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i += 8) {
        uint64_t word = harness_random_next(random);
        memcpy(bytes + i, &word, length - i < 8 ? length - i : 8);
    }
}
