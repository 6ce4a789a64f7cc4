/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for ipsecmb.c where IPSec-MB is not installed, or is not made for the processor. */
#include "reference.h"

const char *bench_ipsecmb_version(const char **ret_reason)
{
    *ret_reason = "built without libipsec-mb: install libipsec-mb-dev (x86-64) and build again";
    return NULL;
}

struct bench_ipsecmb *bench_ipsecmb_new(struct bench_load *load)
{
    (void)load;
    return NULL;
}

void bench_ipsecmb_free(struct bench_ipsecmb *ipsecmb)
{
    (void)ipsecmb;
}

bool bench_ipsecmb_run(struct bench_ipsecmb *ipsecmb)
{
    (void)ipsecmb;
    return false;
}
