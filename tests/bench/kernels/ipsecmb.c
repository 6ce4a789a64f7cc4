/* SPDX-License-Identifier: Apache-2.0 */
/* Intel's IPSec-MB as a reference of bench-kernels, where it is installed. */
#include "reference.h"

#include <intel-ipsec-mb.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench_ipsecmb {
    alignas(64) uint8_t encrypt_keys[16 * 15];
    alignas(64) uint8_t decrypt_keys[16 * 15];
    struct gcm_key_data gcm_key;
    struct gcm_context_data gcm_context;
    IMB_MGR *manager;
    struct bench_load *load;
    aes_gcm_enc_dec_t gcm;
    IMB_CIPHER_MODE cipher;
    IMB_CIPHER_DIRECTION direction;
    size_t job_count; /* jobs are for messages that are not empty */
    IMB_JOB jobs[BENCH_MOST_ITEMS];
};

const char *bench_ipsecmb_version(const char **ret_reason)
{
    *ret_reason = "";
    return imb_get_version_str();
}

static void set_gcm(struct bench_ipsecmb *ipsecmb, bool encrypt)
{
    IMB_MGR *manager = ipsecmb->manager;
    const uint8_t *key = ipsecmb->load->key;
    switch (ipsecmb->load->key_length) {
    case 16:
        IMB_AES128_GCM_PRE(manager, key, &ipsecmb->gcm_key);
        ipsecmb->gcm = encrypt ? manager->gcm128_enc : manager->gcm128_dec;
        break;
    case 24:
        IMB_AES192_GCM_PRE(manager, key, &ipsecmb->gcm_key);
        ipsecmb->gcm = encrypt ? manager->gcm192_enc : manager->gcm192_dec;
        break;
    default:
        IMB_AES256_GCM_PRE(manager, key, &ipsecmb->gcm_key);
        ipsecmb->gcm = encrypt ? manager->gcm256_enc : manager->gcm256_dec;
    }
}

static void set_jobs(struct bench_ipsecmb *ipsecmb, bool encrypt)
{
    const struct bench_load *load = ipsecmb->load;
    IMB_MGR *manager = ipsecmb->manager;
    if (load->key_length == 16)
        IMB_AES_KEYEXP_128(manager, load->key, ipsecmb->encrypt_keys, ipsecmb->decrypt_keys);
    else if (load->key_length == 24)
        IMB_AES_KEYEXP_192(manager, load->key, ipsecmb->encrypt_keys, ipsecmb->decrypt_keys);
    else
        IMB_AES_KEYEXP_256(manager, load->key, ipsecmb->encrypt_keys, ipsecmb->decrypt_keys);
    ipsecmb->direction = encrypt ? IMB_DIR_ENCRYPT : IMB_DIR_DECRYPT;
    for (size_t i = 0; i < load->cell.batch; i++) {
        const struct cm_aes_item *item = &load->items[i];
        if (item->length == 0)
            continue;
        ipsecmb->jobs[ipsecmb->job_count++] = (IMB_JOB){
            .enc_keys = ipsecmb->encrypt_keys,
            .dec_keys = ipsecmb->decrypt_keys,
            .key_len_in_bytes = load->key_length,
            .src = item->source,
            .dst = item->destination,
            .msg_len_to_cipher_in_bytes = item->length,
            .iv = item->iv,
            .iv_len_in_bytes = ipsecmb->cipher == IMB_CIPHER_ECB ? 0 : 16,
            .cipher_mode = ipsecmb->cipher,
            .cipher_direction = ipsecmb->direction,
            .hash_alg = IMB_AUTH_NULL,
            .chain_order = IMB_ORDER_CIPHER_HASH,
        };
    }
}

struct bench_ipsecmb *bench_ipsecmb_new(struct bench_load *load)
{
    static const IMB_CIPHER_MODE ciphers[CM_AES_MODE_COUNT] = {
        [CM_AES_ECB] = IMB_CIPHER_ECB,
        [CM_AES_CBC] = IMB_CIPHER_CBC,
        [CM_AES_CTR] = IMB_CIPHER_CNTR,
        [CM_AES_GCM] = IMB_CIPHER_GCM,
    };
    enum cm_aes_mode mode = load->cell.mode->mode;
    bool encrypt = load->cell.mode->direction == CM_AES_ENCRYPT;
    if (ciphers[mode] == 0 || load->cell.padding != CM_AES_NO_PADDING)
        return NULL;
    /* Its lanes of CBC encryption count in 16 bits. */
    if (mode == CM_AES_CBC && encrypt && load->cell.lengths.high > UINT16_MAX)
        return NULL;
    struct bench_ipsecmb *ipsecmb = aligned_alloc(64, (sizeof *ipsecmb + 63) / 64 * 64);
    IMB_MGR *manager = alloc_mb_mgr(0);
    if (ipsecmb == NULL || manager == NULL) {
        (void)fputs("bench-kernels: IPSec-MB does not start\n", stderr);
        exit(2);
    }
    IMB_ARCH architecture;
    init_mb_mgr_auto(manager, &architecture);
    memset(ipsecmb, 0, sizeof *ipsecmb);
    ipsecmb->manager = manager;
    ipsecmb->load = load;
    ipsecmb->cipher = ciphers[mode];
    if (mode == CM_AES_GCM)
        set_gcm(ipsecmb, encrypt);
    else
        set_jobs(ipsecmb, encrypt);
    return ipsecmb;
}

void bench_ipsecmb_free(struct bench_ipsecmb *ipsecmb)
{
    free_mb_mgr(ipsecmb->manager);
    free(ipsecmb);
}

/* The tag of an opened message is the caller's to compare. */
static bool run_gcm(struct bench_ipsecmb *ipsecmb)
{
    const struct bench_load *load = ipsecmb->load;
    bool encrypt = load->cell.mode->direction == CM_AES_ENCRYPT, good = true;
    for (size_t i = 0; i < load->cell.batch; i++) {
        const struct cm_aes_item *item = &load->items[i];
        uint8_t tag[16];
        ipsecmb->gcm(&ipsecmb->gcm_key, &ipsecmb->gcm_context, item->destination, item->source, item->length,
                     item->iv, item->source, 0, encrypt ? item->tag : tag, 16);
        if (!encrypt)
            good &= cm_aes_equal(tag, item->tag, 16);
    }
    return good;
}

static bool run_cipher_burst(struct bench_ipsecmb *ipsecmb)
{
    size_t done = 0;
    while (done < ipsecmb->job_count) {
        size_t left = ipsecmb->job_count - done;
        uint32_t now = (uint32_t)(left < IMB_MAX_BURST_SIZE ? left : IMB_MAX_BURST_SIZE);
        if (IMB_SUBMIT_CIPHER_BURST_NOCHECK(ipsecmb->manager, ipsecmb->jobs + done, now, ipsecmb->cipher,
                                            ipsecmb->direction,
                                            (IMB_KEY_SIZE_BYTES)ipsecmb->load->key_length) != now)
            return false;
        done += now;
    }
    return true;
}

/* Takes the manager's descriptors, fills in what this mode reads, and runs them. */
static bool run_job_burst(struct bench_ipsecmb *ipsecmb)
{
    IMB_JOB *slots[IMB_MAX_BURST_SIZE];
    size_t done = 0;
    while (done < ipsecmb->job_count) {
        size_t left = ipsecmb->job_count - done;
        uint32_t got = IMB_GET_NEXT_BURST(
            ipsecmb->manager, (uint32_t)(left < IMB_MAX_BURST_SIZE ? left : IMB_MAX_BURST_SIZE), slots);
        if (got == 0)
            return false;
        for (uint32_t i = 0; i < got; i++) {
            const IMB_JOB *wanted = &ipsecmb->jobs[done + i];
            slots[i]->enc_keys = wanted->enc_keys;
            slots[i]->dec_keys = wanted->dec_keys;
            slots[i]->key_len_in_bytes = wanted->key_len_in_bytes;
            slots[i]->src = wanted->src;
            slots[i]->dst = wanted->dst;
            slots[i]->cipher_start_src_offset_in_bytes = 0;
            slots[i]->msg_len_to_cipher_in_bytes = wanted->msg_len_to_cipher_in_bytes;
            slots[i]->iv_len_in_bytes = wanted->iv_len_in_bytes;
            slots[i]->cipher_mode = wanted->cipher_mode;
            slots[i]->cipher_direction = wanted->cipher_direction;
            slots[i]->hash_alg = wanted->hash_alg;
            slots[i]->chain_order = wanted->chain_order;
        }
        uint32_t completed = IMB_SUBMIT_BURST_NOCHECK(ipsecmb->manager, got, slots);
        while (completed < got) {
            uint32_t flushed = IMB_FLUSH_BURST(ipsecmb->manager, got - completed, slots);
            if (flushed == 0)
                return false;
            completed += flushed;
        }
        done += got;
    }
    return true;
}

bool bench_ipsecmb_run(struct bench_ipsecmb *ipsecmb)
{
    if (ipsecmb->gcm != NULL)
        return run_gcm(ipsecmb);
    return ipsecmb->cipher == IMB_CIPHER_ECB ? run_job_burst(ipsecmb) : run_cipher_burst(ipsecmb);
}
