#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GCM through the command: nonce, ciphertext, tag, checked with libcrypto; nothing leaves before its tag is right."""
import os

from harness import MIB, Case, gcm_open, gcm_seal, main, pattern


class Gcm(Case):
    def setUp(self):
        super().setUp()
        self.d = self.daemon()

    def test_created_key_goes_there_and_back(self):
        self.ok(self.d, "key", "create", "orders", "--algorithm", "aes-256")
        for size in (0, 1, 16, 1000, MIB):
            plain = pattern(size)
            sealed = self.ok(self.d, "encrypt", "--key", "orders", stdin=plain).out
            self.assertEqual(len(sealed), 12 + size + 16)
            self.assertEqual(self.ok(self.d, "decrypt", "--key", "orders", stdin=sealed).out, plain)
            if size >= 16:
                self.assertNotIn(plain[:16], sealed)

    def test_as_libcrypto(self):
        for endpoint in (self.d.unix, self.d.tcp):
            for bits in (128, 192, 256):
                name = f"g{bits}-{endpoint[:3]}"
                key = self.import_key(self.d, name, pattern(bits // 8, bits + len(endpoint)), "gcm", caller_iv=False)
                for size in (0, 1, 17, 5000, 2 * MIB + 1):
                    plain, aad = pattern(size), pattern(size % 37, 3)
                    words = ["--key", name, *(["--aad", aad.hex()] if aad else [])]
                    sealed = self.ok(endpoint, "encrypt", *words, stdin=plain).out
                    nonce, cipher, tag = sealed[:12], sealed[12:-16], sealed[-16:]
                    self.assertEqual((cipher, tag), gcm_seal(key, nonce, plain, aad))
                    nonce = os.urandom(12)
                    cipher, tag = gcm_seal(key, nonce, plain, aad)
                    opened = self.ok(endpoint, "decrypt", *words, stdin=nonce + cipher + tag).out
                    self.assertEqual(opened, plain)

    def test_nonces_differ(self):
        self.ok(self.d, "key", "create", "orders", "--algorithm", "aes-128")
        nonces = {self.ok(self.d, "encrypt", "--key", "orders", stdin=b"x").out[:12] for _ in range(8)}
        self.assertEqual(len(nonces), 8)

    def test_wrong_tag_data_or_aad_gives_nothing(self):
        key = self.import_key(self.d, "g", pattern(32, 5), "gcm", caller_iv=False)
        nonce = os.urandom(12)
        cipher, tag = gcm_seal(key, nonce, pattern(4096), b"aad")
        good = nonce + cipher + tag
        for place in (0, 12, 2000, len(good) - 1):
            bad = bytearray(good)
            bad[place] ^= 1
            source = self.write("bad", bytes(bad))
            result = self.refused(self.d, "decrypt", "--key", "g", "--aad", b"aad".hex(), "--in", source, "--out",
                                  self.path("out"), says=["authentic"])
            self.assertEqual(result.out, b"")
            self.assertFalse(os.path.exists(self.path("out")))
        self.refused(self.d, "decrypt", "--key", "g", "--aad", b"aaD".hex(), stdin=good)
        self.refused(self.d, "decrypt", "--key", "g", "--aad", b"aad".hex(), stdin=good[:20])
        self.assertIsNone(gcm_open(key, nonce, cipher, bytes(16), b"aad"))  # the judge can say no, too

    def test_a_caller_iv_is_refused_unless_allowed(self):
        self.import_key(self.d, "g", pattern(32, 5), "gcm", caller_iv=False)
        self.refused(self.d, "encrypt", "--key", "g", "--iv", "00" * 12, stdin=b"x", says=["iv"])
        key = self.import_key(self.d, "free", pattern(32, 6), "gcm", caller_iv=True)
        sealed = self.ok(self.d, "encrypt", "--key", "free", "--iv", "07" * 12, stdin=b"hello").out
        cipher, tag = gcm_seal(key, b"\x07" * 12, b"hello")
        self.assertTrue(sealed.endswith(cipher + tag))

    def test_over_the_item_limit_is_refused(self):
        self.ok(self.d, "key", "create", "orders", "--algorithm", "aes-256")
        source = self.write("big", bytes(9 * MIB))
        self.refused(self.d, "encrypt", "--key", "orders", "--in", source, "--out", self.path("out"))
        self.assertFalse(os.path.exists(self.path("out")))


if __name__ == "__main__":
    main()
