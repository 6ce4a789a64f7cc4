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
    return sizeof(struct cm_aes_key) + row->forms_size;
}

int cm_aes_key_init(struct cm_aes_key *memory, const struct cm_aes_row *row, const uint8_t *key,
                    size_t key_length)
{
    bool doubled = cm_modes[row->kernel[0]->mode]->doubled_key;
    size_t single = doubled ? key_length / 2 : key_length;
    if (single != 16 && single != 32 && (doubled || single != 24))
        return CM_AES_BAD_KEY_LENGTH;
    if (doubled && key_length % 2 != 0)
        return CM_AES_BAD_KEY_LENGTH;
    memory->row = row;
    for (int i = 0; i < CM_AES_SIZE_CLASS_COUNT; i++) {
        const struct cm_kernel *kernel = row->kernel[i];
        int same = 0;
        while (row->kernel[same] != kernel)
            same++;
        if (same < i)
            continue;
        struct cm_kernel_key *made = (struct cm_kernel_key *)(void *)(memory->forms + row->form_at[i]);
        made->kernel = kernel;
        made->rounds = (unsigned)(single / 4 + 6);
        kernel->expand(made->form, key, key_length);
        cm_wipe_stack(kernel->stack_bytes);
    }
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
