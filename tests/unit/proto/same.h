/* SPDX-License-Identifier: Apache-2.0 */
/* Asserts that two messages say the same, field by field. */
#ifndef CM_TEST_SAME_H
#define CM_TEST_SAME_H

#include "message.h"

void same_hello(const struct cm_hello *a, const struct cm_hello *b);
void same_welcome(const struct cm_welcome *a, const struct cm_welcome *b);
void same_refusal(const struct cm_refusal *a, const struct cm_refusal *b);
void same_goodbye(const struct cm_goodbye *a, const struct cm_goodbye *b);
void same_batch(const struct cm_batch *a, const struct cm_batch *b);
void same_batch_reply(const struct cm_batch_reply *a, const struct cm_batch_reply *b);
void same_call(const struct cm_call *a, const struct cm_call *b);
void same_answer(const struct cm_answer *a, const struct cm_answer *b);

#endif
