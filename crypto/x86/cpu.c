/* SPDX-License-Identifier: Apache-2.0 */
/* x86-64: CPUID for the processor, XCR0 for the register state that the operating system saves. */
#include "cpu.h"

#include <cpuid.h>
#include <stddef.h>

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

/* The display model number, Intel SDM volume 2, CPUID; of family 6, the only one with AVX-512. */
static uint32_t intel_model(uint32_t signature)
{
    uint32_t family = signature >> 8 & 0xf;
    return family == 6 ? (signature >> 12 & 0xf0) | (signature >> 4 & 0xf) : 0;
}

/* Those with VAES and AVX-512 whose clock falls, as Linux's crypto code has them (zmm_exclusion_list): the
 * gain of the wider registers is a few parts in a hundred, and the loss is everybody's on that core. */
bool cm_cpu_is_slow_512(const uint32_t vendor[3], uint32_t signature)
{
    static const uint8_t models[] = {
        0x55,             /* Skylake, Cascade Lake and Cooper Lake servers */
        0x6a, 0x6c,       /* Ice Lake servers */
        0x7d, 0x7e, 0x9d, /* Ice Lake */
        0x8c, 0x8d,       /* Tiger Lake */
    };
    if (vendor[0] != signature_INTEL_ebx || vendor[1] != signature_INTEL_edx ||
        vendor[2] != signature_INTEL_ecx)
        return false;
    for (size_t i = 0; i < sizeof models; i++)
        if (models[i] == intel_model(signature))
            return true;
    return false;
}

uint32_t cm_cpu_features(void)
{
    uint32_t eax, ebx, ecx, edx, signature, vendor[3], features = 0;
    if (!__get_cpuid(0, &eax, &vendor[0], &vendor[2], &vendor[1]) ||
        !__get_cpuid(1, &signature, &ebx, &ecx, &edx))
        return 0;
    if (cm_cpu_is_slow_512(vendor, signature))
        features |= CM_CPU_SLOW_512;
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
