#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`ciphermill bench`, `status` and `implementations`: the forms that scripts rely on."""
import csv
import os

from harness import Case, main


class Bench(Case):
    def setUp(self):
        super().setUp()
        self.d = self.daemon()

    def bench(self, *words):
        return self.ok(self.d, "bench", "--duration", "1", "--json", *words).json

    def test_the_contract(self):
        result = self.bench("--mode", "ctr", "--bits", "128", "--size", "4096", "--batch", "16", "--inflight", "4",
                            "--connections", "2")
        for field, value in {"mode": "ctr", "key_bits": 128, "size": 4096, "batch": 16, "inflight": 4,
                             "connections": 2, "errors": 0, "mismatches": 0}.items():
            self.assertEqual(result[field], value, field)
        for field in ("batches_per_s", "items_per_s", "bytes_per_s", "verified"):
            self.assertGreater(result[field], 0, field)
        latency = [result["latency_us"][name] for name in ("p50", "p90", "p99", "p999", "max")]
        self.assertEqual(latency, sorted(latency))
        self.assertGreater(latency[0], 0)
        self.assertAlmostEqual(result["items_per_s"], 16 * result["batches_per_s"], delta=result["items_per_s"] / 50)

    def test_csv(self):
        out = self.ok(self.d, "bench", "--duration", "0.5", "--mode", "gcm", "--size", "1000", "--csv").out.decode()
        names, values = csv.reader(out.splitlines())
        self.assertEqual(len(names), len(values))
        row = dict(zip(names, values))
        for field, value in {"mode": "gcm", "key_bits": "128", "size": "1000", "batch": "16", "errors": "0",
                             "mismatches": "0"}.items():
            self.assertEqual(row[field], value, field)
        for field in ("batches_per_s", "items_per_s", "bytes_per_s", "verified", "p50_us", "p999_us", "max_us"):
            self.assertGreater(float(row[field]), 0, field)
        self.refused(self.d, "bench", "--csv", "--json", says=["not both"], code=2)

    def test_every_mode_is_verified(self):
        for mode in ("ecb", "cbc", "ctr", "gcm", "xts"):
            for bits in ("128", "192", "256") if mode != "xts" else ("128", "256"):
                result = self.bench("--mode", mode, "--bits", bits, "--size", "100", "--batch", "8")
                self.assertEqual((result["errors"], result["mismatches"]), (0, 0), result)
                self.assertGreater(result["verified"], 0, result)

    def test_xts(self):
        result = self.bench("--mode", "xts", "--bits", "256", "--size", "16-5000", "--direction", "mixed",
                            "--verify", "all")
        self.assertEqual((result["mode"], result["key_bits"], result["errors"], result["mismatches"]),
                         ("xts", 256, 0, 0))
        self.assertGreater(result["verified"], 0)
        key = self.import_key(self.d, "disk", os.urandom(32), "xts", caller_iv=False)
        named = self.write("key", key.hex().encode())
        words = ["bench", "--duration", "0.3", "--json", "--mode"]
        result = self.ok(self.d.tcp, *words, "xts", "--key", "disk", "--key-hex", named).json
        self.assertEqual((result["errors"], result["mismatches"]), (0, 0), result)
        self.assertGreater(result["verified"], 0)
        wrong = self.write("wrong", os.urandom(32).hex().encode())
        result = self.refused(self.d.tcp, *words, "xts", "--key", "disk", "--key-hex", wrong, code=1, says=["differ"])
        self.assertEqual(result.json["mismatches"], result.json["verified"])
        self.refused(self.d.tcp, *words, "ctr,xts", "--key", "disk", "--key-hex", named, code=2, says=["xts alone"])
        result = self.ok(self.d.tcp, *words, "xts", "--admin-endpoint", self.d.unix).json
        self.assertEqual((result["errors"], result["mismatches"]), (0, 0), result)
        self.assertEqual([one["name"] for one in self.ok(self.d, "key", "list", "--json").json], ["disk"])
        for words, says in ((["--bits", "192"], "AES-128 and AES-256"), (["--size", "15"], "16 bytes"),
                            (["--size", "17MiB"], "16 bytes")):
            self.refused(self.d, "bench", "--mode", "xts", *words, code=2, says=[says])

    def test_it_says_which_implementation_served(self):
        rows = self.ok(self.d, "implementations", "--json").json
        names = {(row["mode"], size): row["implementation"] for row in rows if row["direction"] == "encrypt"
                 for size in row["used_for"]}
        for mode in ("ctr", "gcm", "xts"):
            short, small, long = (names[mode, size] for size in ("short", "small", "long"))
            for words, wanted in ((["--size", "64", "--batch", "2"], {short}), (["--size", "128", "--batch", "1"], {short}),
                                  (["--size", "16", "--batch", "3"], {small}), (["--size", "129", "--batch", "1"], {small}),
                                  (["--size", "224", "--batch", "4"], {small}), (["--size", "225", "--batch", "4"], {long}),
                                  (["--size", "16-4096", "--batch", "1"], {short, small, long})):
                result = self.ok(self.d, "bench", "--duration", "0.05", "--warmup", "0", "--json", "--mode", mode,
                                 *words).json
                self.assertEqual(set(result["implementation"].split("+")), wanted, (mode, words))

    def test_open_loop(self):
        result = self.bench("--mode", "ctr", "--size", "256", "--batch", "4", "--rate", "200")
        self.assertEqual((result["errors"], result["mismatches"]), (0, 0), result)
        self.assertLess(result["batches_per_s"], 260)

    def test_status_and_implementations(self):
        self.assertIn("server", self.ok(self.d, "status", "--json").out.decode())
        self.assertIn("uid:", self.ok(self.d, "status").out.decode())
        self.assertIn("tcp:anonymous", self.ok(self.d.tcp, "status").out.decode())
        rows = self.ok(self.d, "implementations", "--json").json
        self.assertTrue(rows)
        for row in rows:
            for field in ("mode", "direction", "implementation", "available"):
                self.assertIn(field, row)
        self.assertTrue(any(row["implementation"] == "portable" and row["available"] for row in rows))
        # Each mode and direction has one that serves short batches, and one for long ones.
        for mode in ("ecb", "cbc", "ctr", "gcm", "xts"):
            for direction in ("encrypt", "decrypt"):
                for size in ("short", "small", "long"):
                    serving = [row["implementation"] for row in rows if row["mode"] == mode
                               and row["direction"] == direction and size in row["used_for"]]
                    self.assertEqual(len(serving), 1, (mode, direction, size))
        self.assertTrue(all(row["used"] == bool(row["used_for"]) for row in rows))
        table = self.ok(self.d, "implementations").out.decode().splitlines()
        self.assertEqual(len(table), len(rows) + 1)
        self.assertIn("USED FOR", table[0])
        self.assertTrue(any(line.startswith("xts ") and "portable" in line for line in table))

    def test_help_everywhere(self):
        for words in ([], ["encrypt"], ["decrypt"], ["key"], ["key", "create"], ["key", "import"], ["key", "list"],
                      ["key", "describe"], ["key", "destroy"], ["status"], ["implementations"], ["bench"],
                      ["version"], ["help"]):
            result = self.ok(self.d, *words, "--help")
            self.assertIn("ciphermill", result.out.decode())
        self.refused(self.d, "nonsense", says=["nonsense"])
        self.refused(self.d, "encrypt", "--nonsense", says=["nonsense"])


if __name__ == "__main__":
    main()
