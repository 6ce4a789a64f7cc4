#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`ciphermill` itself: exit codes, errors of one line, files that appear complete, and the bench's own judgement."""
import json
import os
import pty
import re
import signal
import subprocess

from harness import COMMAND, MIB, SLOW, Case, main, openssl, pattern, wait_for

OK, FAILED, USAGE, UNREACHABLE, REFUSED, REPEAT, UNKNOWN = range(7)
IV = bytes(range(16))


class Command(Case):
    def setUp(self):
        super().setUp()
        self.d = self.daemon()
        self.key = self.import_key(self.d, "k", pattern(32))

    def says(self, code, *words, endpoint=None, **options):
        result = self.refused(endpoint or self.d, *words, code=code, **options)
        lines = result.err.decode().splitlines()
        self.assertEqual(len(lines), 1, result)
        self.assertTrue(lines[0].startswith("ciphermill: "), result)
        return lines[0]

    def test_exit_codes_and_one_line(self):
        self.says(USAGE, "encrypt", "--key")
        self.says(USAGE, "key", "import")
        self.assertIn("--mode", self.says(USAGE, "encrypt", "--key", "k", "--mod", "cbc"))
        self.assertIn("status", self.says(USAGE, "statu"))
        self.says(USAGE, "encrypt", "--key", "k", stdin=b"")  # three modes to choose from
        self.says(UNREACHABLE, "status", endpoint=f"unix:{self.path('absent')}")
        self.says(REFUSED, "key", "list", endpoint=self.d.tcp)
        self.says(REFUSED, "encrypt", "--key", "k", "--mode", "gcm", stdin=b"x")
        self.assertIn("retry: final", self.says(FAILED, "key", "describe", "absent"))
        self.says(FAILED, "encrypt", "--key", "k", "--mode", "ctr", "--key-version", "7", stdin=b"x")
        self.says(FAILED, "decrypt", "--key", "k", "--mode", "ctr", "--key-version", "7", stdin=bytes(32))
        self.says(FAILED, "decrypt", "--key", "k", "--mode", "ctr", stdin=bytes(15))

    def test_a_daemon_that_hangs(self):
        self.d.suspend()
        try:
            self.says(UNREACHABLE, "--timeout", "0.3", "status")
        finally:
            self.d.resume()

    def test_standard_output_that_is_full(self):
        with open("/dev/full", "wb") as full:
            for words in (["key", "list"], ["encrypt", "--key", "k", "--mode", "ctr", "--in", self.write("p", b"x")]):
                process = subprocess.run([COMMAND, "--endpoint", self.d.unix, *words], stdout=full,
                                         stderr=subprocess.PIPE, check=False)
                self.assertEqual(process.returncode, FAILED, process.stderr)
                self.assertIn(b"No space left", process.stderr)

    def test_a_file_in_place(self):
        plain = pattern(3 * MIB + 7)
        path = self.write("file", plain)
        words = ["--key", "k", "--mode", "cbc", "--iv", IV.hex(), "--in", path, "--out", path]
        self.ok(self.d, "encrypt", *words)
        self.assertEqual(self.read("file"), openssl("cbc", self.key, plain, IV))
        self.ok(self.d, "decrypt", *words)
        self.assertEqual(self.read("file"), plain)

    def test_a_signal_leaves_nothing(self):
        before = sorted(os.listdir(self.folder))
        with subprocess.Popen([COMMAND, "--endpoint", self.d.unix, "encrypt", "--key", "k", "--mode", "ctr", "--out",
                               self.path("out")], stdin=subprocess.PIPE) as process:
            process.stdin.write(bytes(2 * MIB))
            process.stdin.flush()
            wait_for(lambda: len(os.listdir(self.folder)) > len(before), "the unfinished file")
            process.terminate()
            self.assertEqual(process.wait(20 * SLOW), -signal.SIGTERM)
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_progress_only_on_a_terminal(self):
        plain = self.write("plain", b"")
        os.truncate(plain, 128 * MIB)
        words = [COMMAND, "--endpoint", self.d.unix, "encrypt", "--key", "k", "--mode", "cbc", "--in", plain, "--out",
                 self.path("out")]
        self.assertEqual(self.slowly(words, subprocess.PIPE), b"")
        for extra, expected in (([], b"100 %"), (["--quiet"], b"")):
            ours, theirs = pty.openpty()
            self.slowly(words + extra, theirs)
            os.write(theirs, b"END")
            shown = b""
            while not shown.endswith(b"END"):
                shown += os.read(ours, 4096)
            os.close(ours)
            os.close(theirs)
            self.assertEqual(b"100 %" in shown, expected != b"", shown)

    def slowly(self, words, errors):
        """Runs it, with a daemon that stands still in the middle for so long that a bar is due."""
        files = len(os.listdir(self.folder))
        with subprocess.Popen(words, stderr=errors) as process:
            wait_for(lambda: len(os.listdir(self.folder)) > files, "the unfinished file")
            self.d.suspend()
            try:
                process.wait(0.5)
            except subprocess.TimeoutExpired:
                pass
            self.d.resume()
            _, err = process.communicate(timeout=60 * SLOW)
        os.remove(self.path("out"))
        self.assertEqual(process.returncode, OK, err)
        return err


class Bench(Case):
    def setUp(self):
        super().setUp()
        self.d = self.daemon()

    def bench(self, endpoint, *words, duration="0.5"):
        return self.ok(endpoint, "bench", "--duration", duration, "--warmup", "0.1", "--json", *words).json

    def test_everything_mixed_and_verified(self):
        result = self.bench(self.d, "--mode", "mixed", "--direction", "mixed", "--size", "0-3000", "--verify", "all",
                            "--connections", "3", "--threads", "2", "--bits", "192")
        self.assertEqual((result["errors"], result["mismatches"]), (0, 0), result)
        self.assertGreaterEqual(result["verified_batches"], result["batches"])
        self.assertEqual(len(result["implementations"]), 8)

    def test_a_wrong_key_is_noticed(self):
        self.import_key(self.d, "k", pattern(16, 1))
        wrong = self.write("wrong", pattern(16, 2).hex().encode())
        right = self.write("right", pattern(16, 1).hex().encode())
        words = ["bench", "--duration", "0.3", "--json", "--key", "k", "--key-hex"]
        for mode in ("ecb", "cbc", "ctr"):
            self.ok(self.d.tcp, *words, right, "--mode", mode)
            result = self.refused(self.d.tcp, *words, wrong, "--mode", mode, code=FAILED, says=["differ"])
            self.assertEqual(result.json["mismatches"], result.json["verified"])

    def test_tcp_needs_a_key_and_leaves_none(self):
        self.refused(self.d.tcp, "bench", "--duration", "0.3", code=USAGE, says=["--admin-endpoint", "--key-hex"])
        result = self.bench(self.d.tcp, "--admin-endpoint", self.d.unix, "--mode", "mixed")
        self.assertEqual((result["errors"], result["mismatches"]), (0, 0), result)
        self.assertEqual(self.ok(self.d, "key", "list", "--json").json, [])

    def start(self, *words):
        """A bench that runs; returns when the daemon has answered some of its batches."""
        def answered():
            found = re.search(r'items_total\{mode="ctr",direction="encrypt",status="ok"\} (\d+)', self.d.get("/metrics")[1])
            return found and int(found[1]) > 20
        process = subprocess.Popen([COMMAND, "--endpoint", self.d.unix, "bench", "--warmup", "0.1", "--json", "--size",
                                    "64", "--batch", "1", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        wait_for(answered, "load")
        return process

    def test_open_loop_sees_a_stall(self):
        """The daemon stands still for 0.5 s of 2: a closed loop would have four slow batches, this one a hundred."""
        process = self.start("--rate", "200", "--duration", "2")
        self.d.suspend()
        try:
            process.wait(0.5)
        except subprocess.TimeoutExpired:
            pass
        self.d.resume()
        out = process.communicate(timeout=60 * SLOW)[0]
        self.assertEqual(process.returncode, OK)
        result = json.loads(out)
        self.assertEqual(result["errors"], 0)
        self.assertGreater(result["latency_us"]["p90"], 100000)

    def test_a_killed_daemon_is_an_error(self):
        process = self.start("--duration", "30")
        self.d.kill()
        out, err = process.communicate(timeout=20 * SLOW)
        self.assertIn(process.returncode, (UNREACHABLE, UNKNOWN), err)
        self.assertGreater(json.loads(out)["errors"], 0)

    def test_a_stopped_daemon_leaves_the_outcome_unknown(self):
        process = self.start("--duration", "30", "--timeout", str(SLOW))
        self.d.suspend()
        try:
            out, err = process.communicate(timeout=20 * SLOW)
        finally:
            self.d.resume()
        self.assertEqual(process.returncode, UNKNOWN, err)
        self.assertEqual(json.loads(out)["errors_by_status"], {"timeout": 4})

    def test_an_interrupt_ends_it_with_a_result(self):
        process = self.start("--duration", "30")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20 * SLOW)
        self.assertEqual(process.returncode, OK, err)
        result = json.loads(out)
        self.assertLess(result["duration_s"], 25)
        self.assertEqual((result["errors"], result["mismatches"]), (0, 0))


if __name__ == "__main__":
    main()
