/* SPDX-License-Identifier: Apache-2.0 */
/* What encrypt and decrypt have in common: everything but the direction.
 *
 * The format: with the caller's IV the output is the bare ciphertext, as `openssl enc` writes it (GCM: and
 * the tag). Without it the daemon makes the IV and the output begins with it: 16 bytes in CBC and CTR, in GCM
 * a nonce of 12 bytes, then ciphertext, then tag. ECB has no IV. In XTS input and output are as long as each
 * other: the tweak comes from the command line. */
#ifndef CRYPT_H
#define CRYPT_H

#include "input.h"
#include "options.h"
#include "output.h"
#include <ciphermill/ciphermill.h>

enum {
    CRYPT_IV_MAX = 1024,
    CRYPT_UNIT_MIN = 16, /* XTS: bytes of a data unit */
    CRYPT_UNIT_MAX = 1 << 24,
    CRYPT_UNIT_DEFAULT = 4096
};

struct crypt {
    int direction; /* CM_ENCRYPT or CM_DECRYPT */
    int mode;
    unsigned flags; /* CM_NO_PADDING */
    const char *key_name;
    cm_client *client;
    cm_key *key;
    uint32_t tag_length;  /* GCM */
    uint64_t key_version; /* 0: none asked for */
    uint8_t iv[CRYPT_IV_MAX];
    size_t iv_length; /* 0: none given */
    uint8_t *aad;     /* GCM; on the heap */
    size_t aad_length;
    bool has_tweak, has_unit; /* XTS: one of them */
    uint8_t tweak[16];        /* of the whole input */
    uint64_t unit_number;     /* of the first data unit */
    size_t unit_bytes;        /* of each but the last one */
    bool quiet;
    struct input input;
    struct output output;
};

/* What tells the two commands apart. */
struct crypt_command {
    const char *name;
    int direction;
    const char *text, *examples; /* as in struct form */
};

/* Runs `ciphermill encrypt` or `decrypt`: options, connection, files. */
int crypt_run(struct cli *cli, int argc, char **argv, const struct crypt_command *command);

/* ECB, CBC, CTR: a message of any length, in constant memory. CODE_OK, or an exit code, having said why. */
int crypt_long(struct crypt *crypt);
/* GCM: one item, held in memory, since plaintext may leave only when its tag is right. */
int crypt_single(struct crypt *crypt);

/* XTS: data units of which only the last one may be shorter, numbered one after the other; or one unit. */
int crypt_units(struct crypt *crypt);

/* After the first encryption: whether the version is the one that was asked for, if one was. */
int crypt_check_version(const struct crypt *crypt);
/* Reports what the library said of this crypt's work. */
int crypt_failed(const struct crypt *crypt, const cm_error *error);

#endif
