/* SPDX-License-Identifier: Apache-2.0 */
/* An architecture without kernels of its own: nothing to find out about the processor. */
#include "cpu.h"

uint32_t cm_cpu_features(void)
{
    return 0;
}
