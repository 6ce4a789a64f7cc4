/* SPDX-License-Identifier: Apache-2.0 */
/* The same work done in this process by OpenSSL's EVP: the judge of every answer, and the yardstick. */
#ifndef REFERENCE_H
#define REFERENCE_H

#include "keys.h"

struct reference {
    const struct keys *keys;
    void *contexts[PLAN_MODES][PLAN_DIRECTIONS]; /* EVP_CIPHER_CTX with the key set, made when first needed */
};

struct message {
    const uint8_t *in;
    size_t in_length;
    const uint8_t *iv; /* NULL in ECB */
    size_t iv_length;
    uint8_t *out;      /* room for in_length + 16 */
    size_t out_length; /* result */
    uint8_t *tag;      /* GCM: written, or checked */
    size_t tag_length;
};

/* For one thread at a time. `keys` has to outlive it. */
void reference_init(struct reference *reference, const struct keys *keys);
/* False if OpenSSL refuses: a wrong tag, bad padding. */
bool reference_run(struct reference *reference, int mode, int direction, bool padding,
                   struct message *message);
void reference_done(struct reference *reference);

#endif
