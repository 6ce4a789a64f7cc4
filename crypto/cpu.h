/* SPDX-License-Identifier: Apache-2.0 */
/* What the processor can do and the operating system lets it do; one file per architecture answers. */
#ifndef CM_CPU_H
#define CM_CPU_H

#include <stdint.h>

enum {
    CM_CPU_SSSE3 = 1 << 0,
    CM_CPU_SSE41 = 1 << 1,
    CM_CPU_AESNI = 1 << 2,
    CM_CPU_PCLMUL = 1 << 3,
    CM_CPU_AVX2 = 1 << 4,   /* with 256-bit registers kept by the system */
    CM_CPU_AVX512 = 1 << 5, /* F, BW, DQ and VL, with 512-bit and mask registers kept by the system */
    CM_CPU_VAES = 1 << 6,
    CM_CPU_VPCLMUL = 1 << 7
};

#if CM_X86
uint32_t cm_cpu_features(void);
#else
static inline uint32_t cm_cpu_features(void)
{
    return 0;
}
#endif

#endif
