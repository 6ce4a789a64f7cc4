#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows that the lints can fail: each is given a small tree with one fault, and one with no file at all."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import boundaries  # noqa: E402
import symbols  # noqa: E402

CLEAN = {
    "crypto/cm_aes.h": "#include <stddef.h>\n",
    "crypto/dispatch.c": '#include "cm_aes.h"\n#include "x86/aesni.h"\n',
    "crypto/x86/aesni.h": "#include <stdint.h>\n",
    "proto/codec.h": '#include "message.h"\n',
    "proto/message.h": "#include <stdint.h>\n",
    "proto/codec.c": '#include "codec.h"\n#include "ciphermill.pb-c.h"\n',
    "daemon/CMakeLists.txt": "add_library(cm_daemon_service STATIC service.c keys.c)\n",
    "daemon/service.c": '#include "service.h"\n#include "cm_aes.h"\n/* portable is a word here */\n',
    "daemon/service.h": '#include "codec.h"\n',
    "daemon/keys.c": '#include "service.h"\n',
    "daemon/worker.c": "#include <uv.h>\n",
    "client/include/ciphermill/ciphermill.h": "#include <stdint.h>\n",
    "client/client.c": '#include <ciphermill/ciphermill.h>\n#include "codec.h"\n',
}
FAULTS = [
    ("service_without_loop_or_wire", {"daemon/keys.c": "#include <uv.h>\n"}),
    ("service_without_loop_or_wire", {"daemon/service.h": "#include <protobuf-c/protobuf-c.h>\n"}),
    ("service_without_loop_or_wire", {"daemon/keys.c": "#include <sys/socket.h>\n"}),
    ("kernels_named_in_crypto_only", {"daemon/worker.c": "int cm_aesni_open(void);\n"}),
    ("kernels_named_in_crypto_only", {"client/client.c": 'static const char *n = "vaes512";\n'}),
    ("daemon_without_client", {"daemon/worker.c": "#include <ciphermill/ciphermill.h>\n"}),
    ("daemon_without_client", {"daemon/CMakeLists.txt":
                               "add_library(cm_daemon_service service.c)\n"
                               "target_link_libraries(cm_daemon libciphermill)\n"}),
    ("client_without_daemon_and_crypto", {"client/client.c": '#include "cm_aes.h"\n'}),
    ("client_without_daemon_and_crypto", {"client/client.c": '#include "service.h"\n'}),
    ("protobuf_in_the_codec_only", {"proto/message.h": "#include <protobuf-c/protobuf-c.h>\n"}),
    ("protobuf_in_the_codec_only", {"client/client.c": '#include "ciphermill.pb-c.h"\n'}),
    ("crypto_with_libc_only", {"crypto/cm_aes.h": "#include <openssl/evp.h>\n"}),
    ("crypto_with_libc_only", {"crypto/cm_aes.h": "#include <pthread.h>\n"}),
    ("crypto_with_libc_only", {"crypto/dispatch.c": '#include "message.h"\n'}),
    ("proto_without_loop_and_crypto", {"proto/codec.c": '#include "cm_aes.h"\n'}),
    ("kernels_included_by_dispatch_only", {"daemon/worker.c": '#include "x86/aesni.h"\n'}),
    ("kernels_included_by_dispatch_only", {"crypto/cm_aes.h": '#include "x86/aesni.h"\n'}),
]


def tree(files):
    root = tempfile.mkdtemp(prefix="cm-lint-")
    for path, text in files.items():
        os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
        with open(os.path.join(root, path), "w", encoding="utf-8") as file:
            file.write(text)
    return root


def verdicts(files):
    """{rule name: failed?} of a tree made of `files`."""
    root, lines = tree(files), []
    try:
        boundaries.check(root, lines.append)
    finally:
        shutil.rmtree(root)
    return {line.split(": ")[1].split(" (")[0].replace(" ", "_"): line.startswith("FAILED")
            for line in lines if not line.startswith(" ")}


class Lints(unittest.TestCase):
    def test_clean_tree_passes(self):
        self.assertEqual([r for r, failed in verdicts(CLEAN).items() if failed], [])

    def test_every_fault_is_found_by_its_rule(self):
        for rule, change in FAULTS:
            with self.subTest(rule=rule, change=change):
                self.assertTrue(verdicts({**CLEAN, **change})[rule])
        self.assertEqual({rule for rule, _ in FAULTS}, {rule.__name__ for rule in boundaries.RULES})

    def test_rules_that_looked_at_nothing_fail(self):
        result = verdicts({"README/x.c": ""})
        self.assertEqual(len(result), len(boundaries.RULES))
        self.assertTrue(all(result.values()))

    def run_format(self, files):
        if not shutil.which("clang-format"):
            print("skipped: format gate's own test: clang-format is not installed")
            self.skipTest("clang-format is not installed")
        root = tree({**files, "x/y": ""})
        try:
            shutil.copy(os.path.join(HERE, "..", "..", ".clang-format"), root)
            return subprocess.run([os.path.join(HERE, "format"), root], capture_output=True, text=True, check=False)
        finally:
            shutil.rmtree(root)

    def symbols_of(self, text):
        root = tree({"a/a.c": text})
        try:
            subprocess.run("cc -O2 -c a/a.c -o a.o && ar rc a.a a.o", shell=True, cwd=root, check=True)
            return symbols.wrong(os.path.join(root, "a.a"))
        finally:
            shutil.rmtree(root)

    def test_symbols(self):
        self.assertEqual(self.symbols_of("#include <string.h>\nint f(void *p, int n) { return memcmp(p, p + n, n); }"), [])
        self.assertEqual(self.symbols_of("#include <stdlib.h>\nvoid *f(int n) { return malloc(n); }"), ["malloc"])
        self.assertEqual(self.symbols_of("#include <stdio.h>\nvoid f(void) { puts(\"\"); }"), ["puts"])
        self.assertIsNone(self.symbols_of("typedef int nothing;"))

    def test_format_gate(self):
        licence, sentence = "/* SPDX-License-Identifier: Apache-2.0 */\n", "/* Nothing. */\n"
        self.assertEqual(self.run_format({"a/a.c": licence + sentence + "int x;\n"}).returncode, 0)
        self.assertNotEqual(self.run_format({"a/a.c": licence + sentence + "int  x ;\n"}).returncode, 0)
        for text in (licence + "int x;\n", sentence + "int x;\n", licence + "\n" + sentence + "int x;\n", ""):
            headless = self.run_format({"a/a.c": text})
            self.assertNotEqual(headless.returncode, 0, text)
            self.assertIn("a/a.c", headless.stderr)
        empty = self.run_format({})
        self.assertNotEqual(empty.returncode, 0)
        self.assertIn("no file was checked", empty.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=1)
