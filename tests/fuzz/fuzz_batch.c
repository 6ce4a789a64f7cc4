/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: batches of any shape, good and bad. Every implementation must do what portable does, item by
 * item, and write nowhere else.
 *
 * Input: mode and more (1 byte), key size (1), then for each item: length (2, little-endian), what is odd
 * about it (1), lengths of IV, additional data and tag (1 each). Keys and texts are drawn from these bytes.
 */
#include "cm_aes.h"
#include "fuzz_target.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ITEMS = 40, MOST_BYTES = 2100, MARGIN = 64, HEAD = 2, EACH = 6, FILLER = 0x5c };
enum { IN_PLACE = 1, SEALED = 2, MISPLACED = 4 };

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            abort();                                                                                         \
    } while (0)

struct slot {
    uint8_t text[MARGIN + MOST_BYTES + MARGIN], iv[256], aad[256], tag[256];
};

/* One batch, as the input has it; the same each time it is made. */
struct shape {
    const uint8_t *data;
    size_t count, key_length;
    enum cm_aes_mode mode;
    enum cm_aes_direction direction;
    enum cm_aes_padding padding;
    uint64_t seed;
};

struct run {
    struct slot sources[MOST_ITEMS], destinations[MOST_ITEMS];
    struct cm_aes_item items[MOST_ITEMS];
    size_t failed;
};

static void fill(uint64_t seed, uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        bytes[i] = (uint8_t)(seed >> 56);
    }
}

static bool shape_read(struct shape *shape, const uint8_t *data, size_t size)
{
    static const size_t key_lengths[] = {16, 24, 32}, doubled[] = {32, 64, 32};
    if (size < HEAD)
        return false;
    shape->mode = (enum cm_aes_mode)(data[0] % 8 % CM_AES_MODE_COUNT);
    shape->direction = data[0] & 8 ? CM_AES_DECRYPT : CM_AES_ENCRYPT;
    shape->padding = data[0] & 16 ? CM_AES_PKCS7 : CM_AES_NO_PADDING;
    shape->key_length = (shape->mode == CM_AES_XTS ? doubled : key_lengths)[data[1] % 3];
    shape->count = (size - HEAD) / EACH;
    if (shape->count > MOST_ITEMS)
        shape->count = MOST_ITEMS;
    shape->data = data + HEAD;
    shape->seed = data[1];
    for (size_t i = 0; i < size; i++)
        shape->seed = shape->seed * 257 + data[i];
    return true;
}

static struct cm_aes_key *key_make(const struct shape *shape, const struct cm_aes_row *row)
{
    static _Alignas(CM_AES_KEY_ALIGN) uint8_t memory[CM_AES_KEY_MAX_SIZE];
    struct cm_aes_key *key = (struct cm_aes_key *)(void *)memory;
    uint8_t bytes[CM_AES_MAX_KEY_BYTES];
    fill(shape->seed, bytes, sizeof bytes);
    CHECK(cm_aes_key_size(row) <= sizeof memory);
    CHECK(cm_aes_key_init(key, row, bytes, shape->key_length) == CM_AES_OK);
    return key;
}

static void run_place(struct run *run, const struct shape *shape, size_t i)
{
    const uint8_t *data = shape->data + i * EACH;
    struct slot *source = &run->sources[i], *destination = &run->destinations[i];
    unsigned odd = data[2];
    size_t shift = odd & MISPLACED ? odd >> 3 : 0;
    fill(shape->seed + i, (uint8_t *)source, sizeof *source);
    memset(destination, FILLER, sizeof *destination);
    memcpy(destination->tag, source->tag, sizeof source->tag);
    if (odd & IN_PLACE)
        memcpy(destination->text, source->text, sizeof source->text);
    run->items[i] = (struct cm_aes_item){
        .source = (odd & IN_PLACE ? destination : source)->text + MARGIN / 2 + shift,
        .destination = destination->text + MARGIN / 2 + shift,
        .length = (data[0] | (size_t)data[1] << 8) % (MOST_BYTES - 16),
        .iv = source->iv,
        .iv_length = data[3],
        .aad = source->aad,
        .aad_length = data[4],
        .tag = destination->tag,
        .tag_length = data[5],
    };
}

/* Replaces the text by what encrypts to it, so that decryption has something right to find. */
static void run_seal(struct run *run, const struct shape *shape)
{
    struct cm_aes_item sealed[MOST_ITEMS];
    size_t count = 0;
    for (size_t i = 0; i < shape->count; i++)
        if (shape->data[i * EACH + 2] & SEALED) {
            sealed[count] = run->items[i];
            sealed[count++].destination = (uint8_t *)(uintptr_t)run->items[i].source;
        }
    struct cm_aes_key *key = key_make(shape, cm_aes_row_named(shape->mode, CM_AES_ENCRYPT, "portable"));
    (void)cm_aes_batch(key, shape->padding, sealed, count);
    cm_aes_key_done(key);
    for (size_t i = 0, n = 0; i < shape->count; i++)
        if (shape->data[i * EACH + 2] & SEALED && sealed[n++].ret_status == CM_AES_OK)
            run->items[i].length = sealed[n - 1].ret_length;
}

static void run_make(struct run *run, const struct shape *shape, const struct cm_aes_row *row)
{
    for (size_t i = 0; i < shape->count; i++)
        run_place(run, shape, i);
    if (shape->direction == CM_AES_DECRYPT)
        run_seal(run, shape);
    struct cm_aes_key *key = key_make(shape, row);
    run->failed = cm_aes_batch(key, shape->padding, run->items, shape->count);
    cm_aes_key_done(key);
}

/* Of a refused item the destination may have been wiped or not, by portable and others alike. */
static void runs_compare(const struct run *run, const struct run *reference, size_t count)
{
    CHECK(run->failed == reference->failed);
    for (size_t i = 0; i < count; i++) {
        const struct cm_aes_item *item = &run->items[i];
        CHECK(item->ret_status == reference->items[i].ret_status);
        CHECK(item->ret_length == reference->items[i].ret_length);
        CHECK(item->ret_status != CM_AES_OK ||
              memcmp(item->destination, reference->items[i].destination, item->ret_length) == 0);
        CHECK(memcmp(run->destinations[i].tag, reference->destinations[i].tag, sizeof run->sources[i].tag) ==
              0);
        CHECK(memcmp(&run->sources[i], &reference->sources[i], sizeof run->sources[i]) == 0);
        size_t end = (size_t)(item->destination - run->destinations[i].text) + item->length + 16;
        size_t start = (size_t)(item->destination - run->destinations[i].text);
        CHECK(memcmp(run->destinations[i].text, reference->destinations[i].text, start) == 0);
        CHECK(memcmp(run->destinations[i].text + end, reference->destinations[i].text + end,
                     sizeof run->destinations[i].text - end) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct run reference, run;
    static bool ready;
    struct shape shape;
    struct cm_aes_implementation known;
    if (!ready)
        CHECK(cm_aes_init(NULL) == CM_AES_OK);
    ready = true;
    if (!shape_read(&shape, data, size))
        return 0;
    run_make(&reference, &shape, cm_aes_row_named(shape.mode, shape.direction, "portable"));
    run_make(&run, &shape, cm_aes_row(shape.mode, shape.direction));
    runs_compare(&run, &reference, shape.count);
    for (size_t i = 1; cm_aes_implementation(i, shape.mode, shape.direction, &known); i++) {
        const struct cm_aes_row *row = cm_aes_row_named(shape.mode, shape.direction, known.name);
        if (row == NULL)
            continue;
        run_make(&run, &shape, row);
        runs_compare(&run, &reference, shape.count);
    }
    return 0;
}
