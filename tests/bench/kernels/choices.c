/* SPDX-License-Identifier: Apache-2.0 */
/* Holds dispatch's choices against what was measured. */
#include "choices.h"
#include "report.h"

#include <string.h>

const size_t bench_choices_sizes[] = {16, 32, 64, 128, 256, 512, 1024, 4096, 16384};
const size_t bench_choices_size_count = sizeof bench_choices_sizes / sizeof *bench_choices_sizes;
const size_t bench_choices_batches[] = {1, 2, 4, 64};
const size_t bench_choices_batch_count = sizeof bench_choices_batches / sizeof *bench_choices_batches;

static bool available(const struct bench_result *result)
{
    struct cm_aes_implementation known;
    const struct bench_mode *mode = result->cell.mode;
    for (size_t i = 0; cm_aes_implementation(i, mode->mode, mode->direction, &known); i++)
        if (known.available && strcmp(known.name, result->implementation) == 0)
            return true;
    return false;
}

bool bench_choices_judge(FILE *output, const struct bench_result *results, size_t count)
{
    const struct bench_result *dispatch = NULL, *fastest = NULL;
    for (size_t i = 0; i < count; i++)
        if (strcmp(results[i].implementation, "dispatch") == 0)
            dispatch = &results[i];
    for (size_t i = 0; i < count; i++) {
        if (!results[i].verified || !available(&results[i]))
            continue;
        if (fastest == NULL || results[i].ns_per_message < fastest->ns_per_message)
            fastest = &results[i];
    }
    if (dispatch == NULL || fastest == NULL || !dispatch->verified) {
        (void)fprintf(output, "%-12s: nothing right to compare\n", results[0].cell.mode->name);
        return false;
    }
    double excess = dispatch->ns_per_message / fastest->ns_per_message - 1;
    bool good = excess <= 0.05;
    (void)fprintf(output,
                  "%-12s %4zu %6s x%-3zu fastest %-9s %9.1f ns   dispatch: %-9s %9.1f ns   %+5.1f %%  %s\n",
                  dispatch->cell.mode->name, dispatch->cell.key_bits, bench_size_text(&dispatch->cell),
                  dispatch->cell.batch, fastest->implementation, fastest->ns_per_message, dispatch->kernel,
                  dispatch->ns_per_message, 100 * excess, good ? "good" : "SLOWER");
    return good;
}
