#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`ciphermill key`: create, import, list, describe, destroy; what is refused; what survives a restart."""
import os

from harness import Case, main, openssl, pattern

IV = bytes(16)


class Keys(Case):
    def setUp(self):
        super().setUp()
        self.d = self.daemon()

    def names(self):
        listing = self.ok(self.d, "key", "list", "--json").json
        return [key["name"] for key in (listing["keys"] if isinstance(listing, dict) else listing)]

    def test_create_list_describe_destroy(self):
        self.assertEqual(self.names(), [])
        for name in ("b", "a", "C.d_e-f"):
            self.ok(self.d, "key", "create", name, "--algorithm", "aes-256")
        self.assertEqual(self.names(), sorted(["b", "a", "C.d_e-f"]))
        text = self.ok(self.d, "key", "describe", "a").out.decode()
        self.assertIn("a", text)
        self.assertIn("gcm", text.lower())
        described = self.ok(self.d, "key", "describe", "a", "--json").json
        self.assertEqual(described["name"], "a")
        self.ok(self.d, "key", "destroy", "a", "--yes")
        self.assertNotIn("a", self.names())
        self.refused(self.d, "encrypt", "--key", "a", stdin=b"x", says=["a"])
        self.refused(self.d, "key", "describe", "a")

    def test_keys_survive_a_restart(self):
        key = self.import_key(self.d, "k", pattern(32))
        self.ok(self.d, "key", "create", "g", "--algorithm", "aes-192")
        sealed = self.ok(self.d, "encrypt", "--key", "g", stdin=b"message").out
        self.d.stop()
        self.d.start()
        self.assertEqual(self.names(), ["g", "k"])
        self.assertEqual(self.ok(self.d, "decrypt", "--key", "g", stdin=sealed).out, b"message")
        out = self.ok(self.d, "encrypt", "--key", "k", "--mode", "cbc", "--iv", IV.hex(), stdin=b"message").out
        self.assertEqual(out, openssl("cbc", key, b"message", IV))

    def test_keys_survive_a_kill(self):
        """Acknowledged is durable: what was created before SIGKILL is there afterwards."""
        for turn in range(3):
            key = self.import_key(self.d, f"k{turn}", pattern(32, turn))
            self.d.kill()
            self.d.start()
            out = self.ok(self.d, "encrypt", "--key", f"k{turn}", "--mode", "ctr", "--iv", IV.hex(), stdin=b"x").out
            self.assertEqual(out, openssl("ctr", key, b"x", IV))
        self.assertEqual(self.names(), ["k0", "k1", "k2"])

    def test_names_and_bytes_are_taken_once(self):
        self.import_key(self.d, "k", pattern(16))
        self.refused(self.d, "key", "create", "k", "--algorithm", "aes-256", says=["exists"])
        self.refused(self.d, "key", "import", "other", "--algorithm", "aes-128", "--modes", "gcm", "--hex", "-",
                     stdin=pattern(16).hex().encode(), says=["exists"])
        self.assertEqual(self.names(), ["k"])

    def test_bad_names(self):
        for name in (".hidden", "a b", "a/b", "ä", "x" * 129, ""):
            with self.subTest(name=name):
                self.refused(self.d, "key", "create", name, "--algorithm", "aes-256")
        self.ok(self.d, "key", "create", "x" * 128, "--algorithm", "aes-256")
        self.assertEqual(self.names(), ["x" * 128])

    def test_one_family_for_life(self):
        self.refused(self.d, "key", "create", "k", "--algorithm", "aes-256", "--modes", "gcm,ctr")
        self.refused(self.d, "key", "create", "k", "--algorithm", "aes-256", "--modes", "nonsense")
        self.refused(self.d, "key", "create", "k", "--algorithm", "des")
        self.assertEqual(self.names(), [])
        self.import_key(self.d, "k", pattern(16), "cbc")
        self.refused(self.d, "encrypt", "--key", "k", "--mode", "ctr", stdin=b"x", says=["attributes"])

    def test_caller_iv_only_where_allowed(self):
        self.import_key(self.d, "k", pattern(16), caller_iv=False)
        self.refused(self.d, "encrypt", "--key", "k", "--mode", "cbc", "--iv", IV.hex(), stdin=b"x", says=["iv"])
        self.ok(self.d, "encrypt", "--key", "k", "--mode", "cbc", stdin=b"x")

    def test_bad_hex(self):
        for text in (b"", b"00", b"zz" * 16, b"00" * 15, b"00" * 17):
            with self.subTest(text=text):
                self.refused(self.d, "key", "import", "k", "--algorithm", "aes-128", "--modes", "cbc", "--hex", "-",
                             stdin=text)
        self.assertEqual(self.names(), [])

    def test_plain_tcp_uses_but_never_administers(self):
        key = self.import_key(self.d, "k", pattern(16))
        out = self.ok(self.d.tcp, "encrypt", "--key", "k", "--mode", "ctr", "--iv", IV.hex(), stdin=b"hello").out
        self.assertEqual(out, openssl("ctr", key, b"hello", IV))
        self.refused(self.d.tcp, "key", "create", "t", "--algorithm", "aes-256")
        self.refused(self.d.tcp, "key", "import", "t", "--algorithm", "aes-256", "--modes", "gcm", "--hex", "-",
                     stdin=pattern(32, 9).hex().encode())
        self.refused(self.d.tcp, "key", "destroy", "k", "--yes")
        self.assertEqual(self.names(), ["k"])

    def test_key_bytes_stay_out_of_log_and_store(self):
        key = self.import_key(self.d, "k", pattern(32, 77))
        self.d.stop()
        found = []
        for folder, _, names in os.walk(self.folder):
            for name in names:
                with open(os.path.join(folder, name), "rb") as file:
                    data = file.read()
                if key in data or key.hex().encode() in data.lower():
                    found.append(name)
        self.assertEqual(found, [])


if __name__ == "__main__":
    main()
