#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SIGTERM under load: everything up to the goodbye is answered rightly, everything after it was not processed."""
import signal
import threading
import time

from harness import SANITIZE, Case, main, openssl, pattern
from pyclient import CTR, ENCRYPT, GOING_AWAY, Client

IV = bytes(range(16))
DEPTH = 6


class Conversation(threading.Thread):
    """One connection with DEPTH batches on their way. `stubborn` ones go on sending after the goodbye."""

    def __init__(self, endpoint, plains, expected, stubborn):
        super().__init__()
        self.client = Client(endpoint)
        self.plains, self.expected, self.stubborn = plains, expected, stubborn
        self.sent, self.answered, self.refused, self.wrong = {}, set(), set(), []
        self.started = threading.Event()

    def send(self):
        choice = len(self.sent) % len(self.plains)
        request_id, data = self.client.batch_frame(self.handle, CTR, ENCRYPT, [self.plains[choice]], ivs=[IV])
        self.sent[request_id] = choice
        self.client.socket.sendall(data)

    def run(self):
        self.handle = self.client.open_key("k")
        try:
            for _ in range(DEPTH):
                self.send()
            while True:
                reply = self.client.receive_reply()
                if reply.status == 0:
                    self.answered.add(reply.request_id)
                    if reply.outputs != [self.expected[self.sent[reply.request_id]]]:
                        self.wrong.append(reply.request_id)
                elif reply.status == GOING_AWAY:
                    self.refused.add(reply.request_id)
                else:
                    self.wrong.append((reply.request_id, reply.status))
                if len(self.answered) > 20:
                    self.started.set()
                if self.client.goodbye is None or self.stubborn:
                    self.send()
        except (EOFError, ConnectionError):
            pass  # the daemon has closed it
        finally:
            self.started.set()
            self.client.close()


class Drain(Case):
    def drained_soon(self, name="d"):
        """A daemon that ends stubborn peers' connections sooner than by default."""
        path = self.write(f"{name}.conf", b'drain-timeout = "10s"\n' if SANITIZE else b'drain-timeout = "3s"\n')
        return self.daemon("--config", path, name=name)

    def test_sigterm_under_load(self):
        for turn, endpoint in enumerate(("unix", "tcp")):
            with self.subTest(endpoint=endpoint):
                d = self.drained_soon(f"d{turn}")
                key = self.import_key(d, "k", pattern(32))
                plains = [pattern(size, size) for size in (16, 1000, 65536, 262144)]
                expected = [openssl("ctr", key, plain, IV) for plain in plains]
                uri = d.unix if endpoint == "unix" else d.tcp
                talks = [Conversation(uri, plains, expected, stubborn=n % 2 == 1) for n in range(8)]
                for talk in talks:
                    talk.start()
                for talk in talks:
                    self.assertTrue(talk.started.wait(60))
                d.process.send_signal(signal.SIGTERM)
                self.assertEqual(d.wait(60), 0, d.log())
                for talk in talks:
                    talk.join(60)
                    self.assertFalse(talk.is_alive())
                    self.check(talk)
                d.process = None

    def check(self, talk):
        self.assertEqual(talk.wrong, [])
        last = talk.client.goodbye
        self.assertIsNotNone(last, "no goodbye")
        # Every one up to it was answered, and rightly; calls had the ids before the first batch.
        promised = {request for request in talk.sent if request <= last}
        self.assertEqual(promised - talk.answered, set())
        # None after it was carried out.
        self.assertEqual({request for request in talk.answered if request > last}, set())
        self.assertEqual({request for request in talk.refused if request <= last}, set())

    def test_idle_connections_get_a_goodbye(self):
        d = self.daemon()
        client = Client(d.unix)
        d.process.send_signal(signal.SIGTERM)
        kind, _, _ = client.receive()
        self.assertEqual(kind, 7)
        with self.assertRaises((EOFError, ConnectionError)):
            client.receive()
        client.close()
        self.assertEqual(d.wait(), 0, d.log())

    def test_sigterm_while_it_starts(self):
        for turn in range(15):
            d = self.make_daemon(name=f"s{turn}").start(ready=False)
            time.sleep(turn * 0.006)  # where this lands in the start does not matter, only that it varies
            d.process.send_signal(signal.SIGTERM)
            status = d.wait()
            d.process = None
            # Before the handler is there the signal does what it always does.
            self.assertIn(status, (0, -signal.SIGTERM), d.log())
            self.assertNotIn("Sanitizer", d.log())

    def test_a_stalled_peer_does_not_hold_the_end(self):
        d = self.drained_soon()
        self.import_key(d, "k", pattern(32))
        half, deaf = Client(d.unix), Client(d.unix)
        _, data = half.batch_frame(half.open_key("k"), CTR, ENCRYPT, [bytes(100000)], ivs=[IV])
        half.socket.sendall(data[:50000])
        _, data = deaf.batch_frame(deaf.open_key("k"), CTR, ENCRYPT, [bytes(1000000)], ivs=[IV])
        deaf.socket.settimeout(0.5)
        try:
            while True:  # never reads; ids repeat, which it never gets to see
                _, data = deaf.batch_frame(1, CTR, ENCRYPT, [bytes(1000000)], ivs=[IV])
                deaf.socket.sendall(data)
        except TimeoutError:
            pass
        d.process.send_signal(signal.SIGTERM)
        self.assertEqual(d.wait(45), 0, d.log())
        half.close()
        deaf.close()


if __name__ == "__main__":
    main()
