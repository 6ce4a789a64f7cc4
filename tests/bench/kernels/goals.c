/* SPDX-License-Identifier: Apache-2.0 */
/* The project's goals for its kernels, and how results are held against them. */
#include "goals.h"
#include "report.h"

#include <string.h>

enum { SIZES = 6, SIXTEEN_KIB = 16384 };
static const size_t sizes[SIZES] = {16, 64, 256, 1024, 4096, SIXTEEN_KIB};

/* With 512-bit registers: 64 messages, 16 of 16 KiB, all under one key. AES-128, then AES-256. */
static const struct {
    const char *mode;
    double ratio[2][SIZES];
} goals[] = {
    {"ecb-encrypt", {{5.5, 3.0, 2.1, 2.05, 2.05, 2.05}, {5.4, 2.9, 2.0, 2.0, 2.0, 2.0}}},
    {"ecb-decrypt", {{5.5, 3.0, 2.1, 2.05, 2.05, 2.05}, {5.4, 2.9, 2.0, 2.0, 2.0, 2.0}}},
    {"cbc-encrypt", {{50, 28, 18, 14, 13, 13}, {45, 25, 17.5, 15, 14, 14}}},
    {"cbc-decrypt", {{45, 20, 9.5, 3.9, 2.45, 2.1}, {40, 17, 7.2, 3.3, 2.3, 2.1}}},
    {"ctr", {{45, 22, 10, 4.3, 2.85, 2.45}, {40, 18, 7.5, 3.4, 2.3, 2.05}}},
    {"gcm-seal", {{48, 25, 9.5, 4.7, 3.4, 3.1}, {43, 22, 8.5, 4.3, 3.1, 2.8}}},
    {"gcm-open", {{48, 25, 9.5, 4.7, 3.4, 3.1}, {43, 22, 8.5, 4.3, 3.1, 2.8}}},
    {"xts-encrypt", {{30, 14, 6.5, 2.5, 2.0, 1.85}, {27, 13, 6, 2.4, 2.1, 2.05}}},
    {"xts-decrypt", {{30, 14, 6.5, 2.5, 2.0, 1.85}, {27, 13, 6, 2.4, 2.1, 2.05}}},
};
enum { GOALS = sizeof goals / sizeof *goals };

/* Cells of their own: messages one behind the other, whose stride is a power of two, hit the same sets of the
 * cache in every lane; and batches of unequal messages. With 512-bit registers. */
static const struct {
    const char *mode;
    struct bench_lengths lengths;
    bool padded;
    double ratio[2];
    double ns; /* a message on the machine of the goals; for the reader, since it is the ratio that travels */
} own_cells[] = {
    {"cbc-encrypt", {4096, 4096}, false, {11, 11}, 0},
    {"cbc-encrypt", {SIXTEEN_KIB, SIXTEEN_KIB}, false, {11, 11}, 0},
    {"ctr", {64, 256}, true, {8, 0}, 12},
    {"gcm-seal", {64, 256}, true, {9, 0}, 24},
};
enum { OWN_CELLS = sizeof own_cells / sizeof *own_cells };

const char *bench_goals_level(const struct bench_mode *mode)
{
    const char *level = "portable";
    struct cm_aes_implementation known;
    for (size_t i = 0; cm_aes_implementation(i, mode->mode, mode->direction, &known); i++)
        if (known.available)
            level = known.name;
    return level;
}

static double widest_goal(const struct bench_cell *cell)
{
    for (size_t i = 0; i < OWN_CELLS; i++)
        if (strcmp(own_cells[i].mode, cell->mode->name) == 0 && own_cells[i].padded == cell->padded &&
            memcmp(&own_cells[i].lengths, &cell->lengths, sizeof cell->lengths) == 0)
            return own_cells[i].ratio[cell->key_bits == 256];
    for (size_t i = 0; i < GOALS; i++)
        for (size_t j = 0; j < SIZES; j++)
            if (strcmp(goals[i].mode, cell->mode->name) == 0 && cell->padded &&
                cell->lengths.low == sizes[j] && cell->lengths.high == sizes[j])
                return goals[i].ratio[cell->key_bits == 256][j];
    return 0;
}

/* 256-bit registers run AES at the rate of 512-bit ones where these goals were set, but carry-less
 * multiplications at half of it. */
static double goal_256(const struct bench_cell *cell)
{
    enum cm_aes_mode mode = cell->mode->mode;
    if (mode == CM_AES_GCM)
        return cell->lengths.low == SIXTEEN_KIB ? 1.8 : 0;
    return 0.93 * widest_goal(cell);
}

/* 128-bit registers do at size what OpenSSL does with them; calls saved are saved on any. */
static double goal_128(const struct bench_cell *cell)
{
    bool chained = cell->mode->mode == CM_AES_CBC && cell->mode->direction == CM_AES_ENCRYPT;
    if (cell->lengths.high <= 256)
        return widest_goal(cell) / 3;
    if (cell->lengths.low != SIXTEEN_KIB || chained || cell->mode->mode == CM_AES_XTS)
        return 0;
    return cell->mode->mode == CM_AES_GCM ? 1.0 : 0.98;
}

double bench_goal(const char *implementation, const struct bench_cell *cell)
{
    const char *level =
        strcmp(implementation, "dispatch") == 0 ? bench_goals_level(cell->mode) : implementation;
    bool usual = cell->batch == (cell->lengths.low == SIXTEEN_KIB ? 16 : 64);
    if (cell->key_bits == 192 || cell->padding != CM_AES_NO_PADDING || !usual)
        return 0;
    if (strcmp(level, "vaes512") == 0)
        return widest_goal(cell);
    if (strcmp(level, "vaes256") == 0)
        return goal_256(cell);
    return strcmp(level, "aesni") == 0 ? goal_128(cell) : 0;
}

bool bench_goals_cell(size_t index, struct bench_cell *ret_cell)
{
    size_t bits = index % 2 == 0 ? 128 : 256, at = index / 2;
    struct bench_lengths lengths;
    bool padded = true;
    const char *mode;
    if (at < GOALS * SIZES) {
        mode = goals[at / SIZES].mode;
        lengths = (struct bench_lengths){sizes[at % SIZES], sizes[at % SIZES]};
    } else if (at < GOALS * SIZES + OWN_CELLS) {
        mode = own_cells[at - GOALS * SIZES].mode;
        lengths = own_cells[at - GOALS * SIZES].lengths;
        padded = own_cells[at - GOALS * SIZES].padded;
    } else {
        return false;
    }
    *ret_cell = (struct bench_cell){.mode = bench_mode_named(mode),
                                    .key_bits = bits,
                                    .lengths = lengths,
                                    .batch = lengths.low == SIXTEEN_KIB ? 16 : 64,
                                    .padded = padded};
    return true;
}

/* What is wanted beside the ratio, and does not travel: it is told, not judged. */
static void add_remarks(FILE *output, const struct bench_result *result)
{
    const struct bench_cell *cell = &result->cell;
    for (size_t i = 0; i < OWN_CELLS; i++)
        if (own_cells[i].ns > 0 && strcmp(own_cells[i].mode, cell->mode->name) == 0 &&
            memcmp(&own_cells[i].lengths, &cell->lengths, sizeof cell->lengths) == 0)
            (void)fprintf(output, "  %.1f ns a message, wanted on a Zen 4 at 3.69 GHz: %.0f",
                          result->ns_per_message, own_cells[i].ns);
    if (cell->mode->mode == CM_AES_GCM && cell->lengths.low == SIXTEEN_KIB && result->limit_fraction > 0)
        (void)fprintf(output, "  %.0f %% of the limit, wanted: 92 %%", 100 * result->limit_fraction);
}

bool bench_goals_judge(FILE *output, const struct bench_result *result)
{
    enum { ALLOWED_PERCENT = 5 };
    double least = result->goal * (100 - ALLOWED_PERCENT) / 100;
    bool good = result->verified && result->ratio_openssl >= least;
    const char *verdict = !result->verified                       ? "WRONG"
                          : result->ratio_openssl >= result->goal ? "met"
                          : good                                  ? "within 5 %"
                                                                  : "SHORT";
    (void)fprintf(output, "%-12s %4zu %8s %-10s %-10s %8.2f x, goal %5.2f x  %-10s", result->cell.mode->name,
                  result->cell.key_bits, bench_size_text(&result->cell),
                  result->cell.padded ? "padded" : "contiguous", result->implementation,
                  result->ratio_openssl, result->goal, verdict);
    add_remarks(output, result);
    (void)fprintf(output, "\n");
    return good;
}
