/* SPDX-License-Identifier: Apache-2.0 */
/* The tweak of a numbered data unit. */
#include <ciphermill/ciphermill.h>
#include <string.h>

void cm_xts_tweak(uint64_t number, uint8_t ret_tweak[16])
{
    memset(ret_tweak, 0, 16);
    for (int i = 0; i < 8; i++)
        ret_tweak[i] = (uint8_t)(number >> (8 * i));
}
