/* SPDX-License-Identifier: Apache-2.0 */
/* VAES and VPCLMULQDQ on 256-bit registers: processors with AVX2 but not AVX-512, or whose clock 512 bits
 * would slow down. */
#define VECTOR_BITS 256
#define VAES_NAME "vaes256"

#include "vaes_rows.h"

#include "cpu.h"

const struct cm_implementation cm_vaes256 = {
    .needs = CM_CPU_SSSE3 | CM_CPU_SSE41 | CM_CPU_AESNI | CM_CPU_PCLMUL | CM_CPU_AVX2 | CM_CPU_VAES |
             CM_CPU_VPCLMUL,
    .lacks = "processor or system lacks VAES, VPCLMULQDQ or AVX2",
    .kernels = VAES_KERNELS,
};
