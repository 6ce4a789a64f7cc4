/* SPDX-License-Identifier: Apache-2.0 */
/* The S-box of FIPS 197 and its inverse as circuits over bit planes; included by the bitsliced code alone.
 *
 * void cm_sbox_forward(pair x[8]), cm_sbox_inverse: x[i] holds bit i of as many bytes as it has bits. Forward
 * makes A * byte^-1, that is SubBytes without its constant 0x63; inverse makes (A^-1 * byte)^-1, which is
 * InvSubBytes of byte ^ 0x63. A is the matrix of FIPS 197, equation 5.2. The constant is in the round keys
 * (bitslice.c).
 *
 * Derivation. GF(2^8) = GF(2)[x] / (x^8 + x^4 + x^3 + x + 1) is written as a tower, a normal basis in each
 * storey, elements in hexadecimal:
 * - GF(2^2) by {W^2, W}, W = bc, W^2 = bd, W + W^2 = 1;
 * - GF(2^4) by {Z^4, Z}, Z = 5c, Z^4 = 5d, Z + Z^4 = 1, norm Z^5 = W;
 * - GF(2^8) by {Y^16, Y}, Y = fe, Y^16 = ff, Y + Y^16 = 1, norm v = Y^17 = ec.
 *
 * In a normal basis of trace 1 and norm n, (a1, a0)(b1, b0) = (a1 b1 + e, a0 b0 + e) with
 * e = n (a1 + a0)(b1 + b0), and (a1, a0)^-1 = (a0 t, a1 t) with t = (a1 a0 + n (a1 + a0)^2)^-1. Squaring, and
 * so inverting, in GF(2^2) swaps the two bits. A product in GF(2^4) thus needs nine ANDs, of nine linear
 * forms of each factor: with the factor's bits (h1, l1, h0, l0) they are h1, l1, h1 + l1, h0, l0, h0 + l0, h1
 * + h0, l1 + l0 and the sum of all four.
 *
 * So the first layer makes f[0..8], the forms of a, and f[9..17], the forms of b, of the byte a Y^16 + b Y.
 * The second inverts: the norm a b + v (a + b)^2 (an OR is an AND that has absorbed f + f' of the linear
 * part), its inverse r in GF(2^4), and the products p[0..8] of r and a, p[9..17] of r and b. The third
 * recombines the products (b r is the Y^16 part), goes back to the polynomial basis and applies A. The linear
 * layers were shortened by a greedy search for shared sums over all 128 such towers; 120 gates forward, 126
 * inverse. */
#ifndef CM_SBOX_H
#define CM_SBOX_H

#include <stdint.h>

/* Two words of 64 bits, which gcc and clang split where the processor has no such registers. */
typedef uint64_t pair __attribute__((vector_size(16)));

static inline void sbox_first(const pair x[8], pair f[18])
{
    f[0] = x[0];
    f[15] = x[4] ^ x[7];
    const pair t0 = x[5] ^ x[6];
    const pair t1 = x[1] ^ x[3];
    f[4] = x[0] ^ t0;
    f[2] = f[15] ^ t1;
    const pair t2 = x[2] ^ t1;
    f[13] = x[1] ^ f[4];
    f[16] = x[2] ^ x[7];
    f[6] = x[6] ^ t2;
    const pair t3 = x[2] ^ f[15];
    f[5] = x[5] ^ t2;
    f[9] = x[4] ^ f[4];
    f[1] = x[0] ^ f[2];
    f[8] = x[5] ^ t3;
    f[7] = t0 ^ f[2];
    f[11] = x[1] ^ t3;
    f[12] = x[7] ^ f[4];
    f[10] = f[13] ^ f[16];
    f[14] = x[1] ^ x[7];
    f[17] = x[2] ^ x[4];
    f[3] = x[0] ^ f[6];
}

/* (n3, n2) and (n1, n0), (r3, r2) and (r1, r0) are pairs over GF(2^2), high bit first. */
static inline void sbox_second(const pair f[18], pair p[18])
{
    const pair a2 = f[2] & f[11];
    const pair a6 = f[6] & f[15];
    const pair a8 = f[8] & f[17];
    const pair n3 = (f[0] & f[9]) ^ a6 ^ a2 ^ (f[7] | f[16]);
    const pair n2 = (f[1] & f[10]) ^ a8 ^ a2 ^ (f[6] | f[15]);
    const pair n1 = (f[5] & f[14]) ^ a6 ^ (f[3] | f[12]) ^ (f[7] & f[16]);
    const pair n0 = (f[4] & f[13]) ^ a6 ^ (f[5] | f[14]) ^ a8;

    const pair s1 = n3 ^ n2, s0 = n1 ^ n0;
    const pair high = (n2 | n0) ^ (s1 & s0), low = (n3 & n1) ^ (s1 | s0), sum = high ^ low;
    const pair e1 = s0 & sum, e0 = s1 & sum;
    const pair r3 = (n1 & high) ^ e1, r2 = (n0 & low) ^ e1;
    const pair r1 = (n3 & high) ^ e0, r0 = (n2 & low) ^ e0;

    const pair r31 = r3 ^ r1, r20 = r2 ^ r0;
    const pair r[9] = {r3, r2, r3 ^ r2, r1, r0, r1 ^ r0, r31, r20, r31 ^ r20};
    for (int i = 0; i < 9; i++) {
        p[i] = r[i] & f[i];
        p[9 + i] = r[i] & f[9 + i];
    }
}

static inline void sbox_third(const pair p[18], pair y[8])
{
    const pair t0 = p[15] ^ p[17];
    const pair t1 = p[10] ^ t0;
    const pair t2 = p[11] ^ t1;
    const pair t4 = p[14] ^ p[0] ^ p[2];
    const pair t5 = p[4] ^ t2;
    const pair t7 = p[6] ^ p[8];
    const pair t9 = p[8] ^ p[4] ^ p[7];
    const pair t10 = p[5] ^ t4;
    const pair t11 = p[5] ^ t5;
    const pair t12 = p[1] ^ p[2];
    const pair t13 = t0 ^ p[3] ^ p[13];
    y[0] = t10 ^ t13;
    y[1] = t13 ^ p[14] ^ t9;
    y[2] = t9 ^ p[9] ^ t10 ^ p[12] ^ t1;
    y[3] = p[3] ^ p[1] ^ p[0] ^ t5;
    y[4] = t11 ^ t12;
    y[5] = p[7] ^ t4 ^ p[12] ^ p[15] ^ p[6] ^ p[16];
    y[6] = t12 ^ t2 ^ t7;
    y[7] = t7 ^ t11;
}

static inline void inverse_sbox_first(const pair x[8], pair f[18])
{
    f[13] = x[4] ^ x[6];
    const pair t0 = x[0] ^ x[1];
    f[15] = x[3] ^ x[4];
    f[1] = x[7] ^ f[13];
    const pair t1 = x[3] ^ x[6];
    f[9] = f[13] ^ t0;
    const pair t2 = x[2] ^ x[5];
    f[16] = x[6] ^ x[7];
    f[14] = t0 ^ f[15];
    f[10] = x[4] ^ x[7];
    f[7] = x[0] ^ x[7] ^ t1;
    f[17] = x[3] ^ f[1];
    f[12] = t0 ^ t1;
    f[4] = x[0] ^ f[15];
    f[5] = x[5] ^ x[1] ^ t1;
    f[6] = f[1] ^ x[2] ^ t0;
    f[2] = f[13] ^ t2;
    f[3] = x[5] ^ f[9];
    f[11] = t0 ^ f[16];
    f[8] = f[15] ^ x[1] ^ x[2];
    f[0] = x[7] ^ t2;
}

static inline void inverse_sbox_third(const pair p[18], pair y[8])
{
    const pair t0 = p[6] ^ p[15];
    const pair t1 = p[14] ^ t0;
    const pair t2 = p[13] ^ t1;
    const pair t3 = p[17] ^ t2;
    const pair t5 = p[1] ^ p[7];
    const pair t6 = p[0] ^ p[4] ^ p[10];
    const pair t7 = p[9] ^ p[16];
    const pair t8 = p[2] ^ p[3];
    const pair t9 = p[7] ^ t3;
    const pair t10 = p[4] ^ t3;
    const pair t13 = p[5] ^ t6 ^ p[12] ^ t5;
    y[0] = t7 ^ p[11] ^ p[15];
    y[1] = p[5] ^ p[8] ^ t10;
    y[2] = t8 ^ t5 ^ t10;
    y[3] = t8 ^ t6 ^ t7 ^ p[8] ^ t2;
    y[4] = p[2] ^ p[0] ^ t9;
    y[5] = p[9] ^ t13 ^ p[17] ^ t1;
    y[6] = t0 ^ p[13] ^ p[16] ^ p[11] ^ t13;
    y[7] = p[5] ^ p[3] ^ t9;
}

static inline void cm_sbox_forward(pair x[8])
{
    pair f[18], p[18];
    sbox_first(x, f);
    sbox_second(f, p);
    sbox_third(p, x);
}

static inline void cm_sbox_inverse(pair x[8])
{
    pair f[18], p[18];
    inverse_sbox_first(x, f);
    sbox_second(f, p);
    inverse_sbox_third(p, x);
}

#endif
