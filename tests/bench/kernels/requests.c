/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds on demand. */
#include "requests.h"

#include <stdio.h>

static void print_hex(const char *name, const uint8_t *bytes, size_t count)
{
    (void)printf("%s ", name);
    for (size_t i = 0; i < count; i++)
        (void)printf("%02x", bytes[i]);
    (void)printf("\n");
}

static void print_round(const struct bench_measurement *measurement)
{
    for (size_t i = 0; i < measurement->count; i++)
        (void)printf("%s%s%s %.1f", i == 0 ? "" : " ", measurement->entries[i].name,
                     measurement->entries[i].per_block ? "-per-block" : "", measurement->entries[i].ns[0]);
    (void)printf("\n");
    (void)fflush(stdout);
}

size_t bench_serve_requests(struct bench_measurement *measurement, const struct bench_cell *cell,
                            const struct bench_options *options)
{
    const struct bench_load *load = &measurement->load;
    size_t wrong = bench_open(measurement, cell, options);
    print_hex("key", load->key, load->key_length);
    print_hex("text", load->items[0].source, load->items[0].length);
    print_hex("answer", load->answer, load->outputs[0]);
    (void)puts("ready");
    (void)fflush(stdout);
    for (int character; wrong == 0 && (character = getchar()) != EOF;)
        if (character == '\n') {
            bench_round(measurement, 0);
            print_round(measurement);
        }
    bench_close(measurement);
    return wrong;
}
