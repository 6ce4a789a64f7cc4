/* SPDX-License-Identifier: Apache-2.0 */
/* AES on sixteen blocks at once: no table, no branch and no address depends on a secret.
 *
 * State: 32 words of 64 bits, one for each bit i of a byte and each row r. Bit 16 * c + b of it belongs to
 * column c of block b. Two rows lie in one vector: pair s[8][2], rows 0 and 1 in s[i][0], rows 2 and 3 in
 * s[i][1]. In this order
 * - SubBytes is the circuit of sbox.h, on two rows at a time;
 * - ShiftRows rotates the words of row r right by 16 * r bits, that is, it moves 16-bit lanes about;
 * - MixColumns adds whole words of different rows: no shift at all;
 * - AddRoundKey adds words in which the sixteen bits of one byte's bit are equal.
 *
 * Sixteen blocks, since that is what makes columns out of four equal parts of a 64-bit word; fewer would cost
 * shifts and masks in every round, more would make a lone block wait longer.
 *
 * The S-box circuit leaves out its constant 0x63. Encrypting, the constant comes before ShiftRows and
 * MixColumns, which map a state of equal bytes to itself (2 + 3 + 1 + 1 = 1), and so it may be added with the
 * round key that follows; decrypting, the inverse circuit wants it added to its input, which is again the sum
 * with a round key, gone through InvMixColumns (14 + 11 + 13 + 9 = 1). Both want it in all round keys but the
 * first. */
#include "bitslice.h"

#include "bytes.h"
#include "cm_aes.h"
#include "sbox.h"

/* Swaps the bits of *a under (mask << shift) with those of *b under mask; for one row and for two. */
static inline void swap_bits(uint64_t *a, uint64_t *b, unsigned shift, uint64_t mask)
{
    uint64_t t = ((*a >> shift) ^ *b) & mask;
    *b ^= t;
    *a ^= t << shift;
}

static inline void swap_bits_of_two(pair *a, pair *b, unsigned shift, uint64_t mask)
{
    pair t = ((*a >> shift) ^ *b) & mask;
    *b ^= t;
    *a ^= t << shift;
}

/* Turns an 8 x 8 matrix of bits around in each of the byte positions; its own inverse: bit i of byte p of
 * w[k] trades places with bit k of byte p of w[i]. */
static inline void transpose_bits(pair w[8])
{
    for (int k = 0; k < 8; k += 2)
        swap_bits_of_two(&w[k], &w[k + 1], 1, 0x5555555555555555);
    for (int k = 0; k < 8; k += k & 1 ? 3 : 1)
        swap_bits_of_two(&w[k], &w[k + 2], 2, 0x3333333333333333);
    for (int k = 0; k < 4; k++)
        swap_bits_of_two(&w[k], &w[k + 4], 4, 0x0f0f0f0f0f0f0f0f);
}

/* Two blocks as four words of one row each, the inverse of rows_to_blocks. Byte 2 * c + h of row r is the
 * byte of column c in block k + 8 * h; so transpose_bits puts it to bits 16 * c + 8 * h + k of the planes. */
static inline void blocks_to_rows(const uint8_t even[16], const uint8_t odd[16], pair *rows01, pair *rows23)
{
    uint64_t a0 = cm_load64_le(even), a1 = cm_load64_le(even + 8);
    uint64_t b0 = cm_load64_le(odd), b1 = cm_load64_le(odd + 8);
    swap_bits(&a0, &a1, 32, 0x00000000ffffffff); /* columns 0 and 2, 1 and 3 */
    swap_bits(&b0, &b1, 32, 0x00000000ffffffff);
    swap_bits(&a0, &b0, 8, 0x00ff00ff00ff00ff); /* rows 0 and 2 of both blocks, rows 1 and 3 */
    swap_bits(&a1, &b1, 8, 0x00ff00ff00ff00ff);
    swap_bits(&a0, &a1, 16, 0x0000ffff0000ffff);
    swap_bits(&b0, &b1, 16, 0x0000ffff0000ffff);
    *rows01 = (pair){a0, b0};
    *rows23 = (pair){a1, b1};
}

static inline void rows_to_blocks(pair rows01, pair rows23, uint8_t even[16], uint8_t odd[16])
{
    uint64_t a0 = rows01[0], b0 = rows01[1], a1 = rows23[0], b1 = rows23[1];
    swap_bits(&a0, &a1, 16, 0x0000ffff0000ffff);
    swap_bits(&b0, &b1, 16, 0x0000ffff0000ffff);
    swap_bits(&a0, &b0, 8, 0x00ff00ff00ff00ff);
    swap_bits(&a1, &b1, 8, 0x00ff00ff00ff00ff);
    swap_bits(&a0, &a1, 32, 0x00000000ffffffff);
    swap_bits(&b0, &b1, 32, 0x00000000ffffffff);
    cm_store64_le(even, a0);
    cm_store64_le(even + 8, a1);
    cm_store64_le(odd, b0);
    cm_store64_le(odd + 8, b1);
}

static inline void load(pair s[8][2], uint8_t blocks[16][16])
{
    pair half[2][8];
    for (int k = 0; k < 8; k++)
        blocks_to_rows(blocks[k], blocks[k + 8], &half[0][k], &half[1][k]);
    for (int h = 0; h < 2; h++) {
        transpose_bits(half[h]);
        for (int i = 0; i < 8; i++)
            s[i][h] = half[h][i];
    }
}

static inline void store(const pair s[8][2], uint8_t blocks[16][16])
{
    pair half[2][8];
    for (int h = 0; h < 2; h++) {
        for (int i = 0; i < 8; i++)
            half[h][i] = s[i][h];
        transpose_bits(half[h]);
    }
    for (int k = 0; k < 8; k++)
        rows_to_blocks(half[0][k], half[1][k], blocks[k], blocks[k + 8]);
}

static inline void add_round_key(pair s[8][2], const pair key[8][2])
{
    for (int i = 0; i < 8; i++) {
        s[i][0] ^= key[i][0];
        s[i][1] ^= key[i][1];
    }
}

static inline void sub_bytes(pair s[8][2], void (*circuit)(pair x[8]))
{
    for (int h = 0; h < 2; h++) {
        pair x[8];
        for (int i = 0; i < 8; i++)
            x[i] = s[i][h];
        circuit(x);
        for (int i = 0; i < 8; i++)
            s[i][h] = x[i];
    }
}

/* Rotates the first row right by m lanes of 16 bits and the second by n, m and n constants. */
#if defined(__has_builtin) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#if __has_builtin(__builtin_shufflevector)
typedef uint16_t lanes __attribute__((vector_size(16)));
#define ROTATE(x, m, n)                                                                                      \
    ((pair)__builtin_shufflevector((lanes)(x), (lanes)(x), (m) % 4, ((m) + 1) % 4, ((m) + 2) % 4,            \
                                   ((m) + 3) % 4, 4 + (n) % 4, 4 + ((n) + 1) % 4, 4 + ((n) + 2) % 4,         \
                                   4 + ((n) + 3) % 4))
#endif
#endif
#ifndef ROTATE
#define ROTATE(x, m, n)                                                                                      \
    ((x) >> (pair){16 * (m), 16 * (n)} | (x) << (pair){(64 - 16 * (m)) % 64, (64 - 16 * (n)) % 64})
#endif

static inline void shift_rows(pair s[8][2])
{
    for (int i = 0; i < 8; i++) {
        s[i][0] = ROTATE(s[i][0], 0, 1);
        s[i][1] = ROTATE(s[i][1], 2, 3);
    }
}

static inline void inverse_shift_rows(pair s[8][2])
{
    for (int i = 0; i < 8; i++) {
        s[i][0] = ROTATE(s[i][0], 0, 3);
        s[i][1] = ROTATE(s[i][1], 2, 1);
    }
}

/* Bit i of x * a, where a[] are the planes of two rows: FIPS 197, section 4.2.1. */
static inline pair times_x(pair a[8][2], int i, int h)
{
    if (i == 0)
        return a[7][h];
    return i == 1 || i == 3 || i == 4 ? a[i - 1][h] ^ a[7][h] : a[i - 1][h];
}

/* 2 a_r + 3 a_(r+1) + a_(r+2) + a_(r+3) = 2 t_r + a_(r+1) + t_(r+2), where t_r = a_r + a_(r+1). */
static inline void mix_columns(pair s[8][2])
{
    pair next[8][2], t[8][2];
    for (int i = 0; i < 8; i++) {
        next[i][0] = (pair){s[i][0][1], s[i][1][0]};
        next[i][1] = (pair){s[i][1][1], s[i][0][0]};
        t[i][0] = s[i][0] ^ next[i][0];
        t[i][1] = s[i][1] ^ next[i][1];
    }
    for (int i = 0; i < 8; i++)
        for (int h = 0; h < 2; h++)
            s[i][h] = times_x(t, i, h) ^ next[i][h] ^ t[i][1 - h];
}

/* The matrix of InvMixColumns is that of MixColumns times the one that adds 4 (a_r + a_(r+2)) to a_r. */
static inline void inverse_mix_columns(pair s[8][2])
{
    pair t[8][2], u[8][2];
    for (int i = 0; i < 8; i++)
        t[i][0] = s[i][0] ^ s[i][1];
    for (int i = 0; i < 8; i++)
        u[i][0] = times_x(t, i, 0);
    for (int i = 0; i < 8; i++) {
        pair v = times_x(u, i, 0);
        s[i][0] ^= v;
        s[i][1] ^= v;
    }
    mix_columns(s);
}

void cm_bitslice_encrypt(const struct cm_bitslice_key *key, unsigned rounds, uint8_t blocks[16][16])
{
    pair s[8][2];
    load(s, blocks);
    add_round_key(s, key->plane[0]);
    for (unsigned round = 1; round < rounds; round++) {
        sub_bytes(s, cm_sbox_forward);
        shift_rows(s);
        mix_columns(s);
        add_round_key(s, key->plane[round]);
    }
    sub_bytes(s, cm_sbox_forward);
    shift_rows(s);
    add_round_key(s, key->plane[rounds]);
    store(s, blocks);
}

void cm_bitslice_decrypt(const struct cm_bitslice_key *key, unsigned rounds, uint8_t blocks[16][16])
{
    pair s[8][2];
    load(s, blocks);
    add_round_key(s, key->plane[rounds]);
    for (unsigned round = rounds - 1; round > 0; round--) {
        inverse_shift_rows(s);
        sub_bytes(s, cm_sbox_inverse);
        add_round_key(s, key->plane[round]);
        inverse_mix_columns(s);
    }
    inverse_shift_rows(s);
    sub_bytes(s, cm_sbox_inverse);
    add_round_key(s, key->plane[0]);
    store(s, blocks);
}

void cm_bitslice_key_init(struct cm_bitslice_key *key, const uint32_t *words, unsigned rounds)
{
    for (unsigned round = 0; round <= rounds; round++) {
        unsigned constant = round == 0 ? 0 : 0x63;
        for (unsigned i = 0; i < 8; i++)
            for (unsigned r = 0; r < 4; r++) {
                uint64_t plane = 0;
                for (unsigned c = 0; c < 4; c++) {
                    uint64_t bit = ((words[4 * round + c] >> (8 * r)) ^ constant) >> i & 1;
                    plane |= bit << (16 * c);
                }
                key->plane[round][i][r / 2][r % 2] = plane * 0xffff;
            }
    }
}

uint32_t cm_bitslice_sub_word(uint32_t value)
{
    pair x[8];
    for (unsigned i = 0; i < 8; i++)
        x[i] = (pair){value >> i & 0x01010101, 0};
    cm_sbox_forward(x);
    uint32_t result = 0x63636363;
    for (unsigned i = 0; i < 8; i++)
        result ^= (uint32_t)(x[i][0] & 0x01010101) << i;
    return result;
}
