/* SPDX-License-Identifier: Apache-2.0 */
/* Run under valgrind: keys and texts are marked as undefined, so that memcheck reports every branch and every
 * address that depends on them; whatever may depend on them says so with CM_DECLASSIFY.
 *
 * usage: valgrind --error-exitcode=99 constant_time [MODE | --leak-branch | --leak-address | --leak-compare]
 * MODE (ECB, CBC, CTR, GCM, XTS) runs that one alone. With --leak it does on purpose what must be found.
 * Exits with 77 where it does not run under valgrind. */
#include "cm_aes.h"
#include "declassify.h"
#include "impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <valgrind/memcheck.h>

enum { LONGEST = 640, ROOM = LONGEST + 16, ITEMS = 5 };

static const size_t lengths[] = {0, 1, 15, 16, 17, 32, 63, 64, 100, 128, 250, 256, 300, 512, 624, LONGEST};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static void hide(const void *memory, size_t length)
{
    (void)VALGRIND_MAKE_MEM_UNDEFINED(memory, length);
}

static void show(const void *memory, size_t length)
{
    (void)VALGRIND_MAKE_MEM_DEFINED(memory, length);
}

void cm_declassify_by_test(void *variable, size_t size)
{
    show(variable, size);
}

static void die(const char *what)
{
    (void)fprintf(stderr, "constant_time: %s\n", what);
    exit(1);
}

struct message {
    uint8_t text[ROOM], result[ROOM], tag[16];
};

/* One batch of messages around one length. What is computed from hidden bytes must be what is computed from
 * the same bytes in the open: so the hiding has not kept anything from running. */
struct work {
    const struct cm_aes_row *row;
    enum cm_aes_mode mode;
    enum cm_aes_direction direction;
    enum cm_aes_padding padding;
    size_t key_length;
    uint8_t key[CM_AES_MAX_KEY_BYTES], iv[16], aad[24];
    struct message messages[ITEMS], open[ITEMS];
    struct cm_aes_item items[ITEMS];
    _Alignas(CM_AES_KEY_ALIGN) uint8_t memory[CM_AES_KEY_MAX_SIZE];
};

static void run(struct work *work, struct message *messages, size_t length, bool hidden)
{
    bool encrypt = work->direction == CM_AES_ENCRYPT;
    struct cm_aes_key *key = (struct cm_aes_key *)(void *)work->memory;
    for (size_t i = 0; i < ITEMS; i++) {
        for (size_t j = 0; j < ROOM; j++)
            messages[i].text[j] = (uint8_t)(7 * i + 13 * j + (j >> 4));
        memset(messages[i].result, 0, ROOM);
        memset(messages[i].tag, (int)i, sizeof messages[i].tag);
        work->items[i] = (struct cm_aes_item){.source = messages[i].text,
                                              .destination = messages[i].result,
                                              .length = length,
                                              .iv = work->iv,
                                              .iv_length = work->mode == CM_AES_GCM ? 12 : 16,
                                              .aad = work->aad,
                                              .aad_length = i == 4 ? sizeof work->aad : 0,
                                              .tag = messages[i].tag,
                                              .tag_length = i == 3 ? 12 : 16};
        /* Decrypting, the text is the result, and hidden because the key is; a ciphertext is public. */
        if (hidden && encrypt)
            hide(messages[i].text, ROOM);
    }
    if (hidden)
        hide(work->key, work->key_length);
    if (cm_aes_key_init(key, work->row, work->key, work->key_length) != CM_AES_OK)
        die("the key is refused");
    (void)cm_aes_batch(key, work->padding, work->items, ITEMS);
    cm_aes_key_done(key);
    show(work->key, work->key_length);
    for (size_t i = 0; i < ITEMS; i++)
        show(&messages[i], sizeof messages[i]);
}

static void run_both(struct work *work, size_t length)
{
    int status[ITEMS];
    run(work, work->open, length, false);
    for (size_t i = 0; i < ITEMS; i++)
        status[i] = work->items[i].ret_status;
    run(work, work->messages, length, true);
    for (size_t i = 0; i < ITEMS; i++)
        if (status[i] != work->items[i].ret_status ||
            memcmp(work->open[i].result, work->messages[i].result, ROOM) != 0 ||
            memcmp(work->open[i].tag, work->messages[i].tag, 16) != 0)
            die("hidden bytes give another result than open ones");
}

/* The right padding and the right tag take other ways than wrong ones: one message is sealed in the open, and
 * opened with a hidden key. */
static void run_sealed(struct work *work, const struct cm_aes_row *sealing, size_t length)
{
    struct cm_aes_key *key = (struct cm_aes_key *)(void *)work->memory;
    struct message *message = &work->messages[0];
    struct cm_aes_item item = {.source = message->text,
                               .destination = message->result,
                               .length = length,
                               .iv = work->iv,
                               .iv_length = work->mode == CM_AES_GCM ? 12 : 16,
                               .tag = message->tag,
                               .tag_length = 16};
    if (cm_aes_key_init(key, sealing, work->key, work->key_length) != CM_AES_OK ||
        cm_aes_batch(key, work->padding, &item, 1) != 0)
        die("sealing fails");
    cm_aes_key_done(key);
    memcpy(message->text, message->result, ROOM);
    item.length = item.ret_length;
    hide(work->key, work->key_length);
    if (cm_aes_key_init(key, work->row, work->key, work->key_length) != CM_AES_OK ||
        cm_aes_batch(key, work->padding, &item, 1) != 0)
        die("opening fails");
    cm_aes_key_done(key);
    show(work->key, work->key_length);
    show(message, sizeof *message);
    if (item.ret_length != length)
        die("opening gives another length");
}

/* The same message in two parts, cut where a block ends, under a hidden key. */
static void run_parts(struct work *work, size_t length)
{
    struct cm_aes_key *key = (struct cm_aes_key *)(void *)work->memory;
    struct message *message = &work->messages[0];
    struct cm_aes_parts state;
    size_t cut = length / 32 * 16;
    memset(&state, 0, sizeof state);
    struct cm_aes_item item = {.source = message->text,
                               .destination = message->result,
                               .length = cut,
                               .iv = work->iv,
                               .iv_length = work->mode == CM_AES_GCM ? 12 : 16,
                               .tag = message->tag,
                               .tag_length = 16};
    hide(work->key, work->key_length);
    if (work->direction == CM_AES_ENCRYPT)
        hide(message->text, ROOM);
    if (cm_aes_key_init(key, work->row, work->key, work->key_length) != CM_AES_OK ||
        cm_aes_part(key, work->padding, &state, &item, false) != CM_AES_OK)
        die("a part fails");
    item.source += cut;
    item.destination += cut;
    item.length = length - cut;
    int status = cm_aes_part(key, work->padding, &state, &item, true);
    bool judges = work->direction == CM_AES_DECRYPT;
    if (status != CM_AES_OK && !(judges && (status == CM_AES_BAD_TAG || status == CM_AES_BAD_PADDING ||
                                            status == CM_AES_BAD_LENGTH)))
        die("the last part fails");
    cm_aes_parts_done(&state);
    cm_aes_key_done(key);
    show(work->key, work->key_length);
    show(message, sizeof *message);
}

static bool takes(const struct work *work, size_t length)
{
    bool blocks = work->mode == CM_AES_ECB || work->mode == CM_AES_CBC;
    bool pads = work->direction == CM_AES_ENCRYPT && work->padding == CM_AES_PKCS7;
    if (work->mode == CM_AES_XTS)
        return length >= CM_AES_XTS_MIN_BYTES;
    return !blocks || pads || length % 16 == 0;
}

static size_t run_mode(struct work *work, const char *implementation)
{
    static const size_t plain[] = {16, 24, 32, 0}, doubled[] = {32, 64, 0};
    size_t runs = 0;
    for (const size_t *size = work->mode == CM_AES_XTS ? doubled : plain; *size != 0; size++)
        for (size_t i = 0; i < LENGTHS; i++) {
            work->key_length = *size;
            if (!takes(work, lengths[i]))
                continue;
            run_both(work, lengths[i]);
            if (work->direction == CM_AES_DECRYPT)
                run_sealed(work, cm_aes_row_named(work->mode, CM_AES_ENCRYPT, implementation), lengths[i]);
            if (work->mode != CM_AES_XTS)
                run_parts(work, lengths[i]);
            runs++;
        }
    return runs;
}

static size_t run_implementation(const char *implementation, int mode)
{
    static struct work work;
    size_t runs = 0;
    for (size_t i = 0; i < sizeof work.key; i++)
        work.key[i] = (uint8_t)(0xa7 * i + 1);
    for (int direction = 0; direction < CM_AES_DIRECTION_COUNT; direction++)
        for (int padding = 0; padding <= (mode <= CM_AES_CBC ? CM_AES_PKCS7 : 0); padding++) {
            work.mode = (enum cm_aes_mode)mode;
            work.direction = (enum cm_aes_direction)direction;
            work.padding = (enum cm_aes_padding)padding;
            work.row = cm_aes_row_named(work.mode, work.direction, implementation);
            if (work.row == NULL)
                die("a row is missing");
            runs += run_mode(&work, implementation);
        }
    return runs;
}

/* --- Judging by itself -------------------------------------------------------------------------------------
 */

/* Every last byte that a block can have, before fillers that fit and one that does not, all hidden. */
static void judge_paddings(void)
{
    for (unsigned value = 0; value < 256; value++)
        for (unsigned wrong = 0; wrong < 2; wrong++) {
            uint8_t block[32];
            memset(block, (int)value, sizeof block);
            block[30] ^= (uint8_t)wrong;
            bool good = value >= 1 && value <= 16 && (wrong == 0 || value == 1);
            struct cm_aes_item item = {
                .destination = block, .length = sizeof block, .ret_length = sizeof block};
            hide(block, sizeof block);
            size_t failed = cm_pkcs7_finish(CM_AES_DECRYPT, CM_AES_PKCS7, &item, 1);
            if (failed != !good || item.ret_length != (good ? sizeof block - value : 0))
                die("a padding is misjudged");
        }
}

/* Tags of every length against one that is computed, so hidden: equal, and other in each byte in turn. */
static void judge_tags(void)
{
    uint8_t computed[16], tag[16];
    for (size_t length = 4; length <= sizeof tag; length++)
        for (size_t wrong = 0; wrong <= length; wrong++) {
            for (size_t i = 0; i < sizeof tag; i++)
                computed[i] = tag[i] = (uint8_t)(17 * i + 3);
            if (wrong < length)
                tag[wrong] ^= 0x20;
            struct cm_aes_item item = {.tag = tag, .tag_length = length};
            hide(computed, sizeof computed);
            cm_gcm_tag(CM_AES_DECRYPT, &item, computed);
            if (item.ret_status != (wrong < length ? CM_AES_BAD_TAG : CM_AES_OK))
                die("a tag is misjudged");
        }
}

/* --- What must be found -----------------------------------------------------------------------------------
 */

static volatile uint8_t table[256]; /* volatile, or it would be known to hold zeroes */

/* An S-box as a table: key expansion with it reads at addresses that the key chose. */
static uint32_t sub_word_by_table(uint32_t word)
{
    uint32_t result = 0;
    for (int i = 0; i < 4; i++)
        result |= (uint32_t)table[word >> (8 * i) & 255] << (8 * i);
    return result;
}

static uint32_t sub_word_by_branch(uint32_t word)
{
    uint32_t result = 1;
    if (word & 1)
        __asm__ volatile("" : "+r"(result));
    return result ^ word;
}

static int leak(const char *how)
{
    uint8_t key[16] = {1, 2, 3}, other[16] = {1, 2, 4};
    uint32_t words[CM_ROUND_KEY_WORDS];
    hide(key, sizeof key);
    if (strcmp(how, "--leak-address") == 0)
        (void)cm_key_expand(words, key, sizeof key, sub_word_by_table);
    else if (strcmp(how, "--leak-branch") == 0)
        (void)cm_key_expand(words, key, sizeof key, sub_word_by_branch);
    else if (strcmp(how, "--leak-compare") == 0)
        return cm_aes_equal(key, other, sizeof key) ? 1 : 0; /* not declassified */
    else
        die("no such leak");
    return 0;
}

static void run_modes(const char *only)
{
    static const char *const names[CM_AES_MODE_COUNT] = {"ECB", "CBC", "CTR", "GCM", "XTS"};
    struct cm_aes_implementation known;
    size_t runs = 0;
    for (size_t i = 0; cm_aes_implementation(i, CM_AES_ECB, CM_AES_ENCRYPT, &known); i++)
        for (int mode = 0; mode < CM_AES_MODE_COUNT; mode++)
            if (cm_aes_row_named((enum cm_aes_mode)mode, CM_AES_ENCRYPT, known.name) != NULL &&
                (only == NULL || strcmp(only, names[mode]) == 0)) {
                size_t batches = run_implementation(known.name, mode);
                (void)printf("%s, %s: %zu batches\n", known.name, names[mode], batches);
                runs += batches;
            }
    if (runs == 0)
        die("nothing to run");
}

int main(int argc, char **argv)
{
    if (!RUNNING_ON_VALGRIND) {
        (void)fprintf(stderr, "skipped: constant_time has to run under valgrind\n");
        return 77;
    }
    if (argc > 1 && strncmp(argv[1], "--leak", 6) == 0)
        return leak(argv[1]);
    if (cm_aes_init(NULL) != CM_AES_OK)
        die("no implementation");
    run_modes(argc > 1 ? argv[1] : NULL);
    judge_paddings();
    judge_tags();
    return 0;
}
