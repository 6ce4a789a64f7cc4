/* SPDX-License-Identifier: Apache-2.0 */
/* ciphermill encrypt. */
#include "commands.h"
#include "crypt.h"

static const struct crypt_command command = {
    .name = "encrypt",
    .direction = CM_ENCRYPT,
    .text =
        "Encrypts standard input, or the file --in, with a key that the daemon holds, to standard output "
        "or the file\n"
        "--out, which appears only when it is complete.\n\n"
        "Without --iv the daemon makes the IV and the output begins with it: in CBC and CTR 16 bytes, "
        "then the\n"
        "ciphertext; in GCM a nonce of 12 bytes, the ciphertext, the tag. ECB has no IV. With --iv, for "
        "keys made\n"
        "with --caller-iv, the output is the ciphertext alone, the same as from 'openssl enc -K ... -iv "
        "...'; in GCM\n"
        "the tag follows it. Never use an IV twice with one key in CTR or GCM.\n\n"
        "CBC and CTR take input of any size in constant memory. GCM takes a message as a whole, up to "
        "the daemon's\n"
        "item limit (8 MiB unless configured).\n\n"
        "XTS is for what stands at a place of its own, such as a disk's sectors. The input is cut into data "
        "units of\n"
        "--unit-bytes, numbered from --unit on; the last one may be shorter, but has 16 bytes at least. The "
        "output is\n"
        "as long as the input. Encrypt two different contents of a place under one key only if it is fine "
        "that an\n"
        "onlooker sees where they differ. XTS detects no alterations.\n",
    .examples =
        "  ciphermill encrypt --key orders --in a.db --out a.db.cm\n"
        "  tar c /srv | ciphermill encrypt --key backup --mode ctr > srv.tar.cm\n"
        "  ciphermill encrypt --key disk --unit 0 --unit-bytes 512 --in disk.img --out disk.img.xts\n"
        "  ciphermill encrypt --key legacy --mode cbc --iv 000102030405060708090a0b0c0d0e0f --in a --out b\n",
};

int cmd_encrypt(struct cli *cli, int argc, char **argv)
{
    return crypt_run(cli, argc, argv, &command);
}
