/* SPDX-License-Identifier: Apache-2.0 */
/* What bench-kernels gives to every implementation alike: one batch of messages, and OpenSSL's answers to it.
 */
#ifndef CM_BENCH_KERNEL_LOAD_H
#define CM_BENCH_KERNEL_LOAD_H

#include "cm_aes.h"

enum { KERNEL_LOAD_MAX_ITEMS = 4096 };

/* The modes by the names that the output has. */
struct kernel_mode {
    const char *name;
    enum cm_aes_mode mode;
    enum cm_aes_direction direction;
};
extern const struct kernel_mode kernel_modes[];
extern const size_t kernel_mode_count;

/* How the lengths of a batch's messages come about: all `low`, or at random from low to high. In ECB and CBC
 * they are rounded down to whole blocks. */
struct kernel_lengths {
    size_t low, high;
};

struct kernel_load {
    const struct kernel_mode *mode;
    size_t key_length, count, bytes; /* `bytes`: of all messages together */
    uint8_t key[32];
    size_t extent;                                   /* of source, destination and answer */
    uint8_t *source, *destination, *answer;          /* page-aligned */
    uint8_t *ivs, *tags, *answer_tags;               /* 16 bytes a message */
    struct cm_aes_item items[KERNEL_LOAD_MAX_ITEMS]; /* source, destination, IV and tag set */
};

/* Slots lie one behind the other, each rounded up to 16 bytes, as in a batch's frame; `padded` leaves 192
 * bytes more between them. Ends the program when memory is short. */
void kernel_load_init(struct kernel_load *load, const struct kernel_mode *mode, size_t key_length,
                      size_t count, struct kernel_lengths lengths, bool padded);
void kernel_load_done(struct kernel_load *load);

/* Spoils the results, so that what is compared next was written since. */
void kernel_load_spoil(struct kernel_load *load);

/* Whether every byte and every tag is OpenSSL's. */
bool kernel_load_is_right(const struct kernel_load *load);

/* --- OpenSSL's EVP, the key set up once, the IV once a message -------------------------------------------
 */

struct kernel_evp;
struct kernel_evp *kernel_evp_new(const struct kernel_mode *mode, const uint8_t *key, size_t key_length);
void kernel_evp_free(struct kernel_evp *evp);
/* Runs all items; false if OpenSSL says no. */
bool kernel_evp_run(struct kernel_evp *evp, struct cm_aes_item *items, size_t count);

#endif
