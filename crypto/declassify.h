/* SPDX-License-Identifier: Apache-2.0 */
/* The one way in which something computed from secrets becomes public: named where it happens. */
#ifndef CM_DECLASSIFY_H
#define CM_DECLASSIFY_H

#include <stddef.h>

/* States that from here on the variable may be branched on. It does nothing, but in the build that
 * tests/constant_time runs under valgrind: there keys and texts count as undefined, every branch or address
 * that depends on them is an error, and the test's function makes the variable defined. */
#if defined(CM_DECLASSIFY_BY_TEST) && CM_DECLASSIFY_BY_TEST
void cm_declassify_by_test(void *variable, size_t size);
#define CM_DECLASSIFY(variable) cm_declassify_by_test(&(variable), sizeof(variable))
#else
#define CM_DECLASSIFY(variable) ((void)0)
#endif

#endif
