/* SPDX-License-Identifier: Apache-2.0 */
/* x86-64: CPUID for the processor, XCR0 for the register state that the operating system saves. */
#include "cpu.h"

#include <cpuid.h>

/* XCR0, Intel SDM volume 1, section 13.3. */
enum { XCR0_SSE_AVX = 0x06, XCR0_AVX512 = 0xe0 };

static uint32_t read_xcr0(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

/* CPUID leaf 7 has the wide vector extensions; without the system's consent none of them counts. */
static uint32_t wide_features(uint32_t xcr0)
{
    uint32_t eax, ebx, ecx, edx, features = 0;
    const uint32_t avx512 = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
    if ((xcr0 & XCR0_SSE_AVX) != XCR0_SSE_AVX || !__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx))
        return 0;
    if (!(ebx & bit_AVX2))
        return 0;
    features |= CM_CPU_AVX2;
    if (ecx & bit_VAES)
        features |= CM_CPU_VAES;
    if (ecx & bit_VPCLMULQDQ)
        features |= CM_CPU_VPCLMUL;
    if ((xcr0 & XCR0_AVX512) == XCR0_AVX512 && (ebx & avx512) == avx512)
        features |= CM_CPU_AVX512;
    return features;
}

uint32_t cm_cpu_features(void)
{
    uint32_t eax, ebx, ecx, edx, features = 0;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx))
        return 0;
    if (ecx & bit_SSSE3)
        features |= CM_CPU_SSSE3;
    if (ecx & bit_SSE4_1)
        features |= CM_CPU_SSE41;
    if (ecx & bit_AES)
        features |= CM_CPU_AESNI;
    if (ecx & bit_PCLMUL)
        features |= CM_CPU_PCLMUL;
    if (ecx & bit_OSXSAVE)
        features |= wide_features(read_xcr0());
    return features;
}
