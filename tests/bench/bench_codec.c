/* SPDX-License-Identifier: Apache-2.0 */
/* What the codec costs: packing and unpacking 64 items in columns, beside one message an item, and the worst
 * headers that a hostile sender has. Everything that is timed has been compared first.
 *
 * usage: bench_codec [--quick] [--json] */
#include "codec.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ITEMS = 64, ROUNDS_MAX = 21, BUFFER_BYTES = 128 * 1024 };

static uint8_t arena_memory[CM_ARENA_BYTES];
static uint8_t buffer[BUFFER_BYTES];
static struct cm_arena arena;

static uint32_t lengths[ITEMS], iv_lengths[ITEMS], aad_lengths[ITEMS];
static uint8_t ivs[ITEMS * 16], tags[ITEMS * 16];

/* What is timed: one turn over all items. `check` compares what came out of the last turn. */
struct row {
    const char *name;
    const char *unit;
    unsigned items; /* the time is divided by this */
    void (*turn)(void);
    bool (*check)(void);
    double nanoseconds[ROUNDS_MAX];
};

static struct cm_batch batch, decoded_batch;
static struct cm_batch_reply reply, decoded_reply;
static struct cm_batch single[ITEMS], decoded_single[ITEMS];
static uint8_t hostile[CM_HEADER_LIMIT];
static size_t hostile_length;
static int hostile_result;

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_codec: %s\n", what);
    exit(1);
}

static uint32_t header_length(const uint8_t *frame_bytes)
{
    struct cm_frame frame;

    if (cm_frame_parse(frame_bytes, CM_FRAME_PREFIX_BYTES, CM_HEADER_LIMIT, SIZE_MAX, &frame) != CM_FRAME_OK)
        die("the codec wrote no frame");
    return frame.header_length;
}

static void turn_batch(void)
{
    size_t length;

    cm_arena_reset(&arena);
    if (cm_codec_put_batch(&arena, &batch, 0, buffer, sizeof buffer, &length) != CM_CODEC_OK ||
        cm_codec_get_batch(&arena, buffer + CM_FRAME_PREFIX_BYTES, header_length(buffer), &decoded_batch) !=
            CM_CODEC_OK)
        die("a batch does not go through");
}

static bool same_batch(const struct cm_batch *a, const struct cm_batch *b, uint32_t count)
{
    return b->request_id == a->request_id && b->key_handle == a->key_handle && b->mode == a->mode &&
           b->direction == a->direction && b->count == count &&
           memcmp(b->lengths, a->lengths, count * sizeof *a->lengths) == 0 &&
           memcmp(b->iv_lengths, a->iv_lengths, count * sizeof *a->iv_lengths) == 0 &&
           (a->aad_lengths == NULL
                ? b->aad_lengths == NULL
                : memcmp(b->aad_lengths, a->aad_lengths, count * sizeof *a->aad_lengths) == 0) &&
           b->ivs.length == a->ivs.length && memcmp(b->ivs.data, a->ivs.data, a->ivs.length) == 0 &&
           b->tags.length == a->tags.length &&
           (a->tags.length == 0 || memcmp(b->tags.data, a->tags.data, a->tags.length) == 0);
}

static bool check_batch(void)
{
    return same_batch(&batch, &decoded_batch, ITEMS);
}

static void use_block_batch(void)
{
    batch = (struct cm_batch){.request_id = 1000000,
                              .key_handle = 3,
                              .mode = CM_WIRE_CTR,
                              .direction = CM_WIRE_ENCRYPT,
                              .count = ITEMS,
                              .lengths = lengths,
                              .iv_lengths = iv_lengths,
                              .ivs = {.data = ivs, .length = sizeof ivs}};
    turn_batch();
}

static void use_gcm_batch(void)
{
    batch = (struct cm_batch){.request_id = 1000000,
                              .key_handle = 3,
                              .mode = CM_WIRE_GCM,
                              .direction = CM_WIRE_DECRYPT,
                              .count = ITEMS,
                              .lengths = lengths,
                              .iv_lengths = iv_lengths,
                              .aad_lengths = aad_lengths,
                              .ivs = {.data = ivs, .length = sizeof ivs},
                              .tags = {.data = tags, .length = sizeof tags}};
    turn_batch();
}

static void turn_reply(void)
{
    size_t length;

    cm_arena_reset(&arena);
    if (cm_codec_put_batch_reply(&arena, &reply, 0, buffer, sizeof buffer, &length) != CM_CODEC_OK ||
        cm_codec_get_batch_reply(&arena, buffer + CM_FRAME_PREFIX_BYTES, header_length(buffer),
                                 &decoded_reply) != CM_CODEC_OK)
        die("a reply does not go through");
}

static bool check_reply(void)
{
    return decoded_reply.request_id == reply.request_id && decoded_reply.count == ITEMS &&
           memcmp(decoded_reply.lengths, lengths, sizeof lengths) == 0 && decoded_reply.iv_length == 16 &&
           memcmp(decoded_reply.ivs, ivs, sizeof ivs) == 0 && decoded_reply.tag_length == 16 &&
           memcmp(decoded_reply.tags, tags, sizeof tags) == 0;
}

/* The same items, a message each. */
static void turn_single(void)
{
    size_t length, at = 0;

    cm_arena_reset(&arena);
    for (int i = 0; i < ITEMS; i++) {
        if (cm_codec_put_batch(&arena, &single[i], 0, buffer + at, sizeof buffer - at, &length) !=
                CM_CODEC_OK ||
            cm_codec_get_batch(&arena, buffer + at + CM_FRAME_PREFIX_BYTES, header_length(buffer + at),
                               &decoded_single[i]) != CM_CODEC_OK)
            die("an item does not go through");
        at += length;
    }
}

static bool check_single(void)
{
    for (int i = 0; i < ITEMS; i++)
        if (!same_batch(&single[i], &decoded_single[i], 1))
            return false;
    return true;
}

static void turn_hostile(void)
{
    struct cm_batch ignored;

    cm_arena_reset(&arena);
    hostile_result = cm_codec_get_batch(&arena, hostile, hostile_length, &ignored);
}

static bool check_too_complex(void)
{
    return hostile_result == CM_CODEC_TOO_COMPLEX;
}

static bool check_decoded(void)
{
    return hostile_result == CM_CODEC_OK;
}

/* 64 KiB of fields that no batch has, two or three bytes each. */
static void use_unknown_fields(void)
{
    for (hostile_length = 0; hostile_length + 3 <= sizeof hostile; hostile_length += 3)
        memcpy(hostile + hostile_length, "\xa0\x06\x01", 3);
    turn_hostile();
}

/* As many columns as are allowed, which all go into one. */
static void use_many_columns(void)
{
    hostile_length = 0;
    for (int i = 0; i < CM_HEADER_FIELDS_MAX; i++) {
        hostile[hostile_length++] = 9 << 3 | 2;
        hostile[hostile_length++] = 61;
        memset(hostile + hostile_length, 1, 61);
        hostile_length += 61;
    }
    turn_hostile();
}

static void use_nothing(void)
{
}

static struct {
    void (*prepare)(void);
    struct row row;
} rows[] = {
    {use_block_batch, {"batch, CTR, in columns", "ns an item", ITEMS, turn_batch, check_batch, {0}}},
    {use_gcm_batch, {"batch, GCM opening, in columns", "ns an item", ITEMS, turn_batch, check_batch, {0}}},
    {use_nothing, {"reply, GCM sealing, in columns", "ns an item", ITEMS, turn_reply, check_reply, {0}}},
    {use_nothing, {"batch, CTR, a message an item", "ns an item", ITEMS, turn_single, check_single, {0}}},
    {use_unknown_fields,
     {"64 KiB of unknown fields, refused", "ns a header", 1, turn_hostile, check_too_complex, {0}}},
    {use_many_columns,
     {"63 KiB of columns of one field, decoded", "ns a header", 1, turn_hostile, check_decoded, {0}}},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

static double now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

static void print_cpu(bool json)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[256] = "", *name = NULL;

    while (file != NULL && name == NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "model name", 10) == 0 && (name = strchr(line, ':')) != NULL)
            name[strcspn(name, "\n\"\\")] = 0;
    if (file != NULL)
        (void)fclose(file);
    printf(json ? "\"cpu\": \"%s\"" : "cpu: %s\n", name == NULL ? "unknown" : name + 2);
}

static void print_rows(bool json, int rounds)
{
    printf(json ? "{" : "");
    print_cpu(json);
    printf(json ? ", \"items\": %d, \"rounds\": %d, \"rows\": [" : "%d items, median of %d rounds\n", ITEMS,
           rounds);
    for (int i = 0; i < ROWS; i++) {
        struct row *row = &rows[i].row;
        double *times = row->nanoseconds;

        qsort(times, (size_t)rounds, sizeof *times, by_value);
        printf(json ? "%s{\"name\": \"%s\", \"unit\": \"%s\", \"median\": %.2f, \"min\": %.2f, \"max\": %.2f}"
                    : "%s%-40s %11s: %10.2f  (%.2f to %.2f)\n",
               json && i > 0 ? ", " : "", row->name, row->unit, times[rounds / 2], times[0],
               times[rounds - 1]);
    }
    printf(json ? "]}\n" : "");
}

static void fill_columns(void)
{
    for (uint32_t i = 0; i < ITEMS; i++) {
        lengths[i] = 256 + i;
        iv_lengths[i] = 16;
        aad_lengths[i] = i;
    }
    for (size_t i = 0; i < sizeof ivs; i++) {
        ivs[i] = (uint8_t)(i * 37);
        tags[i] = (uint8_t)(i * 73);
    }
    reply = (struct cm_batch_reply){.request_id = 1000000,
                                    .key_version = 1,
                                    .count = ITEMS,
                                    .lengths = lengths,
                                    .iv_length = 16,
                                    .tag_length = 16,
                                    .ivs = ivs,
                                    .tags = tags};
    for (size_t i = 0; i < ITEMS; i++)
        single[i] = (struct cm_batch){.request_id = 1000000 + i,
                                      .key_handle = 3,
                                      .mode = CM_WIRE_CTR,
                                      .direction = CM_WIRE_ENCRYPT,
                                      .count = 1,
                                      .lengths = lengths + i,
                                      .iv_lengths = iv_lengths + i,
                                      .ivs = {.data = ivs + 16 * i, .length = 16}};
}

int main(int argc, char **argv)
{
    bool quick = false, json = false;

    for (int i = 1; i < argc; i++) {
        quick = quick || strcmp(argv[i], "--quick") == 0;
        json = json || strcmp(argv[i], "--json") == 0;
    }
    int rounds = quick ? 3 : ROUNDS_MAX, turns = quick ? 20 : 2000;

    cm_arena_init(&arena, arena_memory, sizeof arena_memory);
    fill_columns();
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < ROWS; i++) {
            struct row *row = &rows[i].row;
            double start;

            rows[i].prepare();
            memset(&decoded_batch, 0, sizeof decoded_batch);
            memset(&decoded_reply, 0, sizeof decoded_reply);
            memset(decoded_single, 0, sizeof decoded_single);
            row->turn();
            if (!row->check())
                die(row->name);
            start = now_ns();
            for (int turn = 0; turn < turns; turn++)
                row->turn();
            row->nanoseconds[round] = (now_ns() - start) / turns / row->items;
            if (!row->check())
                die(row->name);
        }
    print_rows(json, rounds);
    return 0;
}
