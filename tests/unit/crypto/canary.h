/* SPDX-License-Identifier: Apache-2.0 */
/* Calls a function with known values in everything that it has to keep, and tells what it did not keep. */
#ifndef CM_TEST_CRYPTO_CANARY_H
#define CM_TEST_CRYPTO_CANARY_H

#include <stddef.h>
#include <stdint.h>

/* System V ABI for x86-64, section 3.2: rbx, rbp, r12 to r15 and rsp, the control bits of MXCSR, the x87
 * control word and a cleared direction flag belong to the caller; so does the stack from the return address
 * on. Other architectures have no trampoline here. */
#if defined(__x86_64__)
#define CANARY_HERE 1
#else
#define CANARY_HERE 0
#endif

struct canary_call {
    void (*function)(void); /* cast to this type; takes up to six integers or pointers */
    uintptr_t arguments[6];
    uintptr_t ret_result;      /* what it returned, if it returned an integer */
    const char *ret_violation; /* what it did not keep, or NULL */
    /* How far down it left on its stack what is neither an address nor a small number, so may be a secret; at
     * most CANARY_STACK_BYTES. */
    size_t ret_stack_bytes;
};
enum { CANARY_STACK_BYTES = 16384 };

/* Calls it. One call at a time, and none within another. */
void canary_run(struct canary_call *call);

/* --- What must be found -------------------------------------------------------------------------------- */

/* Functions that each break one rule and do nothing else. */
struct canary_culprit {
    const char *violation; /* what canary_run has to say of it */
    void (*function)(void);
};
extern const struct canary_culprit canary_culprits[];
extern const size_t canary_culprit_count;

/* Breaks none, but soils its stack further down than any kernel may. */
void canary_soils_deep(void);

#endif
