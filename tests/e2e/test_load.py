#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Load of mixed modes and sizes from many connections at once, every reply verified.

CM_LOAD_SECONDS says for how long (5 unless set); tests/e2e/soak runs it for 60 under the sanitizers."""
import json
import os
import random
import subprocess

from harness import COMMAND, SLOW, Case, main

SECONDS = int(os.environ.get("CM_LOAD_SECONDS", "5"))
MODES = ("ecb", "cbc", "ctr", "gcm", "xts")
# From a byte to what is shared between workers.
SHAPES = (("1", "64"), ("16", "100"), ("100", "32"), ("1000", "16"), ("4096", "16"), ("65536", "4"), ("1048576", "2"))


class Load(Case):
    def test_mixed(self):
        d = self.daemon("--workers", "3")
        chosen = random.Random(7)
        waiting = []
        for number, mode in enumerate(MODES * 2):
            size, batch = SHAPES[number % len(SHAPES)]
            bits = chosen.choice(("128", "256") if mode == "xts" else ("128", "192", "256"))
            argv = [COMMAND, "--endpoint", (d.unix, d.tcp)[number % 2], "bench", "--json", "--mode", mode,
                    "--bits", bits, "--size", size, "--batch", batch, "--inflight", "4",
                    "--connections", "2", "--duration", str(SECONDS)]
            if number % 2 == 1:
                argv += ["--admin-endpoint", d.unix]
            waiting.append((argv, subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)))
        for argv, process in waiting:
            out, err = process.communicate(timeout=(SECONDS + 60) * SLOW)
            self.assertEqual(process.returncode, 0, f"{argv}\n{err.decode()}")
            result = json.loads(out)
            self.assertEqual((result["errors"], result["mismatches"]), (0, 0), f"{argv}\n{out.decode()}")
            self.assertGreater(result["verified"], 0, f"{argv}\n{out.decode()}")
        # Everything that the load held has been given back.
        text = d.get("/metrics")[1]
        self.assertRegex(text, r"(?m)^ciphermill_inflight_bytes 0$")


if __name__ == "__main__":
    main()
