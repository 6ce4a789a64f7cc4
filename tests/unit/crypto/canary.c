/* SPDX-License-Identifier: Apache-2.0 */
/* Calls a function with known values in everything that it has to keep, and tells what it did not keep. */
#include "canary.h"

#include <stdbool.h>

#if CANARY_HERE

enum { KEPT = 6, STACK_WORDS = CANARY_STACK_BYTES / 8, CALLER_WORDS = 64 };
#define PATTERN UINT64_C(0xc0de5afec0de5afe)

/* Everything lies in one place at a known address, so that what the function leaves in the registers, the
 * stack pointer too, does not matter for finding it again. The offsets stand in the trampoline. */
static struct {
    uint64_t arguments[6];      /* 0 */
    uint64_t function;          /* 48 */
    uint64_t set[KEPT];         /* 56: rbx, rbp, r12, r13, r14, r15 */
    uint64_t got[KEPT];         /* 104 */
    uint64_t stack_pointer;     /* 152: before the call */
    uint64_t got_stack_pointer; /* 160 */
    uint64_t result;            /* 168 */
    uint64_t flags;             /* 176 */
    uint32_t mxcsr_set;         /* 184 */
    uint32_t mxcsr_got;         /* 188 */
    uint32_t mxcsr_saved;       /* 192 */
    uint16_t x87_set;           /* 196 */
    uint16_t x87_got;           /* 198 */
    uint16_t x87_saved;         /* 200 */
    uint16_t padding[3];        /* 202 */
    uint64_t caller[64];        /* 208: CALLER_WORDS, the stack above the call as it was left */
    uint64_t below[2048];       /* 720: STACK_WORDS, the stack below it */
    uint64_t pattern;           /* 17104 */
} canary_state __attribute__((used));

_Static_assert(CALLER_WORDS == 64 && STACK_WORDS == 2048, "the trampoline counts on these");
_Static_assert(sizeof canary_state == 17112, "the trampoline counts on these offsets");

void canary_trampoline(void);

/* Saves the caller's, makes 64 words of stack that are nobody's, patterns them and what lies below the stack
 * pointer, sets the canaries, calls, and copies everything out before the stack is used again. */
__asm__(".pushsection .text\n"
        ".type canary_trampoline, @function\n"
        ".globl canary_trampoline\n"
        ".hidden canary_trampoline\n"
        "canary_trampoline:\n"
        "    push %rbx\n    push %rbp\n    push %r12\n    push %r13\n    push %r14\n    push %r15\n"
        "    sub $(8 + 8 * 64), %rsp\n"
        "    lea canary_state(%rip), %rdx\n"
        "    stmxcsr 192(%rdx)\n    fnstcw 200(%rdx)\n"
        "    mov %rsp, 152(%rdx)\n"
        "    mov 17104(%rdx), %rax\n"
        "    mov $64, %ecx\n    mov %rsp, %rdi\n    rep stosq\n"
        "    mov $2048, %ecx\n    lea -8 * 2048(%rsp), %rdi\n    rep stosq\n"
        "    ldmxcsr 184(%rdx)\n    fldcw 196(%rdx)\n"
        "    mov 56(%rdx), %rbx\n    mov 64(%rdx), %rbp\n"
        "    mov 72(%rdx), %r12\n    mov 80(%rdx), %r13\n    mov 88(%rdx), %r14\n    mov 96(%rdx), %r15\n"
        "    mov 0(%rdx), %rdi\n    mov 8(%rdx), %rsi\n    mov 24(%rdx), %rcx\n"
        "    mov 32(%rdx), %r8\n    mov 40(%rdx), %r9\n    mov 16(%rdx), %rdx\n"
        "    call *canary_state+48(%rip)\n"
        "    mov %rax, canary_state+168(%rip)\n"
        "    lea canary_state(%rip), %rdx\n"
        "    mov %rbx, 104(%rdx)\n    mov %rbp, 112(%rdx)\n"
        "    mov %r12, 120(%rdx)\n    mov %r13, 128(%rdx)\n    mov %r14, 136(%rdx)\n    mov %r15, 144(%rdx)\n"
        "    mov %rsp, 160(%rdx)\n"
        "    mov 152(%rdx), %rsp\n"
        "    stmxcsr 188(%rdx)\n    fnstcw 198(%rdx)\n"
        "    ldmxcsr 192(%rdx)\n    fldcw 200(%rdx)\n"
        "    pushfq\n    pop 176(%rdx)\n    cld\n" /* in the place of the return address */
        "    mov $64, %ecx\n    mov %rsp, %rsi\n    lea 208(%rdx), %rdi\n    rep movsq\n"
        "    mov $2048, %ecx\n    lea -8 * 2048(%rsp), %rsi\n    lea 720(%rdx), %rdi\n    rep movsq\n"
        "    add $(8 + 8 * 64), %rsp\n"
        "    pop %r15\n    pop %r14\n    pop %r13\n    pop %r12\n    pop %rbp\n    pop %rbx\n"
        "    ret\n"
        ".size canary_trampoline, . - canary_trampoline\n"
        ".popsection\n");

/* Whether a word may be a piece of a key or a text. Addresses, lengths and zeroes are none: they fit into 48
 * bits with their sign, which of random bytes one in 65,536 does. */
static bool is_soil(uint64_t word)
{
    uint64_t sign = word >> 47;
    return word != PATTERN && sign != 0 && sign != UINT64_MAX >> 47;
}

/* How far down the lowest of these lies. */
static size_t stack_bytes(void)
{
    size_t i = 0;
    while (i < STACK_WORDS && !is_soil(canary_state.below[i]))
        i++;
    return 8 * (STACK_WORDS - i);
}

enum { MXCSR_CONTROL = 0xffc0 /* the rest are sticky flags, anybody's */, DIRECTION = 1 << 10 };

static const char *violation(void)
{
    static const char *const names[KEPT] = {"rbx", "rbp", "r12", "r13", "r14", "r15"};
    for (size_t i = 0; i < KEPT; i++)
        if (canary_state.got[i] != canary_state.set[i])
            return names[i];
    if (canary_state.got_stack_pointer != canary_state.stack_pointer)
        return "rsp";
    if ((canary_state.mxcsr_got & MXCSR_CONTROL) != (canary_state.mxcsr_set & MXCSR_CONTROL))
        return "MXCSR";
    if (canary_state.x87_got != canary_state.x87_set)
        return "the x87 control word";
    if ((canary_state.flags & DIRECTION) != 0)
        return "the direction flag";
    for (size_t i = 0; i < CALLER_WORDS; i++)
        if (canary_state.caller[i] != PATTERN)
            return "the caller's stack";
    return NULL;
}

void canary_run(struct canary_call *call)
{
    static uint64_t turn;
    for (size_t i = 0; i < 6; i++)
        canary_state.arguments[i] = call->arguments[i];
    canary_state.function = (uint64_t)(uintptr_t)call->function;
    /* Other values in each call, so that none is there by chance. */
    for (size_t i = 0; i < KEPT; i++)
        canary_state.set[i] = (++turn << 8 | i) * UINT64_C(0x9e3779b97f4a7c15);
    canary_state.mxcsr_set = 0xffc0; /* nothing that a C program runs with: rounds to zero, flushes */
    canary_state.x87_set = 0x0e7f;
    canary_state.pattern = PATTERN;
    canary_trampoline();
    call->ret_result = canary_state.result;
    call->ret_stack_bytes = stack_bytes();
    call->ret_violation = violation();
}

/* --- What must be found -----------------------------------------------------------------------------------
 */

#define FUNCTION(name, code)                                                                                 \
    __asm__(".pushsection .text\n.type " #name ", @function\n.globl " #name "\n.hidden " #name "\n" #name    \
            ":\n" code "\n    ret\n.popsection\n");
#define CULPRIT(name, code)                                                                                  \
    void culprit_##name(void);                                                                               \
    FUNCTION(culprit_##name, code)

CULPRIT(rbx, "inc %rbx")
CULPRIT(rbp, "inc %rbp")
CULPRIT(r12, "inc %r12")
CULPRIT(r13, "inc %r13")
CULPRIT(r14, "inc %r14")
CULPRIT(r15, "inc %r15")
CULPRIT(rsp, "ret $16")
CULPRIT(mxcsr, "movl $0x1f80, -8(%rsp)\n    ldmxcsr -8(%rsp)")
CULPRIT(x87, "fninit")
CULPRIT(direction, "std")
CULPRIT(caller, "movq $0, 8(%rsp)")

FUNCTION(canary_soils_deep, "movabs $0x0123456789abcdef, %rax\n    mov %rax, -4200(%rsp)")

const struct canary_culprit canary_culprits[] = {
    {"rbx", culprit_rbx},
    {"rbp", culprit_rbp},
    {"r12", culprit_r12},
    {"r13", culprit_r13},
    {"r14", culprit_r14},
    {"r15", culprit_r15},
    {"rsp", culprit_rsp},
    {"MXCSR", culprit_mxcsr},
    {"the x87 control word", culprit_x87},
    {"the direction flag", culprit_direction},
    {"the caller's stack", culprit_caller},
};
const size_t canary_culprit_count = sizeof canary_culprits / sizeof *canary_culprits;

#else

void canary_run(struct canary_call *call)
{
    call->ret_violation = "no trampoline for this architecture";
}

const struct canary_culprit canary_culprits[] = {{NULL, NULL}};
const size_t canary_culprit_count = 0;

void canary_soils_deep(void)
{
}

#endif
