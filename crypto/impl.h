/* SPDX-License-Identifier: Apache-2.0 */
/* Inside crypto/: what an implementation, a mode and the dispatch table owe each other. */
#ifndef CM_IMPL_H
#define CM_IMPL_H

#include <stdalign.h>

#include "cm_aes.h"

/* How a batch runs. The mode's `prepare` checks every item; the kernel that the row has for the batch's size
 * class computes; the mode's `finish` looks at padding and tags. Modes know no kernel; kernels know no bad
 * request. */

/* A key expanded for one kernel. */
struct cm_kernel_key {
    const struct cm_kernel *kernel;
    unsigned rounds;                                /* 10, 12, 14: FIPS 197, section 5 */
    alignas(CM_AES_KEY_ALIGN) unsigned char form[]; /* the kernel's own: round keys, powers of H */
};

/* A key expanded for each kernel of a row; a kernel that serves several classes has one form. */
struct cm_aes_key {
    const struct cm_aes_row *row;
    alignas(CM_AES_KEY_ALIGN) unsigned char forms[]; /* struct cm_kernel_key at row->form_at[class] */
};

/* --- What an implementation provides ------------------------------------------------------------------- */

/* The expanded form for this kernel; `key_length` is one that the mode allows. `form` is aligned to
 * CM_AES_KEY_ALIGN. */
typedef void cm_expand_fn(void *form, const uint8_t *key, size_t key_length);

/* Computes every item whose ret_status is CM_AES_OK and leaves the others alone. It gets the whole array, so
 * that a kernel may work across messages.
 * - ret_length holds the bytes to write. It is `length`, except in padded ECB and CBC encryption: there
 *   `length` / 16 blocks come from the source, and one more, which `prepare` has laid out complete with its
 *   padding, stands in its place at the end of the destination.
 * - GCM: hands the full tag of each message to cm_gcm_tag, or, where the tag is of 16 bytes, stores it or
 * finds it equal itself. A message may be decrypted before its tag is known.
 * - Leaves no secrets in vector registers. What it leaves on the stack, its caller wipes: stack_bytes. */
typedef void cm_run_fn(const struct cm_kernel_key *key, struct cm_aes_item *items, size_t count);

/* GCM only: one part of a message. In the `first`, makes chain (the counter block after J0), first_pad and
 * hash from iv and aad; then the text; in the `last`, the full tag (the totals in `state` count everything).
 */
typedef void cm_part_fn(const struct cm_kernel_key *key, struct cm_aes_parts *state,
                        const struct cm_aes_item *item, bool first, bool last, uint8_t ret_tag[16]);

struct cm_kernel {
    const char *name; /* the implementation's; NULL: it has none for this mode and direction */
    enum cm_aes_mode mode;
    enum cm_aes_direction direction;
    size_t form_size;
    /* Upper bound on the stack that `expand`, `run` and `part` leave soiled, at most CM_MAX_STACK_BYTES. */
    size_t stack_bytes;
    cm_expand_fn *expand;
    cm_run_fn *run;
    cm_part_fn *part; /* NULL but in GCM */
};
enum { CM_MAX_STACK_BYTES = 4096 };

struct cm_implementation {
    uint32_t needs;    /* features of cpu.h */
    const char *lacks; /* the reason shown where the processor has not all of them */
    uint32_t avoids;   /* features with which it is used only when asked for by name */
    const char *avoids_text;
    struct cm_kernel kernels[CM_AES_MODE_COUNT][CM_AES_DIRECTION_COUNT];
};
extern const struct cm_implementation cm_portable, cm_aesni, cm_vaes256, cm_vaes512;

/* --- Rows ----------------------------------------------------------------------------------------------- */

struct cm_aes_row {
    const struct cm_kernel *kernel[CM_AES_SIZE_CLASS_COUNT];
    size_t form_at[CM_AES_SIZE_CLASS_COUNT]; /* offsets in cm_aes_key.forms */
    size_t forms_size;
};

/* The row that uses these kernels, all of one mode and direction. */
void cm_row_init(struct cm_aes_row *ret_row, const struct cm_kernel *const kernels[CM_AES_SIZE_CLASS_COUNT]);
void cm_row_init_uniform(struct cm_aes_row *ret_row, const struct cm_kernel *kernel);

static inline const struct cm_kernel_key *cm_key_for(const struct cm_aes_key *key,
                                                     enum cm_aes_size_class size_class)
{
    return (const struct cm_kernel_key *)(const void *)(key->forms + key->row->form_at[size_class]);
}

/* As cm_aes_init, for a processor with these features of cpu.h. */
int cm_dispatch_init(uint32_t features, const char *limit);

/* --- What a mode provides ------------------------------------------------------------------------------ */

struct cm_mode {
    bool doubled_key;                  /* the key is two AES keys, one behind the other: 32 or 64 bytes */
    bool pads;                         /* takes PKCS#7 */
    bool cuts[CM_AES_DIRECTION_COUNT]; /* can be sliced */
    /* Sets every item's ret_status, and its ret_length as cm_run_fn wants it (0 if bad). Returns how many are
     * bad. */
    size_t (*prepare)(enum cm_aes_direction direction, enum cm_aes_padding padding, struct cm_aes_item *items,
                      size_t count);
    /* Judges what `run` made. Returns how many items turned bad. NULL: nothing to judge. */
    size_t (*finish)(enum cm_aes_direction direction, enum cm_aes_padding padding, struct cm_aes_item *items,
                     size_t count);
    /* As cm_aes_slice, once the range is known to be sound: the IV of the range at `offset`, and how long it
     * is. NULL where cuts is false. */
    size_t (*slice_iv)(const struct cm_aes_item *whole, size_t offset, uint8_t ret_iv[16]);
    /* As cm_aes_part, once what holds for every mode has been checked. NULL: the mode has no parts. */
    int (*part)(const struct cm_aes_key *key, enum cm_aes_padding padding, struct cm_aes_parts *state,
                struct cm_aes_item *item, bool last);
};
extern const struct cm_mode cm_ecb, cm_cbc, cm_ctr, cm_gcm, cm_xts;
extern const struct cm_mode *const cm_modes[CM_AES_MODE_COUNT];

/* --- Shared by modes and kernels ----------------------------------------------------------------------- */

/* FIPS 197, section 5.2, in time that depends on the key's length alone: writes 4 * (rounds + 1) words, each
 * with its first byte lowest. `sub_word` is SubWord. Returns the number of rounds. */
enum { CM_ROUND_KEY_WORDS = 60 };
unsigned cm_key_expand(uint32_t *ret_words, const uint8_t *key, size_t key_length,
                       uint32_t (*sub_word)(uint32_t word));

/* Wipes what calls that have returned left on the stack below the caller's frame. */
void cm_wipe_stack(size_t bytes);

/* Sets a bad item's results and returns 1, for counting. */
size_t cm_item_fail(struct cm_aes_item *item, enum cm_aes_status status);

/* GCM: takes the full tag of one message. Encrypting, writes it; decrypting, compares and sets ret_status. */
void cm_gcm_tag(enum cm_aes_direction direction, struct cm_aes_item *item, const uint8_t tag[16]);

/* `prepare` and `finish` of ECB and CBC: whole blocks, PKCS#7 (RFC 5652, section 6.3), and 16 bytes of IV if
 * `needs_iv`. */
size_t cm_pkcs7_prepare(enum cm_aes_direction direction, enum cm_aes_padding padding, bool needs_iv,
                        struct cm_aes_item *items, size_t count);
size_t cm_pkcs7_finish(enum cm_aes_direction direction, enum cm_aes_padding padding,
                       struct cm_aes_item *items, size_t count);

/* Known answers for one kernel, then, where `reference` is another of the same mode and direction, equality
 * with it on longer messages. Returns NULL, or what failed. */
const char *cm_selftest(const struct cm_kernel *kernel, const struct cm_kernel *reference);

#endif
