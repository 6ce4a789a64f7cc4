#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Peers that stall half-way through a frame, never read, or die cost nobody else anything but time.

The short form: right answers for the others, and memory under the configured limit. tests/bench/stalled.py measures
throughput with 1,000 connections.
"""
import re
import socket
import threading

from harness import MIB, SANITIZE, Case, main, openssl, pattern, process_status, wait_for
from pyclient import CTR, ENCRYPT, GCM, Client

IV = bytes(16)
LIMITS = b'limits { frame = "2MiB" item = "1MiB" inflight-per-connection = "4MiB" inflight = "64MiB" }\n'


def fill(client, data):
    """Sends copies of a frame until nothing more is taken; never reads."""
    client.socket.settimeout(0.3)
    try:
        while True:
            client.socket.sendall(data)
    except (TimeoutError, ConnectionError):
        pass


class Stall(Case):
    def setUp(self):
        super().setUp()
        self.d = self.daemon("--config", self.write("c.conf", LIMITS))
        self.key = self.import_key(self.d, "k", pattern(16))

    def clients(self, count):
        made = [Client((self.d.unix, self.d.tcp)[n % 2]) for n in range(count)]
        for client in made:
            self.addCleanup(client.close)
        return made

    def work(self, client, rounds, wrong):
        handle = client.open_key("k")
        for turn in range(rounds):
            plain = pattern(1 + turn * 1531, turn)
            reply = client.batch(handle, CTR, ENCRYPT, [plain] * 3, ivs=[IV] * 3)
            if reply.outputs != [openssl("ctr", self.key, plain, IV)] * 3:
                wrong.append(turn)

    def test_the_others_go_on(self):
        base = process_status(self.d.pid, "VmRSS")
        half, deaf, good = self.clients(60), self.clients(24), self.clients(8)
        for client in half:
            _, data = client.batch_frame(client.open_key("k"), CTR, ENCRYPT, [bytes(MIB)], ivs=[IV])
            client.socket.sendall(data[:len(data) // 2])
        fillers = []
        for client in deaf:
            _, data = client.batch_frame(client.open_key("k"), CTR, ENCRYPT, [bytes(MIB)], ivs=[IV])
            fillers.append(threading.Thread(target=fill, args=(client, data)))
        for thread in fillers:
            thread.start()
        wrong = []
        workers = [threading.Thread(target=self.work, args=(client, 12, wrong)) for client in good]
        for thread in workers:
            thread.start()
        for thread in workers + fillers:
            thread.join()
        self.assertEqual(wrong, [])
        self.ok(self.d, "status")
        if not SANITIZE:
            # 64 MiB in flight, a header's arena for each connection, the heap's own slack.
            self.assertLess(self.d.peak_kib() - base, (64 + 48) * 1024, "KiB above an idle daemon's")

    def test_memory_comes_back(self):
        half = self.clients(40)
        for client in half:
            _, data = client.batch_frame(client.open_key("k"), CTR, ENCRYPT, [bytes(MIB)], ivs=[IV])
            client.socket.sendall(data[:-1])
        for client in half:
            client.close()
        wait_for(lambda: "\nciphermill_inflight_bytes 0\n" in self.d.get("/metrics")[1], "in-flight bytes to be 0")

        def connections():
            return self.ok(self.d, "status", "--json").json

        self.assertTrue(connections())

    def test_buffers_are_given_up_when_memory_is_short(self):
        """Large batches, then a small one now and then: nobody keeps what a large one took, and the limit holds."""
        held, limit = [], 64 * MIB
        for client in self.clients(100):
            held.append((client, client.open_key("k")))
            client.batch(held[-1][1], CTR, ENCRYPT, [bytes(MIB - 16)], ivs=[IV])
            for one, handle in held:
                one.batch(handle, CTR, ENCRYPT, [b"still here"], ivs=[IV])
            values = dict(line.rsplit(" ", 1) for line in self.d.get("/metrics")[1].splitlines() if line[0] != "#")
            self.assertLess(int(values["ciphermill_inflight_bytes"]), limit)

    def test_a_client_that_dies_amid_its_batches(self):
        for client in self.clients(20):
            _, data = client.batch_frame(client.open_key("k"), CTR, ENCRYPT, [bytes(MIB)], ivs=[IV])
            for _ in range(2):
                client.socket.settimeout(0.2)
                try:
                    client.socket.sendall(data)
                except TimeoutError:
                    pass
            client.close()
        wrong = []
        self.work(self.clients(1)[0], 5, wrong)
        self.assertEqual(wrong, [])


class Deadlines(Case):
    """Who owes something, a greeting, the rest of a frame, the reading of replies, has a deadline; who is idle has none."""

    def setUp(self):
        super().setUp()
        config = self.write("c.conf", b'greeting-timeout = "500ms"\nstall-timeout = "500ms"\n')
        # Slow work and two workers, so that requests wait for other workers too while their peers do not read.
        self.d = self.daemon("--config", config, "--workers", "2", env={"CIPHERMILL_CPU": "portable"})

    def metric(self, name):
        return int(re.search(rf"(?m)^ciphermill_{re.escape(name)} (\d+)$", self.d.get("/metrics")[1])[1])

    def closed(self, reason):
        return self.metric(f'connections_closed_total{{reason="{reason}"}}')

    def test_silence_before_and_after_the_greeting(self):
        idle = Client(self.d.unix)
        with socket.socket(socket.AF_UNIX) as silent:
            silent.settimeout(30)
            silent.connect(self.d.socket)
            self.assertEqual(silent.recv(1), b"")
        self.assertEqual(self.closed("greeting"), 1)
        idle.ephemeral_key(128, [CTR])
        idle.close()

    def test_half_a_frame(self):
        client = Client(self.d.unix)
        _, data = client.batch_frame(client.ephemeral_key(128, [CTR]), CTR, ENCRYPT, [bytes(1000)])
        client.socket.sendall(data[:-1])
        with self.assertRaises((EOFError, ConnectionError)):
            client.receive()
        self.assertEqual(self.closed("stalled"), 1)
        client.close()

    def test_replies_that_nobody_reads(self):
        """One after the other, so that the second worker is idle and lends a hand with requests whose peer is deaf."""
        clients, frames = [Client(self.d.unix) for _ in range(20)], b""
        for client in clients:
            handle = client.ephemeral_key(128, [GCM])
            if not frames:  # the others' handle and ids are the same
                frames = b"".join(client.batch_frame(handle, GCM, ENCRYPT, [bytes(40000)] * 8)[1] for _ in range(60))
            client.socket.settimeout(0.25)
            try:
                client.socket.sendall(frames)
            except (TimeoutError, ConnectionError):
                pass
        self.assertGreater(self.metric("jobs_shared_total"), 0)
        wait_for(lambda: self.metric("connections") == 0, "the deaf peers' connections to be closed")
        self.assertEqual(self.closed("stalled"), len(clients))
        for client in clients:
            client.close()


if __name__ == "__main__":
    main()
