/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between guard pages: placing them, and telling afterwards what was touched. */
#include "harness.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Bytes of canary beside a destination; more than the widest store of any implementation. */
enum { CANARY_BYTES = 128, CANARY = 0xa5 };
static uint8_t canary[CANARY_BYTES];

void harness_guard_init(struct harness_guard *guard, size_t least_capacity)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t capacity = (least_capacity + page - 1) / page * page;
    if (capacity == 0)
        capacity = page;
    uint8_t *memory =
        mmap(NULL, capacity + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(memory != MAP_FAILED, "mmap failed");
    require(mprotect(memory, page, PROT_NONE) == 0, "mprotect failed");
    require(mprotect(memory + page + capacity, page, PROT_NONE) == 0, "mprotect failed");
    guard->base = memory + page;
    guard->capacity = capacity;
}

void harness_guard_done(struct harness_guard *guard)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    munmap(guard->base - page, guard->capacity + 2 * page);
    guard->base = NULL;
}

uint8_t *harness_guard_place(const struct harness_guard *guard, struct harness_placement placement,
                             size_t length)
{
    require(length + placement.shift <= guard->capacity, "no room for %zu bytes", length);
    return placement.front ? guard->base + placement.shift
                           : guard->base + guard->capacity - length - placement.shift;
}

void harness_stage_init(struct harness_stage *stage, size_t longest_text, size_t longest_aad)
{
    enum { SLACK = 64 };
    memset(canary, CANARY, sizeof canary);
    harness_guard_init(&stage->source, longest_text + SLACK);
    harness_guard_init(&stage->destination, longest_text + SLACK);
    harness_guard_init(&stage->iv, 512);
    harness_guard_init(&stage->aad, longest_aad + SLACK);
    harness_guard_init(&stage->tag, CM_AES_MAX_TAG_BYTES + SLACK);
}

void harness_stage_done(struct harness_stage *stage)
{
    harness_guard_done(&stage->source);
    harness_guard_done(&stage->destination);
    harness_guard_done(&stage->iv);
    harness_guard_done(&stage->aad);
    harness_guard_done(&stage->tag);
}

/* The part of `guard` within CANARY_BYTES of [start, start + length). */
static void surroundings(const struct harness_guard *guard, const uint8_t *start, size_t length,
                         size_t *ret_before, size_t *ret_after)
{
    size_t before = (size_t)(start - guard->base);
    size_t after = guard->capacity - before - length;
    *ret_before = before < CANARY_BYTES ? before : CANARY_BYTES;
    *ret_after = after < CANARY_BYTES ? after : CANARY_BYTES;
}

static void set_canary(const struct harness_guard *guard, uint8_t *start, size_t length)
{
    size_t before, after;
    surroundings(guard, start, length, &before, &after);
    memcpy(start - before, canary, before);
    memcpy(start + length, canary, after);
}

/* Looks at single bytes only to say which one is wrong; these checks run millions of times. */
static void check_canary(const struct harness_guard *guard, const uint8_t *start, size_t length,
                         const char *what, const char *where)
{
    size_t before, after;
    surroundings(guard, start, length, &before, &after);
    if (memcmp(start - before, canary, before) == 0 && memcmp(start + length, canary, after) == 0)
        return;
    for (size_t i = 1; i <= before; i++)
        require(start[-(ptrdiff_t)i] == CANARY, "%s: wrote %zu bytes before the %s", where, i, what);
    for (size_t i = 0; i < after; i++)
        require(start[length + i] == CANARY, "%s: wrote %zu bytes after the %s", where, i, what);
}

/* Places a small read-only input so that its alignment differs from the text's. */
static uint8_t *place_copy(const struct harness_guard *guard, struct harness_placement placement,
                           const uint8_t *bytes, size_t length)
{
    uint8_t *start = harness_guard_place(guard, placement, length);
    if (length > 0)
        memcpy(start, bytes, length);
    return start;
}

void harness_stage_place(struct harness_stage *stage, const struct harness_message *message,
                         enum cm_aes_direction direction, enum cm_aes_padding padding,
                         struct harness_placement placement, bool in_place, struct cm_aes_item *ret_item)
{
    /* Any pair of source and destination alignments turns up; the edges stay edges. */
    struct harness_placement other = {placement.front, placement.shift * 7 % 16};
    struct harness_placement third = {placement.front, placement.shift * 11 % 16};
    size_t room = direction == CM_AES_ENCRYPT ? cm_aes_output_bound(direction, padding, message->length)
                                              : message->length;
    stage->message = *message;
    stage->room = room;
    stage->decrypting = direction == CM_AES_DECRYPT;

    uint8_t *destination = harness_guard_place(&stage->destination, in_place ? placement : other, room);
    uint8_t *source =
        in_place ? destination : harness_guard_place(&stage->source, placement, message->length);
    memset(destination, HARNESS_STALE, room);
    set_canary(&stage->destination, destination, room);
    if (message->length > 0)
        memcpy(source, message->text, message->length);

    uint8_t *tag = harness_guard_place(&stage->tag, other, message->tag_length);
    set_canary(&stage->tag, tag, message->tag_length);
    if (stage->decrypting && message->tag_length > 0)
        memcpy(tag, message->tag, message->tag_length);
    else
        memset(tag, HARNESS_STALE, message->tag_length);

    *ret_item = (struct cm_aes_item){
        .source = source,
        .destination = destination,
        .length = message->length,
        .iv = place_copy(&stage->iv, third, message->iv, message->iv_length),
        .iv_length = message->iv_length,
        .aad = place_copy(&stage->aad, placement, message->aad, message->aad_length),
        .aad_length = message->aad_length,
        .tag = tag,
        .tag_length = message->tag_length,
        .ret_length = 12345,
        .ret_status = 12345,
    };
}

/* Refused: every byte of the destination is what it was, or wiped. */
static void check_left_alone(const struct harness_stage *stage, const struct cm_aes_item *item,
                             const char *where)
{
    bool in_place = item->source == item->destination;
    for (size_t i = 0; i < stage->room; i++) {
        uint8_t before = in_place && i < stage->message.length ? stage->message.text[i] : HARNESS_STALE;
        require(item->destination[i] == 0 || item->destination[i] == before,
                "%s: byte %zu of the destination was written, status %d", where, i, item->ret_status);
    }
}

void harness_stage_check(const struct harness_stage *stage, const struct cm_aes_item *item, const char *where)
{
    const struct harness_message *message = &stage->message;
    check_canary(&stage->destination, item->destination, stage->room, "destination", where);
    check_canary(&stage->tag, item->tag, message->tag_length, "tag", where);
    if (item->ret_status != CM_AES_OK)
        check_left_alone(stage, item, where);
    if (item->source != item->destination)
        require(message->length == 0 || memcmp(item->source, message->text, message->length) == 0,
                "%s: the source was changed", where);
    require(message->iv_length == 0 || memcmp(item->iv, message->iv, message->iv_length) == 0,
            "%s: the IV was changed", where);
    require(message->aad_length == 0 || memcmp(item->aad, message->aad, message->aad_length) == 0,
            "%s: the additional data was changed", where);
    if (stage->decrypting)
        require(message->tag_length == 0 || memcmp(item->tag, message->tag, message->tag_length) == 0,
                "%s: the tag was changed", where);
}

void harness_check_output(const struct cm_aes_item *item, const uint8_t *text, size_t length,
                          const uint8_t *tag, const char *where)
{
    require(item->ret_status == CM_AES_OK, "%s: status %d", where, item->ret_status);
    require(item->ret_length == length, "%s: %zu bytes of output, not %zu", where, item->ret_length, length);
    bool same = length == 0 || memcmp(item->destination, text, length) == 0;
    for (size_t i = 0; !same && i < length; i++)
        require(item->destination[i] == text[i], "%s: byte %zu of %zu is %02x, not %02x", where, i, length,
                item->destination[i], text[i]);
    for (size_t i = 0; tag != NULL && i < item->tag_length; i++)
        require(item->tag[i] == tag[i], "%s: byte %zu of the tag is wrong", where, i);
}

void harness_check_refused(const struct cm_aes_item *item, int status, size_t room, const char *where)
{
    require(item->ret_status == status, "%s: status %d, not %d", where, item->ret_status, status);
    require(item->ret_length == 0, "%s: refused, yet %zu bytes of output", where, item->ret_length);
    for (size_t i = 0; i < room; i++)
        require(item->destination[i] == 0, "%s: byte %zu of the destination was not wiped", where, i);
}
