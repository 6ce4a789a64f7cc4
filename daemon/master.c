/* SPDX-License-Identifier: Apache-2.0 */
/* The master key: reading or making its file, wrapping and fingerprints under it. */
#include "master.h"

#include "cm_aes.h"
#include "random_pool.h"
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { AAD_BYTES = 16 + CM_KEY_ID_BYTES + 1 + CM_KEY_NAME_MAX + 8 * 8 + CM_FINGERPRINT_BYTES };

static int hmac(const uint8_t key[32], const void *text, size_t length, uint8_t ret_mac[32])
{
    unsigned mac_length = 32;
    return HMAC(EVP_sha256(), key, 32, text, length, ret_mac, &mac_length) != NULL && mac_length == 32 ? 0
                                                                                                       : -1;
}

static int derive(const uint8_t bytes[CM_MASTER_KEY_BYTES], struct cm_master *ret_master)
{
    static const char wrapping[] = "ciphermill wrapping 1", fingerprint[] = "ciphermill fingerprint 1",
                      check[] = "ciphermill master key check 1";
    return hmac(bytes, wrapping, sizeof wrapping - 1, ret_master->wrapping) == 0 &&
                   hmac(bytes, fingerprint, sizeof fingerprint - 1, ret_master->fingerprint) == 0 &&
                   hmac(bytes, check, sizeof check - 1, ret_master->check) == 0
               ? 0
               : -1;
}

static int complain(char *ret_text, size_t text_capacity, const char *path, const char *what,
                    const char *remedy)
{
    snprintf(ret_text, text_capacity, "master key %s: %s; %s", path, what, remedy);
    return -1;
}

static int check_file(int fd, const char *path, char *ret_text, size_t text_capacity)
{
    char what[96], remedy[PATH_MAX + 96];
    struct stat info;
    if (fstat(fd, &info) != 0)
        return complain(ret_text, text_capacity, path, strerror(errno), "check the file");
    if (!S_ISREG(info.st_mode))
        return complain(ret_text, text_capacity, path, "is no regular file", "name the file that holds it");
    if ((info.st_mode & 07777) != 0600 && (info.st_mode & 07777) != 0400) {
        snprintf(what, sizeof what, "has mode %04o, so that others may have read it",
                 (unsigned)(info.st_mode & 07777));
        snprintf(remedy, sizeof remedy, "it must have mode 0600: run chmod 600 %s", path);
        return complain(ret_text, text_capacity, path, what, remedy);
    }
    if (info.st_uid != 0 && info.st_uid != geteuid()) {
        snprintf(what, sizeof what, "belongs to uid %u (mode %04o)", (unsigned)info.st_uid,
                 (unsigned)(info.st_mode & 07777));
        snprintf(remedy, sizeof remedy, "it must belong to root or to uid %u: run chown %u %s",
                 (unsigned)geteuid(), (unsigned)geteuid(), path);
        return complain(ret_text, text_capacity, path, what, remedy);
    }
    if (info.st_size != CM_MASTER_KEY_BYTES) {
        snprintf(what, sizeof what, "has %lld bytes instead of %d (mode %04o)", (long long)info.st_size,
                 CM_MASTER_KEY_BYTES, (unsigned)(info.st_mode & 07777));
        return complain(ret_text, text_capacity, path, what, "restore it from your backup");
    }
    return 0;
}

/* Makes it appear complete and durable or not at all: link() fails if there is one by now. */
static int make_file(const char *path, const uint8_t bytes[CM_MASTER_KEY_BYTES], char *ret_text,
                     size_t text_capacity)
{
    char temporary[PATH_MAX], folder[PATH_MAX];
    if (snprintf(temporary, sizeof temporary, "%s.new", path) >= (int)sizeof temporary)
        return complain(ret_text, text_capacity, path, strerror(ENAMETOOLONG), "choose a shorter path");
    snprintf(folder, sizeof folder, "%s", path);

    int rc = -1, folder_fd = -1;
    (void)unlink(temporary); /* left by a start that was cut short: never a master key in use */
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0 && fchmod(fd, 0600) == 0 && write(fd, bytes, CM_MASTER_KEY_BYTES) == CM_MASTER_KEY_BYTES &&
        fsync(fd) == 0 && link(temporary, path) == 0 && unlink(temporary) == 0) {
        folder_fd = open(dirname(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder_fd >= 0 && fsync(folder_fd) == 0)
            rc = 0;
    }
    if (rc != 0) {
        char what[128];
        snprintf(what, sizeof what, "cannot be made with mode 0600: %s", strerror(errno));
        complain(ret_text, text_capacity, path, what, "make its folder writable for the daemon's user");
        if (fd >= 0)
            (void)unlink(temporary);
    }
    if (folder_fd >= 0)
        close(folder_fd);
    if (fd >= 0)
        close(fd);
    return rc;
}

int cm_master_load(struct cm_master *ret_master, const char *path, bool may_make, bool *ret_made,
                   char *ret_text, size_t text_capacity)
{
    uint8_t bytes[CM_MASTER_KEY_BYTES];
    bool made = false;
    int rc = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd >= 0) {
        if (check_file(fd, path, ret_text, text_capacity) != 0)
            goto out;
        if (read(fd, bytes, sizeof bytes) != (ssize_t)sizeof bytes) {
            complain(ret_text, text_capacity, path, "cannot be read", "check the file");
            goto out;
        }
    } else if (errno != ENOENT) {
        complain(ret_text, text_capacity, path, strerror(errno),
                 "it must have mode 0600 and belong to the daemon's user");
        goto out;
    } else if (!may_make) {
        complain(ret_text, text_capacity, path,
                 "is missing (mode 0600 is expected), and the store holds keys that only it can unwrap",
                 "restore it from your backup, or move the store away to begin anew without those keys");
        goto out;
    } else {
        if (cm_random_secret(bytes, sizeof bytes) != 0) {
            complain(ret_text, text_capacity, path, "cannot be made: no random bytes", "check the system");
            goto out;
        }
        if (make_file(path, bytes, ret_text, text_capacity) != 0)
            goto out;
        made = true;
    }
    rc = derive(bytes, ret_master);
    if (rc != 0)
        complain(ret_text, text_capacity, path, "HMAC-SHA256 failed", "check the OpenSSL library");
    else
        *ret_made = made;
out:
    cm_aes_wipe(bytes, sizeof bytes);
    if (fd >= 0)
        close(fd);
    return rc;
}

void cm_master_done(struct cm_master *master)
{
    cm_aes_wipe(master, sizeof *master);
}

static uint8_t *put(uint8_t *at, const void *bytes, size_t length)
{
    memcpy(at, bytes, length);
    return at + length;
}

static uint8_t *put_number(uint8_t *at, uint64_t number)
{
    for (int i = 0; i < 8; i++)
        *at++ = (uint8_t)(number >> (8 * i));
    return at;
}

/* Every field of fixed size but the name, which its length precedes: no two rows give the same bytes. */
static size_t additional_data(const struct cm_stored_key *key, const struct cm_stored_version *version,
                              uint8_t ret_aad[AAD_BYTES])
{
    const struct cm_key_attributes *attributes = &key->attributes;
    uint64_t flags = (uint64_t)attributes->encrypt | (uint64_t)attributes->decrypt << 1 |
                     (uint64_t)attributes->caller_iv << 2 | (uint64_t)key->unsafe_mixed_modes << 3;
    size_t name_length = strnlen(key->name, CM_KEY_NAME_MAX);
    uint8_t *at = put(ret_aad, "ciphermill key 1", 16);
    at = put(at, key->id, sizeof key->id);
    *at++ = (uint8_t)name_length;
    at = put(at, key->name, name_length);
    at = put_number(at, key->key_bits);
    at = put_number(at, attributes->modes);
    at = put_number(at, attributes->tag_length);
    at = put_number(at, flags);
    at = put_number(at, version->number);
    at = put_number(at, version->state);
    at = put_number(at, version->created_unix_s);
    at = put(at, version->fingerprint, sizeof version->fingerprint);
    return (size_t)(at - ret_aad);
}

int cm_master_wrap(const struct cm_master *master, const struct cm_stored_key *key,
                   struct cm_stored_version *version, const uint8_t *bytes, size_t length)
{
    uint8_t aad[AAD_BYTES];
    size_t aad_length = additional_data(key, version, aad);
    int rc = -1, done = 0;
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    if (context != NULL && cm_random_secret(version->nonce, sizeof version->nonce) == 0 &&
        EVP_EncryptInit_ex(context, EVP_aes_256_gcm(), NULL, master->wrapping, version->nonce) == 1 &&
        EVP_EncryptUpdate(context, NULL, &done, aad, (int)aad_length) == 1 &&
        (length == 0 || EVP_EncryptUpdate(context, version->wrapped, &done, bytes, (int)length) == 1) &&
        EVP_EncryptFinal_ex(context, version->wrapped + length, &done) == 1 &&
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, CM_WRAP_TAG_BYTES, version->wrapped + length) == 1)
        rc = 0;
    EVP_CIPHER_CTX_free(context);
    version->wrapped_length = length + CM_WRAP_TAG_BYTES;
    return rc;
}

int cm_master_unwrap(const struct cm_master *master, const struct cm_stored_key *key,
                     const struct cm_stored_version *version, uint8_t ret_bytes[CM_STORED_KEY_MAX_BYTES],
                     size_t *ret_length)
{
    if (version->wrapped_length < CM_WRAP_TAG_BYTES || version->wrapped_length > CM_WRAPPED_MAX_BYTES)
        return -1;
    uint8_t aad[AAD_BYTES], bytes[CM_STORED_KEY_MAX_BYTES], tag[CM_WRAP_TAG_BYTES];
    size_t aad_length = additional_data(key, version, aad);
    size_t length = version->wrapped_length - CM_WRAP_TAG_BYTES;
    int rc = -1, done = 0;
    memcpy(tag, version->wrapped + length, sizeof tag);
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    if (context != NULL &&
        EVP_DecryptInit_ex(context, EVP_aes_256_gcm(), NULL, master->wrapping, version->nonce) == 1 &&
        EVP_DecryptUpdate(context, NULL, &done, aad, (int)aad_length) == 1 &&
        (length == 0 || EVP_DecryptUpdate(context, bytes, &done, version->wrapped, (int)length) == 1) &&
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_SET_TAG, sizeof tag, tag) == 1 &&
        EVP_DecryptFinal_ex(context, bytes + length, &done) == 1) {
        memcpy(ret_bytes, bytes, length);
        *ret_length = length;
        rc = 0;
    }
    EVP_CIPHER_CTX_free(context);
    cm_aes_wipe(bytes, sizeof bytes);
    return rc;
}

int cm_master_fingerprint(const struct cm_master *master, const uint8_t *bytes, size_t length,
                          uint8_t ret_fingerprint[CM_FINGERPRINT_BYTES])
{
    return hmac(master->fingerprint, bytes, length, ret_fingerprint);
}
