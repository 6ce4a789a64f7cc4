/* SPDX-License-Identifier: Apache-2.0 */
/* Keys in memory: live keys with their expanded forms, and the immutable snapshots that workers look them up
 * in.
 *
 * A live key never changes but for the expanded forms that appear in it. A change of a named key makes a new
 * live key and a new snapshot; whoever still uses the old one holds a reference, and the last one to let go
 * wipes it. */
#ifndef CM_KEYS_H
#define CM_KEYS_H

#include "cm_aes.h"
#include "message.h"
#include <stdatomic.h>

/* How many expanded forms may exist at once; shared by all keys of a service. */
struct cm_form_budget {
    atomic_uint used;
    uint32_t limit;
};

struct cm_live_version {
    uint32_t number;
    uint32_t state; /* enum cm_wire_key_state; a destroyed one has no bytes */
    uint64_t created_unix_s;
    uint8_t bytes[CM_AES_MAX_KEY_BYTES];
    _Atomic(struct cm_aes_key *) forms[CM_AES_MODE_COUNT][CM_AES_DIRECTION_COUNT]; /* NULL until first used */
};

struct cm_live_key {
    atomic_uint references;
    struct cm_form_budget *budget;
    void (*on_gone)(void *context); /* called once the bytes are wiped; may be NULL */
    void *on_gone_context;
    char name[CM_KEY_NAME_MAX + 1]; /* "" for an ephemeral key */
    uint8_t id[CM_KEY_ID_BYTES];
    uint32_t key_bits; /* of AES; cm_key_bytes says how many bytes a version has */
    struct cm_key_attributes attributes;
    bool unsafe_mixed_modes;
    uint64_t revision; /* the store's, raised by each change */
    uint32_t version_count;
    struct cm_live_version versions[]; /* by rising number */
};

/* A key with one reference and `version_count` zeroed versions, for the caller to fill before anyone else
 * sees it. NULL without memory. */
struct cm_live_key *cm_live_key_new(struct cm_form_budget *budget, uint32_t version_count);
struct cm_live_key *cm_live_key_get(struct cm_live_key *key);
/* NULL is fine. Any thread. */
void cm_live_key_put(struct cm_live_key *key);

/* Whether any version is still there. */
bool cm_live_key_alive(const struct cm_live_key *key);

/* The version that a request means: `number`, or with 0 the newest one that may be used in that direction.
 * CM_STATUS_OK, CM_STATUS_NO_SUCH_KEY or CM_STATUS_KEY_UNUSABLE. */
uint32_t cm_live_key_version(struct cm_live_key *key, uint32_t number, enum cm_aes_direction direction,
                             struct cm_live_version **ret_version);

/* The version's key expanded for the implementation in use; made by whoever needs it first. NULL when the
 * budget is used up: then the caller expands into memory of its own. Any thread. */
const struct cm_aes_key *cm_live_key_form(struct cm_live_key *key, struct cm_live_version *version,
                                          enum cm_aes_mode mode, enum cm_aes_direction direction);

/* For answers. `versions` has room for key->version_count; the result points into `key` and `versions`. */
struct cm_key_info cm_live_key_info(const struct cm_live_key *key, struct cm_key_version_info *versions);

/* All named keys at one moment, sorted by name. */
struct cm_snapshot {
    atomic_uint references;
    uint64_t serial; /* rises with each snapshot */
    uint32_t count;
    uint32_t alive; /* keys that have a version left */
    struct cm_live_key *keys[];
};

/* Takes over one reference to each key; sorts them. NULL without memory (the references stay the caller's).
 */
struct cm_snapshot *cm_snapshot_new(struct cm_live_key **keys, uint32_t count);
/* A copy in which `key`, to which it takes a reference, stands for the one of its name, or is added. */
struct cm_snapshot *cm_snapshot_with(const struct cm_snapshot *old, struct cm_live_key *key);
struct cm_snapshot *cm_snapshot_get(struct cm_snapshot *snapshot);
void cm_snapshot_put(struct cm_snapshot *snapshot); /* NULL is fine */

/* The index of the first key whose name is not before `name`; `count` if there is none. */
uint32_t cm_snapshot_position(const struct cm_snapshot *snapshot, const char *name);
/* No reference is taken: good as long as the snapshot. NULL if there is none. */
struct cm_live_key *cm_snapshot_find(const struct cm_snapshot *snapshot, const char *name);

#endif
