#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every limit at its edge: at it, one below and one above; what is over it ends in a status that says so."""
import threading

from harness import Case, main, openssl, pattern, wait_for
from pyclient import (BAD_REQUEST, CTR, ENCRYPT, F_BATCH, FIRST, OVERLOADED, SESSION_FULL, TOO_LARGE, BATCH, Client,
                      Refused, encode, frame)

LIMITS = b"""
limits {
    frame = "1MiB"
    item = 65536
    batch-items = 8
    operations = 3
    session-keys = 4
}
"""
INFLIGHT = b'limits { frame = "1MiB" item = "512KiB" inflight-per-connection = "1MiB" inflight = "4MiB" }\n'
CONNECTIONS = b"limits { connections = 4 connections-per-peer = 2 }\n"
IV = bytes(16)


class Limits(Case):
    def setUp(self):
        super().setUp()
        self.d = self.daemon("--config", self.write("c.conf", LIMITS))
        self.key = self.import_key(self.d, "k", pattern(16))
        self.client = Client(self.d.unix)
        self.addCleanup(self.client.close)
        self.handle = self.client.open_key("k")

    def test_announced(self):
        limits = self.client.limits
        self.assertEqual((limits["frame_bytes"], limits["item_bytes"], limits["batch_items"], limits["operations"],
                          limits["session_keys"], limits["header_bytes"]), (1 << 20, 65536, 8, 3, 4, 65536))

    def status(self, items, **options):
        """Of a batch of CTR: its own status, or its items'."""
        self.client.send_batch(self.handle, CTR, ENCRYPT, items, ivs=[IV] * len(items), **options)
        reply = self.client.receive_reply()
        return reply.status or max(reply.statuses, default=0)

    def test_item(self):
        for length, wanted in ((65535, 0), (65536, 0), (65537, TOO_LARGE)):
            self.assertEqual(self.status([pattern(length)]), wanted, length)
        self.assertEqual(self.status([b"still well"]), 0)

    def test_items_of_a_batch(self):
        for count, wanted in ((7, 0), (8, 0), (9, TOO_LARGE)):
            self.assertEqual(self.status([b"x"] * count), wanted, count)

    def test_operations(self):
        client = self.client
        for number in (1, 2, 3):
            reply = client.batch(self.handle, CTR, ENCRYPT, [bytes(16)], parts=[FIRST], operations=[number], ivs=[IV])
            self.assertEqual(reply.statuses, [0])
        reply = client.batch(self.handle, CTR, ENCRYPT, [bytes(16)], parts=[FIRST], operations=[4], ivs=[IV])
        self.assertEqual(reply.statuses, [OVERLOADED])
        client.call("cancel_operation", {"operation": 2})
        reply = client.batch(self.handle, CTR, ENCRYPT, [bytes(16)], parts=[FIRST], operations=[4], ivs=[IV])
        self.assertEqual(reply.statuses, [0])

    def test_keys_of_a_session(self):
        client = self.client  # holds one handle already
        handles = [client.open_key("k"), client.ephemeral_key(128, [CTR]), client.ephemeral_key(128, [CTR])]
        with self.assertRaises(Refused) as caught:
            client.open_key("k")
        self.assertEqual(caught.exception.status, SESSION_FULL)
        client.call("close_key", {"handle": handles[0]})
        client.open_key("k")

    def send_raw(self, data):
        """What the daemon says to a frame in a connection of its own: a status, or that of its refusal."""
        client = Client(self.d.unix)
        try:
            client.socket.sendall(data)
            client.receive_answer()
            return 0
        except Refused as refused:
            return refused.status
        finally:
            client.close()

    def test_frame(self):
        header = encode(BATCH, {"request_id": 1, "key_handle": 1, "mode": CTR, "direction": 1, "lengths": [1],
                                "iv_lengths": [16], "ivs": IV})
        start = len(frame(F_BATCH, header))
        for total, wanted in (((1 << 20) - 1, 0), (1 << 20, 0), ((1 << 20) + 1, TOO_LARGE)):
            data = frame(F_BATCH, header, bytes(total - start))
            self.assertEqual(len(data), total)
            self.assertEqual(self.send_raw(data), wanted, total)

    def test_header(self):
        base = {"request_id": 1, "key_handle": 1, "mode": CTR, "direction": 1}
        for length, wanted in ((65535, 0), (65536, 0), (65537, TOO_LARGE)):
            header = encode(BATCH, base)
            rest = length - len(header) - 5
            header += b"\xfa\x07" + bytes((rest & 0x7f | 0x80, rest >> 7 & 0x7f | 0x80, rest >> 14)) + bytes(rest)
            self.assertEqual(len(header), length)
            self.assertEqual(self.send_raw(frame(F_BATCH, header)), wanted)

    def test_a_batch_of_none_and_a_body_too_short(self):
        self.assertEqual(self.status([]), 0)
        header = encode(BATCH, {"request_id": self.client.take_id(), "key_handle": self.handle, "mode": CTR,
                                "direction": 1, "lengths": [100], "iv_lengths": [16], "ivs": IV})
        self.client.waiting[self.client.next_id - 1] = []
        self.client.socket.sendall(frame(F_BATCH, header, bytes(96)))
        self.assertEqual(self.client.receive_reply().status, BAD_REQUEST)

    def test_inflight_only_waits(self):
        """More in flight than the limit: the daemon stops reading, answers, goes on; nothing fails."""
        d = self.daemon("--config", self.write("i.conf", INFLIGHT), name="i")
        self.import_key(d, "k", pattern(16))
        client = Client(d.unix)
        handle = client.open_key("k")
        plain = pattern(500000)
        frames = [client.batch_frame(handle, CTR, ENCRYPT, [plain], ivs=[IV])[1] for _ in range(40)]
        sender = threading.Thread(target=lambda: client.socket.sendall(b"".join(frames)))
        sender.start()
        wanted = [openssl("ctr", self.key, plain, IV)]
        for _ in frames:
            reply = client.receive_reply()
            self.assertEqual((reply.status, reply.outputs), (0, wanted))
        sender.join()
        client.close()

    def test_connections(self):
        d = self.daemon("--config", self.write("n.conf", CONNECTIONS), name="n")

        def refusal(uri):
            with self.assertRaises(Refused) as caught:
                Client(uri)
            self.assertEqual(caught.exception.status, OVERLOADED)
            return caught.exception.text

        clients = [Client(uri) for uri in (d.unix, d.unix, d.tcp)]
        self.assertIn("connections-per-peer }", refusal(d.unix))
        clients.append(Client(d.tcp))
        for uri in (d.unix, d.tcp):
            self.assertIn("{ connections }", refusal(uri))
        clients.pop(0).close()

        def again():
            try:
                return Client(d.unix)
            except Refused:
                return None

        clients.append(wait_for(again, "room for a connection"))
        for client in clients:
            client.ephemeral_key(128, [CTR])
            client.close()


if __name__ == "__main__":
    main()
