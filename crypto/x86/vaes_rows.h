/* SPDX-License-Identifier: Apache-2.0 */
/* What the VAES implementations offer the dispatch table; the including file says the implementation's name.
 */
#ifndef CM_X86_VAES_KERNELS_H
#define CM_X86_VAES_KERNELS_H

#include "vaes_chains.h"
#include "vaes_gcm.h"
#include "vaes_xts.h"

/* Bounds on the frames of a kernel and what it calls, spills included, as -fstack-usage shows them (GCC 12
 * and Clang 14, which spills more). */
#ifdef __clang__
enum { BLOCKS_STACK_BYTES = 1536, GCM_STACK_BYTES = 3584 };
#else
enum { BLOCKS_STACK_BYTES = 512, GCM_STACK_BYTES = 2048 };
#endif

#define KERNEL(the_mode, the_direction, the_form, the_stack, the_expand, the_run, the_part)                  \
    {                                                                                                        \
        .name = VAES_NAME, .mode = (the_mode), .direction = (the_direction), .form_size = sizeof(the_form),  \
        .stack_bytes = (the_stack), .expand = (the_expand), .run = (the_run), .part = (the_part)             \
    }

#define VAES_KERNELS                                                                                         \
    {                                                                                                        \
        [CM_AES_ECB] = {KERNEL(CM_AES_ECB, CM_AES_ENCRYPT, struct form, BLOCKS_STACK_BYTES, expand_encrypt,  \
                               ecb_encrypt, NULL),                                                           \
                        KERNEL(CM_AES_ECB, CM_AES_DECRYPT, struct form, BLOCKS_STACK_BYTES, expand_decrypt,  \
                               ecb_decrypt, NULL)},                                                          \
        [CM_AES_CBC] = {KERNEL(CM_AES_CBC, CM_AES_ENCRYPT, struct form, BLOCKS_STACK_BYTES, expand_encrypt,  \
                               cbc_encrypt, NULL),                                                           \
                        KERNEL(CM_AES_CBC, CM_AES_DECRYPT, struct form, BLOCKS_STACK_BYTES, expand_decrypt,  \
                               cbc_decrypt, NULL)},                                                          \
        [CM_AES_CTR] = {KERNEL(CM_AES_CTR, CM_AES_ENCRYPT, struct form, BLOCKS_STACK_BYTES, expand_encrypt,  \
                               ctr, NULL),                                                                   \
                        KERNEL(CM_AES_CTR, CM_AES_DECRYPT, struct form, BLOCKS_STACK_BYTES, expand_encrypt,  \
                               ctr, NULL)},                                                                  \
        [CM_AES_GCM] = {KERNEL(CM_AES_GCM, CM_AES_ENCRYPT, struct gcm_form, GCM_STACK_BYTES, expand_gcm,     \
                               gcm_encrypt, gcm_part),                                                       \
                        KERNEL(CM_AES_GCM, CM_AES_DECRYPT, struct gcm_form, GCM_STACK_BYTES, expand_gcm,     \
                               gcm_decrypt, gcm_part)},                                                      \
        [CM_AES_XTS] = {KERNEL(CM_AES_XTS, CM_AES_ENCRYPT, struct xts_form, XTS_STACK_BYTES,                 \
                               expand_xts_encrypt, xts_encrypt, NULL),                                       \
                        KERNEL(CM_AES_XTS, CM_AES_DECRYPT, struct xts_form, XTS_STACK_BYTES,                 \
                               expand_xts_decrypt, xts_decrypt, NULL)},                                      \
    }

#endif
