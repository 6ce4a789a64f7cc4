/* SPDX-License-Identifier: Apache-2.0 */
/* What creating and importing a key have in common: its attributes on the command line, and the call. */
#ifndef KEY_MAKE_H
#define KEY_MAKE_H

#include "options.h"
#include <ciphermill/admin.h>

struct key_make {
    const char *algorithm, *modes; /* as typed */
    bool caller_iv, unsafe_mixed_modes;
    uint64_t tag_length;
    uint32_t key_bits; /* filled by key_make_settle */
    cm_key_options options;
};

enum { KEY_MAKE_OPTIONS = 6, KEY_BYTES_MAX = 64 };

/* The options' rows, whose targets lie in *make. */
void key_make_fill(struct option rows[KEY_MAKE_OPTIONS], struct key_make *make);
/* Turns what was typed into what the library takes. CODE_OK, or an exit code, having said why. */
int key_make_settle(struct key_make *make, const char *command);
/* Creates the key, or imports it if bytes are given, and prints it. An exit code. */
int key_make_run(const struct cli *cli, const struct key_make *make, const char *name, const uint8_t *bytes);

#endif
