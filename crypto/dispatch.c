/* SPDX-License-Identifier: Apache-2.0 */
/* The one table of implementations, and which of them serves each mode and direction here. */
#include "cpu.h"
#include "impl.h"

#include <stdio.h>
#include <string.h>

#if CM_X86
#define X86(implementation) (&(implementation))
#else
#define X86(implementation) NULL
#endif

/* From the narrowest to the widest. A limit means an entry and all before it. An entry without an
 * implementation is a name that another architecture has. */
static const struct {
    const char *name;
    const struct cm_implementation *implementation;
} table[] = {
    {"portable", &cm_portable},
    {"aesni", X86(cm_aesni)},
    {"vaes256", X86(cm_vaes256)},
    {"vaes512", X86(cm_vaes512)},
};
enum { TABLE_LENGTH = sizeof table / sizeof table[0] };

/* What cm_aes_init found out. Written there, before any other thread uses crypto/; read everywhere. */
static struct {
    const char *reason; /* why not available, or "" */
    bool runs;          /* the processor can run it */
    char text[96];      /* of `reason`, where it is not constant */
} found[TABLE_LENGTH][CM_AES_MODE_COUNT][CM_AES_DIRECTION_COUNT];
static size_t chosen[CM_AES_MODE_COUNT][CM_AES_DIRECTION_COUNT];
static bool resolved;

static const struct cm_aes_row *row_at(size_t index, enum cm_aes_mode mode, enum cm_aes_direction direction)
{
    const struct cm_implementation *implementation = table[index].implementation;
    if (implementation == NULL || implementation->rows[mode][direction].name == NULL)
        return NULL;
    return &implementation->rows[mode][direction];
}

/* Looks at one row, the narrower ones done. */
static void examine(size_t index, enum cm_aes_mode mode, enum cm_aes_direction direction, uint32_t features,
                    size_t limit)
{
    const struct cm_aes_row *row = row_at(index, mode, direction);
    const struct cm_aes_row *reference = index == 0 ? NULL : row_at(0, mode, direction);
    const char *reason = "";
    const char *wrong;
    bool runs = false;
    if (table[index].implementation == NULL) {
        reason = "not part of this build";
    } else if (row == NULL) {
        reason = "has no kernel for this mode and direction";
    } else if ((features & table[index].implementation->needs) != table[index].implementation->needs) {
        reason = table[index].implementation->lacks;
    } else {
        runs = true;
        if (index > limit) {
            reason = "limited by CIPHERMILL_CPU";
        } else if ((wrong = cm_selftest(row, reference)) != NULL) {
            (void)snprintf(found[index][mode][direction].text, sizeof found[index][mode][direction].text,
                           "self-test failed: %s", wrong);
            reason = found[index][mode][direction].text;
        } else {
            chosen[mode][direction] = index;
        }
    }
    found[index][mode][direction].reason = reason;
    found[index][mode][direction].runs = runs;
}

int cm_aes_init(const char *limit)
{
    size_t last = TABLE_LENGTH - 1;
    if (limit != NULL && limit[0] != '\0') {
        last = 0;
        while (last < TABLE_LENGTH && strcmp(table[last].name, limit) != 0)
            last++;
        if (last == TABLE_LENGTH)
            return CM_AES_UNAVAILABLE;
    }
    uint32_t features = cm_cpu_features();
    int status = CM_AES_OK;
    for (enum cm_aes_mode mode = 0; mode < CM_AES_MODE_COUNT; mode++)
        for (enum cm_aes_direction direction = 0; direction < CM_AES_DIRECTION_COUNT; direction++) {
            chosen[mode][direction] = TABLE_LENGTH;
            for (size_t index = 0; index < TABLE_LENGTH; index++)
                examine(index, mode, direction, features, last);
            if (chosen[mode][direction] == TABLE_LENGTH)
                status = CM_AES_UNAVAILABLE;
        }
    resolved = status == CM_AES_OK;
    return status;
}

const struct cm_aes_row *cm_aes_row(enum cm_aes_mode mode, enum cm_aes_direction direction)
{
    return resolved ? row_at(chosen[mode][direction], mode, direction) : NULL;
}

const struct cm_aes_row *cm_aes_row_named(enum cm_aes_mode mode, enum cm_aes_direction direction,
                                          const char *implementation)
{
    for (size_t index = 0; index < TABLE_LENGTH; index++)
        if (strcmp(table[index].name, implementation) == 0 && found[index][mode][direction].runs)
            return row_at(index, mode, direction);
    return NULL;
}

const char *cm_aes_row_name(const struct cm_aes_row *row)
{
    return row->name;
}

bool cm_aes_implementation(size_t index, enum cm_aes_mode mode, enum cm_aes_direction direction,
                           struct cm_aes_implementation *ret_implementation)
{
    if (index >= TABLE_LENGTH)
        return false;
    const char *reason = found[index][mode][direction].reason;
    if (reason == NULL)
        reason = "cm_aes_init has not run";
    *ret_implementation = (struct cm_aes_implementation){
        .name = table[index].name,
        .compiled = row_at(index, mode, direction) != NULL,
        .available = reason[0] == '\0',
        .used = resolved && chosen[mode][direction] == index,
        .reason = reason,
    };
    return true;
}
