#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The whole daemon with CIPHERMILL_CPU set to one implementation: each mode in both directions, judged by OpenSSL.

CM_LEVEL names the implementation (ctest has a test for each); without it all of them take their turn. What the
processor lacks is skipped, with the daemon's reason."""
import os
import random

from harness import MIB, Case, gcm_seal, libcrypto, main, openssl, pattern, xts, xts_units
from pyclient import CBC, CTR, DECRYPT, ECB, ENCRYPT, FIRST, GCM, LAST, MIDDLE, XTS, Client, tweak

LEVELS = ("portable", "aesni", "vaes256", "vaes512")
WORDS = {ECB: "ecb", CBC: "cbc", CTR: "ctr"}
# A lone short message, two, and batches in which lanes are shared, run out at different times and have ragged ends.
BATCHES = ([16], [64, 31], [0, 1, 15, 16, 17, 255, 256, 257], [1000] * 33, [4096] * 16, [16384, 3, 70001],
           [random.Random(5).randrange(0, 700) for _ in range(150)])


def messages(lengths, seed):
    """Messages that differ, out of one pattern."""
    data, at, cut = pattern(sum(lengths), seed), 0, []
    for length in lengths:
        cut.append(data[at:at + length])
        at += length
    return cut


class Level:
    """The tests of one implementation; made a Case below, one for each."""
    level = None

    def setUp(self):
        super().setUp()
        self.d = self.daemon("--workers", "2", env={"CIPHERMILL_CPU": self.level})
        self.rows = self.ok(self.d, "implementations", "--json").json
        own = [row for row in self.rows if row["implementation"] == self.level]
        self.assertTrue(own, "the daemon does not know it")
        if not any(row["available"] for row in own):
            reason = own[0]["reason"]
            self.assertTrue("lacks" in reason or "not part of this build" in reason, reason)
            self.skipTest(f"{self.level}: {reason}")
        self.client = Client(self.d.unix)
        self.addCleanup(self.client.close)

    def same(self, got, wanted):
        """Of lists of long messages, which a test's usual report of every difference would take for ever to show."""
        self.assertEqual(len(got), len(wanted))
        wrong = [n for n, pair in enumerate(zip(got, wanted)) if pair[0] != pair[1]]
        self.assertEqual(wrong, [], "these items differ")

    def test_the_limit_holds(self):
        """Nothing wider serves, something serves at the level itself, and the reason names the limit."""
        wider = LEVELS[LEVELS.index(self.level) + 1:]
        for row in self.rows:
            if row["implementation"] in wider:
                self.assertFalse(row["available"] or row["used"], row)
                self.assertTrue(row["reason"], row)
        self.assertTrue(any(row["used"] and row["implementation"] == self.level for row in self.rows))
        metrics = self.d.get("/metrics")[1]
        self.assertIn(f'name="{self.level}"}} 1', metrics)
        for name in wider:
            self.assertNotIn(f'name="{name}"', metrics)

    def test_batches_in_ecb_cbc_and_ctr(self):
        for bits in (128, 192, 256):
            key = pattern(bits // 8, bits)
            handle = self.client.ephemeral_key(bits, [ECB, CBC, CTR], key, caller_iv=True)
            for mode, word in WORDS.items():
                for lengths in BATCHES:
                    plains = messages(lengths, bits)
                    # Counters that carry into every byte, among them.
                    ivs = None if mode == ECB else [b"\xff" * 15 + bytes([0xfe - n % 3]) for n in range(len(plains))]
                    padding = mode != CTR
                    with self.subTest(mode=word, bits=bits, lengths=lengths[:8]):
                        wanted = [libcrypto(word, bits, key, plain, ivs[n] if ivs else None)
                                  for n, plain in enumerate(plains)]
                        reply = self.client.batch(handle, mode, ENCRYPT, plains, padding=padding, ivs=ivs)
                        self.same(reply.outputs, wanted)
                        reply = self.client.batch(handle, mode, DECRYPT, wanted, padding=padding, ivs=ivs)
                        self.same(reply.outputs, plains)

    def test_batches_in_gcm(self):
        for bits in (128, 192, 256):
            key = pattern(bits // 8, bits)
            handle = self.client.ephemeral_key(bits, [GCM], key, caller_iv=True)
            for lengths in BATCHES:
                plains = messages(lengths, bits)
                aads = messages([n * 7 % 90 for n in range(len(plains))], 1)
                ivs = messages([(12, 12, 1, 60)[n % 4] for n in range(len(plains))], 2)
                with self.subTest(bits=bits, lengths=lengths[:8]):
                    wanted = [gcm_seal(key, *triple) for triple in zip(ivs, plains, aads)]
                    reply = self.client.batch(handle, GCM, ENCRYPT, plains, ivs=ivs, aads=aads)
                    self.same(list(zip(reply.outputs, reply.tags)), wanted)
                    tags = [bytes(16)] + reply.tags[1:]
                    back = self.client.batch(handle, GCM, DECRYPT, reply.outputs, ivs=ivs, aads=aads, tags=tags)
                    self.assertEqual(back.statuses, [5] + [0] * (len(plains) - 1))
                    self.same(back.outputs[1:], plains[1:])

    def test_batches_in_xts(self):
        for bits in (128, 256):
            key = pattern(bits // 4, bits)
            handle = self.client.ephemeral_key(bits, [XTS], key)
            for lengths in BATCHES:
                plains = messages([16 + length for length in lengths], bits)
                tweaks = [tweak(n) if n % 2 else other for n, other in enumerate(messages([16] * len(plains), 3))]
                with self.subTest(bits=bits, lengths=lengths[:8]):
                    wanted = [xts(key, *pair) for pair in zip(tweaks, plains)]
                    self.same(self.client.batch(handle, XTS, ENCRYPT, plains, ivs=tweaks).outputs, wanted)
                    self.same(self.client.batch(handle, XTS, DECRYPT, wanted, ivs=tweaks).outputs, plains)

    def test_parts(self):
        key, plain = pattern(32, 3), pattern(3 * 70000 // 48 * 48 + 5, 4)
        handle = self.client.ephemeral_key(256, [ECB, CBC, CTR], key, caller_iv=True)
        step = len(plain) // 48 * 16
        for mode, word in WORDS.items():
            for direction in (ENCRYPT, DECRYPT):
                iv = None if mode == ECB else pattern(16, 8)
                source, wanted = plain, openssl(word, key, plain, iv)
                if direction == DECRYPT:
                    source, wanted = wanted, source
                out = b""
                for n, part in enumerate((FIRST, MIDDLE, LAST)):
                    piece = source[n * step:(n + 1) * step if part != LAST else None]
                    out += self.client.batch(handle, mode, direction, [piece], padding=mode != CTR, parts=[part],
                                             ivs=[iv] if iv and part == FIRST else None, operations=[1]).outputs[0]
                self.assertTrue(out == wanted, (word, direction))

    def test_files(self):
        """Long ones, which workers share: through the command, both ways."""
        plain = pattern(3 * MIB + 16 + 5)
        source = self.write("plain", plain)
        blocks = self.import_key(self.d, "blocks", pattern(32, 1))
        disk = self.import_key(self.d, "disk", pattern(64, 2), "xts")
        sealed = self.import_key(self.d, "sealed", pattern(32, 9), "gcm")
        iv = pattern(16, 7)
        cases = [("blocks", ["--mode", "ecb"], openssl("ecb", blocks, plain)),
                 ("blocks", ["--mode", "cbc", "--iv", iv.hex()], openssl("cbc", blocks, plain, iv)),
                 ("blocks", ["--mode", "ctr", "--iv", iv.hex()], openssl("ctr", blocks, plain, iv)),
                 ("sealed", ["--iv", iv[:12].hex()], b"".join(gcm_seal(sealed, iv[:12], plain))),
                 ("disk", ["--unit", "77"], xts_units(disk, plain, 77, 4096)),
                 ("disk", ["--tweak", iv.hex()], xts(disk, iv, plain))]
        for key, words, wanted in cases:
            with self.subTest(words=words):
                self.ok(self.d, "encrypt", "--key", key, *words, "--in", source, "--out", self.path("cipher"))
                self.assertTrue(self.read("cipher") == wanted, "the ciphertext differs")
                self.ok(self.d, "decrypt", "--key", key, *words, "--in", self.path("cipher"),
                        "--out", self.path("back"))
                self.assertTrue(self.read("back") == plain, "what came back differs")


CHOSEN = os.environ.get("CM_LEVEL")
for LEVEL in [CHOSEN] if CHOSEN else LEVELS:
    globals()[f"Level_{LEVEL}"] = type(f"Level_{LEVEL}", (Level, Case), {"level": LEVEL})

if __name__ == "__main__":
    main()
