/* SPDX-License-Identifier: Apache-2.0 */
/* Keys whose bytes the bench knows, since it verifies every answer: its own, or a named one's from a file. */
#ifndef KEYS_H
#define KEYS_H

#include "plan.h"

/* A key is for one family of modes, so there are several. */
enum keys_family { KEYS_BLOCK = 0 /* ecb, cbc, ctr */, KEYS_GCM = 1, KEYS_XTS = 2, KEYS_FAMILIES = 3 };

struct keys {
    uint32_t key_bits;
    uint32_t modes;                   /* that will be used */
    uint8_t bytes[KEYS_FAMILIES][64]; /* in XTS the data's key before the tweak's */
    char names[KEYS_FAMILIES][129];   /* "": ephemeral */
    const char *admin_endpoint;       /* temporary keys are made and destroyed there; NULL: none are */
    bool made[KEYS_FAMILIES];
};

struct keys_source {
    const char *name, *hex;     /* a named key and the file with its bytes; NULL */
    const char *admin_endpoint; /* NULL */
};

enum keys_family keys_family_of(int mode);

/* Gets key bytes, and temporary named keys if an administrator's endpoint is given. CODE_OK, or an exit code,
 * having said why; keys_done is due in any case. */
int keys_prepare(struct keys *keys, const struct plan *plan, const struct keys_source *source);
/* Opens the keys that the plan needs (the others stay NULL) on a client. *ret_tag_length is GCM's. CODE_OK,
 * or an exit code, having said why; what was opened is in `ret_keys` in any case. */
int keys_open(const struct keys *keys, const struct plan *plan, cm_client *client,
              cm_key *ret_keys[KEYS_FAMILIES], uint32_t *ret_tag_length);
/* Destroys temporary keys and wipes the bytes. */
void keys_done(struct keys *keys, const struct plan *plan);

#endif
