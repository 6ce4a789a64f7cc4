#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Older and newer: both sides pass over what they do not know, and a major mismatch says which side to upgrade."""
import os
import socket
import struct
import threading

from harness import COMMAND, ROOT, Case, main, openssl, pattern, run
from pyclient import (ANSWER, BATCH_REPLY, F_ANSWER, F_BATCH_REPLY, F_REFUSAL, F_WELCOME, REFUSAL, VERSION_MISMATCH,
                      decode, encode, frame, round_up)

FUTURE = b"\xfa\x07\x06future" + b"\xf0\x07\x2a"  # two fields of numbers that nobody uses yet


def read_exactly(connection, length):
    data = b""
    while len(data) < length:
        more = connection.recv(length - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def read_frame(connection):
    prefix = read_exactly(connection, 16)
    kind, header_length, body_length = struct.unpack_from("<4xxBxxII", prefix)
    rest = read_exactly(connection, round_up(16 + header_length, 64) - 16 + body_length)
    return kind, rest[:header_length], rest[len(rest) - body_length:] if body_length else b""


class Between:
    """Stands between client and daemon, and adds a field of the future to every header that passes."""

    def __init__(self, path, behind, to_daemon, to_client):
        self.path, self.behind, self.extra = path, behind, {True: to_daemon, False: to_client}
        self.passed = 0
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(path)
        self.server.listen(8)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near, _ = self.server.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(self.behind)
            for source, target, inward in ((near, far, True), (far, near, False)):
                threading.Thread(target=self._pump, args=(source, target, inward), daemon=True).start()

    def _pump(self, source, target, inward):
        try:
            while True:
                kind, header, body = read_frame(source)
                target.sendall(frame(kind, header + self.extra[inward], body))
                self.passed += 1
        except (EOFError, OSError):
            pass
        finally:
            try:
                target.shutdown(socket.SHUT_WR)
            except OSError:
                pass


class Compat(Case):
    def through(self, to_daemon, to_client):
        d = self.daemon()
        between = Between(self.path("between"), d.socket, to_daemon, to_client)
        self.addCleanup(between.server.close)
        uri = f"unix:{between.path}"
        key = self.import_key(uri, "k", pattern(32))
        plain, iv = pattern(300001), pattern(16, 3)
        out = self.ok(uri, "encrypt", "--key", "k", "--mode", "cbc", "--iv", iv.hex(), stdin=plain).out
        self.assertEqual(out, openssl("cbc", key, plain, iv))
        for words in (["status"], ["implementations"], ["key", "list"], ["key", "describe", "k"],
                      ["key", "destroy", "k", "--yes"]):
            self.ok(uri, *words)
        self.assertGreater(between.passed, 20)

    def test_a_newer_client(self):
        self.through(FUTURE, b"")

    def test_a_newer_daemon(self):
        self.through(b"", FUTURE)

    def test_golden_frames_of_this_version(self):
        """What clients of this version send, byte for byte; each is answered, in order."""
        folder = os.path.join(ROOT, "tests", "golden")

        def golden(name):
            with open(os.path.join(folder, f"{name}.frame"), "rb") as file:
                return file.read()

        names = sorted(name[:-6] for name in os.listdir(folder)
                       if name.startswith(("call_", "batch_")) and not name.startswith("batch_reply")
                       and name.endswith(".frame"))
        self.assertGreater(len(names), 10)
        for name in names:
            # One of its own for each: the frames share an operation id, which a store takes for a repeat.
            d = self.daemon(name=name)
            with self.subTest(name=name), socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(20)
                connection.connect(d.socket)
                connection.sendall(golden("hello"))
                self.assertEqual(read_frame(connection)[0], F_WELCOME)
                connection.sendall(golden(name))
                kind, header, _ = read_frame(connection)
                self.assertEqual(kind, F_BATCH_REPLY if name.startswith("batch") else F_ANSWER)
                reply = decode(BATCH_REPLY if kind == F_BATCH_REPLY else ANSWER, header)
                self.assertGreater(reply["request_id"], 0)
                self.assertNotEqual(reply["status"], 1, "bad_request: the daemon does not understand it")

    def fake(self, answer):
        server = socket.socket(socket.AF_UNIX)
        server.bind(self.path("fake"))
        server.listen(4)
        self.addCleanup(server.close)

        def serve():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                try:
                    read_frame(connection)
                    connection.sendall(answer)
                except (EOFError, OSError):
                    pass
                connection.close()

        threading.Thread(target=serve, daemon=True).start()
        return run([COMMAND, "--endpoint", f"unix:{self.path('fake')}", "status"])

    def test_a_daemon_of_another_major_version(self):
        for name, versions, word in (("older", (0, 0), "daemon"), ("newer", (2, 3), "client")):
            with self.subTest(daemon=name):
                if os.path.exists(self.path("fake")):
                    os.unlink(self.path("fake"))
                refusal = {"status": VERSION_MISMATCH, "text": "", "version_min": versions[0],
                           "version_max": versions[1]}
                result = self.fake(frame(F_REFUSAL, encode(REFUSAL, refusal)))
                self.assertGreater(result.code, 0)
                text = result.err.decode().lower()
                self.assertIn("upgrade", text)
                self.assertIn(word, text)

    def test_a_daemon_that_answers_nonsense(self):
        for answer in (b"\0" * 64, frame(99, b""), frame(F_WELCOME, b"\xff" * 20), frame(F_WELCOME, b"")[:30]):
            with self.subTest(answer=answer[:8]):
                if os.path.exists(self.path("fake")):
                    os.unlink(self.path("fake"))
                result = self.fake(answer)
                self.assertGreater(result.code, 0, result)
                self.assertLess(result.code, 100, result)


if __name__ == "__main__":
    main()
