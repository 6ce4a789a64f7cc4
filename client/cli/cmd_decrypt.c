/* SPDX-License-Identifier: Apache-2.0 */
/* ciphermill decrypt. */
#include "commands.h"
#include "crypt.h"

static const struct crypt_command command = {
    .name = "decrypt",
    .direction = CM_DECRYPT,
    .text =
        "Decrypts what 'ciphermill encrypt' wrote: standard input, or the file --in, to standard output "
        "or the file\n"
        "--out, which appears only when it is complete.\n\n"
        "Without --iv the IV is read from the head of the input; with it the input is the bare "
        "ciphertext (in GCM\n"
        "with the tag behind it), such as 'openssl enc' writes. In GCM nothing is written before the tag "
        "is known to\n"
        "be right. CBC and CTR detect no alterations; a decryption of CBC or ECB to a pipe that turns "
        "out to have bad\n"
        "padding at its end has written the rest by then, and ends with a non-zero code.\n\n"
        "XTS takes the same --unit and --unit-bytes, or --tweak, as the encryption did, and any unit can be "
        "decrypted\n"
        "by itself.\n",
    .examples = "  ciphermill decrypt --key orders --in a.db.cm --out a.db\n"
                "  ciphermill decrypt --key backup --mode ctr < srv.tar.cm | tar x\n"
                "  ciphermill decrypt --key disk --unit 0 --unit-bytes 512 --in disk.img.xts --out disk.img\n"
                "  ciphermill decrypt --key orders --key-version 1 --in old.cm --out old\n",
};

int cmd_decrypt(struct cli *cli, int argc, char **argv)
{
    return crypt_run(cli, argc, argv, &command);
}
