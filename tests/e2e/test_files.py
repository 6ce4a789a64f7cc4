#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`ciphermill encrypt` and `decrypt` of files and pipes in ECB, CBC and CTR: the same bytes as `openssl enc`."""
import os
import unittest

from harness import MIB, SANITIZE, Case, main, openssl, pattern, run_measured, COMMAND

IV = bytes(range(0xf0, 0x100))
# Edges of the block, of a part and of a frame, and the empty message.
SIZES = (0, 1, 15, 16, 17, 4096, 65536 + 7, 3 * MIB + 5)


class Files(Case):
    def setUp(self):
        super().setUp()
        self.d = self.daemon()
        self.keys = {bits: self.import_key(self.d, f"k{bits}", pattern(bits // 8, bits)) for bits in (128, 192, 256)}

    def iv(self, mode):
        return [] if mode == "ecb" else ["--iv", IV.hex()]

    def test_every_mode_and_key_size_as_openssl(self):
        for endpoint in (self.d.unix, self.d.tcp):
            for mode in ("ecb", "cbc", "ctr"):
                for bits, key in self.keys.items():
                    for size in SIZES if bits == 256 else (17, MIB):
                        with self.subTest(endpoint=endpoint, mode=mode, bits=bits, size=size):
                            self.one(endpoint, mode, bits, key, pattern(size))

    def one(self, endpoint, mode, bits, key, plain):
        source = self.write("plain", plain)
        self.ok(endpoint, "encrypt", "--key", f"k{bits}", "--mode", mode, *self.iv(mode), "--in", source,
                "--out", self.path("cipher"))
        expected = openssl(mode, key, plain, None if mode == "ecb" else IV)
        self.assertEqual(self.read("cipher"), expected)
        self.ok(endpoint, "decrypt", "--key", f"k{bits}", "--mode", mode, *self.iv(mode), "--in",
                self.path("cipher"), "--out", self.path("back"))
        self.assertEqual(self.read("back"), plain)

    def test_without_padding(self):
        plain = pattern(4096)
        for mode in ("ecb", "cbc"):
            result = self.ok(self.d, "encrypt", "--key", "k128", "--mode", mode, *self.iv(mode), "--no-padding",
                             stdin=plain)
            expected = openssl(mode, self.keys[128], plain, None if mode == "ecb" else IV, padding=False)
            self.assertEqual(result.out, expected)
            back = self.ok(self.d, "decrypt", "--key", "k128", "--mode", mode, *self.iv(mode), "--no-padding",
                           stdin=result.out)
            self.assertEqual(back.out, plain)
            self.refused(self.d, "encrypt", "--key", "k128", "--mode", mode, *self.iv(mode), "--no-padding",
                         stdin=plain[:-1])

    def test_ecb_ignores_an_iv_and_says_so(self):
        plain = pattern(1000)
        result = self.ok(self.d, "encrypt", "--key", "k128", "--mode", "ecb", "--iv", IV.hex(), stdin=plain)
        self.assertEqual(result.out, openssl("ecb", self.keys[128], plain, None))
        self.assertIn(b"ignored", result.err)
        back = self.ok(self.d, "decrypt", "--key", "k128", "--mode", "ecb", "--iv", IV.hex(), stdin=result.out)
        self.assertEqual(back.out, plain)

    def test_daemon_makes_the_iv(self):
        plain = pattern(MIB + 3)
        for mode in ("cbc", "ctr"):
            first = self.ok(self.d, "encrypt", "--key", "k256", "--mode", mode, stdin=plain).out
            second = self.ok(self.d, "encrypt", "--key", "k256", "--mode", mode, stdin=plain).out
            self.assertNotEqual(first[:16], second[:16])
            self.assertEqual(openssl(mode, self.keys[256], first[16:], first[:16], decrypt=True), plain)
            self.assertEqual(self.ok(self.d, "decrypt", "--key", "k256", "--mode", mode, stdin=first).out, plain)

    def test_counter_carries_over_all_128_bits(self):
        plain, iv = pattern(1000), b"\xff" * 15 + b"\xfe"
        result = self.ok(self.d, "encrypt", "--key", "k128", "--mode", "ctr", "--iv", iv.hex(), stdin=plain)
        self.assertEqual(result.out, openssl("ctr", self.keys[128], plain, iv))

    def test_refusals_leave_no_file(self):
        """A file appears only complete: whatever goes wrong, nothing stands under the name, nor beside it."""
        plain = self.write("plain", pattern(100))
        before = sorted(os.listdir(self.folder))
        out = self.path("out")
        into = ["--in", plain, "--out", out]
        self.refused(self.d, "encrypt", "--key", "missing", "--mode", "cbc", *into, says=["missing"])
        self.refused(self.d, "encrypt", "--key", "k128", "--mode", "gcm", *into)
        self.refused(self.d, "encrypt", "--key", "k128", "--mode", "cbc", "--iv", "00", *into)
        self.refused(self.d, "encrypt", "--key", "k128", "--mode", "cbc", "--iv", "zz" * 16, *into)
        self.refused(self.d, "encrypt", "--key", "k128", "--mode", "xyz", *into)
        self.refused(self.d, "encrypt", "--key", "k128", "--mode", "cbc", "--in", self.path("absent"), "--out", out,
                     says=["absent"])
        self.refused(self.d, "decrypt", "--key", "k128", "--mode", "cbc", "--iv", IV.hex(), *into)  # no whole blocks
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_padding_that_breaks_late_leaves_no_file(self):
        plain = pattern(2 * MIB)
        cipher = self.write("cipher", openssl("cbc", self.keys[128], plain, IV)[:-16])
        self.refused(self.d, "decrypt", "--key", "k128", "--mode", "cbc", "--iv", IV.hex(), "--in", cipher, "--out",
                     self.path("out"), says=["padding"])
        self.assertFalse(os.path.exists(self.path("out")))

    def test_an_existing_file_stays_when_it_fails(self):
        out = self.write("out", b"precious")
        self.refused(self.d, "encrypt", "--key", "missing", "--mode", "cbc", "--in", out, "--out", out)
        self.assertEqual(self.read("out"), b"precious")

    def test_a_closed_pipe_ends_it(self):
        plain = self.write("plain", pattern(8 * MIB))
        result = self.shell(f"{COMMAND} --endpoint {self.d.unix} encrypt --key k128 --mode ctr --in {plain} | "
                            "head -c 100 | wc -c")
        self.assertEqual(result.out.strip(), b"100", result)

    def shell(self, text):
        from harness import run
        return run(["bash", "-c", text])

    def test_memory_is_constant(self):
        """64 MiB of file, well under 64 MiB of memory on both sides. large_files.py does 1 GiB."""
        plain = self.write("plain", pattern(64 * MIB))
        for mode in ("cbc", "ctr"):
            result = run_measured([COMMAND, "--endpoint", self.d.unix, "encrypt", "--key", "k256", "--mode", mode,
                                   "--iv", IV.hex(), "--in", plain, "--out", self.path("cipher")])
            self.assertEqual(result.code, 0, result)
            with open(self.path("plain"), "rb") as file:
                self.assertEqual(self.read("cipher"), openssl(mode, self.keys[256], file.read(), IV))
            if not SANITIZE:
                self.assertLess(result.peak_kib, 64 * 1024, "the client's peak in KiB")
        if not SANITIZE:
            self.assertLess(self.d.peak_kib(), 64 * 1024, "the daemon's peak in KiB")


if __name__ == "__main__":
    main()
