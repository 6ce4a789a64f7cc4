#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The independent client: right bytes in every mode, alone from PROTOCOL.md; hostile headers cost the daemon nothing."""
import os
import socket
import sys
import threading

from harness import MIB, SANITIZE, Case, gcm_seal, main, openssl, pattern, process_status, run, xts
from pyclient import (BAD_ATTRIBUTES, BAD_IV, BAD_LENGTH, BAD_REQUEST, CBC, CTR, DECRYPT, ECB, ENCRYPT, FIRST, GCM,
                      LAST, MIDDLE, OK, UNSUPPORTED, VERSION_MISMATCH, XTS, Client, Refused, encode, HELLO, F_HELLO,
                      frame, decode, REFUSAL, tweak)

WORDS = {ECB: "ecb", CBC: "cbc", CTR: "ctr"}
MESSAGES = [pattern(size, size + 1) for size in (0, 1, 5, 15, 16, 17, 64, 1000, 4096, 100001)]


class PythonClient(Case):
    def setUp(self):
        super().setUp()
        self.d = self.daemon()
        self.key = self.import_key(self.d, "k", pattern(24))
        self.clients = []

    def tearDown(self):
        for client in self.clients:
            client.close()
        super().tearDown()

    def client(self, endpoint=None, **options):
        self.clients.append(Client(endpoint or self.d.unix, **options))
        return self.clients[-1]

    def test_batches_as_openssl(self):
        for endpoint in (self.d.unix, self.d.tcp):
            client = self.client(endpoint)
            handle = client.open_key("k")
            for mode, word in WORDS.items():
                ivs = None if mode == ECB else [pattern(16, n + 99) for n in range(len(MESSAGES))]
                padding = mode != CTR
                wanted = [openssl(word, self.key, plain, ivs[n] if ivs else None) for n, plain in enumerate(MESSAGES)]
                reply = client.batch(handle, mode, ENCRYPT, MESSAGES, padding=padding, ivs=ivs)
                self.assertEqual(reply.outputs, wanted)
                self.assertEqual(set(reply.statuses), {0})
                back = client.batch(handle, mode, DECRYPT, wanted, padding=padding, ivs=ivs)
                self.assertEqual(back.outputs, MESSAGES)

    def test_gcm_as_libcrypto(self):
        key = self.import_key(self.d, "g", pattern(32, 3), "gcm", caller_iv=False)
        client = self.client()
        handle = client.open_key("g")
        aads = [pattern(n * 7, n + 5) for n in range(len(MESSAGES))]
        reply = client.batch(handle, GCM, ENCRYPT, MESSAGES, aads=aads)
        for n, plain in enumerate(MESSAGES):
            self.assertEqual((reply.outputs[n], reply.tags[n]), gcm_seal(key, reply.ivs[n], plain, aads[n]))
        self.assertEqual(len(set(reply.ivs)), len(MESSAGES))
        tags = list(reply.tags)
        tags[3] = bytes(16)
        back = client.batch(handle, GCM, DECRYPT, reply.outputs, ivs=reply.ivs, aads=aads, tags=tags)
        self.assertEqual(back.statuses, [5 if n == 3 else 0 for n in range(len(MESSAGES))])
        self.assertEqual([out for n, out in enumerate(back.outputs) if n != 3],
                         [plain for n, plain in enumerate(MESSAGES) if n != 3])

    def test_xts_as_libcrypto(self):
        units = [pattern(size, size) for size in (16, 17, 31, 32, 33, 512, 4096, 4099, 100001)]
        numbers = [0, 1, 255, 256, 1 << 32, (1 << 64) - 1, 1 << 64, (1 << 128) - 1, 7]
        for endpoint in (self.d.unix, self.d.tcp):
            for bits in (128, 256):
                key = pattern(bits // 4, bits + len(endpoint))
                self.client().create_key(f"x{bits}-{endpoint[:3]}", bits, [XTS], key)
                client = self.client(endpoint)
                handle = client.open_key(f"x{bits}-{endpoint[:3]}")
                tweaks = [tweak(number) for number in numbers]
                wanted = [xts(key, *pair) for pair in zip(tweaks, units)]
                reply = client.batch(handle, XTS, ENCRYPT, units, ivs=tweaks)
                self.assertEqual((reply.outputs, set(reply.statuses), reply.ivs[0]), (wanted, {OK}, b""))
                self.assertEqual(client.batch(handle, XTS, DECRYPT, wanted, ivs=tweaks).outputs, units)

    def test_xts_fails_item_by_item(self):
        key = pattern(32, 40)
        client = self.client()
        handle = client.ephemeral_key(128, [XTS], key)
        good = pattern(40)
        for direction in (ENCRYPT, DECRYPT):
            reply = client.batch(handle, XTS, direction, [good, good[:15], b"", good, good],
                                 ivs=[tweak(1), tweak(2), tweak(3), bytes(15), tweak(5)])
            self.assertEqual(reply.statuses, [OK, BAD_LENGTH, BAD_LENGTH, BAD_IV, OK])
            self.assertEqual(reply.outputs, [xts(key, tweak(1), good, direction == DECRYPT), b"", b"", b"",
                                             xts(key, tweak(5), good, direction == DECRYPT)])
            self.assertEqual(client.batch(handle, XTS, direction, [good]).statuses, [BAD_IV])
            reply = client.batch(handle, XTS, direction, [good[:32]], ivs=[tweak(1)], parts=[FIRST], operations=[1])
            self.assertEqual(reply.statuses, [UNSUPPORTED])
            with self.assertRaises(Refused) as caught:
                client.batch(handle, XTS, direction, [good[:32]], ivs=[tweak(1)], padding=True)
            self.assertEqual(caught.exception.status, BAD_REQUEST)

    def test_xts_at_its_longest_data_unit(self):
        limits = b'limits { frame = "40MiB" item = "17MiB" inflight-per-connection = "64MiB" }\n'
        config = self.write("wide.conf", limits)
        d = self.daemon("--config", config, name="wide")
        key = pattern(64, 41)
        client = self.client(d.unix)
        handle = client.ephemeral_key(256, [XTS], key)
        most = pattern(16 * MIB, 42)
        reply = client.batch(handle, XTS, ENCRYPT, [most, most + b"x"], ivs=[tweak(1), tweak(2)])
        self.assertEqual(reply.statuses, [OK, BAD_LENGTH])
        self.assertEqual(reply.outputs, [xts(key, tweak(1), most), b""])

    def test_xts_keys(self):
        client = self.client()
        half = pattern(32, 43)
        for bits, modes, raw, status in ((128, [XTS], half[:16] * 2, BAD_REQUEST),
                                         (256, [XTS], half * 2, BAD_REQUEST),
                                         (128, [XTS], half[:16], BAD_REQUEST), (192, [XTS], b"", BAD_ATTRIBUTES),
                                         (192, [XTS], pattern(48), BAD_ATTRIBUTES),
                                         (128, [XTS, CTR], b"", BAD_ATTRIBUTES),
                                         (128, [XTS, GCM], b"", BAD_ATTRIBUTES)):
            for make, first in ((client.ephemeral_key, []), (client.create_key, ["no"])):
                with self.assertRaises(Refused) as caught:
                    make(*first, bits, modes, raw)
                self.assertEqual(caught.exception.status, status, (bits, modes))
        made = client.create_key("disk", 256, [XTS])
        self.assertEqual((made["key_bits"], made["attributes"]["modes"]), (256, 1 << XTS))

    def test_slots_of_other_alignment_and_gap(self):
        client = self.client()
        handle = client.open_key("k")
        ivs = [pattern(16, n) for n in range(len(MESSAGES))]
        for align, gap in ((16, 0), (64, 0), (4096, 0), (0, 192), (64, 65536)):
            reply = client.batch(handle, CTR, ENCRYPT, MESSAGES, ivs=ivs, slot_align=align, slot_gap=gap)
            self.assertEqual(reply.outputs, [openssl("ctr", self.key, m, iv) for m, iv in zip(MESSAGES, ivs)])

    def test_parts_of_several_operations(self):
        client = self.client()
        handle = client.open_key("k")
        plains = [pattern(3 * 4096 + 5, 11), pattern(3 * 4096 + 16, 12)]
        for mode, padding in ((CBC, True), (CTR, False), (ECB, True)):
            outputs, first_ivs = [b"", b""], None
            for step, part in enumerate((FIRST, MIDDLE, MIDDLE, LAST)):
                pieces = [plain[step * 4096:(step + 1) * 4096 if part != LAST else None] for plain in plains]
                reply = client.batch(handle, mode, ENCRYPT, pieces, padding=padding, parts=[part] * 2,
                                     operations=[5, 9])
                first_ivs = first_ivs or reply.ivs
                outputs = [out + more for out, more in zip(outputs, reply.outputs)]
            for n, plain in enumerate(plains):
                iv = None if mode == ECB else first_ivs[n]
                self.assertEqual(outputs[n], openssl(WORDS[mode], self.key, plain, iv))

    def test_pipelined_replies_come_in_order(self):
        client = self.client()
        handle = client.open_key("k")
        # A long one first: the short ones behind it must not overtake it.
        plains = [pattern(size, 3) for size in (2000000, 1, 16, 300000, 5)]
        frames = [client.batch_frame(handle, CTR, ENCRYPT, [plain], ivs=[bytes(16)]) for plain in plains]
        sent = [request_id for request_id, _ in frames]
        # A client has to read while it sends.
        sender = threading.Thread(target=lambda: client.socket.sendall(b"".join(data for _, data in frames)))
        sender.start()
        replies = [client.receive_reply() for _ in sent]
        sender.join()
        self.assertEqual([reply.request_id for reply in replies], sent)
        for reply, plain in zip(replies, plains):
            self.assertEqual(reply.outputs, [openssl("ctr", self.key, plain, bytes(16))])

    def test_sessions(self):
        first = self.client()
        raw = pattern(16, 21)
        handle = first.ephemeral_key(128, [CTR], raw, caller_iv=True)
        second = self.client(token=first.welcome["session_token"])
        first.close()
        reply = second.batch(handle, CTR, ENCRYPT, [b"shared"], ivs=[bytes(16)])
        self.assertEqual(reply.outputs, [openssl("ctr", raw, b"shared", bytes(16))])
        for endpoint, token in ((self.d.unix, os.urandom(16)), (self.d.tcp, second.welcome["session_token"])):
            with self.assertRaises(Refused) as caught:
                Client(endpoint, token=token)
            self.assertEqual(caught.exception.status, 20)

    def test_repeated_change_is_done_once(self):
        client = self.client()
        operation = os.urandom(16)
        fields = {"name": "once", "key_bits": 256, "attributes": {"modes": 1 << GCM}}
        first = client.call("create_key", fields, operation_id=operation)
        again = self.client().call("create_key", fields, operation_id=operation)
        self.assertEqual(first["key"]["id"], again["key"]["id"])
        with self.assertRaises(Refused):
            client.call("create_key", fields, operation_id=os.urandom(16))

    def test_versions(self):
        """A client of the future, or of the past, is told which side to upgrade."""
        for versions, word in (((2, 3), "daemon"), ((0, 0), "client")):
            with self.assertRaises(Refused) as caught:
                Client(self.d.unix, hello={"version_min": versions[0], "version_max": versions[1]})
            self.assertEqual(caught.exception.status, VERSION_MISMATCH)
            self.assertIn(f"upgrade the {word}", caught.exception.text)
        Client(self.d.unix, hello={"version_min": 1, "version_max": 7}).close()
        with socket.socket(socket.AF_UNIX) as raw:
            raw.connect(self.d.socket)
            raw.sendall(frame(F_HELLO, encode(HELLO, {"version_min": 2, "version_max": 2}), version=2))
            data = raw.recv(4096)
        self.assertEqual(data[5], 8)
        header = data[16:16 + int.from_bytes(data[8:12], "little")]
        self.assertEqual(decode(REFUSAL, header)["status"], VERSION_MISMATCH)

    def test_fields_of_a_newer_client_are_passed_over(self):
        client = self.client()
        handle = client.open_key("k")
        future = b"\xfa\x07\x05hello" + b"\xf0\x07\x2a"  # fields 127 and 126
        client.send_batch(handle, CTR, ENCRYPT, [b"hello"], ivs=[bytes(16)], extra=future)
        reply = client.receive_reply()
        self.assertEqual((reply.status, reply.outputs), (0, [openssl("ctr", self.key, b"hello", bytes(16))]))

    def test_hostile_headers_cost_no_memory(self):
        """64 KiB of unknown fields: small ones end in a status, a large one is passed over; memory stays."""
        small = b"\xf0\x07\x01" * 21800                                # more fields than a header may have
        large = b"\xfa\x07" + b"\xe0\xfd\x03" + b"x" * 65248             # one field
        repeated = b"\x48\x01" * 32000                                  # `lengths`, one element a field
        clients = [self.client() for _ in range(8)]
        handles = [client.open_key("k") for client in clients]

        def attack(client, handle):
            for extra, wanted in ((small, BAD_REQUEST), (large, 0), (repeated, BAD_REQUEST)):
                client.send_batch(handle, CTR, ENCRYPT, [b"hello"], ivs=[bytes(16)], extra=extra)
                reply = client.receive_reply()
                self.assertEqual(reply.status, wanted)

        for client, handle in zip(clients, handles):  # once, so that what is allocated once is there
            attack(client, handle)
        before = process_status(self.d.pid, "VmRSS")
        for _ in range(30):
            for client, handle in zip(clients, handles):
                attack(client, handle)
        after = process_status(self.d.pid, "VmRSS")
        if not SANITIZE:
            self.assertLess(after - before, 1024, "KiB more than before: an arena's worth")

    def test_as_a_command(self):
        key = self.import_key(self.d, "g", pattern(16, 8), "gcm", caller_iv=False)
        here = os.path.dirname(os.path.abspath(__file__))
        result = run([sys.executable, os.path.join(here, "pyclient.py"), self.d.unix, "g", "hello", ""])
        self.assertEqual(result.code, 0, result)
        for line, plain in zip(result.out.decode().split(), (b"hello", b"")):
            data = bytes.fromhex(line)
            self.assertEqual((data[12:-16], data[-16:]), gcm_seal(key, data[:12], plain))


if __name__ == "__main__":
    main()
