/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of data units: unequal ones with bad ones among them, and sectors as they lie on a disk. */
#include "reference.h"

#include <stdio.h>
#include <string.h>

enum { MOST_ITEMS = 65, LONGEST = 4096 + 15, ROUNDS = 6 };

/* What can be wrong with a data unit. */
enum damage { NONE, SHORT_IV, EMPTY_IV, LONG_IV, NO_BYTES, ONE_TOO_FEW, ONE_TOO_MANY, DAMAGE_COUNT };

struct entry {
    uint8_t text[LONGEST], cipher[LONGEST + 16], iv[16];
    size_t length;
    enum damage damage;
    struct harness_stage stage;
};

struct crowd {
    const char *implementation;
    enum cm_aes_direction direction;
    uint8_t key[CM_AES_MAX_KEY_BYTES];
    size_t key_length;
    struct harness_random random;
    struct entry entries[MOST_ITEMS];
    struct cm_aes_item items[MOST_ITEMS];
    size_t seen[DAMAGE_COUNT];
};

/* Mostly short, some long, so that lanes end at different times; a third of them whole blocks. */
static size_t some_length(struct harness_random *random)
{
    static const size_t bounds[] = {17, 48, 300, 1024, LONGEST - 16};
    size_t length = 16 + harness_random_below(random, bounds[harness_random_below(random, 5)]);
    return harness_random_below(random, 3) == 0 ? length / 16 * 16 : length;
}

static int damage_item(struct cm_aes_item *item, enum damage damage)
{
    switch (damage) {
    case SHORT_IV:
        item->iv_length = 12;
        return CM_AES_BAD_IV;
    case EMPTY_IV:
        item->iv_length = 0;
        return CM_AES_BAD_IV;
    case LONG_IV:
        item->iv_length = 17;
        return CM_AES_BAD_IV;
    case NO_BYTES:
        item->length = 0;
        return CM_AES_BAD_LENGTH;
    case ONE_TOO_FEW:
        item->length = CM_AES_XTS_MIN_BYTES - 1;
        return CM_AES_BAD_LENGTH;
    case ONE_TOO_MANY:
        item->length = (size_t)CM_AES_XTS_MAX_BYTES + 1;
        return CM_AES_BAD_LENGTH;
    default:
        return CM_AES_OK;
    }
}

/* Returns what must become of the item. */
static int place(struct crowd *crowd, size_t index, bool damaged)
{
    struct harness_random *random = &crowd->random;
    struct entry *entry = &crowd->entries[index];
    uint8_t unused[16];
    entry->length = some_length(random);
    harness_random_fill(random, entry->text, entry->length);
    harness_random_fill(random, entry->iv, sizeof entry->iv);
    struct harness_message message = {
        .text = entry->text, .length = entry->length, .iv = entry->iv, .iv_length = 16};
    reference_encrypt(CM_AES_XTS, CM_AES_NO_PADDING, crowd->key, crowd->key_length, &message, entry->cipher,
                      unused);
    if (crowd->direction == CM_AES_DECRYPT)
        message.text = entry->cipher;
    struct harness_placement placement = {
        .front = harness_random_below(random, 2) == 0,
        .shift = (unsigned)(harness_random_below(random, 2) * harness_random_below(random, 16)),
    };
    harness_stage_place(&entry->stage, &message, crowd->direction, CM_AES_NO_PADDING, placement,
                        harness_random_below(random, 2) == 0, &crowd->items[index]);
    entry->damage = damaged ? (enum damage)(1 + harness_random_below(random, DAMAGE_COUNT - 1)) : NONE;
    crowd->seen[entry->damage]++;
    return damage_item(&crowd->items[index], entry->damage);
}

/* Of every `one_in` items one is damaged (0: none). */
static void run_batch(struct crowd *crowd, const struct cm_aes_key *key, size_t count, size_t one_in)
{
    int expected[MOST_ITEMS];
    size_t bad = 0;
    for (size_t i = 0; i < count; i++) {
        expected[i] = place(crowd, i, one_in > 0 && harness_random_below(&crowd->random, one_in) == 0);
        bad += expected[i] != CM_AES_OK;
    }
    size_t failed = cm_aes_batch(key, CM_AES_NO_PADDING, crowd->items, count);
    require(failed == bad, "%s: %zu of %zu said to have failed, not %zu", crowd->implementation, failed,
            count, bad);
    for (size_t i = 0; i < count; i++) {
        const struct entry *entry = &crowd->entries[i];
        char where[160];
        snprintf(where, sizeof where, "%s: XTS-%zu, direction %d, item %zu of %zu, %zu bytes, damage %d",
                 crowd->implementation, crowd->key_length * 4, crowd->direction, i, count, entry->length,
                 entry->damage);
        harness_stage_check(&entry->stage, &crowd->items[i], where);
        if (expected[i] != CM_AES_OK)
            harness_check_refused(&crowd->items[i], expected[i], 0, where);
        else
            harness_check_output(&crowd->items[i],
                                 crowd->direction == CM_AES_ENCRYPT ? entry->cipher : entry->text,
                                 entry->length, NULL, where);
    }
}

static struct crowd crowd;

static void run_all(const char *implementation, size_t one_in)
{
    static const size_t counts[] = {1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 33, MOST_ITEMS};
    crowd.implementation = implementation;
    crowd.random.state = 1619 + one_in;
    for (size_t i = 0; i < MOST_ITEMS; i++)
        harness_stage_init(&crowd.entries[i].stage, LONGEST, 0);
    for (const size_t *key_length = harness_key_lengths(CM_AES_XTS); *key_length != 0; key_length++)
        for (int direction = 0; direction < CM_AES_DIRECTION_COUNT; direction++) {
            struct harness_key memory;
            crowd.direction = (enum cm_aes_direction)direction;
            crowd.key_length = *key_length;
            harness_random_fill(&crowd.random, crowd.key, sizeof crowd.key);
            struct cm_aes_key *key = harness_key_init(&memory, implementation, CM_AES_XTS, crowd.direction,
                                                      crowd.key, *key_length);
            for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
                for (int round = 0; round < ROUNDS; round++)
                    run_batch(&crowd, key, counts[i], one_in);
            cm_aes_key_done(key);
        }
    for (size_t i = 0; i < MOST_ITEMS; i++)
        harness_stage_done(&crowd.entries[i].stage);
}

START_TEST(unequal_lengths)
{
    const char *implementation = harness_implementation((size_t)_i);
    if (!harness_has(implementation, CM_AES_XTS))
        return;
    run_all(implementation, 0);
    require(crowd.seen[NONE] == 2 * 2 * ROUNDS * (1 + 2 + 3 + 4 + 7 + 8 + 9 + 15 + 16 + 17 + 33 + MOST_ITEMS),
            "%zu items", crowd.seen[NONE]);
}
END_TEST

START_TEST(bad_units_leave_their_neighbours_alone)
{
    const char *implementation = harness_implementation((size_t)_i);
    if (!harness_has(implementation, CM_AES_XTS))
        return;
    run_all(implementation, 3);
    for (int damage = NONE; damage < DAMAGE_COUNT; damage++)
        require(crowd.seen[damage] > 100, "damage %d turned up %zu times", damage, crowd.seen[damage]);
}
END_TEST

/* --- Sectors -----------------------------------------------------------------------------------------------
 */

enum { MOST_SECTORS = 40, LARGEST_SECTOR = 4160 };

/* Equal units, one behind the other, numbered on. A unit of 520 bytes ends in a ragged block. */
static void run_sectors(const char *implementation, const uint8_t *key, size_t key_length, size_t size,
                        size_t count)
{
    static uint8_t text[MOST_SECTORS * LARGEST_SECTOR], cipher[MOST_SECTORS * LARGEST_SECTOR + 16],
        output[MOST_SECTORS * LARGEST_SECTOR];
    struct harness_random random = {.state = size + count};
    struct cm_aes_item items[MOST_SECTORS];
    uint8_t ivs[MOST_SECTORS][16] = {{0}}, unused[16];
    harness_random_fill(&random, text, count * size);
    for (size_t i = 0; i < count; i++) {
        ivs[i][0] = (uint8_t)(250 + i);
        ivs[i][1] = (uint8_t)((250 + i) >> 8);
        struct harness_message message = {
            .text = text + i * size, .length = size, .iv = ivs[i], .iv_length = 16};
        reference_encrypt(CM_AES_XTS, CM_AES_NO_PADDING, key, key_length, &message, cipher + i * size,
                          unused);
    }
    for (int turn = 0; turn < 2 * CM_AES_DIRECTION_COUNT; turn++) {
        bool encrypting = turn % 2 == CM_AES_ENCRYPT, in_place = turn >= 2;
        const uint8_t *source = encrypting ? text : cipher, *answer = encrypting ? cipher : text;
        struct harness_key memory;
        struct cm_aes_key *expanded = harness_key_init(&memory, implementation, CM_AES_XTS,
                                                       (enum cm_aes_direction)(turn % 2), key, key_length);
        memset(output, HARNESS_STALE, count * size);
        if (in_place)
            memcpy(output, source, count * size);
        for (size_t i = 0; i < count; i++)
            items[i] = (struct cm_aes_item){.source = (in_place ? output : source) + i * size,
                                            .destination = output + i * size,
                                            .length = size,
                                            .iv = ivs[i],
                                            .iv_length = 16};
        size_t failed = cm_aes_batch(expanded, CM_AES_NO_PADDING, items, count);
        require(failed == 0 && memcmp(output, answer, count * size) == 0,
                "%s: XTS-%zu, %zu sectors of %zu bytes, %s: %zu failed or the bytes differ", implementation,
                key_length * 4, count, size, in_place ? "in place" : "apart", failed);
        cm_aes_key_done(expanded);
    }
}

START_TEST(sectors)
{
    static const size_t sizes[] = {16,  17,  32,  48,  64,   128,  240,
                                   256, 257, 512, 520, 1024, 4096, LARGEST_SECTOR};
    static const size_t counts[] = {1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 32, MOST_SECTORS};
    const char *implementation = harness_implementation((size_t)_i);
    if (!harness_has(implementation, CM_AES_XTS))
        return;
    struct harness_random random = {.state = 512};
    uint8_t key[CM_AES_MAX_KEY_BYTES];
    harness_random_fill(&random, key, sizeof key);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
            for (const size_t *length = harness_key_lengths(CM_AES_XTS); *length != 0; length++)
                run_sectors(implementation, key, *length, sizes[s], counts[c]);
}
END_TEST

static void add_tests(TCase *test_case)
{
    harness_add_for_each(test_case, unequal_lengths);
    harness_add_for_each(test_case, bad_units_leave_their_neighbours_alone);
    harness_add_for_each(test_case, sectors);
}

int main(void)
{
    return harness_run_initialised("batches of XTS", add_tests);
}
