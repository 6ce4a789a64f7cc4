/* SPDX-License-Identifier: Apache-2.0 */
/* Keys: expansion (FIPS 197, section 5.2), wiping, and comparison in constant time. */
#include "bytes.h"
#include "impl.h"

#include <assert.h>

void cm_aes_wipe(void *memory, size_t length)
{
    if (length == 0)
        return;
    memset(memory, 0, length);
    /* Claims to read the memory, so that the zeroes must be there. */
    __asm__ volatile("" : : "r"(memory) : "memory");
}

/* The compiler spills what it likes; so whoever has called a kernel wipes, once a batch, the stretch of stack
 * that the kernel's frames lay in. This frame starts where theirs did, and stacks grow downwards on all
 * processors that this runs on. */
__attribute__((noinline)) void cm_wipe_stack(size_t bytes)
{
    uint8_t below[CM_MAX_STACK_BYTES];
    cm_aes_wipe(below + sizeof below - bytes, bytes);
}

bool cm_aes_equal(const void *a, const void *b, size_t length)
{
    const uint8_t *x = a, *y = b;
    uint64_t difference = 0;
    for (; length >= 8; length -= 8, x += 8, y += 8)
        difference |= cm_load64_le(x) ^ cm_load64_le(y);
    for (; length > 0; length--, x++, y++)
        difference |= (uint64_t)(*x ^ *y);
    /* Hides the sum from the compiler, which might want to leave early once it can't change any more. */
    __asm__("" : "+r"(difference));
    return difference == 0;
}

unsigned cm_key_expand(uint32_t *ret_words, const uint8_t *key, size_t key_length,
                       uint32_t (*sub_word)(uint32_t word))
{
    size_t key_words = key_length / 4;
    size_t rounds = key_words + 6;
    assert(key_words == 4 || key_words == 6 || key_words == 8);
    uint32_t constant = 1;
    for (size_t i = 0; i < key_words; i++)
        ret_words[i] = cm_load32_le(key + 4 * i);
    for (size_t i = key_words; i < 4 * (rounds + 1); i++) {
        uint32_t word = ret_words[i - 1];
        if (i % key_words == 0) {
            word = sub_word(word >> 8 | word << 24) ^ constant;
            constant = constant << 1 ^ (constant >> 7) * 0x11b;
        } else if (key_words > 6 && i % key_words == 4) {
            word = sub_word(word);
        }
        ret_words[i] = ret_words[i - key_words] ^ word;
    }
    return (unsigned)rounds;
}

size_t cm_aes_key_size(const struct cm_aes_row *row)
{
    size_t size = sizeof(struct cm_aes_key) + row->form_size;
    return (size + CM_AES_KEY_ALIGN - 1) / CM_AES_KEY_ALIGN * CM_AES_KEY_ALIGN;
}

int cm_aes_key_init(struct cm_aes_key *memory, const struct cm_aes_row *row, const uint8_t *key,
                    size_t key_length)
{
    if (key_length != 16 && key_length != 24 && key_length != 32)
        return CM_AES_BAD_KEY_LENGTH;
    memory->row = row;
    memory->rounds = (unsigned)(key_length / 4 + 6);
    row->expand(memory->form, key, key_length);
    cm_wipe_stack(row->stack_bytes);
    return CM_AES_OK;
}

void cm_aes_key_done(struct cm_aes_key *key)
{
    cm_aes_wipe(key, cm_aes_key_size(key->row));
}

const struct cm_aes_row *cm_aes_key_row(const struct cm_aes_key *key)
{
    return key->row;
}
