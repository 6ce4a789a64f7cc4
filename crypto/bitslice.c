/* SPDX-License-Identifier: Apache-2.0 */
/* AES on sixteen blocks at once: no table, no branch and no address depends on a secret.
 *
 * State: word s[8][4], 32 words of 64 bits. s[i][r] holds bit i of the bytes in row r: bit 16 * c + b belongs
 * to column c of block b. In this order
 *   SubBytes    is the circuit of sbox.h on each row's eight words,
 *   ShiftRows   rotates the words of row r right by 16 * r bits: one instruction a word,
 *   MixColumns  adds whole words of different rows: no shift at all,
 *   AddRoundKey adds 32 words, in which the sixteen bits of one byte's bit are equal.
 * Sixteen blocks, since that is what makes columns out of four equal parts of a 64-bit word; fewer would cost
 * shifts and masks in every round. A compiler with 128-bit vectors does two rows at once.
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

/* Swaps the bits of *a under (mask << shift) with those of *b under mask. */
static inline void swap_bits(word *a, word *b, unsigned shift, word mask)
{
    word t = ((*a >> shift) ^ *b) & mask;
    *b ^= t;
    *a ^= t << shift;
}

/* Turns an 8 x 8 matrix of bits around in each of eight byte positions; its own inverse: bit i of byte p of
 * w[k] trades places with bit k of byte p of w[i]. */
static inline void transpose_bits(word w[8])
{
    for (int k = 0; k < 8; k += 2)
        swap_bits(&w[k], &w[k + 1], 1, 0x5555555555555555);
    for (int k = 0; k < 8; k += k & 1 ? 3 : 1)
        swap_bits(&w[k], &w[k + 2], 2, 0x3333333333333333);
    for (int k = 0; k < 4; k++)
        swap_bits(&w[k], &w[k + 4], 4, 0x0f0f0f0f0f0f0f0f);
}

/* Two blocks as four words of one row each, the inverse of rows_to_blocks. Byte 2 * c + h of row r is the
 * byte of column c in block k + 8 * h; so transpose_bits puts it to bits 16 * c + 8 * h + k of the planes. */
static inline void blocks_to_rows(const uint8_t even[16], const uint8_t odd[16], word row[4])
{
    word a0 = cm_load64_le(even), a1 = cm_load64_le(even + 8);
    word b0 = cm_load64_le(odd), b1 = cm_load64_le(odd + 8);
    swap_bits(&a0, &a1, 32, 0x00000000ffffffff); /* columns 0 and 2, 1 and 3 */
    swap_bits(&b0, &b1, 32, 0x00000000ffffffff);
    swap_bits(&a0, &b0, 8, 0x00ff00ff00ff00ff); /* rows 0 and 2 of both blocks, rows 1 and 3 */
    swap_bits(&a1, &b1, 8, 0x00ff00ff00ff00ff);
    swap_bits(&a0, &a1, 16, 0x0000ffff0000ffff);
    swap_bits(&b0, &b1, 16, 0x0000ffff0000ffff);
    row[0] = a0;
    row[1] = b0;
    row[2] = a1;
    row[3] = b1;
}

static inline void rows_to_blocks(const word row[4], uint8_t even[16], uint8_t odd[16])
{
    word a0 = row[0], b0 = row[1], a1 = row[2], b1 = row[3];
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

static inline void load(word s[8][4], uint8_t blocks[16][16])
{
    word w[8][4];
    for (int k = 0; k < 8; k++)
        blocks_to_rows(blocks[k], blocks[k + 8], w[k]);
    for (int r = 0; r < 4; r++) {
        word plane[8];
        for (int k = 0; k < 8; k++)
            plane[k] = w[k][r];
        transpose_bits(plane);
        for (int i = 0; i < 8; i++)
            s[i][r] = plane[i];
    }
}

static inline void store(const word s[8][4], uint8_t blocks[16][16])
{
    word w[8][4];
    for (int r = 0; r < 4; r++) {
        word plane[8];
        for (int i = 0; i < 8; i++)
            plane[i] = s[i][r];
        transpose_bits(plane);
        for (int k = 0; k < 8; k++)
            w[k][r] = plane[k];
    }
    for (int k = 0; k < 8; k++)
        rows_to_blocks(w[k], blocks[k], blocks[k + 8]);
}

static inline void add_round_key(word s[8][4], const word key[8][4])
{
    for (int i = 0; i < 8; i++)
        for (int r = 0; r < 4; r++)
            s[i][r] ^= key[i][r];
}

static inline void sub_bytes(word s[8][4])
{
    for (int r = 0; r < 4; r++) {
        word x[8];
        for (int i = 0; i < 8; i++)
            x[i] = s[i][r];
        cm_sbox_forward(x);
        for (int i = 0; i < 8; i++)
            s[i][r] = x[i];
    }
}

static inline void inverse_sub_bytes(word s[8][4])
{
    for (int r = 0; r < 4; r++) {
        word x[8];
        for (int i = 0; i < 8; i++)
            x[i] = s[i][r];
        cm_sbox_inverse(x);
        for (int i = 0; i < 8; i++)
            s[i][r] = x[i];
    }
}

static inline word rotate_right(word x, unsigned n)
{
    return x >> n | x << (64 - n);
}

static inline void shift_rows(word s[8][4])
{
    for (int i = 0; i < 8; i++) {
        s[i][1] = rotate_right(s[i][1], 16);
        s[i][2] = rotate_right(s[i][2], 32);
        s[i][3] = rotate_right(s[i][3], 48);
    }
}

static inline void inverse_shift_rows(word s[8][4])
{
    for (int i = 0; i < 8; i++) {
        s[i][1] = rotate_right(s[i][1], 48);
        s[i][2] = rotate_right(s[i][2], 32);
        s[i][3] = rotate_right(s[i][3], 16);
    }
}

/* Bit i of x * a, where a[] are the planes of one row: FIPS 197, section 4.2.1. */
static inline word times_x(word a[8][4], int i, int r)
{
    word carry = i == 1 || i == 3 || i == 4 ? a[7][r] : 0;
    return i == 0 ? a[7][r] : a[i - 1][r] ^ carry;
}

/* 2 a_r + 3 a_(r+1) + a_(r+2) + a_(r+3) = 2 t_r + a_(r+1) + t_(r+2), where t_r = a_r + a_(r+1). */
static inline void mix_columns(word s[8][4])
{
    word t[8][4];
    for (int i = 0; i < 8; i++)
        for (int r = 0; r < 4; r++)
            t[i][r] = s[i][r] ^ s[i][(r + 1) % 4];
    for (int i = 0; i < 8; i++) {
        word next[4] = {s[i][1], s[i][2], s[i][3], s[i][0]};
        for (int r = 0; r < 4; r++)
            s[i][r] = times_x(t, i, r) ^ next[r] ^ t[i][(r + 2) % 4];
    }
}

/* The matrix of InvMixColumns is that of MixColumns times the one that adds 4 (a_r + a_(r+2)) to a_r. */
static inline void inverse_mix_columns(word s[8][4])
{
    word t[8][4], u[8][4];
    for (int i = 0; i < 8; i++)
        for (int r = 0; r < 4; r++)
            t[i][r] = s[i][r] ^ s[i][(r + 2) % 4];
    for (int i = 0; i < 8; i++)
        for (int r = 0; r < 4; r++)
            u[i][r] = times_x(t, i, r);
    for (int i = 0; i < 8; i++)
        for (int r = 0; r < 4; r++)
            s[i][r] ^= times_x(u, i, r);
    mix_columns(s);
}

void cm_bitslice_encrypt(const struct cm_bitslice_key *key, unsigned rounds, uint8_t blocks[16][16])
{
    word s[8][4];
    load(s, blocks);
    add_round_key(s, key->plane[0]);
    for (unsigned round = 1; round < rounds; round++) {
        sub_bytes(s);
        shift_rows(s);
        mix_columns(s);
        add_round_key(s, key->plane[round]);
    }
    sub_bytes(s);
    shift_rows(s);
    add_round_key(s, key->plane[rounds]);
    store(s, blocks);
}

void cm_bitslice_decrypt(const struct cm_bitslice_key *key, unsigned rounds, uint8_t blocks[16][16])
{
    word s[8][4];
    load(s, blocks);
    add_round_key(s, key->plane[rounds]);
    for (unsigned round = rounds - 1; round > 0; round--) {
        inverse_shift_rows(s);
        inverse_sub_bytes(s);
        add_round_key(s, key->plane[round]);
        inverse_mix_columns(s);
    }
    inverse_shift_rows(s);
    inverse_sub_bytes(s);
    add_round_key(s, key->plane[0]);
    store(s, blocks);
}

void cm_bitslice_key_init(struct cm_bitslice_key *key, const uint32_t *words, unsigned rounds)
{
    for (unsigned round = 0; round <= rounds; round++) {
        unsigned constant = round == 0 ? 0 : 0x63;
        for (unsigned i = 0; i < 8; i++)
            for (unsigned r = 0; r < 4; r++) {
                word plane = 0;
                for (unsigned c = 0; c < 4; c++) {
                    word bit = ((words[4 * round + c] >> (8 * r)) ^ constant) >> i & 1;
                    plane |= bit << (16 * c);
                }
                key->plane[round][i][r] = plane * 0xffff;
            }
    }
}

uint32_t cm_bitslice_sub_word(uint32_t value)
{
    word x[8];
    for (unsigned i = 0; i < 8; i++)
        x[i] = value >> i & 0x01010101;
    cm_sbox_forward(x);
    uint32_t result = 0x63636363;
    for (unsigned i = 0; i < 8; i++)
        result ^= (uint32_t)(x[i] & 0x01010101) << i;
    return result;
}
