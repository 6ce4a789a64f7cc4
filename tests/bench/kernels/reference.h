/* SPDX-License-Identifier: Apache-2.0 */
/* The two libraries that bench-kernels puts beside the kernels, each as its users get the most out of it:
 * the key is set up once, the IV once a message. */
#ifndef CM_BENCH_REFERENCE_H
#define CM_BENCH_REFERENCE_H

#include "load.h"

/* OpenSSL's EVP. `cell` gives mode and padding, not the messages. Ends the program where OpenSSL refuses. */
struct bench_openssl;
struct bench_openssl *bench_openssl_new(const struct bench_cell *cell, const uint8_t *key);
void bench_openssl_free(struct bench_openssl *openssl);
/* Runs all items; false if OpenSSL says no. */
bool bench_openssl_run(struct bench_openssl *openssl, struct cm_aes_item *items, size_t count);

/* Intel's IPSec-MB: GCM by its direct functions, CBC and CTR by bursts of ciphers over descriptors that are
 * made once, ECB by bursts of jobs, which is all that it offers there. */
struct bench_ipsecmb;
/* The library's version, or NULL where bench-kernels was built without it; `ret_reason` says why not. */
const char *bench_ipsecmb_version(const char **ret_reason);
/* For the load's mode and key; NULL where the library has no such mode, or not for so
 * long messages. The load outlives it. */
struct bench_ipsecmb *bench_ipsecmb_new(struct bench_load *load);
void bench_ipsecmb_free(struct bench_ipsecmb *ipsecmb);
bool bench_ipsecmb_run(struct bench_ipsecmb *ipsecmb);

#endif
