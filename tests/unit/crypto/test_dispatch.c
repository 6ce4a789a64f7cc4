/* SPDX-License-Identifier: Apache-2.0 */
/* Which implementation runs: the table without a limit, with each limit, with a name that nobody knows. */
#include "cpu.h"
#include "impl.h"
#include "reference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each test resolves the table itself; Check runs each in a process of its own. */

enum { MOST_IMPLEMENTATIONS = 16 };

struct table {
    size_t count;
    struct cm_aes_implementation rows[MOST_IMPLEMENTATIONS];
};

static void table_read(struct table *table, enum cm_aes_mode mode, enum cm_aes_direction direction)
{
    table->count = 0;
    while (cm_aes_implementation(table->count, mode, direction, &table->rows[table->count]))
        require(++table->count < MOST_IMPLEMENTATIONS, "the table does not end");
    require(table->count > 0 && strcmp(table->rows[0].name, "portable") == 0,
            "the narrowest implementation is not portable");
}

#define for_each_mode_and_direction(mode, direction)                                                         \
    for (enum cm_aes_mode mode = CM_AES_ECB; mode < CM_AES_MODE_COUNT; mode++)                               \
        for (enum cm_aes_direction direction = CM_AES_ENCRYPT; direction < CM_AES_DIRECTION_COUNT;           \
             direction++)

#define for_each_size_class(size_class)                                                                      \
    for (enum cm_aes_size_class size_class = CM_AES_SHORT; size_class < CM_AES_SIZE_CLASS_COUNT; size_class++)

/* What was measured to be best for each mode, direction and size class, from the best on; every processor has
 * the last. */
struct ranking {
    enum cm_aes_mode mode;
    enum cm_aes_direction direction;
    enum cm_aes_size_class size_class;
    const char *names[4];
};
#define WIDEST                                                                                               \
    {                                                                                                        \
        "vaes512", "vaes256", "aesni", "portable"                                                            \
    }
#define AESNI_FIRST                                                                                          \
    {                                                                                                        \
        "aesni", "vaes512", "vaes256", "portable"                                                            \
    }
#define VAES256_FIRST                                                                                        \
    {                                                                                                        \
        "vaes256", "vaes512", "aesni", "portable"                                                            \
    }
static const struct ranking rankings[] = {
    {CM_AES_ECB, CM_AES_ENCRYPT, CM_AES_SHORT, WIDEST},
    {CM_AES_ECB, CM_AES_ENCRYPT, CM_AES_SMALL, VAES256_FIRST},
    {CM_AES_ECB, CM_AES_ENCRYPT, CM_AES_LONG, WIDEST},
    {CM_AES_ECB, CM_AES_DECRYPT, CM_AES_SHORT, WIDEST},
    {CM_AES_ECB, CM_AES_DECRYPT, CM_AES_SMALL, VAES256_FIRST},
    {CM_AES_ECB, CM_AES_DECRYPT, CM_AES_LONG, WIDEST},
    {CM_AES_CBC, CM_AES_ENCRYPT, CM_AES_SHORT, WIDEST},
    {CM_AES_CBC, CM_AES_ENCRYPT, CM_AES_SMALL, WIDEST},
    {CM_AES_CBC, CM_AES_ENCRYPT, CM_AES_LONG, WIDEST},
    {CM_AES_CBC, CM_AES_DECRYPT, CM_AES_SHORT, WIDEST},
    {CM_AES_CBC, CM_AES_DECRYPT, CM_AES_SMALL, VAES256_FIRST},
    {CM_AES_CBC, CM_AES_DECRYPT, CM_AES_LONG, WIDEST},
    {CM_AES_CTR, CM_AES_ENCRYPT, CM_AES_SHORT, WIDEST},
    {CM_AES_CTR, CM_AES_ENCRYPT, CM_AES_SMALL, WIDEST},
    {CM_AES_CTR, CM_AES_ENCRYPT, CM_AES_LONG, WIDEST},
    {CM_AES_CTR, CM_AES_DECRYPT, CM_AES_SHORT, WIDEST},
    {CM_AES_CTR, CM_AES_DECRYPT, CM_AES_SMALL, WIDEST},
    {CM_AES_CTR, CM_AES_DECRYPT, CM_AES_LONG, WIDEST},
    {CM_AES_GCM, CM_AES_ENCRYPT, CM_AES_SHORT, AESNI_FIRST},
    {CM_AES_GCM, CM_AES_ENCRYPT, CM_AES_SMALL, WIDEST},
    {CM_AES_GCM, CM_AES_ENCRYPT, CM_AES_LONG, WIDEST},
    {CM_AES_GCM, CM_AES_DECRYPT, CM_AES_SHORT, AESNI_FIRST},
    {CM_AES_GCM, CM_AES_DECRYPT, CM_AES_SMALL, WIDEST},
    {CM_AES_GCM, CM_AES_DECRYPT, CM_AES_LONG, WIDEST},
    {CM_AES_XTS, CM_AES_ENCRYPT, CM_AES_SHORT, AESNI_FIRST},
    {CM_AES_XTS, CM_AES_ENCRYPT, CM_AES_SMALL, WIDEST},
    {CM_AES_XTS, CM_AES_ENCRYPT, CM_AES_LONG, WIDEST},
    {CM_AES_XTS, CM_AES_DECRYPT, CM_AES_SHORT, AESNI_FIRST},
    {CM_AES_XTS, CM_AES_DECRYPT, CM_AES_SMALL, WIDEST},
    {CM_AES_XTS, CM_AES_DECRYPT, CM_AES_LONG, WIDEST},
};

static const struct cm_aes_implementation *row_of(const struct table *table, const char *name)
{
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->rows[i].name, name) == 0)
            return &table->rows[i];
    return NULL;
}

/* Which of the available ones should run. */
static const char *best_available(const struct table *table, enum cm_aes_mode mode,
                                  enum cm_aes_direction direction, enum cm_aes_size_class size_class)
{
    for (size_t i = 0; i < sizeof rankings / sizeof *rankings; i++) {
        const struct ranking *ranking = &rankings[i];
        if (ranking->mode != mode || ranking->direction != direction || ranking->size_class != size_class)
            continue;
        for (size_t n = 0; n < sizeof ranking->names / sizeof *ranking->names; n++) {
            const struct cm_aes_implementation *row = row_of(table, ranking->names[n]);
            if (row != NULL && row->available)
                return row->name;
        }
    }
    require(false, "%s: nothing is available", harness_mode_name(mode));
    return NULL;
}

/* Each line of the table in itself, and that for each size class exactly one is used, the best. */
static void table_check(const struct table *table, enum cm_aes_mode mode, enum cm_aes_direction direction)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct cm_aes_implementation *known = &table->rows[i];
        require(known->name != NULL && *known->name != '\0' && known->reason != NULL, "row %zu", i);
        require(!known->available || known->compiled, "%s is available, yet not compiled", known->name);
        require(known->available == (*known->reason == '\0'), "%s: available %d, reason \"%s\"", known->name,
                known->available, known->reason);
        for (size_t j = 0; j < i; j++)
            require(strcmp(known->name, table->rows[j].name) != 0, "%s stands twice", known->name);
        for_each_size_class(size_class) require(!known->used[size_class] || known->available,
                                                "%s is used, yet not available", known->name);
    }
    const struct cm_aes_row *row = cm_aes_row(mode, direction);
    require(row != NULL, "%s has no row", harness_mode_name(mode));
    for_each_size_class(size_class)
    {
        const char *best = best_available(table, mode, direction, size_class);
        require(strcmp(cm_aes_row_name(row, size_class), best) == 0, "%s, class %d: %s runs, not %s",
                harness_mode_name(mode), size_class, cm_aes_row_name(row, size_class), best);
        for (size_t i = 0; i < table->count; i++)
            require(table->rows[i].used[size_class] == (strcmp(table->rows[i].name, best) == 0),
                    "%s, class %d: %s is used: %d", harness_mode_name(mode), size_class, table->rows[i].name,
                    table->rows[i].used[size_class]);
    }
    require(table->rows[0].compiled && *table->rows[0].name == 'p', "portable is not compiled");
}

/* Everything through the rows that dispatch chose, as the program does it, against OpenSSL. */
static void chosen_rows_work(void)
{
    enum { LONGEST = 720 };
    uint8_t key[64], iv[16], text[LONGEST], answer[LONGEST + 16], output[LONGEST + 16], tag[16],
        answer_tag[16];
    struct harness_random random = {.state = 3};
    harness_random_fill(&random, key, sizeof key);
    harness_random_fill(&random, iv, sizeof iv);
    harness_random_fill(&random, text, sizeof text);
    for_each_mode_and_direction(mode, direction)
    {
        size_t key_length = mode == CM_AES_XTS ? 64 : 32;
        size_t least = mode == CM_AES_XTS ? CM_AES_XTS_MIN_BYTES : 0;
        for (size_t length = least; length <= LONGEST; length += mode >= CM_AES_CTR ? 15 : 16) {
            const struct cm_aes_row *row = cm_aes_row(mode, direction);
            struct harness_key memory;
            struct cm_aes_key *expanded = (struct cm_aes_key *)(void *)memory.memory;
            ck_assert_int_eq(cm_aes_key_init(expanded, row, key, key_length), CM_AES_OK);
            ck_assert_ptr_eq(cm_aes_key_row(expanded), row);
            bool gcm = mode == CM_AES_GCM, encrypting = direction == CM_AES_ENCRYPT;
            struct harness_message message = {
                .text = text, .length = length, .iv = iv, .iv_length = 16, .tag_length = gcm ? 16 : 0};
            reference_encrypt(mode, CM_AES_NO_PADDING, key, key_length, &message, answer, answer_tag);
            memcpy(tag, answer_tag, sizeof tag);
            struct cm_aes_item item = {.source = encrypting ? text : answer,
                                       .destination = output,
                                       .length = length,
                                       .iv = iv,
                                       .iv_length = 16,
                                       .tag = tag,
                                       .tag_length = gcm ? 16 : 0};
            ck_assert_uint_eq(cm_aes_batch(expanded, CM_AES_NO_PADDING, &item, 1), 0);
            harness_check_output(&item, encrypting ? answer : text, length, gcm ? answer_tag : NULL,
                                 cm_aes_row_name(row, cm_aes_size_class(&item, 1)));
            cm_aes_key_done(expanded);
        }
    }
}

static void check_all(void)
{
    for_each_mode_and_direction(mode, direction)
    {
        struct table table;
        table_read(&table, mode, direction);
        table_check(&table, mode, direction);
    }
    chosen_rows_work();
}

START_TEST(no_limit)
{
    ck_assert_int_eq(cm_aes_init(_i == 0 ? NULL : ""), CM_AES_OK);
    check_all();
    /* What can run here is also used here: nothing but a limit or the clock makes a row unavailable. */
    for_each_mode_and_direction(mode, direction)
    {
        struct table table;
        table_read(&table, mode, direction);
        for (size_t i = 0; i < table.count; i++)
            require(table.rows[i].available ==
                            (cm_aes_row_named(mode, direction, table.rows[i].name) != NULL) ||
                        strstr(table.rows[i].reason, "clock") != NULL,
                    "%s: available and runnable differ: \"%s\"", table.rows[i].name, table.rows[i].reason);
    }
}
END_TEST

START_TEST(portable_only)
{
    ck_assert_int_eq(cm_aes_init("portable"), CM_AES_OK);
    check_all();
    for_each_mode_and_direction(mode, direction)
    {
        for_each_size_class(size_class)
            ck_assert_str_eq(cm_aes_row_name(cm_aes_row(mode, direction), size_class), "portable");
        struct table table;
        table_read(&table, mode, direction);
        for (size_t i = 1; i < table.count; i++)
            require(!table.rows[i].available && *table.rows[i].reason != '\0', "%s passes the limit",
                    table.rows[i].name);
    }
}
END_TEST

/* All names, from the narrowest on. The table tells them only once a limit is set, so they stand here again.
 */
static const char *const limits[] = {"portable", "aesni", "vaes256", "vaes512"};
enum { LIMITS = sizeof limits / sizeof *limits };

/* Each name as the limit: it is used where it can run, and nothing wider is. */
START_TEST(each_name_as_limit)
{
    const char *limit = limits[_i];
    ck_assert_int_eq(cm_aes_init(limit), CM_AES_OK);
    check_all();
    for_each_mode_and_direction(mode, direction)
    {
        struct table table;
        table_read(&table, mode, direction);
        require(table.count == LIMITS, "%zu implementations, %d in this test's list", table.count, LIMITS);
        bool past = false;
        for (size_t i = 0; i < table.count; i++) {
            const char *name = table.rows[i].name;
            require(!past || !table.rows[i].available, "%s is wider than the limit %s", name, limit);
            /* Tests and benchmarks may still bind what lies past the limit. */
            if (past && table.rows[i].compiled && strstr(table.rows[i].reason, "limited") != NULL)
                require(cm_aes_row_named(mode, direction, name) != NULL, "%s can't be bound", name);
            if (!past && cm_aes_row_named(mode, direction, name) != NULL &&
                strstr(table.rows[i].reason, "clock") == NULL)
                require(table.rows[i].available, "%s is within the limit %s: \"%s\"", name, limit,
                        table.rows[i].reason);
            past = past || strcmp(name, limit) == 0;
        }
        require(past, "the table has no %s", limit);
    }
}
END_TEST

START_TEST(unknown_names)
{
    static const char *const names[] = {"fastest", "Portable", "portable ", "aes", "portableaesni", " "};
    require(cm_aes_init(names[_i]) == CM_AES_UNAVAILABLE, "\"%s\" was taken", names[_i]);
}
END_TEST

START_TEST(unknown_names_have_no_row)
{
    ck_assert_int_eq(cm_aes_init(NULL), CM_AES_OK);
    for_each_mode_and_direction(mode, direction)
    {
        ck_assert_ptr_null(cm_aes_row_named(mode, direction, "fastest"));
        ck_assert_ptr_null(cm_aes_row_named(mode, direction, ""));
        struct cm_aes_implementation known = {.name = "untouched"};
        ck_assert(!cm_aes_implementation(1000, mode, direction, &known));
    }
}
END_TEST

/* Whether the kernel shows `flag` for the first processor: another source than the code under test. */
static bool processor_has(const char *flag)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    require(file != NULL, "cannot open /proc/cpuinfo");
    char line[8192], padded[32];
    snprintf(padded, sizeof padded, " %s ", flag);
    bool found = false;
    while (!found && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "flags", 5) == 0) {
            line[strcspn(line, "\n")] = ' ';
            found = strstr(line, padded) != NULL;
            break;
        }
    fclose(file);
    return found;
}

/* What each implementation needs, as the kernel names it; the kernel shows only what it also saves the
 * registers of. */
static const struct {
    const char *name;
    const char *flags[10];
} x86_needs[] = {
    {"aesni", {"aes", "pclmulqdq", "ssse3", "sse4_1"}},
    {"vaes256", {"aes", "pclmulqdq", "avx2", "vaes", "vpclmulqdq"}},
    {"vaes512",
     {"aes", "pclmulqdq", "avx2", "vaes", "vpclmulqdq", "avx512f", "avx512bw", "avx512dq", "avx512vl"}},
};

/* A processor with AES instructions is not left to portable by mistake, nor one with wide ones to narrow
 * ones.
 */
START_TEST(x86_where_the_processor_has_it)
{
    const char *name = x86_needs[_i].name;
    bool can = true;
    for (const char *const *flag = x86_needs[_i].flags; *flag != NULL; flag++)
        can = can && processor_has(*flag);
    ck_assert_int_eq(cm_aes_init(name), CM_AES_OK);
    for_each_mode_and_direction(mode, direction)
    {
        const struct cm_aes_row *row = cm_aes_row_named(mode, direction, name);
        require((row != NULL) == can, "%s: the processor has %swhat %s needs, the table has %sit",
                harness_mode_name(mode), can ? "" : "not ", name, row != NULL ? "" : "not ");
        const char *running = cm_aes_row_name(cm_aes_row(mode, direction), CM_AES_LONG);
        require(!can || strcmp(running, name) == 0, "%s runs on %s, not on %s", harness_mode_name(mode),
                running, name);
    }
}
END_TEST

/* A processor that lowers its clock under 512-bit registers: they are left alone unless asked for by name. */
START_TEST(slow_512)
{
    uint32_t features = cm_cpu_features() | CM_CPU_SLOW_512;
    ck_assert_int_eq(cm_dispatch_init(features, NULL), CM_AES_OK);
    check_all();
    for_each_mode_and_direction(mode, direction)
    {
        struct table table;
        table_read(&table, mode, direction);
        const struct cm_aes_implementation *wide = row_of(&table, "vaes512");
        if (cm_aes_row_named(mode, direction, "vaes512") == NULL)
            continue; /* then nothing has to be left alone */
        require(!wide->available && strstr(wide->reason, "clock") != NULL, "the reason is \"%s\"",
                wide->reason);
        for_each_size_class(size_class) ck_assert(!wide->used[size_class]);
    }
    ck_assert_int_eq(cm_dispatch_init(features, "vaes512"), CM_AES_OK);
    check_all();
    for_each_mode_and_direction(mode, direction)
    {
        struct table table;
        table_read(&table, mode, direction);
        const struct cm_aes_implementation *wide = row_of(&table, "vaes512");
        require(wide->available == (cm_aes_row_named(mode, direction, "vaes512") != NULL), "\"%s\"",
                wide->reason);
    }
}
END_TEST

/* Every subset of the processor's features that another one might have: the answers stay right. */
START_TEST(fewer_features)
{
    static const uint32_t without[] = {UINT32_MAX,     CM_CPU_AVX512, CM_CPU_VAES,
                                       CM_CPU_VPCLMUL, CM_CPU_AVX2,   CM_CPU_PCLMUL,
                                       CM_CPU_AESNI,   CM_CPU_SSE41,  CM_CPU_SSSE3};
    ck_assert_int_eq(cm_dispatch_init(cm_cpu_features() & ~without[_i], NULL), CM_AES_OK);
    check_all();
    struct table table;
    table_read(&table, CM_AES_CTR, CM_AES_ENCRYPT);
    require(!row_of(&table, "vaes512")->available, "vaes512 without feature %#x", without[_i]);
}
END_TEST

#if defined(__x86_64__)
START_TEST(which_processors_slow_down)
{
    static const uint32_t intel[3] = {0x756e6547, 0x49656e69, 0x6c65746e};
    static const uint32_t amd[3] = {0x68747541, 0x69746e65, 0x444d4163};
    ck_assert(cm_cpu_is_slow_512(intel, 0x000606a6));  /* Ice Lake server */
    ck_assert(cm_cpu_is_slow_512(intel, 0x000806c1));  /* Tiger Lake */
    ck_assert(cm_cpu_is_slow_512(intel, 0x00050657));  /* Cascade Lake */
    ck_assert(!cm_cpu_is_slow_512(intel, 0x000806f8)); /* Sapphire Rapids */
    ck_assert(!cm_cpu_is_slow_512(intel, 0x00000f6a)); /* another family */
    ck_assert(!cm_cpu_is_slow_512(amd, 0x000606a6));
    ck_assert(!cm_cpu_is_slow_512(amd, 0x00a10f11)); /* Zen 4 */
}
END_TEST
#endif

static void add_tests(TCase *test_case)
{
    tcase_add_loop_test(test_case, no_limit, 0, 2);
    tcase_add_test(test_case, portable_only);
    tcase_add_loop_test(test_case, each_name_as_limit, 0, LIMITS);
    tcase_add_loop_test(test_case, unknown_names, 0, 6);
    tcase_add_test(test_case, unknown_names_have_no_row);
#if defined(__x86_64__)
    tcase_add_test(test_case, slow_512);
    tcase_add_loop_test(test_case, fewer_features, 0, 9);
    tcase_add_test(test_case, which_processors_slow_down);
    tcase_add_loop_test(test_case, x86_where_the_processor_has_it, 0, 3);
#endif
}

int main(void)
{
    return harness_run("dispatch", add_tests);
}
