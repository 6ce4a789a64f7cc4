/* SPDX-License-Identifier: Apache-2.0 */
/* One published test case, checked against one implementation in both directions. */
#include "vector.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static unsigned nibble(char digit)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = digit == '\0' ? NULL : strchr(digits, tolower((unsigned char)digit));
    require(found != NULL, "no hex digit: '%c'", digit);
    return (unsigned)(found - digits);
}

void vector_bytes_append(struct vector_bytes *bytes, const char *hex)
{
    while (*hex != '\0') {
        if (*hex == ' ' || *hex == '\n') {
            hex++;
            continue;
        }
        require(bytes->length < VECTOR_MAX_BYTES, "a field is longer than %d bytes", VECTOR_MAX_BYTES);
        unsigned high = nibble(hex[0]);
        bytes->data[bytes->length++] = (uint8_t)(high << 4 | nibble(hex[1]));
        hex += 2;
    }
}

void vector_bytes_read(struct vector_bytes *bytes, const char *hex)
{
    bytes->length = 0;
    vector_bytes_append(bytes, hex);
}

/* One direction, at one placement. */
static void run(const struct vector *vector, const struct cm_aes_key *key, enum cm_aes_direction direction,
                bool in_place, struct harness_stage *stage)
{
    bool encrypting = direction == CM_AES_ENCRYPT;
    const struct vector_bytes *input = encrypting ? &vector->plaintext : &vector->ciphertext;
    const struct vector_bytes *output = encrypting ? &vector->ciphertext : &vector->plaintext;
    int status = encrypting ? vector->encrypt_status : vector->decrypt_status;
    struct harness_message message = {
        .text = input->data,
        .length = input->length,
        .iv = vector->iv.data,
        .iv_length = vector->iv.length,
        .aad = vector->aad.data,
        .aad_length = vector->aad.length,
        .tag = vector->tag.data,
        .tag_length = vector->tag.length,
    };
    struct cm_aes_item item;
    struct harness_placement at_the_end = {.front = false, .shift = 0};
    harness_stage_place(stage, &message, direction, vector->padding, at_the_end, in_place, &item);
    size_t failed = cm_aes_batch(key, vector->padding, &item, 1);
    require(failed == (status == CM_AES_OK ? 0 : 1), "%s: %zu items failed, status %d", vector->where, failed,
            item.ret_status);
    if (status == CM_AES_OK)
        harness_check_output(&item, output->data, output->length,
                             vector->mode == CM_AES_GCM ? vector->tag.data : NULL, vector->where);
    else
        harness_check_refused(&item, status,
                              status == CM_AES_BAD_TAG || status == CM_AES_BAD_PADDING ? input->length : 0,
                              vector->where);
    harness_stage_check(stage, &item, vector->where);
}

static void check_key_refused(const struct vector *vector, const char *implementation)
{
    for (int direction = 0; direction < CM_AES_DIRECTION_COUNT; direction++) {
        struct harness_key memory;
        int status =
            cm_aes_key_init((struct cm_aes_key *)(void *)memory.memory,
                            harness_row(implementation, vector->mode, (enum cm_aes_direction)direction),
                            vector->key.data, vector->key.length);
        require(status == vector->key_status, "%s: key of %zu bytes: status %d", vector->where,
                vector->key.length, status);
    }
}

void vector_check(const struct vector *vector, const char *implementation, struct vector_count *count)
{
    static struct harness_stage stage;
    if (stage.source.base == NULL)
        harness_stage_init(&stage, VECTOR_MAX_BYTES, VECTOR_MAX_BYTES);
    size_t single = vector->mode == CM_AES_XTS ? vector->key.length / 2 : vector->key.length;
    require(single == 16 || single == 24 || single == 32, "%s: key of %zu bytes", vector->where,
            vector->key.length);
    count->cases++;
    if (vector->key_status != CM_AES_OK) {
        check_key_refused(vector, implementation);
        count->refused++;
        return;
    }
    struct harness_key memory;
    for (int direction = vector->encrypt ? CM_AES_ENCRYPT : CM_AES_DECRYPT; direction <= CM_AES_DECRYPT;
         direction++) {
        struct cm_aes_key *key =
            harness_key_init(&memory, implementation, vector->mode, (enum cm_aes_direction)direction,
                             vector->key.data, vector->key.length);
        run(vector, key, (enum cm_aes_direction)direction, false, &stage);
        run(vector, key, (enum cm_aes_direction)direction, true, &stage);
        cm_aes_key_done(key);
    }
    if (vector->decrypt_status != CM_AES_OK)
        count->refused++;
}
