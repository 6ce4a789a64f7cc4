/* SPDX-License-Identifier: Apache-2.0 */
/* What the processor can do and the operating system lets it do; one file per architecture answers. */
#ifndef CM_CPU_H
#define CM_CPU_H

#include <stdbool.h>
#include <stdint.h>

enum {
    CM_CPU_SSSE3 = 1 << 0,
    CM_CPU_SSE41 = 1 << 1,
    CM_CPU_AESNI = 1 << 2,
    CM_CPU_PCLMUL = 1 << 3,
    CM_CPU_AVX2 = 1 << 4,   /* with 256-bit registers kept by the system */
    CM_CPU_AVX512 = 1 << 5, /* F, BW, DQ and VL, with 512-bit and mask registers kept by the system */
    CM_CPU_VAES = 1 << 6,
    CM_CPU_VPCLMUL = 1 << 7,
    CM_CPU_SLOW_512 = 1 << 8 /* no ability: 512-bit registers lower the clock of all that runs on the core */
};

uint32_t cm_cpu_features(void);

/* x86 only: whether a processor lowers its clock under 512-bit registers, told by its vendor (CPUID leaf 0:
 * EBX, EDX, ECX) and its signature (leaf 1: EAX). */
bool cm_cpu_is_slow_512(const uint32_t vendor[3], uint32_t signature);

#endif
