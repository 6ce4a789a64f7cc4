/* SPDX-License-Identifier: Apache-2.0 */
/* VAES and VPCLMULQDQ on 512-bit registers, with AVX-512's masks for the ends of messages. */
#define VECTOR_BITS 512
#define VAES_NAME "vaes512"

#include "vaes_rows.h"

#include "cpu.h"

const struct cm_implementation cm_vaes512 = {
    .needs = CM_CPU_SSSE3 | CM_CPU_SSE41 | CM_CPU_AESNI | CM_CPU_PCLMUL | CM_CPU_AVX2 | CM_CPU_VAES |
             CM_CPU_VPCLMUL | CM_CPU_AVX512,
    .lacks = "processor or system lacks VAES, VPCLMULQDQ or AVX-512",
    .avoids = CM_CPU_SLOW_512,
    .avoids_text = "512-bit registers lower the clock of this processor",
    .kernels = VAES_KERNELS,
};
