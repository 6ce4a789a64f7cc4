/* SPDX-License-Identifier: Apache-2.0 */
/* What bench-kernels gives to every implementation alike: one batch of messages, and OpenSSL's answers to it.
 */
#ifndef CM_BENCH_LOAD_H
#define CM_BENCH_LOAD_H

#include "cm_aes.h"

enum { BENCH_MOST_ITEMS = 4096 };

/* The modes by the names that the output has. */
struct bench_mode {
    const char *name;
    enum cm_aes_mode mode;
    enum cm_aes_direction direction;
};
extern const struct bench_mode bench_modes[];
extern const size_t bench_mode_count;
const struct bench_mode *bench_mode_named(const char *name); /* NULL: there is none */

/* How the lengths of a batch's messages come about: all `low`, or at random from low to high. In ECB and CBC
 * without padding they are rounded down to whole blocks, in XTS up to one. */
struct bench_lengths {
    size_t low, high;
};

/* What is measured at a time. */
struct bench_cell {
    const struct bench_mode *mode;
    size_t key_bits; /* 128, 192, 256; of one of the two halves in XTS */
    struct bench_lengths lengths;
    size_t batch;
    bool padded;                 /* 192 bytes between the slots of messages; else one lies behind the other */
    enum cm_aes_padding padding; /* PKCS#7: ECB and CBC only */
};

struct bench_load {
    struct bench_cell cell;
    size_t key_length, bytes; /* `bytes`: of all messages together, without padding */
    uint8_t key[CM_AES_MAX_KEY_BYTES];
    size_t extent;                              /* of source, destination and answer */
    uint8_t *source, *destination, *answer;     /* page-aligned */
    uint8_t *ivs, *tags, *answer_tags;          /* 16 bytes a message */
    struct cm_aes_item items[BENCH_MOST_ITEMS]; /* source, destination, IV and tag set */
    size_t outputs[BENCH_MOST_ITEMS];           /* bytes that each message's output has */
};

/* Slots are rounded up to 16 bytes, as in a batch's frame. Ends the program when memory is short. */
void bench_load_init(struct bench_load *load, const struct bench_cell *cell);
void bench_load_done(struct bench_load *load);

/* Spoils the results, so that what is compared next was written since. */
void bench_load_spoil(struct bench_load *load);

/* Whether every byte and every tag is OpenSSL's. */
bool bench_load_is_right(const struct bench_load *load);

#endif
