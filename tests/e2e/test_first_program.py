#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""README's first program: compiled against an installed library as its comment says, and run."""
import glob
import os
import re
import shlex
import subprocess

from harness import ROOT, SANITIZE, Case, main, run

BUILD = os.environ.get("CM_BUILD", os.path.join(ROOT, "build", "dev"))


class FirstProgram(Case):
    def test_as_the_readme_says(self):
        if SANITIZE:
            self.skipTest("a program without the sanitizer can't link a sanitized library")
        with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
            program = re.search(r"^```c\n(.*?)^```", file.read(), re.S | re.M)[1]
        self.write("first.c", program.encode())
        prefix = self.path("prefix")
        result = run(["cmake", "--install", BUILD, "--prefix", prefix])
        self.assertEqual(result.code, 0, result)
        found = glob.glob(os.path.join(prefix, "**", "ciphermill.pc"), recursive=True)
        self.assertEqual(len(found), 1)
        libraries = os.path.dirname(glob.glob(os.path.join(prefix, "**", "libciphermill.so"), recursive=True)[0])
        env = {"PKG_CONFIG_PATH": os.path.dirname(found[0])}
        line = re.match(r"/\* (cc .*?) \*/", program)[1]
        result = run(["sh", "-c", f"cd {shlex.quote(self.folder)} && {line} -Wall -Wextra -Werror -o first"], env=env)
        self.assertEqual(result.code, 0, result)

        d = self.daemon()
        env = {"CIPHERMILL_ENDPOINT": d.unix, "LD_LIBRARY_PATH": libraries}
        missing = run([self.path("first")], env=env)
        self.assertEqual(missing.code, 1, missing)
        self.assertIn(b"(final)", missing.err)
        self.ok(d, "key", "create", "orders", "--algorithm", "aes-256")
        result = run([self.path("first")], env=env)
        self.assertEqual((result.code, result.out), (0, b"ok 5\nok 5\n"), result)

    def test_installed_programs_start(self):
        prefix = self.path("prefix")
        self.assertEqual(run(["cmake", "--install", BUILD, "--prefix", prefix]).code, 0)
        for name in ("ciphermill", "ciphermilld"):
            result = subprocess.run([os.path.join(prefix, "bin", name), "--help"], capture_output=True, check=False)
            self.assertEqual(result.returncode, 0, result)
            result = subprocess.run([os.path.join(prefix, "bin", name), "--version"], capture_output=True, check=False)
            self.assertIn(b"0.1.0", result.stdout)


if __name__ == "__main__":
    main()
