/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what the daemon tells of keys. */
#ifndef KEY_SHOW_H
#define KEY_SHOW_H

#include "json.h"
#include <ciphermill/admin.h>

/* A line a key, with a heading. */
void key_show_table(const cm_key_details *keys, size_t count);
/* Everything about one key. */
void key_show_one(const cm_key_details *key);
/* An object: name, id, algorithm, key_bits, modes, encrypt, decrypt, caller_iv, tag_length, versions. */
void key_show_json(struct json *json, const cm_key_details *key);

#endif
