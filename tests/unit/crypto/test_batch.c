/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of messages of unequal lengths: every answer right, every item alone with its fate. */
#include "reference.h"

#include <stdio.h>
#include <string.h>

enum { MOST_ITEMS = 64, LONGEST = 4096, LONGEST_AAD = 64 };

static const size_t batch_sizes[] = {1, 2, 3, 7, 8, 9, 17, 64};

/* What can be wrong with an item; each mode knows some of them. */
enum damage { NONE, BAD_IV, EMPTY_IV, BAD_TAG, BAD_TAG_LENGTH, BAD_LENGTH, BAD_PADDING, DAMAGE_COUNT };

struct entry {
    struct harness_message plain, given; /* `given` is what the batch gets: plain or cipher text */
    uint8_t text[LONGEST], iv[64], aad[LONGEST_AAD];
    uint8_t cipher[LONGEST + 16], tag[16];
    size_t cipher_length;
    enum damage damage;
    int expected;
    struct harness_stage stage;
};

struct crowd {
    const char *implementation;
    enum cm_aes_mode mode;
    enum cm_aes_padding padding;
    uint8_t key[32];
    size_t key_length;
    struct harness_random random;
    struct entry entries[MOST_ITEMS];
    struct cm_aes_item items[MOST_ITEMS];
};

/* Mostly short, some long, so that lanes end at different times. */
static size_t some_length(struct crowd *crowd)
{
    static const size_t bounds[] = {17, 70, 300, 1024, LONGEST - 16};
    size_t length = harness_random_below(&crowd->random, bounds[harness_random_below(&crowd->random, 5)] + 1);
    bool any = crowd->mode == CM_AES_CTR || crowd->mode == CM_AES_GCM || crowd->padding == CM_AES_PKCS7;
    return any ? length : length / 16 * 16;
}

static size_t some_iv_length(struct crowd *crowd)
{
    if (crowd->mode == CM_AES_GCM)
        return harness_random_below(&crowd->random, 3) > 0 ? 12
                                                           : 1 + harness_random_below(&crowd->random, 64);
    return crowd->mode == CM_AES_ECB ? 0 : 16;
}

static void make_message(struct crowd *crowd, struct entry *entry)
{
    static const size_t tag_lengths[] = {16, 16, 12, 4, 8, 13, 14, 15};
    bool gcm = crowd->mode == CM_AES_GCM;
    harness_random_fill(&crowd->random, entry->text, sizeof entry->text);
    harness_random_fill(&crowd->random, entry->iv, sizeof entry->iv);
    harness_random_fill(&crowd->random, entry->aad, sizeof entry->aad);
    entry->plain = (struct harness_message){
        .text = entry->text,
        .length = some_length(crowd),
        .iv = entry->iv,
        .iv_length = some_iv_length(crowd),
        .aad = entry->aad,
        .aad_length = gcm ? harness_random_below(&crowd->random, LONGEST_AAD + 1) : 0,
        .tag_length = gcm ? tag_lengths[harness_random_below(&crowd->random, 8)] : 0,
    };
    entry->cipher_length = reference_encrypt(crowd->mode, crowd->padding, crowd->key, crowd->key_length,
                                             &entry->plain, entry->cipher, entry->tag);
    entry->damage = NONE;
    entry->expected = CM_AES_OK;
}

/* Damages what the batch is given, where mode and direction know that damage; otherwise leaves it whole. */
static void make_damage(struct crowd *crowd, struct entry *entry, enum cm_aes_direction direction,
                        enum damage damage)
{
    struct harness_message *given = &entry->given;
    bool gcm = crowd->mode == CM_AES_GCM, decrypting = direction == CM_AES_DECRYPT;
    bool blocks = crowd->mode == CM_AES_ECB || crowd->mode == CM_AES_CBC;
    int expected = CM_AES_OK;
    if (damage == BAD_IV && !gcm && crowd->mode != CM_AES_ECB) {
        given->iv_length = harness_random_below(&crowd->random, 2) ? 15 : 17;
        expected = CM_AES_BAD_IV;
    } else if (damage == EMPTY_IV && crowd->mode != CM_AES_ECB) {
        given->iv_length = 0;
        expected = CM_AES_BAD_IV;
    } else if (damage == BAD_TAG && gcm && decrypting) {
        entry->tag[harness_random_below(&crowd->random, given->tag_length)] ^= 0x10;
        expected = CM_AES_BAD_TAG;
    } else if (damage == BAD_TAG_LENGTH && gcm) {
        static const size_t lengths[] = {0, 3, 5, 7, 9, 11};
        given->tag_length = lengths[harness_random_below(&crowd->random, 6)];
        expected = CM_AES_BAD_TAG_LENGTH;
    } else if (damage == BAD_LENGTH && blocks && (decrypting || crowd->padding == CM_AES_NO_PADDING)) {
        given->length = given->length / 16 * 16 + 1 + harness_random_below(&crowd->random, 15);
        expected = CM_AES_BAD_LENGTH;
    } else if (damage == BAD_PADDING && crowd->padding == CM_AES_PKCS7 && decrypting) {
        /* Two blocks full of a byte that no padding has, made by encrypting them without padding. */
        struct harness_message bad = entry->plain;
        bad.length = 32;
        memset(entry->text, 17, 32);
        given->length = reference_encrypt(crowd->mode, CM_AES_NO_PADDING, crowd->key, crowd->key_length, &bad,
                                          entry->cipher, entry->tag);
        expected = CM_AES_BAD_PADDING;
    } else {
        damage = NONE;
    }
    entry->damage = damage;
    entry->expected = expected;
}

static void place(struct crowd *crowd, size_t index, enum cm_aes_direction direction, enum damage damage)
{
    struct entry *entry = &crowd->entries[index];
    make_message(crowd, entry);
    entry->given = entry->plain;
    if (direction == CM_AES_DECRYPT) {
        entry->given.text = entry->cipher;
        entry->given.length = entry->cipher_length;
        entry->given.tag = entry->tag;
    }
    make_damage(crowd, entry, direction, damage);
    struct harness_placement placement = {
        .front = harness_random_below(&crowd->random, 2) == 0,
        .shift =
            (unsigned)(harness_random_below(&crowd->random, 2) * harness_random_below(&crowd->random, 16)),
    };
    harness_stage_place(&entry->stage, &entry->given, direction, crowd->padding, placement,
                        harness_random_below(&crowd->random, 2) == 0, &crowd->items[index]);
}

static void check(const struct crowd *crowd, size_t index, size_t count, enum cm_aes_direction direction)
{
    const struct entry *entry = &crowd->entries[index];
    const struct cm_aes_item *item = &crowd->items[index];
    char where[160];
    snprintf(where, sizeof where, "%s: %s-%zu%s, direction %d, item %zu of %zu, %zu bytes, damage %d",
             crowd->implementation, harness_mode_name(crowd->mode), crowd->key_length * 8,
             crowd->padding == CM_AES_PKCS7 ? " PKCS#7" : "", direction, index, count, item->length,
             entry->damage);
    harness_stage_check(&entry->stage, item, where);
    if (entry->expected != CM_AES_OK)
        harness_check_refused(
            item, entry->expected,
            entry->expected == CM_AES_BAD_TAG || entry->expected == CM_AES_BAD_PADDING ? item->length : 0,
            where);
    else if (direction == CM_AES_ENCRYPT)
        harness_check_output(item, entry->cipher, entry->cipher_length,
                             crowd->mode == CM_AES_GCM ? entry->tag : NULL, where);
    else
        harness_check_output(item, entry->text, entry->plain.length, NULL, where);
}

/* One batch; of every `one_in` items one is damaged (0: none). Adds the items that were refused to `refused`.
 */
static void run_batch(struct crowd *crowd, const struct cm_aes_key *key, enum cm_aes_direction direction,
                      size_t count, size_t one_in, size_t refused[DAMAGE_COUNT])
{
    size_t bad = 0;
    for (size_t i = 0; i < count; i++) {
        bool damaged = one_in > 0 && harness_random_below(&crowd->random, one_in) == 0;
        enum damage damage =
            damaged ? (enum damage)(1 + harness_random_below(&crowd->random, DAMAGE_COUNT - 1)) : NONE;
        place(crowd, i, direction, damage);
        bad += crowd->entries[i].expected != CM_AES_OK;
        refused[crowd->entries[i].damage]++;
    }
    size_t failed = cm_aes_batch(key, crowd->padding, crowd->items, count);
    for (size_t i = 0; i < count; i++)
        check(crowd, i, count, direction);
    require(failed == bad, "%s: %zu of %zu items said to have failed, not %zu", crowd->implementation, failed,
            count, bad);
}

static void run_mode(struct crowd *crowd, enum cm_aes_mode mode, enum cm_aes_padding padding, size_t one_in,
                     size_t refused[DAMAGE_COUNT])
{
    crowd->mode = mode;
    crowd->padding = padding;
    for (crowd->key_length = 16; crowd->key_length <= 32; crowd->key_length += 8)
        for (int direction = 0; direction < CM_AES_DIRECTION_COUNT; direction++) {
            struct harness_key memory;
            harness_random_fill(&crowd->random, crowd->key, sizeof crowd->key);
            struct cm_aes_key *key =
                harness_key_init(&memory, crowd->implementation, mode, (enum cm_aes_direction)direction,
                                 crowd->key, crowd->key_length);
            for (size_t i = 0; i < sizeof batch_sizes / sizeof *batch_sizes; i++)
                for (int round = 0; round < 3; round++)
                    run_batch(crowd, key, (enum cm_aes_direction)direction, batch_sizes[i], one_in, refused);
            cm_aes_key_done(key);
        }
}

static void run_all(const char *implementation, size_t one_in, size_t refused[DAMAGE_COUNT])
{
    static struct crowd crowd;
    crowd.implementation = implementation;
    crowd.random.state = 4711 + one_in;
    for (size_t i = 0; i < MOST_ITEMS; i++)
        harness_stage_init(&crowd.entries[i].stage, LONGEST + 16, LONGEST_AAD);
    for (int mode = 0; mode < HARNESS_PLAIN_MODES; mode++) {
        run_mode(&crowd, (enum cm_aes_mode)mode, CM_AES_NO_PADDING, one_in, refused);
        if (mode == CM_AES_ECB || mode == CM_AES_CBC)
            run_mode(&crowd, (enum cm_aes_mode)mode, CM_AES_PKCS7, one_in, refused);
    }
}

START_TEST(unequal_lengths)
{
    size_t refused[DAMAGE_COUNT] = {0};
    run_all(harness_implementation((size_t)_i), 0, refused);
    require(refused[NONE] == 6 * 6 * 3 * (1 + 2 + 3 + 7 + 8 + 9 + 17 + 64), "%zu items", refused[NONE]);
}
END_TEST

START_TEST(bad_items_leave_their_neighbours_alone)
{
    size_t refused[DAMAGE_COUNT] = {0};
    run_all(harness_implementation((size_t)_i), 4, refused);
    for (int damage = NONE; damage < DAMAGE_COUNT; damage++)
        require(refused[damage] > 20, "damage %d turned up %zu times", damage, refused[damage]);
}
END_TEST

START_TEST(no_items_and_no_bytes)
{
    const char *implementation = harness_implementation((size_t)_i);
    static const uint8_t bytes[32];
    for (int mode = 0; mode < HARNESS_PLAIN_MODES; mode++)
        for (int direction = 0; direction < CM_AES_DIRECTION_COUNT; direction++) {
            struct harness_key memory;
            uint8_t tag[16] = {0};
            struct cm_aes_key *key = harness_key_init(&memory, implementation, (enum cm_aes_mode)mode,
                                                      (enum cm_aes_direction)direction, bytes, 16);
            ck_assert_uint_eq(cm_aes_batch(key, CM_AES_NO_PADDING, NULL, 0), 0);
            struct cm_aes_item item = {
                .iv = bytes, .iv_length = 16, .tag = tag, .tag_length = 16, .ret_length = 9};
            size_t failed = cm_aes_batch(key, CM_AES_NO_PADDING, &item, 1);
            bool refused =
                mode == CM_AES_GCM && direction == CM_AES_DECRYPT; /* no message has a zero tag here */
            require(failed == refused && item.ret_length == 0,
                    "%s: empty %s message, direction %d: status %d", implementation,
                    harness_mode_name((enum cm_aes_mode)mode), direction, item.ret_status);
            cm_aes_key_done(key);
        }
}
END_TEST

/* --- Slots, one behind the other ---------------------------------------------------------------------------
 */

enum { MOST_SLOTS = 17, LONGEST_SLOT = 16384 };

/* A batch as it lies in a frame: one buffer, equal distances, so that lanes may meet in the caches. */
struct frame {
    struct harness_guard source, destination;
    uint8_t plain[MOST_SLOTS * LONGEST_SLOT], cipher[MOST_SLOTS * LONGEST_SLOT], tags[MOST_SLOTS][16];
    uint8_t got_tags[MOST_SLOTS][16], ivs[MOST_SLOTS][16], key[16];
    size_t lengths[MOST_SLOTS], cipher_lengths[MOST_SLOTS];
    size_t stride, count;
    const char *implementation;
    enum cm_aes_mode mode;
    enum cm_aes_padding padding;
};

static void frame_fill(struct frame *frame, struct harness_random *random, bool equal)
{
    enum cm_aes_mode mode = frame->mode;
    enum cm_aes_padding padding = frame->padding;
    size_t most = padding == CM_AES_PKCS7 ? frame->stride - 1 : frame->stride;
    bool any = mode == CM_AES_CTR || mode == CM_AES_GCM || padding == CM_AES_PKCS7;
    harness_random_fill(random, frame->plain, frame->count * frame->stride);
    harness_random_fill(random, &frame->ivs[0][0], sizeof frame->ivs);
    for (size_t i = 0; i < frame->count; i++) {
        /* Unequal: the first is long, so that kernels which look at it take the batch for one of long
         * messages. */
        size_t length = most;
        if (!equal)
            length -=
                harness_random_below(random, i > 0 && harness_random_below(random, 2) ? most : most / 2);
        frame->lengths[i] = any ? length : length / 16 * 16;
        struct harness_message message = {.text = frame->plain + i * frame->stride,
                                          .length = frame->lengths[i],
                                          .iv = frame->ivs[i],
                                          .iv_length = 16,
                                          .tag_length = 16};
        frame->cipher_lengths[i] = reference_encrypt(mode, padding, frame->key, sizeof frame->key, &message,
                                                     frame->cipher + i * frame->stride, frame->tags[i]);
    }
}

static void frame_run(struct frame *frame, const struct cm_aes_key *key, enum cm_aes_direction direction,
                      bool in_place)
{
    bool encrypting = direction == CM_AES_ENCRYPT;
    uint8_t *destination =
        frame->destination.base + frame->destination.capacity - frame->count * frame->stride;
    uint8_t *source =
        in_place ? destination : frame->source.base + frame->source.capacity - frame->count * frame->stride;
    struct cm_aes_item items[MOST_SLOTS];
    memset(destination, HARNESS_STALE, frame->count * frame->stride);
    for (size_t i = 0; i < frame->count; i++) {
        size_t at = i * frame->stride, length = encrypting ? frame->lengths[i] : frame->cipher_lengths[i];
        memcpy(source + at, (encrypting ? frame->plain : frame->cipher) + at, length);
        memcpy(frame->got_tags[i], frame->tags[i], 16);
        items[i] = (struct cm_aes_item){.source = source + at,
                                        .destination = destination + at,
                                        .length = length,
                                        .iv = frame->ivs[i],
                                        .iv_length = 16,
                                        .tag = frame->got_tags[i],
                                        .tag_length = 16};
    }
    size_t failed = cm_aes_batch(key, frame->padding, items, frame->count);
    require(failed == 0, "%zu of %zu slots failed", failed, frame->count);
    for (size_t i = 0; i < frame->count; i++) {
        char where[96];
        snprintf(where, sizeof where, "%s: slot %zu of %zu, %zu bytes apart", frame->implementation, i,
                 frame->count, frame->stride);
        harness_check_output(&items[i], (encrypting ? frame->cipher : frame->plain) + i * frame->stride,
                             encrypting ? frame->cipher_lengths[i] : frame->lengths[i],
                             frame->mode == CM_AES_GCM ? frame->tags[i] : NULL, where);
    }
}

START_TEST(slots_one_behind_the_other)
{
    static struct frame frame;
    static const size_t strides[] = {16, 64, 256, 1024, 2048, 4096, 4160, 8192, LONGEST_SLOT};
    static const size_t counts[] = {2, 3, 8, 9, MOST_SLOTS};
    struct harness_random random = {.state = 21};
    frame.implementation = harness_implementation((size_t)_i);
    harness_guard_init(&frame.source, sizeof frame.plain);
    harness_guard_init(&frame.destination, sizeof frame.plain);
    for (int n = 0; n < HARNESS_PLAIN_MODES * 2 * CM_AES_DIRECTION_COUNT; n++) {
        enum cm_aes_direction direction = (enum cm_aes_direction)(n & 1);
        frame.mode = (enum cm_aes_mode)(n / 4);
        frame.padding = n & 2 ? CM_AES_PKCS7 : CM_AES_NO_PADDING;
        if (frame.padding == CM_AES_PKCS7 && frame.mode != CM_AES_ECB && frame.mode != CM_AES_CBC)
            continue;
        struct harness_key memory;
        harness_random_fill(&random, frame.key, sizeof frame.key);
        struct cm_aes_key *key = harness_key_init(&memory, frame.implementation, frame.mode, direction,
                                                  frame.key, sizeof frame.key);
        for (size_t s = 0; s < sizeof strides / sizeof *strides; s++)
            for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
                for (int equal = 0; equal < 2; equal++) {
                    frame.stride = strides[s];
                    frame.count = counts[c];
                    frame_fill(&frame, &random, equal);
                    frame_run(&frame, key, direction, false);
                    frame_run(&frame, key, direction, true);
                }
        cm_aes_key_done(key);
    }
}
END_TEST

static void add_tests(TCase *test_case)
{
    harness_add_for_each(test_case, unequal_lengths);
    harness_add_for_each(test_case, bad_items_leave_their_neighbours_alone);
    harness_add_for_each(test_case, slots_one_behind_the_other);
    harness_add_for_each(test_case, no_items_and_no_bytes);
}

int main(void)
{
    return harness_run_initialised("batches", add_tests);
}
