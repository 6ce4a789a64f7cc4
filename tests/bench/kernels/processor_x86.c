/* SPDX-License-Identifier: Apache-2.0 */
/* Clock and limits of an x86-64 core, measured: hardware counters may be missing, and the units of AES differ
 * between processors.
 *
 * The clock comes from additions that wait for each other, a cycle each. A limit comes from a loop of nothing
 * but a mode's AES rounds and carry-less multiplications, on eight registers that do not wait for each other
 * (four for the products): how often the processor could do a block's work if all else were free. */
#include "processor.h"

#include <immintrin.h>
#include <string.h>

enum { TRIES = 20, PASSES = 64, REGISTERS = 8 };

double bench_cycle_ns(void)
{
    enum { CHAINS = 1000, ADDITIONS = 8, ATTEMPTS = 3 };
    double best = 1e9;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        uint64_t x = 1, y = 3;
        double start = bench_now_ns();
        for (int i = 0; i < CHAINS; i++)
            __asm__ volatile("add %1, %0\n\tadd %1, %0\n\tadd %1, %0\n\tadd %1, %0\n\t"
                             "add %1, %0\n\tadd %1, %0\n\tadd %1, %0\n\tadd %1, %0"
                             : "+r"(x)
                             : "r"(y)
                             : "cc");
        double took = (bench_now_ns() - start) / (CHAINS * ADDITIONS);
        best = took < best ? took : best;
    }
    return best;
}

/* --- Loops: `rounds` AES rounds and `products` multiplications for each of eight registers ---------------
 */

typedef void loop_fn(unsigned rounds, unsigned products);

#define EIGHT_ROUNDS(op) op(0) op(1) op(2) op(3) op(4) op(5) op(6) op(7)
#define EIGHT_PRODUCTS(op) op(8) op(9) op(10) op(11) op(8) op(9) op(10) op(11)
#define OPERANDS(constraint)                                                                                 \
    constraint(x[0]), constraint(x[1]), constraint(x[2]), constraint(x[3]), constraint(x[4]),                \
        constraint(x[5]), constraint(x[6]), constraint(x[7]), constraint(y[0]), constraint(y[1]),            \
        constraint(y[2]), constraint(y[3])
#define LOOP(name, type, features, constraint, round, product)                                               \
    __attribute__((target(features))) static void name(unsigned rounds, unsigned products)                   \
    {                                                                                                        \
        type x[REGISTERS] = {{0}}, y[4] = {{0}}, key = {0};                                                  \
        for (int pass = 0; pass < PASSES; pass++)                                                            \
            for (unsigned i = 0; i < rounds; i++) {                                                          \
                __asm__ volatile(EIGHT_ROUNDS(round) : OPERANDS(constraint) : constraint##_IN(key));         \
                if (i < products)                                                                            \
                    __asm__ volatile(EIGHT_PRODUCTS(product) : OPERANDS(constraint) : constraint##_IN(key)); \
            }                                                                                                \
    }
#define NARROW(value) "+x"(value)
#define NARROW_IN(value) "x"(value)
#define WIDE(value) "+v"(value)
#define WIDE_IN(value) "v"(value)
#define AESENC(i) "aesenc %12, %" #i "\n\t"
#define PCLMULQDQ(i) "pclmulqdq $0, %12, %" #i "\n\t"
#define VAESENC(i) "vaesenc %12, %" #i ", %" #i "\n\t"
#define VPCLMULQDQ(i) "vpclmulqdq $0, %12, %" #i ", %" #i "\n\t"

LOOP(loop_128, __m128i, "aes,pclmul", NARROW, AESENC, PCLMULQDQ)
LOOP(loop_256, __m256i, "avx2,vaes,vpclmulqdq", WIDE, VAESENC, VPCLMULQDQ)
LOOP(loop_512, __m512i, "avx512f,vaes,vpclmulqdq", WIDE, VAESENC, VPCLMULQDQ)

/* The rounds of one block after another: CBC encryption of a single message. */
__attribute__((target("aes"))) static void loop_chain(unsigned rounds, unsigned products)
{
    __m128i x = {0}, key = {0};
    (void)products;
    for (int pass = 0; pass < PASSES; pass++) {
        for (unsigned i = 0; i < rounds; i++)
            __asm__ volatile("aesenc %1, %0" : "+x"(x) : "x"(key));
        __asm__ volatile("pxor %1, %0" : "+x"(x) : "x"(key));
    }
}

/* Cycles of one pass: the best time of many over the best clock of as many. */
static double pass_cycles(loop_fn *loop, unsigned rounds, unsigned products)
{
    double best = 1e9, cycle = 1e9;
    for (int attempt = 0; attempt < TRIES; attempt++) {
        double start = bench_now_ns();
        loop(rounds, products);
        double took = (bench_now_ns() - start) / PASSES, now = bench_cycle_ns();
        best = took < best ? took : best;
        cycle = now < cycle ? now : cycle;
    }
    return best / cycle;
}

double bench_limit_cycles(const char *implementation, const struct bench_cell *cell)
{
    static const struct {
        const char *name;
        loop_fn *loop;
        unsigned bytes;
    } widths[] = {{"aesni", loop_128, 16}, {"vaes256", loop_256, 32}, {"vaes512", loop_512, 64}};
    enum { WIDTHS = sizeof widths / sizeof *widths, CHAIN = WIDTHS, MOST_PRODUCTS = 3 };
    static double known[WIDTHS + 1][3][MOST_PRODUCTS + 1];
    /* GCM: Karatsuba's three; what sums and reduces is shared by many blocks. XTS: the tweaks' step.
     */
    static const unsigned products[CM_AES_MODE_COUNT] = {[CM_AES_GCM] = 3, [CM_AES_XTS] = 1};
    size_t width = 0;
    while (width < WIDTHS && strcmp(widths[width].name, implementation) != 0)
        width++;
    if (width == WIDTHS)
        return 0;
    unsigned size = (unsigned)(cell->key_bits / 64 - 2), rounds = 10 + 2 * size;
    double bytes = REGISTERS * widths[width].bytes;
    loop_fn *loop = widths[width].loop;
    if (cell->mode->mode == CM_AES_CBC && cell->mode->direction == CM_AES_ENCRYPT && cell->batch == 1) {
        width = CHAIN;
        bytes = 16;
        loop = loop_chain;
    }
    /* Measured anew for each cell, and the least counts: a neighbour on the same core may have held the
     * units. */
    double *cycles = &known[width][size][products[cell->mode->mode]];
    double now = pass_cycles(loop, rounds, products[cell->mode->mode]);
    if (*cycles == 0 || now < *cycles)
        *cycles = now;
    return *cycles / bytes;
}
