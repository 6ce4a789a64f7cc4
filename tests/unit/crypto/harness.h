/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of crypto/ share: implementations by number, keys that prove their row, guarded buffers. */
#ifndef CM_TEST_CRYPTO_HARNESS_H
#define CM_TEST_CRYPTO_HARNESS_H

#include "cm_aes.h"

#include <check.h>

/* Fails the running test with a formatted reason. Unlike Check's own assertions it writes nothing while the
 * condition holds, so that it can stand in a loop of millions. */
#define require(condition, ...)                                                                              \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            ck_abort_msg(__VA_ARGS__);                                                                       \
    } while (0)

/* --- Running ------------------------------------------------------------------------------------------- */

/* Runs the tests of `test_case`, prints a summary, returns the exit code for main. The second form resolves
 * the dispatch table first (limited by CIPHERMILL_CPU, as the program does), so the tests must not; the first
 * is for tests that set their own limits, and forgets that variable. */
int harness_run(const char *name, void (*add_tests)(TCase *test_case));
int harness_run_initialised(const char *name, void (*add_tests)(TCase *test_case));

/* What the tests run on; only after harness_run_initialised or cm_aes_init. Never less than 1.
 * Without CIPHERMILL_CPU: each implementation that this machine can run, by its own name. Each has a row for
 * every mode and direction, which harness_implementation asserts.
 * With it: one, the rows that dispatch chose under this limit, mixed of what serves each size class best. It
 * is called HARNESS_CHOSEN. A processor that lacks what the limit names skips the program. */
size_t harness_implementation_count(void);
const char *harness_implementation(size_t index);
#define HARNESS_CHOSEN "dispatch's choice"

/* The row of one of these; NULL if it has none. */
const struct cm_aes_row *harness_row(const char *implementation, enum cm_aes_mode mode,
                                     enum cm_aes_direction direction);

/* Whether it has rows for the mode; says that tests are skipped if not. */
bool harness_has(const char *implementation, enum cm_aes_mode mode);

/* Registers a test once for each implementation; `_i` is the number to give to harness_implementation. */
#define harness_add_for_each(test_case, function)                                                            \
    tcase_add_loop_test(test_case, function, 0, (int)harness_implementation_count())

/* Modes below this one have a single AES key; XTS, which has two, is tested in its own file. */
enum { HARNESS_PLAIN_MODES = CM_AES_XTS };

const char *harness_mode_name(enum cm_aes_mode mode);

/* --- Keys ---------------------------------------------------------------------------------------------- */

/* The lengths that keys of the mode have, ended with 0. */
const size_t *harness_key_lengths(enum cm_aes_mode mode);

struct harness_key {
    _Alignas(CM_AES_KEY_ALIGN) uint8_t memory[CM_AES_KEY_MAX_SIZE];
};

/* Expands a key for the named implementation and asserts that the key is bound to exactly that one; for
 * HARNESS_CHOSEN, that no kernel is wider than the limit. */
struct cm_aes_key *harness_key_init(struct harness_key *memory, const char *implementation,
                                    enum cm_aes_mode mode, enum cm_aes_direction direction,
                                    const uint8_t *key, size_t key_length);

/* --- Deterministic bytes ------------------------------------------------------------------------------- */

struct harness_random {
    uint64_t state;
};
uint64_t harness_random_next(struct harness_random *random);
size_t harness_random_below(struct harness_random *random, size_t bound);
void harness_random_fill(struct harness_random *random, uint8_t *bytes, size_t length);

/* --- Guarded memory ------------------------------------------------------------------------------------ */

/* Pages that can be used between two that can't be touched. */
struct harness_guard {
    uint8_t *base;
    size_t capacity; /* a whole number of pages */
};
void harness_guard_init(struct harness_guard *guard, size_t least_capacity);
void harness_guard_done(struct harness_guard *guard);

/* Where a buffer stands between the guard pages: `shift` bytes off the one in front or off the one behind. */
struct harness_placement {
    bool front;
    unsigned shift;
};
uint8_t *harness_guard_place(const struct harness_guard *guard, struct harness_placement placement,
                             size_t length);

/* --- One message between guard pages ------------------------------------------------------------------- */

/* A message as plain data. Only what the mode uses has to be set. */
struct harness_message {
    const uint8_t *text;
    size_t length;
    const uint8_t *iv;
    size_t iv_length;
    const uint8_t *aad;
    size_t aad_length;
    const uint8_t *tag; /* decryption only */
    size_t tag_length;
};

struct harness_stage {
    struct harness_guard source, destination, iv, aad, tag;
    struct harness_message message; /* as placed, to tell later what changed */
    size_t room;
    bool decrypting;
};
void harness_stage_init(struct harness_stage *stage, size_t longest_text, size_t longest_aad);
void harness_stage_done(struct harness_stage *stage);

/* Copies `message` (which must live until the check) between the guard pages and describes it in `ret_item`.
 * The destination is filled with HARNESS_STALE, its surroundings with a canary. */
void harness_stage_place(struct harness_stage *stage, const struct harness_message *message,
                         enum cm_aes_direction direction, enum cm_aes_padding padding,
                         struct harness_placement placement, bool in_place, struct cm_aes_item *ret_item);
enum { HARNESS_STALE = 0x5c };

/* Asserts that nothing changed but the destination and, when encrypting, the tag; that of a refused item the
 * destination did not change either, or was wiped. */
void harness_stage_check(const struct harness_stage *stage, const struct cm_aes_item *item,
                         const char *where);

/* Asserts status, length, text and (unless NULL) tag of an item. */
void harness_check_output(const struct cm_aes_item *item, const uint8_t *text, size_t length,
                          const uint8_t *tag, const char *where);

/* Asserts that an item was refused with `status` and that its destination of `room` bytes holds zeros. */
void harness_check_refused(const struct cm_aes_item *item, int status, size_t room, const char *where);

#endif
