/* SPDX-License-Identifier: Apache-2.0 */
/* A batch with its buffers, sent again and again with bytes that differ each time.
 *
 * One thread at a time: the loader that sends it, then the verifier that it is handed to, then the loader
 * again. */
#ifndef UNIT_H
#define UNIT_H

#include "reference.h"

struct connection;

struct unit {
    struct unit *next;             /* of the list that it is in */
    struct connection *connection; /* whose it is */
    int mode, direction;
    unsigned flags;
    uint64_t intended_ns; /* when it was to be sent: what latency counts from */
    uint64_t round;       /* how often it was sent */
    uint64_t random;      /* state of a small generator, for sizes */
    size_t count;
    cm_item *items;
    size_t in_stride, out_stride;
    uint8_t *in, *out;
    uint8_t
        *first_ivs; /* IVs and tweaks that the bench gives, 16 bytes an item; NULL: the daemon makes them */
    uint32_t iv_length;
    bool fixed; /* its input must stay as it is: a ciphertext with tag or padding */
};

/* Bytes of memory that one takes. */
uint64_t unit_bytes(const struct plan *plan);
/* Fills the input with random bytes, or for decryption with what the reference made of them. False without
 * memory or if OpenSSL refuses. unit_done in any case. */
bool unit_init(struct unit *unit, const struct plan *plan, struct combination kind, uint32_t tag_length,
               struct reference *reference);
void unit_done(struct unit *unit);

/* Before each submission: new sizes where a range was asked for, altered input, results put back. */
void unit_prepare(struct unit *unit, const struct plan *plan);
/* Bytes of input in all items that came out well, plaintext or ciphertext. */
uint64_t unit_bytes_done(const struct unit *unit);

/* Compares the items that came out well with the reference's answer. Returns how many differ, and in
 * *ret_checked how many were compared. `scratch` has room for the largest item and 32 bytes. */
uint64_t unit_verify(const struct unit *unit, struct reference *reference, uint8_t *scratch,
                     uint64_t *ret_checked);

#endif
