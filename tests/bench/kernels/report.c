/* SPDX-License-Identifier: Apache-2.0 */
/* Rows as text, JSON and CSV. */
#include "report.h"

static size_t rows;

const char *bench_size_text(const struct bench_cell *cell)
{
    static char text[48];
    if (cell->lengths.high > cell->lengths.low)
        (void)snprintf(text, sizeof text, "%zu-%zu", cell->lengths.low, cell->lengths.high);
    else
        (void)snprintf(text, sizeof text, "%zu", cell->lengths.low);
    return text;
}

static const char *stride_of(const struct bench_cell *cell)
{
    return cell->padded ? "padded" : "contiguous";
}

void bench_report_begin(enum bench_format format)
{
    rows = 0;
    if (format == BENCH_JSON)
        (void)puts("[");
    else if (format == BENCH_CSV)
        (void)puts("impl,mode,key_bits,size,batch,stride,ns_per_message,gb_per_s,cycles_per_byte,"
                   "ratio_openssl,ratio_ipsecmb,limit_fraction,verified,spread,padding,kernel,goal");
    else
        (void)printf("%-12s %4s %11s %5s %-10s %-20s %12s %5s %8s %8s %9s %9s %6s\n", "mode", "bits", "size",
                     "batch", "stride", "implementation", "ns/message", "+-", "GB/s", "c/byte", "x openssl",
                     "x ipsecmb", "limit");
}

/* A number that is known, between what a format puts around it. */
static void number(const char *before, double value, const char *unknown)
{
    if (value > 0)
        (void)printf("%s%.4g", before, value);
    else
        (void)printf("%s%s", before, unknown);
}

static void json(const struct bench_result *result)
{
    const struct bench_cell *cell = &result->cell;
    const char *quote = cell->lengths.high > cell->lengths.low ? "\"" : "";
    (void)printf("%s  {\"impl\": \"%s\", \"mode\": \"%s\", \"key_bits\": %zu, \"size\": %s%s%s, "
                 "\"batch\": %zu, \"stride\": \"%s\"",
                 rows == 0 ? "" : ",\n", result->implementation, cell->mode->name, cell->key_bits, quote,
                 bench_size_text(cell), quote, cell->batch, stride_of(cell));
    number(", \"ns_per_message\": ", result->ns_per_message, "null");
    number(", \"gb_per_s\": ", result->gb_per_s, "null");
    number(", \"cycles_per_byte\": ", result->cycles_per_byte, "null");
    number(", \"ratio_openssl\": ", result->ratio_openssl, "null");
    number(", \"ratio_ipsecmb\": ", result->ratio_ipsecmb, "null");
    number(", \"limit_fraction\": ", result->limit_fraction, "null");
    (void)printf(", \"verified\": %s, \"spread\": %.3f, \"padding\": \"%s\", \"kernel\": \"%s\"",
                 result->verified ? "true" : "false", result->spread,
                 cell->padding == CM_AES_PKCS7 ? "pkcs7" : "none", result->kernel);
    number(", \"goal\": ", result->goal, "null");
    (void)printf("}");
}

static void csv(const struct bench_result *result)
{
    const struct bench_cell *cell = &result->cell;
    (void)printf("%s,%s,%zu,%s,%zu,%s", result->implementation, cell->mode->name, cell->key_bits,
                 bench_size_text(cell), cell->batch, stride_of(cell));
    number(",", result->ns_per_message, "");
    number(",", result->gb_per_s, "");
    number(",", result->cycles_per_byte, "");
    number(",", result->ratio_openssl, "");
    number(",", result->ratio_ipsecmb, "");
    number(",", result->limit_fraction, "");
    (void)printf(",%s,%.3f,%s,%s", result->verified ? "true" : "false", result->spread,
                 cell->padding == CM_AES_PKCS7 ? "pkcs7" : "none", result->kernel);
    number(",", result->goal, "");
    (void)printf("\n");
}

/* A value with what follows it, or a dash in its place. */
static void column(int width, int decimals, double value, const char *unit)
{
    char text[32] = "-";
    if (value > 0)
        (void)snprintf(text, sizeof text, "%.*f%s", decimals, value, unit);
    (void)printf(" %*s", width, text);
}

static void text(const struct bench_result *result)
{
    const struct bench_cell *cell = &result->cell;
    char name[80];
    (void)snprintf(name, sizeof name, "%s%s%s", result->implementation, result->kernel[0] == '\0' ? "" : ": ",
                   result->kernel);
    (void)printf("%-12s %4zu %11s %5zu %-10s %-20s", cell->mode->name, cell->key_bits, bench_size_text(cell),
                 cell->batch, stride_of(cell), name);
    column(12, 1, result->ns_per_message, "");
    column(5, 0, 100 * result->spread, "%");
    column(8, 2, result->gb_per_s, "");
    column(8, 3, result->cycles_per_byte, "");
    column(9, 2, result->ratio_openssl, "");
    column(9, 2, result->ratio_ipsecmb, "");
    column(6, 0, 100 * result->limit_fraction, "%");
    (void)printf("%s\n", result->verified ? "" : "  WRONG");
}

void bench_report_row(enum bench_format format, const struct bench_result *result)
{
    switch (format) {
    case BENCH_JSON:
        json(result);
        break;
    case BENCH_CSV:
        csv(result);
        break;
    default:
        text(result);
    }
    rows++;
    (void)fflush(stdout);
}

void bench_report_end(enum bench_format format)
{
    if (format == BENCH_JSON)
        (void)puts("\n]");
}
