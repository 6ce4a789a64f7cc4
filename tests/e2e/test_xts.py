#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""XTS through the command: files as data units, numbered as a disk's sectors or under one tweak, checked with
libcrypto; keys of two halves; what is refused, and with which words."""
import os

from harness import MIB, Case, main, pattern, xts, xts_units

FAILED, USAGE, REFUSED = 1, 2, 4


class Xts(Case):
    def setUp(self):
        super().setUp()
        self.d = self.daemon()
        self.keys = {bits: self.import_key(self.d, f"x{bits}", pattern(bits // 4, bits), "xts", caller_iv=False)
                     for bits in (128, 256)}

    def there_and_back(self, endpoint, bits, plain, wanted, *words):
        source = self.write("plain", plain)
        self.ok(endpoint, "encrypt", "--key", f"x{bits}", "--mode", "xts", *words, "--in", source, "--out",
                self.path("cipher"))
        self.assertEqual(self.read("cipher"), wanted)
        back = self.ok(endpoint, "decrypt", "--key", f"x{bits}", *words, stdin=wanted)
        self.assertEqual(back.out, plain)

    def test_numbered_units(self):
        """Both key sizes over both transports; ends that are ragged in every way that is allowed."""
        for endpoint in (self.d.unix, self.d.tcp):
            for bits, key in self.keys.items():
                for size, first, unit in ((16, 0, 4096), (17, 1, 4096), (4095, 5, 4096), (4096, 255, 4096),
                                          (4096 + 16, 256, 4096), (3 * 4096 + 31, (1 << 64) - 4, 4096), (512, 7, 512),
                                          (10 * 512 + 511, 1 << 32, 512), (1000, 3, 100), (16 * 5000, 0, 16),
                                          (16 * 5000 + 17, 9, 33)):
                    with self.subTest(endpoint=endpoint, bits=bits, size=size, first=first, unit=unit):
                        plain = pattern(size, size)
                        words = ["--unit", str(first), *(["--unit-bytes", str(unit)] if unit != 4096 else [])]
                        self.there_and_back(endpoint, bits, plain, xts_units(key, plain, first, unit), *words)

    def test_long_files(self):
        plain = pattern(5 * MIB + 16 + 3)
        for bits, unit in ((128, 512), (256, 4096), (256, 65536), (128, 2 * MIB)):
            with self.subTest(unit=unit):
                self.there_and_back(self.d, bits, plain, xts_units(self.keys[bits], plain, 12345, unit), "--unit",
                                    "12345", "--unit-bytes", str(unit))

    def test_a_unit_by_itself(self):
        """That is what XTS is for: a sector out of the middle, without the rest."""
        plain = pattern(64 * 512)
        cipher = self.ok(self.d, "encrypt", "--key", "x256", "--unit", "1000", "--unit-bytes", "512", stdin=plain).out
        sector = self.ok(self.d, "decrypt", "--key", "x256", "--unit", "1040", "--unit-bytes", "512",
                         stdin=cipher[40 * 512:41 * 512])
        self.assertEqual(sector.out, plain[40 * 512:41 * 512])

    def test_one_unit_under_a_tweak(self):
        tweak = pattern(16, 5)
        for bits, key in self.keys.items():
            for size in (16, 17, 4097, 100003, 8 * MIB):
                with self.subTest(bits=bits, size=size):
                    plain = pattern(size, 2)
                    self.there_and_back(self.d, bits, plain, xts(key, tweak, plain), "--tweak", tweak.hex())
        one = (1).to_bytes(16, "little").hex()
        self.assertEqual(self.ok(self.d, "encrypt", "--key", "x128", "--tweak", one, stdin=pattern(4000)).out,
                         self.ok(self.d, "encrypt", "--key", "x128", "--unit", "1", stdin=pattern(4000)).out)

    def says(self, code, *words, says, stdin=b"x" * 64):
        result = self.refused(self.d, *words, stdin=stdin, code=code, says=says)
        self.assertEqual(result.out, b"", result)
        self.assertEqual(len(result.err.splitlines()), 1, result)

    def test_command_lines(self):
        use = ["encrypt", "--key", "x128"]
        self.says(USAGE, *use, says=["--unit n", "--tweak hex"])
        self.says(USAGE, *use, "--unit", "1", "--tweak", "00" * 16, says=["not both"])
        self.says(USAGE, *use, "--unit", "1", "--iv", "00" * 16, says=["no iv", "--tweak"])
        self.says(USAGE, *use, "--unit", "1", "--aad", "00", says=["gcm"])
        self.says(USAGE, *use, "--tweak", "00" * 16, "--unit-bytes", "512", says=["--unit-bytes goes with --unit"])
        self.says(USAGE, *use, "--unit-bytes", "512", says=["--unit-bytes goes with --unit"])
        for tweak in ("", "00" * 15, "00" * 17, "zz" * 16, "0" * 31):
            self.says(USAGE, *use, "--tweak", tweak, says=["tweak"])
        for number in ("", "-1", "x", "1.5", "0x10", str(1 << 64)):
            self.says(USAGE, *use, "--unit", number, says=["--unit is a number"])
        for size in ("0", "15", "16777217", "17MiB", "x", "-4096"):
            self.says(USAGE, *use, "--unit", "1", "--unit-bytes", size, says=["--unit-bytes is a size"])
        self.import_key(self.d, "blocks", pattern(16, 77))
        self.says(USAGE, "encrypt", "--key", "blocks", "--mode", "ctr", "--unit", "1", says=["only xts", "--unit"])
        self.says(USAGE, "encrypt", "--key", "blocks", "--mode", "cbc", "--tweak", "00" * 16,
                  says=["only xts", "--tweak"])
        self.says(REFUSED, "encrypt", "--key", "blocks", "--mode", "xts", "--unit", "1", says=["attributes"])
        self.says(REFUSED, *use, "--mode", "ctr", says=["attributes"])

    def test_lengths(self):
        """A file and a pipe: of a file the length is known before anything is written."""
        for size, words, word in ((0, ["--unit", "1"], "too short"), (15, ["--unit", "1"], "too short"),
                                  (0, ["--tweak", "00" * 16], "too short"), (15, ["--tweak", "00" * 16], "too short"),
                                  (4096 + 1, ["--unit", "1"], "another --unit-bytes"),
                                  (5120 + 15, ["--unit", "1", "--unit-bytes", "512"], "pad the input"),
                                  (8 * MIB + 1, ["--tweak", "00" * 16], "--unit-bytes in place of --tweak"),
                                  (64, ["--unit", str((1 << 64) - 1), "--unit-bytes", "32"], "2^64 - 1"),
                                  (64, ["--unit", "1", "--unit-bytes", "16MiB"], "item limit")):
            data = bytes(size)
            source = self.write("source", data)
            for direction in ("encrypt", "decrypt"):
                with self.subTest(size=size, words=words, direction=direction):
                    self.says(FAILED, direction, "--key", "x256", *words, "--in", source, says=[word], stdin=None)
                    self.says(FAILED, direction, "--key", "x256", *words, says=[word], stdin=data)
        # Even where a buffer ends just with the last number.
        first = str((1 << 64) - 4096)
        self.says_late("--unit", first, "--unit-bytes", "16", stdin=bytes(4097 * 16))
        self.assertEqual(len(self.ok(self.d, "encrypt", "--key", "x256", "--unit", first, "--unit-bytes", "16",
                                     stdin=bytes(4096 * 16)).out), 4096 * 16)

    def says_late(self, *words, stdin):
        before = sorted(os.listdir(self.folder))
        self.refused(self.d, "encrypt", "--key", "x256", *words, "--out", self.path("out"), stdin=stdin, code=FAILED,
                     says=["2^64 - 1"])
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_keys(self):
        half = pattern(32, 9)
        importing = ["key", "import", "no", "--hex", "-", "--algorithm"]
        for bits in (128, 256):
            equal = half[:bits // 8] * 2
            self.says(FAILED, *importing, f"aes-{bits}", "--modes", "xts", stdin=equal.hex().encode(),
                      says=["halves", "equal"])
            self.says(FAILED, *importing, f"aes-{bits}", "--mode", "xts", stdin=half[:bits // 8].hex().encode(),
                      says=[f"aes-{bits} in xts has {bits // 4}"])
        self.says(USAGE, *importing, "aes-192", "--modes", "xts", stdin=pattern(48).hex().encode(),
                  says=["xts is for aes-128 and aes-256"])
        self.says(USAGE, "key", "create", "no", "--algorithm", "aes-192", "--mode", "xts",
                  says=["xts is for aes-128 and aes-256"])
        for modes in ("xts,ecb", "ctr,xts", "gcm,xts"):
            for extra in ([], ["--unsafe-mixed-modes"]):
                self.says(FAILED, "key", "create", "no", "--algorithm", "aes-256", "--modes", modes, *extra,
                          says=["xts alone"])
        self.ok(self.d, "key", "create", "disk", "--algorithm", "aes-256", "--mode", "xts")
        shown = self.ok(self.d, "key", "describe", "disk", "--json").json
        self.assertEqual((shown["algorithm"], shown["key_bits"], shown["modes"]), ("aes-256", 256, ["xts"]))
        self.assertIn("xts", self.ok(self.d, "key", "describe", "disk").out.decode())
        names = {key["name"]: key["modes"] for key in self.ok(self.d, "key", "list", "--json").json}
        self.assertEqual(names, {"disk": ["xts"], "x128": ["xts"], "x256": ["xts"]})
        self.there_and_back_made("disk")

    def there_and_back_made(self, name):
        plain = pattern(5000)
        cipher = self.ok(self.d, "encrypt", "--key", name, "--unit", "4", stdin=plain).out
        self.assertEqual(len(cipher), len(plain))
        self.assertNotEqual(cipher, plain)
        self.d.stop()
        self.d.start()
        self.assertEqual(self.ok(self.d, "decrypt", "--key", name, "--unit", "4", stdin=cipher).out, plain)


if __name__ == "__main__":
    main()
