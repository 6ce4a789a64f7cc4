/* SPDX-License-Identifier: Apache-2.0 */
/* `ciphermill bench --quick`: a small matrix of modes and sizes, beside OpenSSL in this process. */
#ifndef QUICK_H
#define QUICK_H

#include "keys.h"

enum show_form { SHOW_TEXT, SHOW_JSON, SHOW_CSV };

/* Key bits, connections, in-flight batches and the daemon come from `plan`; modes, sizes and times are the
 * matrix's own. Returns an exit code. */
int quick_run(const struct plan *plan, const struct keys *keys, enum show_form form);

#endif
