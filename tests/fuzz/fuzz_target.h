/* SPDX-License-Identifier: Apache-2.0 */
/* What a fuzz target is to libFuzzer and to the replay program. */
#ifndef CM_FUZZ_TARGET_H
#define CM_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

/* Aborts when something is wrong with what the code under test made of `data`; else returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
