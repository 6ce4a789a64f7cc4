/* SPDX-License-Identifier: Apache-2.0 */
/* The library against the real ciphermilld, over Unix socket and TCP, with OpenSSL's EVP as the judge. */
#include "fixture.h"
#include <ciphermill/admin.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MIB = 1 << 20 };

static char folder[64], state[100], unix_uri[128], tcp_uri[64];
static pid_t daemon_pid;
static cm_error error;
static const uint8_t key_bytes[32] = "0123456789abcdefghijklmnopqrstu";

static void start_daemon(void)
{
    daemon_pid = fork();
    if (daemon_pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl(CM_DAEMON, "ciphermilld", "--listen", unix_uri, "--listen", tcp_uri, "--state", state,
              "--log-level", "error", (char *)NULL);
        _exit(127);
    }
    /* It listens when it takes a connection. */
    for (;;) {
        cm_client *client;
        int rc = cm_connect(&client, unix_uri, NULL, &error);
        if (rc == 0) {
            cm_close(client);
            return;
        }
        ck_assert_msg(rc == CM_ERR_NOT_FOUND, "%s", error.text);
        ck_assert_int_eq(waitpid(daemon_pid, NULL, WNOHANG), 0);
        usleep(2000);
    }
}

static int stop_daemon(int signal)
{
    int status;
    kill(daemon_pid, signal);
    waitpid(daemon_pid, &status, 0);
    return status;
}

static void choose_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    getsockname(fd, (struct sockaddr *)&address, &length);
    snprintf(tcp_uri, sizeof tcp_uri, "tcp://127.0.0.1:%u", ntohs(address.sin_port));
    close(fd);
}

static void setup(void)
{
    snprintf(folder, sizeof folder, "/tmp/cm-client-daemon-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(state, sizeof state, "%s/state", folder);
    ck_assert_int_eq(mkdir(state, 0700), 0);
    snprintf(unix_uri, sizeof unix_uri, "unix:%s/x.sock", folder);
    choose_port();
    start_daemon();
}

static void teardown(void)
{
    char command[200];
    int status = stop_daemon(SIGTERM);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the daemon ended with %x",
                  (unsigned)status);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static cm_client *connect_to(const char *uri, uint32_t connections)
{
    cm_client *client = NULL;
    cm_options options = CM_OPTIONS_INIT;
    options.connections = connections;
    int rc = cm_connect(&client, uri, &options, &error);
    ck_assert_msg(rc == 0, "%s", error.text);
    return client;
}

static void must(int rc, const char *what)
{
    ck_assert_msg(rc == 0, "%s: %d %s", what, rc, error.text);
}

/* Keys bits128 … (ecb, cbc, ctr) and gcm128 …, all of the first bytes of key_bytes and with the caller's IVs.
 */
static void import_keys(cm_client *client)
{
    for (uint32_t bits = 128; bits <= 256; bits += 64) {
        uint8_t other[32];
        char name[32];
        cm_key_options options = CM_KEY_OPTIONS_INIT;
        options.caller_iv = 1;
        options.modes = CM_MODE_BIT(CM_ECB) | CM_MODE_BIT(CM_CBC) | CM_MODE_BIT(CM_CTR);
        snprintf(name, sizeof name, "bits%u", bits);
        must(cm_key_create(client, name, bits, key_bytes, &options, &error), name);
        /* The store takes the same bytes only once. */
        for (int i = 0; i < 32; i++)
            other[i] = (uint8_t)~key_bytes[i];
        options.modes = 0;
        snprintf(name, sizeof name, "gcm%u", bits);
        must(cm_key_create(client, name, bits, other, &options, &error), name);
    }
}

static const EVP_CIPHER *cipher_of(int mode, uint32_t bits)
{
    char name[20];
    static const char *const modes[] = {
        [CM_ECB] = "ecb", [CM_CBC] = "cbc", [CM_CTR] = "ctr", [CM_GCM] = "gcm"};
    snprintf(name, sizeof name, "aes-%u-%s", bits, modes[mode]);
    return EVP_get_cipherbyname(name);
}

/* EVP's answer for the item as it was given; with GCM the tag is compared too. */
static void judge(int mode, uint32_t bits, bool padding, const uint8_t *in, const cm_item *item)
{
    uint8_t key[32], tag[16], *expected = malloc(item->in_length + 32);
    const uint8_t *iv = item->long_iv_length > 0 ? item->long_iv : item->iv;
    int iv_length = (int)(item->long_iv_length > 0 ? item->long_iv_length : item->iv_length), length = 0,
        more = 0;
    for (int i = 0; i < 32; i++)
        key[i] = mode == CM_GCM ? (uint8_t)~key_bytes[i] : key_bytes[i];
    EVP_CIPHER_CTX *evp = EVP_CIPHER_CTX_new();
    ck_assert_int_eq(EVP_EncryptInit_ex(evp, cipher_of(mode, bits), NULL, NULL, NULL), 1);
    if (mode == CM_GCM)
        EVP_CIPHER_CTX_ctrl(evp, EVP_CTRL_AEAD_SET_IVLEN, iv_length, NULL);
    ck_assert_int_eq(EVP_EncryptInit_ex(evp, NULL, NULL, key, iv), 1);
    EVP_CIPHER_CTX_set_padding(evp, padding);
    if (item->aad_length > 0)
        EVP_EncryptUpdate(evp, NULL, &more, item->aad, (int)item->aad_length);
    ck_assert_int_eq(EVP_EncryptUpdate(evp, expected, &length, in, (int)item->in_length), 1);
    ck_assert_int_eq(EVP_EncryptFinal_ex(evp, expected + length, &more), 1);
    ck_assert_uint_eq(item->out_length, (size_t)(length + more));
    ck_assert_int_eq(memcmp(item->out, expected, item->out_length), 0);
    if (mode == CM_GCM) {
        EVP_CIPHER_CTX_ctrl(evp, EVP_CTRL_AEAD_GET_TAG, 16, tag);
        ck_assert_uint_eq(item->tag_length, 16);
        ck_assert_mem_eq(item->tag, tag, 16);
    }
    EVP_CIPHER_CTX_free(evp);
    free(expected);
}

static void fill(uint8_t *bytes, size_t length, unsigned seed)
{
    for (size_t i = 0; i < length; i++)
        bytes[i] = (uint8_t)((i * 2654435761U + seed * 97) >> 7);
}

static cm_key *open_key(cm_client *client, int mode, uint32_t bits)
{
    char name[32];
    cm_key *key = NULL;
    snprintf(name, sizeof name, mode == CM_GCM ? "gcm%u" : "bits%u", bits);
    must(cm_key_open(&key, client, name, &error), name);
    return key;
}

/* Many items of many lengths, encrypted, judged, and decrypted in place. */
static void one_mode(cm_client *client, int mode, uint32_t bits, unsigned flags)
{
    enum { COUNT = 700, ROOM = 800 };
    static uint8_t in[COUNT][ROOM], out[COUNT][ROOM];
    static cm_item items[COUNT];
    bool padding = (mode == CM_ECB || mode == CM_CBC) && flags == 0;
    bool whole = (mode == CM_ECB || mode == CM_CBC) && !padding;
    cm_key *key = open_key(client, mode, bits);
    fill(in[0], sizeof in, bits + (unsigned)mode);
    memset(items, 0, sizeof items);
    for (size_t i = 0; i < COUNT; i++) {
        cm_item *item = &items[i];
        item->in = in[i];
        item->in_length = whole ? i % 48 * 16 : i;
        item->out = out[i];
        item->out_capacity = ROOM;
        item->iv_length = mode == CM_GCM ? 1 + i % 16 : mode == CM_ECB ? 0 : 16;
        fill(item->iv, 16, (unsigned)i);
        if (mode == CM_GCM) {
            item->aad = in[COUNT - 1];
            item->aad_length = i % 99;
            item->long_iv = in[3];
            item->long_iv_length = i % 7 == 3 ? 17 + i % 60 : 0;
        }
    }
    must(cm_encrypt_flags(key, mode, flags, items, COUNT, &error), "encrypt");
    for (size_t i = 0; i < COUNT; i++)
        judge(mode, bits, padding, in[i], &items[i]);
    ck_assert_uint_eq(cm_key_version(key), 1);
    for (size_t i = 0; i < COUNT; i++) {
        items[i].in = out[i];
        items[i].in_length = items[i].out_length;
    }
    must(cm_decrypt_flags(key, mode, flags, items, COUNT, &error), "decrypt");
    for (size_t i = 0; i < COUNT; i++) {
        ck_assert_uint_eq(items[i].out_length, whole ? i % 48 * 16 : i);
        ck_assert_int_eq(memcmp(out[i], in[i], items[i].out_length), 0);
    }
    cm_key_close(key);
}

START_TEST(every_mode_over_every_transport)
{
    cm_client *client = connect_to(unix_uri, 1);
    import_keys(client);
    cm_client *by_tcp = connect_to(tcp_uri, 1);
    for (int transport = 0; transport < 2; transport++)
        for (uint32_t bits = 128; bits <= 256; bits += 64)
            for (int mode = CM_ECB; mode <= CM_GCM; mode++) {
                one_mode(transport ? by_tcp : client, mode, bits, 0);
                if (mode == CM_ECB || mode == CM_CBC)
                    one_mode(transport ? by_tcp : client, mode, bits, CM_NO_PADDING);
            }
    cm_close(by_tcp);
    cm_close(client);
}
END_TEST

/* What EVP makes of a data unit. */
static void judge_unit(const uint8_t *xts_key, uint32_t bits, const uint8_t *in, const cm_item *item)
{
    uint8_t *expected = malloc(item->in_length);
    int length = 0;
    EVP_CIPHER_CTX *evp = EVP_CIPHER_CTX_new();
    ck_assert_int_eq(
        EVP_EncryptInit_ex(evp, bits == 128 ? EVP_aes_128_xts() : EVP_aes_256_xts(), NULL, xts_key, item->iv),
        1);
    ck_assert_int_eq(EVP_EncryptUpdate(evp, expected, &length, in, (int)item->in_length), 1);
    ck_assert_uint_eq(item->out_length, (size_t)length);
    ck_assert_int_eq(memcmp(item->out, expected, item->out_length), 0);
    EVP_CIPHER_CTX_free(evp);
    free(expected);
}

/* Data units of many lengths under their numbers; the keys take no caller's IV, and need none. */
START_TEST(data_units)
{
    enum { COUNT = 600, ROOM = 640 };
    static uint8_t in[COUNT][ROOM], out[COUNT][ROOM];
    static cm_item items[COUNT];
    uint8_t xts_key[64];
    cm_client *client = connect_to(unix_uri, 1);
    cm_key_options options = CM_KEY_OPTIONS_INIT;
    options.modes = CM_MODE_BIT(CM_XTS);
    for (uint32_t bits = 128; bits <= 256; bits += 128) {
        cm_key *key = NULL;
        fill(xts_key, sizeof xts_key, bits);
        fill(in[0], sizeof in, bits + 1);
        must(cm_key_create(client, bits == 128 ? "disk128" : "disk256", bits, xts_key, &options, &error),
             "create");
        must(cm_key_open(&key, client, bits == 128 ? "disk128" : "disk256", &error), "open");
        memset(items, 0, sizeof items);
        for (size_t i = 0; i < COUNT; i++) {
            items[i] = (cm_item){
                .in = in[i], .in_length = 16 + i, .out = out[i], .out_capacity = 16 + i, .iv_length = 16};
            cm_xts_tweak(UINT64_MAX - i, items[i].iv);
        }
        must(cm_encrypt(key, CM_XTS, items, COUNT, &error), "encrypt");
        for (size_t i = 0; i < COUNT; i++) {
            judge_unit(xts_key, bits, in[i], &items[i]);
            items[i].in = out[i];
        }
        must(cm_decrypt(key, CM_XTS, items, COUNT, &error), "decrypt");
        for (size_t i = 0; i < COUNT; i++)
            ck_assert_int_eq(memcmp(out[i], in[i], 16 + i), 0);
        items[1].in_length = 15;
        items[2].iv_length = 12;
        ck_assert_int_eq(cm_encrypt(key, CM_XTS, items, 4, &error), 2);
        ck_assert_int_eq(items[1].status, CM_ERR_BAD_LENGTH);
        ck_assert_int_eq(items[2].status, CM_ERR_BAD_IV);
        cm_key_close(key);
    }
    cm_close(client);
}
END_TEST

START_TEST(keys_of_data_units)
{
    static const uint8_t equal[64] = {0};
    cm_client *client = connect_to(unix_uri, 1);
    cm_key *key = NULL;
    cm_key_options options = CM_KEY_OPTIONS_INIT;
    options.modes = CM_MODE_BIT(CM_XTS);
    for (uint32_t bits = 128; bits <= 256; bits += 128) {
        ck_assert_int_eq(cm_key_create(client, "k", bits, equal, &options, &error), CM_ERR_BAD_REQUEST);
        ck_assert_ptr_nonnull(strstr(error.text, "halves"));
        ck_assert_int_eq(cm_key_ephemeral(&key, client, bits, equal, &options, &error), CM_ERR_BAD_REQUEST);
        must(cm_key_ephemeral(&key, client, bits, NULL, &options, &error), "ephemeral");
        cm_key_close(key);
    }
    ck_assert_int_eq(cm_key_create(client, "k", 192, equal, &options, &error), CM_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.text, "192"));
    ck_assert_int_eq(cm_key_ephemeral(&key, client, 192, NULL, &options, &error), CM_ERR_ARGUMENT);
    options.modes |= CM_MODE_BIT(CM_ECB);
    options.unsafe_mixed_modes = 1;
    ck_assert_int_eq(cm_key_create(client, "k", 128, NULL, &options, &error), CM_ERR_BAD_ATTRIBUTES);
    cm_close(client);
}
END_TEST

START_TEST(tweaks)
{
    static const struct {
        uint64_t number;
        uint8_t tweak[16];
    } cases[] = {{0, {0}},
                 {1337, {0x39, 0x05}},
                 {UINT64_C(0x0123456789abcdef), {0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01}},
                 {UINT64_MAX, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t tweak[16];
        memset(tweak, 0xee, sizeof tweak);
        cm_xts_tweak(cases[i].number, tweak);
        ck_assert_mem_eq(tweak, cases[i].tweak, 16);
    }
}
END_TEST

/* Items at the limit, several of them in one call. */
START_TEST(large_items)
{
    cm_client *client = connect_to(unix_uri, 1);
    import_keys(client);
    cm_limits_info limits = {.size = sizeof limits};
    must(cm_get_limits(client, &limits, &error), "limits");
    size_t length = limits.item_bytes;
    uint8_t *in = malloc(3 * length), *out = malloc(3 * (length + 16));
    fill(in, 3 * length, 1);
    cm_key *key = open_key(client, CM_CTR, 256);
    for (int mode = CM_CBC; mode <= CM_CTR; mode++) {
        cm_item items[3];
        for (size_t i = 0; i < 3; i++)
            items[i] = (cm_item){.in = in + i * length,
                                 .in_length = length,
                                 .out = out + i * (length + 16),
                                 .out_capacity = length + 16,
                                 .iv_length = 16,
                                 .iv = {(uint8_t)i}};
        must(cm_encrypt(key, mode, items, 3, &error), "encrypt");
        for (size_t i = 0; i < 3; i++)
            judge(mode, 256, true, in + i * length, &items[i]);
    }
    cm_item over = {
        .in = in, .in_length = length + 1, .out = out, .out_capacity = length + 16, .iv_length = 16};
    ck_assert_int_eq(cm_encrypt(key, CM_CTR, &over, 1, &error), CM_ERR_TOO_LARGE);
    free(in);
    free(out);
    cm_key_close(key);
    cm_close(client);
}
END_TEST

static void one_operation(cm_client *client, int mode, int direction, const cm_item *whole, const uint8_t *in,
                          uint8_t *out, size_t length)
{
    enum { PART = 160 * 1024 };
    cm_key *key = open_key(client, mode, 192);
    cm_operation *operation;
    must(cm_operation_open(&operation, key, mode, direction, 0, &error), "open");
    size_t count = (length + PART - 1) / PART;
    cm_item *items = calloc(count, sizeof *items);
    for (size_t i = 0; i < count; i++) {
        size_t part = i == count - 1 ? length - i * PART : PART;
        items[i] = (cm_item){.in = in + i * PART, .in_length = part, .out = out + i * PART};
        items[i].out_capacity = part + 16;
    }
    memcpy(items[0].iv, whole->iv, 16);
    items[0].iv_length = whole->iv_length;
    items[0].aad = whole->aad;
    items[0].aad_length = whole->aad_length;
    size_t half = count / 2;
    must(cm_operation_part(operation, &items[0], 0, &error), "first");
    must(cm_operation_parts(operation, items + 1, half - 1, 0, &error), "middle");
    must(cm_operation_parts(operation, items + half, count - half, 1, &error), "rest");
    cm_item got = *whole;
    got.in_length = length;
    got.out = out;
    got.out_length = (count - 1) * PART + items[count - 1].out_length;
    memcpy(got.tag, items[count - 1].tag, 16);
    got.tag_length = items[count - 1].tag_length;
    if (direction == CM_ENCRYPT)
        judge(mode, 192, mode == CM_ECB || mode == CM_CBC, in, &got);
    else
        ck_assert_uint_eq(got.out_length, whole->out_length);
    cm_operation_close(operation);
    cm_key_close(key);
    free(items);
}

START_TEST(messages_in_parts)
{
    size_t length = 5 * MIB + 333;
    uint8_t *in = malloc(length), *out = malloc(length + 16), *back = malloc(length + 32);
    cm_client *client = connect_to(unix_uri, 1);
    import_keys(client);
    cm_client *by_tcp = connect_to(tcp_uri, 1);
    fill(in, length, 5);
    for (int mode = CM_ECB; mode <= CM_GCM; mode++) {
        cm_client *with = mode % 2 == 0 ? client : by_tcp;
        cm_item whole = {.iv = {9, 8, 7}, .iv_length = mode == CM_GCM ? 12 : mode == CM_ECB ? 0 : 16};
        whole.aad = mode == CM_GCM ? key_bytes : NULL;
        whole.aad_length = mode == CM_GCM ? 31 : 0;
        one_operation(with, mode, CM_ENCRYPT, &whole, in, out, length);
        if (mode == CM_GCM)
            continue;
        size_t cipher = mode == CM_CTR ? length : length - length % 16 + 16;
        whole.out_length = length;
        one_operation(with, mode, CM_DECRYPT, &whole, out, back, cipher);
        ck_assert_int_eq(memcmp(back, in, length), 0);
    }
    cm_close(by_tcp);
    cm_close(client);
    free(in);
    free(out);
    free(back);
}
END_TEST

START_TEST(asynchronous_batches)
{
    enum { BATCHES = 400, ITEMS = 16, LENGTH = 1000, SLOTS = 8 };
    static uint8_t in[SLOTS][ITEMS][LENGTH], out[SLOTS][ITEMS][LENGTH];
    static cm_item items[SLOTS][ITEMS];
    cm_client *client = connect_to(unix_uri, 1);
    import_keys(client);
    cm_key *key = open_key(client, CM_GCM, 256);
    cm_completion completions[SLOTS];
    size_t submitted = 0, done = 0, free_slots[SLOTS], free_count = SLOTS;
    for (size_t i = 0; i < SLOTS; i++)
        free_slots[i] = i;
    while (done < BATCHES) {
        while (free_count > 0 && submitted < BATCHES) {
            size_t slot = free_slots[--free_count];
            fill(in[slot][0], sizeof in[slot], (unsigned)submitted++);
            for (size_t i = 0; i < ITEMS; i++)
                items[slot][i] = (cm_item){
                    .in = in[slot][i], .in_length = LENGTH - i, .out = out[slot][i], .out_capacity = LENGTH};
            must(cm_submit(key, CM_GCM, CM_ENCRYPT, 0, items[slot], ITEMS, in[slot], &error), "submit");
        }
        int got = cm_poll(client, completions, SLOTS, 10000, &error);
        ck_assert_int_gt(got, 0);
        for (int c = 0; c < got; c++, done++) {
            size_t slot = (size_t)((uint8_t(*)[ITEMS][LENGTH])completions[c].tag - in);
            ck_assert_int_eq(completions[c].result, 0);
            for (size_t i = 0; i < ITEMS; i++)
                judge(CM_GCM, 256, false, in[slot][i], &items[slot][i]);
            free_slots[free_count++] = slot;
        }
    }
    cm_key_close(key);
    cm_close(client);
}
END_TEST

/* --- What is refused --- */

START_TEST(bad_items_fail_alone)
{
    cm_client *client = connect_to(unix_uri, 1);
    import_keys(client);
    cm_key *key = open_key(client, CM_GCM, 128);
    uint8_t bytes[4][64], aad[4] = "aad";
    cm_item items[4];
    for (int i = 0; i < 4; i++) {
        memset(bytes[i], i, 64);
        items[i] = (cm_item){.in = bytes[i],
                             .in_length = 64,
                             .out = bytes[i],
                             .out_capacity = 64,
                             .aad = aad,
                             .aad_length = 3};
    }
    must(cm_encrypt(key, CM_GCM, items, 4, &error), "encrypt");
    bytes[1][9] ^= 1;
    items[2].aad_length = 2;
    uint8_t spoilt[64];
    memcpy(spoilt, bytes[1], 64);
    ck_assert_int_eq(cm_decrypt(key, CM_GCM, items, 4, &error), 2);
    ck_assert_int_eq(items[0].status, CM_OK);
    ck_assert_int_eq(items[1].status, CM_ERR_BAD_TAG);
    ck_assert_int_eq(items[2].status, CM_ERR_BAD_TAG);
    ck_assert_int_eq(items[3].status, CM_OK);
    ck_assert_mem_eq(bytes[1], spoilt, 64);
    ck_assert_uint_eq(bytes[3][60], 3);
    cm_key_close(key);
    key = open_key(client, CM_CBC, 128);
    cm_item block = {.in = bytes[0], .in_length = 32, .out = bytes[0], .out_capacity = 64, .iv_length = 16};
    ck_assert_int_eq(cm_decrypt(key, CM_CBC, &block, 1, &error), 1);
    ck_assert_int_eq(block.status, CM_ERR_BAD_PADDING);
    block.in_length = 31;
    ck_assert_int_eq(cm_decrypt(key, CM_CBC, &block, 1, &error), 1);
    ck_assert_int_eq(block.status, CM_ERR_BAD_LENGTH);
    ck_assert_int_lt(cm_encrypt(key, CM_GCM, &block, 1, &error), 0);
    ck_assert_int_eq(error.code, CM_ERR_NOT_PERMITTED);
    cm_key_close(key);
    cm_close(client);
}
END_TEST

START_TEST(administration)
{
    cm_client *client = connect_to(unix_uri, 2), *by_tcp = connect_to(tcp_uri, 1);
    cm_key_details *keys;
    size_t count;
    import_keys(client);
    must(cm_key_list(client, NULL, &keys, &count, &error), "list");
    ck_assert_uint_eq(count, 6);
    ck_assert_str_eq(keys[0].name, "bits128");
    ck_assert_uint_eq(keys[5].key_bits, 256);
    ck_assert_uint_eq(keys[5].version_count, 1);
    ck_assert_uint_eq(keys[5].versions[0].state, CM_KEY_ENABLED);
    cm_keys_free(keys, count);
    ck_assert_int_eq(cm_key_create(client, "bits128", 128, NULL, NULL, &error), CM_ERR_EXISTS);
    ck_assert_int_eq(cm_key_create(by_tcp, "x", 128, NULL, NULL, &error), CM_ERR_ACCESS_DENIED);
    ck_assert_int_eq(cm_key_destroy(by_tcp, "bits128", &error), CM_ERR_ACCESS_DENIED);
    cm_key *key = open_key(client, CM_CTR, 128), *ephemeral;
    uint8_t bytes[16] = {0}, iv[16] = {0};
    must(cm_key_destroy(client, "bits128", &error), "destroy");
    cm_item item = {.in = bytes, .in_length = 16, .out = bytes, .out_capacity = 16, .iv_length = 16};
    ck_assert_int_lt(cm_encrypt(key, CM_CTR, &item, 1, &error), 0);
    ck_assert_msg(error.code == CM_ERR_NO_SUCH_KEY || error.code == CM_ERR_KEY_UNUSABLE, "%s", error.text);
    cm_key_close(key);
    cm_key_options options = CM_KEY_OPTIONS_INIT;
    options.modes = CM_MODE_BIT(CM_CTR);
    options.caller_iv = 1;
    ck_assert_int_eq(cm_key_ephemeral(&ephemeral, by_tcp, 128, key_bytes, &options, &error),
                     CM_ERR_ACCESS_DENIED);
    must(cm_key_ephemeral(&ephemeral, by_tcp, 128, NULL, &options, &error), "ephemeral over TCP");
    cm_key_close(ephemeral);
    must(cm_key_ephemeral(&ephemeral, client, 128, key_bytes, &options, &error), "ephemeral");
    item = (cm_item){.in = iv, .in_length = 16, .out = bytes, .out_capacity = 16, .iv_length = 16};
    must(cm_encrypt(ephemeral, CM_CTR, &item, 1, &error), "encrypt");
    judge(CM_CTR, 128, false, iv, &item);
    cm_key_close(ephemeral);
    cm_implementation_details *rows;
    must(cm_get_implementations(client, &rows, &count, &error), "implementations");
    ck_assert_uint_ge(count, 8);
    free(rows);
    cm_server_details details = {.size = sizeof details};
    must(cm_get_status(by_tcp, &details, &error), "status");
    ck_assert_str_eq(details.identity, "tcp:anonymous");
    ck_assert_uint_eq(details.may_administer, 0);
    ck_assert_uint_eq(details.connections, 2);
    cm_close(by_tcp);
    cm_close(client);
}
END_TEST

/* --- What goes wrong --- */

static int encrypt_zeros(cm_key *key)
{
    uint8_t bytes[100] = {0}, zeros[100] = {0};
    cm_item item = {.in = bytes, .in_length = 100, .out = bytes, .out_capacity = 100, .iv_length = 16};
    int rc = cm_encrypt(key, CM_CTR, &item, 1, &error);
    if (rc == 0)
        judge(CM_CTR, 256, false, zeros, &item);
    return rc;
}

START_TEST(a_stopped_daemon_times_out)
{
    cm_client *client;
    cm_options options = CM_OPTIONS_INIT;
    options.connect_timeout_ms = options.request_timeout_ms = 1500;
    must(cm_connect(&client, unix_uri, &options, &error), "connect");
    import_keys(client);
    cm_key *key = open_key(client, CM_CTR, 256);
    must(encrypt_zeros(key), "encrypt");
    kill(daemon_pid, SIGSTOP);
    ck_assert_int_eq(waitpid(daemon_pid, NULL, WUNTRACED), daemon_pid); /* until it really stands still */
    ck_assert_int_eq(encrypt_zeros(key), CM_ERR_TIMEOUT);
    ck_assert_int_eq(error.retry, CM_RETRY_UNKNOWN);
    ck_assert_int_eq(encrypt_zeros(key), CM_ERR_CONNECT_TIMEOUT);
    ck_assert_int_eq(error.retry, CM_RETRY_NOT_EXECUTED);
    kill(daemon_pid, SIGCONT);
    while (encrypt_zeros(key) != 0)
        ck_assert_int_eq(error.code, CM_ERR_CONNECT_TIMEOUT);
    cm_key_close(key);
    cm_close(client);
}
END_TEST

START_TEST(a_restart_goes_unnoticed)
{
    cm_client *clients[2] = {connect_to(unix_uri, 1), connect_to(tcp_uri, 1)};
    import_keys(clients[0]);
    cm_key *keys[2] = {open_key(clients[0], CM_CTR, 256), open_key(clients[1], CM_CTR, 256)};
    for (int how = 0; how < 3; how++) {
        for (int i = 0; i < 2; i++)
            must(encrypt_zeros(keys[i]), "encrypt");
        stop_daemon(how == 1 ? SIGKILL : SIGTERM);
        ck_assert_int_eq(encrypt_zeros(keys[0]), CM_ERR_NOT_FOUND);
        ck_assert_int_eq(error.retry, CM_RETRY_NOT_EXECUTED);
        start_daemon();
    }
    for (int i = 0; i < 2; i++) {
        must(encrypt_zeros(keys[i]), "encrypt");
        cm_key_close(keys[i]);
        cm_close(clients[i]);
    }
}
END_TEST

/* SIGTERM under load: every completion is right, or says that nothing was done. */
START_TEST(a_drain_leaves_nothing_in_doubt)
{
    enum { DEEP = 32, LENGTH = 20000 };
    static uint8_t in[LENGTH], out[DEEP][LENGTH];
    static cm_item items[DEEP];
    cm_client *client = connect_to(unix_uri, 1);
    import_keys(client);
    cm_key *key = open_key(client, CM_CTR, 256);
    cm_completion completions[DEEP];
    size_t in_flight = 0, right = 0, not_done = 0, next = 0;
    bool ended = false;
    fill(in, LENGTH, 3);
    for (int round = 0; in_flight > 0 || !ended; round++) {
        if (round == 100)
            kill(daemon_pid, SIGTERM);
        while (!ended && in_flight < DEEP) {
            cm_item *item = &items[next % DEEP];
            *item = (cm_item){.in = in,
                              .in_length = LENGTH,
                              .out = out[next % DEEP],
                              .out_capacity = LENGTH,
                              .iv_length = 16};
            if (cm_submit(key, CM_CTR, CM_ENCRYPT, 0, item, 1, NULL, &error) == 0) {
                next++;
                in_flight++;
            } else {
                ck_assert_int_eq(error.retry, CM_RETRY_NOT_EXECUTED);
                ended = true;
            }
        }
        int got = cm_poll(client, completions, DEEP, 10000, &error);
        ck_assert_int_ge(got, 0);
        for (int i = 0; i < got; i++) {
            in_flight--;
            if (completions[i].result == 0) {
                judge(CM_CTR, 256, false, in, completions[i].items);
                right++;
            } else {
                ck_assert_msg(completions[i].error.retry == CM_RETRY_NOT_EXECUTED, "%s",
                              completions[i].error.text);
                not_done++;
                ended = true;
            }
        }
    }
    ck_assert_uint_ge(right, 100);
    ck_assert_uint_eq(right + not_done, next);
    cm_key_close(key);
    cm_close(client);
    int status;
    waitpid(daemon_pid, &status, 0);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    start_daemon();
}
END_TEST

static void *work(void *argument)
{
    cm_key *key = argument;
    uint8_t in[500], out[500];
    fill(in, sizeof in, 77);
    for (int i = 0; i < 300; i++) {
        cm_error mine;
        cm_item item = {
            .in = in, .in_length = sizeof in, .out = out, .out_capacity = sizeof out, .iv_length = 16};
        memset(item.iv, i, 16);
        if (cm_encrypt(key, CM_CTR, &item, 1, &mine) != 0)
            return argument;
        judge(CM_CTR, 256, false, in, &item);
    }
    return NULL;
}

START_TEST(threads)
{
    cm_client *client = connect_to(unix_uri, 3);
    import_keys(client);
    cm_key *key = open_key(client, CM_CTR, 256);
    pthread_t made[6];
    for (int i = 0; i < 6; i++)
        pthread_create(&made[i], NULL, work, key);
    for (int i = 0; i < 6; i++) {
        void *failed;
        pthread_join(made[i], &failed);
        ck_assert_ptr_null(failed);
    }
    cm_key_close(key);
    cm_close(client);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_mode_over_every_transport,
        data_units,
        keys_of_data_units,
        tweaks,
        large_items,
        messages_in_parts,
        asynchronous_batches,
        bad_items_fail_alone,
        administration,
        a_stopped_daemon_times_out,
        a_restart_goes_unnoticed,
        a_drain_leaves_nothing_in_doubt,
        threads,
    };
    return RUN_WITH_FIXTURE("client/daemon", setup, teardown, tests);
}
