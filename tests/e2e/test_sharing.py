#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Large jobs are cut and shared between workers: the bytes stay right, at every place where they are cut."""
import re

from harness import MIB, Case, gcm_seal, main, openssl, pattern, xts
from pyclient import CBC, CTR, DECRYPT, ECB, ENCRYPT, GCM, XTS, Client, tweak

WORDS = {ECB: "ecb", CBC: "cbc", CTR: "ctr"}
# Close to where a counter carries into its upper half, so that a slice has to carry on its own.
IVS = [b"\xff" * 15 + b"\xf0", b"\0" * 8 + b"\xff" * 8, pattern(16, 5)]


class Sharing(Case):
    def setUp(self):
        super().setUp()
        # The portable implementation makes jobs dear, so that sharing pays on any machine.
        self.d = self.daemon("--workers", "3", env={"CIPHERMILL_CPU": "portable"})
        self.client = Client(self.d.unix, timeout=120)
        self.addCleanup(self.client.close)

    def shared(self):
        return int(re.search(r"(?m)^ciphermill_jobs_shared_total (\d+)$", self.d.get("/metrics")[1])[1])

    def test_blocks_of_one_item(self):
        key = self.import_key(self.d, "k", pattern(32))
        handle = self.client.open_key("k")
        for mode in (ECB, CBC, CTR):
            before = self.shared()
            for size, iv in zip((4 * MIB, MIB + 16, 2 * MIB - 32), IVS):
                plain = pattern(size if mode != CTR else size - 5, 3)
                ivs = None if mode == ECB else [iv]
                wanted = openssl(WORDS[mode], key, plain, iv if ivs else None, padding=False)
                if mode != CBC:  # a chain of encryption can't be cut
                    out = self.client.batch(handle, mode, ENCRYPT, [plain], ivs=ivs).outputs[0]
                    self.assertTrue(out == wanted, f"mode {mode}, {size} bytes, encrypting")
                out = self.client.batch(handle, mode, DECRYPT, [wanted], ivs=ivs or None).outputs[0]
                self.assertTrue(out == plain, f"mode {mode}, {size} bytes, decrypting")
            self.assertGreater(self.shared(), before, "no job was shared")

    def test_items_of_one_batch(self):
        key = self.import_key(self.d, "g", pattern(16, 2), "gcm", caller_iv=False)
        cbc = self.import_key(self.d, "k", pattern(24, 2))
        handle, before = self.client.open_key("g"), self.shared()
        plains = [pattern(150000 + 7 * n, n + 1) for n in range(12)]
        reply = self.client.batch(handle, GCM, ENCRYPT, plains)
        for plain, iv, out, tag in zip(plains, reply.ivs, reply.outputs, reply.tags):
            self.assertEqual((out, tag), gcm_seal(key, iv, plain))
        ivs = [pattern(16, n) for n in range(len(plains))]
        reply = self.client.batch(self.client.open_key("k"), CBC, ENCRYPT, plains, ivs=ivs, padding=True)
        for plain, iv, out in zip(plains, ivs, reply.outputs):
            self.assertTrue(out == openssl("cbc", cbc, plain, iv))
        self.assertGreater(self.shared(), before, "no job was shared")

    def test_data_units(self):
        """Shared one by one, and never cut: neither long ones nor many short ones."""
        key = self.import_key(self.d, "x", pattern(64, 4), "xts", caller_iv=False)
        handle = self.client.open_key("x")
        for units in ([pattern(MIB + n, n + 1) for n in range(6)], [pattern(4096 - n % 3, n) for n in range(512)]):
            before = self.shared()
            tweaks = [tweak(n) for n in range(len(units))]
            wanted = [xts(key, *pair) for pair in zip(tweaks, units)]
            self.assertTrue(self.client.batch(handle, XTS, ENCRYPT, units, ivs=tweaks).outputs == wanted)
            self.assertTrue(self.client.batch(handle, XTS, DECRYPT, wanted, ivs=tweaks).outputs == units)
            self.assertGreater(self.shared(), before, "no job was shared")


if __name__ == "__main__":
    main()
