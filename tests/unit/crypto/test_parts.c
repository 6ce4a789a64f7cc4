/* SPDX-License-Identifier: Apache-2.0 */
/* One long message in parts: however it is split, the answer is that of the whole. */
#include "reference.h"

#include <stdio.h>
#include <string.h>

enum { LONGEST = 6000, MOST_PARTS = 40 };

struct shape {
    enum cm_aes_mode mode;
    enum cm_aes_padding padding;
};
static const struct shape shapes[] = {
    {CM_AES_ECB, CM_AES_NO_PADDING}, {CM_AES_ECB, CM_AES_PKCS7},      {CM_AES_CBC, CM_AES_NO_PADDING},
    {CM_AES_CBC, CM_AES_PKCS7},      {CM_AES_CTR, CM_AES_NO_PADDING}, {CM_AES_GCM, CM_AES_NO_PADDING},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

struct message {
    struct shape shape;
    enum cm_aes_direction direction;
    struct harness_random random;
    uint8_t key[32], iv[64], aad[300], text[LONGEST], cipher[LONGEST + 16], tag[16];
    struct harness_message plain;
    size_t key_length, cipher_length;
    uint8_t source[LONGEST + 16], destination[LONGEST + 16];
    struct harness_key memory;
    struct cm_aes_key *expanded;
};

static void message_make(struct message *message, const char *implementation, size_t longest)
{
    struct harness_random *random = &message->random;
    enum cm_aes_mode mode = message->shape.mode;
    bool gcm = mode == CM_AES_GCM;
    harness_random_fill(random, message->key, sizeof message->key);
    harness_random_fill(random, message->iv, sizeof message->iv);
    harness_random_fill(random, message->aad, sizeof message->aad);
    harness_random_fill(random, message->text, sizeof message->text);
    if (mode == CM_AES_CTR && harness_random_below(random, 2))
        memset(message->iv, 0xff, 15);
    size_t length = harness_random_below(random, longest + 1);
    if (message->shape.padding == CM_AES_NO_PADDING && (mode == CM_AES_ECB || mode == CM_AES_CBC))
        length = length / 16 * 16;
    message->key_length = 16 + 8 * harness_random_below(random, 3);
    message->plain = (struct harness_message){
        .text = message->text,
        .length = length,
        .iv = message->iv,
        .iv_length = !gcm                              ? 16
                     : harness_random_below(random, 2) ? 12
                                                       : 1 + harness_random_below(random, 64),
        .aad = message->aad,
        .aad_length = gcm ? harness_random_below(random, sizeof message->aad + 1) : 0,
        .tag_length = gcm ? 12 + harness_random_below(random, 5) : 0,
    };
    message->cipher_length =
        reference_encrypt(mode, message->shape.padding, message->key, message->key_length, &message->plain,
                          message->cipher, message->tag);
    message->expanded = harness_key_init(&message->memory, implementation, mode, message->direction,
                                         message->key, message->key_length);
}

static const uint8_t *input_of(const struct message *message, size_t *ret_length)
{
    bool encrypting = message->direction == CM_AES_ENCRYPT;
    *ret_length = encrypting ? message->plain.length : message->cipher_length;
    return encrypting ? message->text : message->cipher;
}

/* Splits `length` bytes: all parts but the last are whole blocks, some are empty. Returns how many. */
static size_t choose_parts(struct message *message, size_t length, size_t parts[MOST_PARTS])
{
    static const size_t bounds[] = {1, 3, 20, 200};
    struct harness_random *random = &message->random;
    bool unpads = message->direction == CM_AES_DECRYPT && message->shape.padding == CM_AES_PKCS7;
    size_t left = length, count = 0;
    while (count < MOST_PARTS - 1 && harness_random_below(random, 6) > 0) {
        size_t most = (left - (unpads ? 16 : 0)) / 16; /* what holds the padding must be in the last part */
        size_t blocks = harness_random_below(random, 1 + bounds[harness_random_below(random, 4)]);
        parts[count] = 16 * (blocks < most ? blocks : most);
        left -= parts[count++];
    }
    parts[count++] = left;
    return count;
}

/* Bytes [offset, offset + length) as an item; IV and additional data go with the first part only. */
static struct cm_aes_item part_of(struct message *message, const uint8_t *source, size_t offset,
                                  size_t length, bool first, uint8_t tag[16])
{
    return (struct cm_aes_item){
        .source = source + offset,
        .destination = message->destination + offset,
        .length = length,
        .iv = first ? message->iv : NULL,
        .iv_length = first ? message->plain.iv_length : 0,
        .aad = first ? message->aad : NULL,
        .aad_length = first ? message->plain.aad_length : 0,
        .tag = tag,
        .tag_length = message->plain.tag_length,
    };
}

/* A part that is not the last must be whole blocks: another length is refused and leaves no trace. */
static void try_bad_lengths(struct message *message, struct cm_aes_parts *state, const uint8_t *source,
                            size_t offset, size_t left, bool first)
{
    uint8_t tag[16] = {0};
    for (size_t length = 1; length < 40 && length <= left; length += 3) {
        if (length % 16 == 0)
            continue;
        struct cm_aes_parts before;
        memcpy(&before, state, sizeof before);
        struct cm_aes_item item = part_of(message, source, offset, length, first, tag);
        int status = cm_aes_part(message->expanded, message->shape.padding, state, &item, false);
        require(status == CM_AES_BAD_LENGTH && item.ret_status == status && item.ret_length == 0,
                "a part of %zu bytes: status %d", length, status);
        require(memcmp(&before, state, sizeof before) == 0, "a refused part of %zu bytes changed the state",
                length);
    }
}

/* Runs the message in random parts; returns the status of the last, `ret_output` gets the bytes of output. */
static int run_parts(struct message *message, uint8_t tag[16], bool in_place, size_t *ret_output)
{
    size_t length, parts[MOST_PARTS], offset = 0, output = 0;
    const uint8_t *input = input_of(message, &length);
    uint8_t *source = in_place ? message->destination : message->source;
    memset(message->destination, 0x5c, sizeof message->destination);
    memcpy(source, input, length);
    size_t count = choose_parts(message, length, parts);
    struct cm_aes_parts state;
    memset(&state, 0, sizeof state);
    int status = CM_AES_OK;
    for (size_t i = 0; i < count; i++) {
        if (harness_random_below(&message->random, 4) == 0 && !in_place)
            try_bad_lengths(message, &state, source, offset, length - offset, i == 0);
        struct cm_aes_item item = part_of(message, source, offset, parts[i], i == 0, tag);
        status = cm_aes_part(message->expanded, message->shape.padding, &state, &item, i + 1 == count);
        require(status == item.ret_status, "returned %d, the item says %d", status, item.ret_status);
        if (i + 1 < count)
            require(status == CM_AES_OK && item.ret_length == parts[i], "part %zu of %zu bytes: status %d", i,
                    parts[i], status);
        output += item.ret_length;
        offset += parts[i];
    }
    cm_aes_parts_done(&state);
    static const uint8_t wiped[16];
    require(memcmp(state.chain, wiped, 16) == 0 && memcmp(state.hash, wiped, 16) == 0 &&
                memcmp(state.first_pad, wiped, 16) == 0,
            "the state was not wiped");
    *ret_output = output;
    return status;
}

START_TEST(any_split_equals_the_whole)
{
    static struct message message;
    const char *implementation = harness_implementation((size_t)_i / SHAPES);
    message.shape = shapes[_i % SHAPES];
    message.random.state = 55;
    for (int round = 0; round < 1000; round++) {
        message.direction = round & 1 ? CM_AES_DECRYPT : CM_AES_ENCRYPT;
        message_make(&message, implementation, round % 8 < 6 ? 300 : LONGEST);
        bool encrypting = message.direction == CM_AES_ENCRYPT;
        uint8_t tag[16] = {0};
        size_t output, answer_length = encrypting ? message.cipher_length : message.plain.length;
        if (!encrypting)
            memcpy(tag, message.tag, sizeof tag);
        int status = run_parts(&message, tag, round & 2, &output);
        require(status == CM_AES_OK && output == answer_length, "%s: round %d: status %d, %zu bytes, not %zu",
                implementation, round, status, output, answer_length);
        require(memcmp(message.destination, encrypting ? message.cipher : message.text, answer_length) == 0,
                "%s: round %d: other bytes", implementation, round);
        require(memcmp(tag, message.tag, message.plain.tag_length) == 0, "%s: round %d: another tag",
                implementation, round);
        cm_aes_key_done(message.expanded);
    }
}
END_TEST

START_TEST(wrong_tag_is_found_by_the_last_part)
{
    static struct message message;
    const char *implementation = harness_implementation((size_t)_i);
    message.shape = (struct shape){CM_AES_GCM, CM_AES_NO_PADDING};
    message.direction = CM_AES_DECRYPT;
    message.random.state = 56;
    for (int round = 0; round < 300; round++) {
        message_make(&message, implementation, 500);
        uint8_t tag[16];
        size_t output;
        memcpy(tag, message.tag, sizeof tag);
        tag[harness_random_below(&message.random, message.plain.tag_length)] ^= 0x40;
        require(run_parts(&message, tag, round & 1, &output) == CM_AES_BAD_TAG, "%s: round %d: accepted",
                implementation, round);
        cm_aes_key_done(message.expanded);
    }
}
END_TEST

START_TEST(last_part_that_is_refused_is_wiped)
{
    const char *implementation = harness_implementation((size_t)_i);
    static const uint8_t bytes[64];
    for (int mode = CM_AES_ECB; mode < HARNESS_PLAIN_MODES; mode++) {
        if (mode == CM_AES_CTR)
            continue; /* knows no refusal */
        /* Zeros decrypt to something whose padding is wrong under this key, as the status shows. */
        struct harness_key memory;
        struct cm_aes_key *key =
            harness_key_init(&memory, implementation, (enum cm_aes_mode)mode, CM_AES_DECRYPT, bytes, 16);
        enum cm_aes_padding padding = mode == CM_AES_GCM ? CM_AES_NO_PADDING : CM_AES_PKCS7;
        struct cm_aes_parts state;
        memset(&state, 0, sizeof state);
        uint8_t output[64], tag[16] = {0};
        memset(output, 0x5c, sizeof output);
        struct cm_aes_item item = {.source = bytes,
                                   .destination = output,
                                   .length = 32,
                                   .iv = bytes,
                                   .iv_length = 16,
                                   .tag = tag,
                                   .tag_length = 16};
        ck_assert_int_eq(cm_aes_part(key, padding, &state, &item, false), CM_AES_OK);
        item.source += 32;
        item.destination += 32;
        item.iv_length = 0;
        ck_assert_int_eq(cm_aes_part(key, padding, &state, &item, true),
                         mode == CM_AES_GCM ? CM_AES_BAD_TAG : CM_AES_BAD_PADDING);
        harness_check_refused(&item, item.ret_status, 32, implementation);
        cm_aes_parts_done(&state);
        cm_aes_key_done(key);
    }
}
END_TEST

/* What must be right in the first part, and what PKCS#7 needs in the last. */
START_TEST(bad_firsts_and_lasts)
{
    const char *implementation = harness_implementation((size_t)_i);
    static const uint8_t bytes[64];
    static const struct {
        enum cm_aes_mode mode;
        size_t iv_length;
        int status;
    } cases[] = {
        {CM_AES_CBC, 15, CM_AES_BAD_IV}, {CM_AES_CBC, 0, CM_AES_BAD_IV}, {CM_AES_CTR, 17, CM_AES_BAD_IV},
        {CM_AES_CTR, 12, CM_AES_BAD_IV}, {CM_AES_GCM, 0, CM_AES_BAD_IV}, {CM_AES_GCM, 1, CM_AES_OK},
        {CM_AES_ECB, 0, CM_AES_OK},
    };
    uint8_t output[64], tag[16];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct harness_key memory;
        struct cm_aes_key *key =
            harness_key_init(&memory, implementation, cases[i].mode, CM_AES_ENCRYPT, bytes, 16);
        struct cm_aes_parts state;
        memset(&state, 0, sizeof state);
        struct cm_aes_item item = {.source = bytes,
                                   .destination = output,
                                   .length = 32,
                                   .iv = bytes,
                                   .iv_length = cases[i].iv_length,
                                   .tag = tag,
                                   .tag_length = 16};
        int status = cm_aes_part(key, CM_AES_NO_PADDING, &state, &item, false);
        require(status == cases[i].status, "%s: %s with an IV of %zu bytes: status %d", implementation,
                harness_mode_name(cases[i].mode), cases[i].iv_length, status);
        cm_aes_key_done(key);
    }
    for (int mode = CM_AES_ECB; mode <= CM_AES_CBC; mode++) {
        struct harness_key memory;
        struct cm_aes_key *key =
            harness_key_init(&memory, implementation, (enum cm_aes_mode)mode, CM_AES_DECRYPT, bytes, 16);
        struct cm_aes_parts state;
        memset(&state, 0, sizeof state);
        struct cm_aes_item item = {
            .source = bytes, .destination = output, .length = 16, .iv = bytes, .iv_length = 16};
        ck_assert_int_eq(cm_aes_part(key, CM_AES_PKCS7, &state, &item, false), CM_AES_OK);
        item.length = 0;
        ck_assert_int_eq(cm_aes_part(key, CM_AES_PKCS7, &state, &item, true), CM_AES_BAD_LENGTH);
        item.length = 17;
        ck_assert_int_eq(cm_aes_part(key, CM_AES_PKCS7, &state, &item, true), CM_AES_BAD_LENGTH);
        cm_aes_key_done(key);
    }
}
END_TEST

static void add_tests(TCase *test_case)
{
    tcase_add_loop_test(test_case, any_split_equals_the_whole, 0,
                        (int)harness_implementation_count() * SHAPES);
    harness_add_for_each(test_case, wrong_tag_is_found_by_the_last_part);
    harness_add_for_each(test_case, last_part_that_is_refused_is_wiped);
    harness_add_for_each(test_case, bad_firsts_and_lasts);
}

int main(void)
{
    return harness_run_initialised("messages in parts", add_tests);
}
