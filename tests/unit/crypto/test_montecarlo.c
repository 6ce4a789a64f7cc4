/* SPDX-License-Identifier: Apache-2.0 */
/* The Monte Carlo tests of ECB and CBC: AESAVS, sections 6.4.1 and 6.4.2. */
#include "vector.h"

#include <string.h>

enum { INNER_ROUNDS = 1000, OUTER_ROUNDS = 100 };

struct run {
    enum cm_aes_mode mode;
    const char *implementation;
    size_t records[CM_AES_DIRECTION_COUNT];
    /* What the record before says that this one must begin with. */
    struct vector_bytes key, iv, text;
    bool chained;
    struct vector_bytes record_key, record_iv, input, output;
};

/* Runs the inner loop; `ret_last` and `ret_before` get the last two output blocks. */
static void inner_loop(struct run *run, enum cm_aes_direction direction, uint8_t ret_last[16],
                       uint8_t ret_before[16])
{
    struct harness_key memory;
    struct cm_aes_key *key = harness_key_init(&memory, run->implementation, run->mode, direction,
                                              run->record_key.data, run->record_key.length);
    uint8_t input[16], chain[16], output[16] = {0};
    memcpy(input, run->input.data, 16);
    memcpy(chain, run->record_iv.data, 16);
    for (int j = 0; j < INNER_ROUNDS; j++) {
        struct cm_aes_item item = {
            .source = input, .destination = output, .length = 16, .iv = chain, .iv_length = 16};
        memcpy(ret_before, output, 16);
        size_t failed = cm_aes_batch(key, CM_AES_NO_PADDING, &item, 1);
        require(failed == 0 && item.ret_length == 16, "%s: round %d failed", run->implementation, j);
        if (run->mode == CM_AES_ECB) {
            memcpy(input, output, 16);
            continue;
        }
        /* The chain is the last ciphertext; the next input is the output before last, at first the IV. */
        uint8_t ciphertext[16];
        memcpy(ciphertext, direction == CM_AES_ENCRYPT ? output : input, 16);
        memcpy(input, j == 0 ? run->record_iv.data : ret_before, 16);
        memcpy(chain, ciphertext, 16);
    }
    memcpy(ret_last, output, 16);
    cm_aes_key_done(key);
}

/* The next key is this one, changed by the tail of {output before last, last output}. */
static void derive_next(struct run *run, const uint8_t last[16], const uint8_t before[16])
{
    uint8_t outputs[32];
    memcpy(outputs, before, 16);
    memcpy(outputs + 16, last, 16);
    size_t length = run->record_key.length;
    run->key.length = length;
    for (size_t i = 0; i < length; i++)
        run->key.data[i] = run->record_key.data[i] ^ outputs[32 - length + i];
    memcpy(run->iv.data, last, 16);
    memcpy(run->text.data, run->mode == CM_AES_ECB ? last : before, 16);
    run->chained = true;
}

static void on_record(const struct vector_record *record, void *context)
{
    struct run *run = context;
    bool encrypting = strcmp(record->section, "ENCRYPT") == 0;
    require(encrypting || strcmp(record->section, "DECRYPT") == 0, "%s: section", record->file);
    vector_record_get(record, "KEY", &run->record_key);
    vector_record_get(record, encrypting ? "PLAINTEXT" : "CIPHERTEXT", &run->input);
    vector_record_get(record, encrypting ? "CIPHERTEXT" : "PLAINTEXT", &run->output);
    if (run->mode == CM_AES_CBC)
        vector_record_get(record, "IV", &run->record_iv);
    require(run->input.length == 16 && run->output.length == 16, "%s: not one block", record->file);
    if (record->number > 0) {
        require(run->chained && run->key.length == run->record_key.length &&
                    memcmp(run->key.data, run->record_key.data, run->key.length) == 0,
                "%s: the key of count %d was derived wrongly", record->file, record->number);
        require(memcmp(run->text.data, run->input.data, 16) == 0, "%s: the input of count %d", record->file,
                record->number);
        require(run->mode == CM_AES_ECB || memcmp(run->iv.data, run->record_iv.data, 16) == 0,
                "%s: the IV of count %d", record->file, record->number);
    }
    uint8_t last[16], before[16];
    inner_loop(run, encrypting ? CM_AES_ENCRYPT : CM_AES_DECRYPT, last, before);
    require(memcmp(last, run->output.data, 16) == 0, "%s: %s, %s, count %d", run->implementation,
            record->file, record->section, record->number);
    derive_next(run, last, before);
    run->records[encrypting ? CM_AES_ENCRYPT : CM_AES_DECRYPT]++;
}

START_TEST(monte_carlo)
{
    static const char *const files[][3] = {
        {"cavp/mct/ECBMCT128.rsp", "cavp/mct/ECBMCT192.rsp", "cavp/mct/ECBMCT256.rsp"},
        {"cavp/mct/CBCMCT128.rsp", "cavp/mct/CBCMCT192.rsp", "cavp/mct/CBCMCT256.rsp"},
    };
    const char *implementation = harness_implementation((size_t)_i);
    for (int mode = CM_AES_ECB; mode <= CM_AES_CBC; mode++)
        for (size_t size = 0; size < 3; size++) {
            static struct run run;
            memset(&run, 0, sizeof run);
            run.mode = (enum cm_aes_mode)mode;
            run.implementation = implementation;
            vector_records_read(files[mode][size], on_record, &run);
            require(run.record_key.length == 16 + 8 * size, "%s: key size", files[mode][size]);
            require(run.records[CM_AES_ENCRYPT] == OUTER_ROUNDS &&
                        run.records[CM_AES_DECRYPT] == OUTER_ROUNDS,
                    "%s: %zu and %zu counts", files[mode][size], run.records[CM_AES_ENCRYPT],
                    run.records[CM_AES_DECRYPT]);
        }
}
END_TEST

static void add_tests(TCase *test_case)
{
    harness_add_for_each(test_case, monte_carlo);
}

int main(void)
{
    return harness_run_initialised("Monte Carlo", add_tests);
}
