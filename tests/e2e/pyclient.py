#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A client of ciphermilld in one file of Python's standard library, written from proto/PROTOCOL.md.

usage: pyclient.py ENDPOINT KEY MESSAGE...   (encrypts the messages as one GCM batch and prints hex)

It shares no code with libciphermill, which is its point: two independent readings of the protocol have to agree.
    client = Client("unix:/path")
    key = client.open_key("orders")
    reply = client.batch(key, GCM, ENCRYPT, [b"hello", b"world"])
    reply.outputs, reply.ivs, reply.tags, reply.statuses
"""
import os
import socket
import struct
import sys

# --- Protobuf, as much of it as the headers need ---

U, S, B = "uint", "string", "bytes"  # varint; length-delimited text; length-delimited bytes


def _varint(value):
    out = bytearray()
    while value > 0x7f:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def encode(schema, fields):
    """A message from {name: value}; absent names stay absent."""
    out = bytearray()
    for number, (name, kind) in schema.items():
        value = fields.get(name)
        if value is None or (value == 0 and kind is U) or value == b"" or value == "" or value == []:
            continue
        if isinstance(kind, list) and kind[0] is U:
            value, kind = b"".join(map(_varint, value)), B  # packed
        if kind is U:
            out += _varint(number << 3) + _varint(int(value))
            continue
        for one in value if isinstance(kind, list) else [value]:
            inner = kind[0] if isinstance(kind, list) else kind
            data = encode(inner, one) if isinstance(inner, dict) else one.encode() if isinstance(one, str) else one
            out += _varint(number << 3 | 2) + _varint(len(data)) + data
    return bytes(out)


def decode(schema, data):
    """{name: value} of a message, with every field of the schema; unknown fields are passed over."""
    fields = {name: [] if isinstance(kind, list) else None if isinstance(kind, dict) else
              0 if kind is U else "" if kind is S else b"" for name, kind in schema.values()}
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        wire = tag & 7
        if wire == 0:
            value, at = _read_varint(data, at)
        elif wire == 2:
            length, at = _read_varint(data, at)
            value, at = bytes(data[at:at + length]), at + length
        elif wire in (1, 5):
            value, at = None, at + (8 if wire == 1 else 4)
        else:
            raise ValueError(f"wire type {wire}")
        name, kind = schema.get(tag >> 3, (None, None))
        if name is None:
            continue
        inner = kind[0] if isinstance(kind, list) else kind
        if inner is U and wire == 2:
            position = 0
            while position < len(value):
                one, position = _read_varint(value, position)
                fields[name].append(one)
            continue
        value = decode(inner, value) if isinstance(inner, dict) else value.decode() if inner is S else value
        if isinstance(kind, list):
            fields[name].append(value)
        else:
            fields[name] = value
    return fields


LIMITS = {1: ("header_bytes", U), 2: ("frame_bytes", U), 3: ("batch_items", U), 4: ("item_bytes", U),
          5: ("inflight_bytes", U), 6: ("operations", U), 7: ("session_keys", U)}
HELLO = {1: ("version_min", U), 2: ("version_max", U), 3: ("features", U), 4: ("session_token", B), 5: ("client", S)}
WELCOME = {1: ("version", U), 2: ("features", U), 3: ("session_token", B), 4: ("limits", LIMITS), 5: ("server", S),
           6: ("identity", S), 7: ("may_administer", U)}
REFUSAL = {1: ("status", U), 2: ("text", S), 3: ("version_min", U), 4: ("version_max", U)}
GOODBYE = {1: ("last_request_id", U), 2: ("reason", S)}
BATCH = {1: ("request_id", U), 2: ("key_handle", U), 3: ("key_version", U), 4: ("mode", U), 5: ("direction", U),
         6: ("padding", U), 7: ("slot_align", U), 8: ("slot_gap", U), 9: ("lengths", [U]), 10: ("iv_lengths", [U]),
         11: ("ivs", B), 12: ("aad_lengths", [U]), 13: ("tags", B), 14: ("parts", [U]), 15: ("operations", [U])}
BATCH_REPLY = {1: ("request_id", U), 2: ("status", U), 3: ("text", S), 4: ("key_version", U), 5: ("lengths", [U]),
               6: ("statuses", [U]), 7: ("iv_length", U), 8: ("ivs", B), 9: ("tag_length", U), 10: ("tags", B)}
ATTRIBUTES = {1: ("modes", U), 2: ("encrypt", U), 3: ("decrypt", U), 4: ("caller_iv", U), 5: ("tag_length", U)}
KEY_VERSION = {1: ("version", U), 2: ("state", U), 3: ("created_unix_s", U)}
KEY_INFO = {1: ("name", S), 2: ("id", B), 3: ("key_bits", U), 4: ("attributes", ATTRIBUTES),
            5: ("versions", [KEY_VERSION])}
CALL = {1: ("request_id", U), 2: ("operation_id", B),
        16: ("open_key", {1: ("name", S)}),
        17: ("ephemeral_key", {1: ("key_bits", U), 2: ("attributes", ATTRIBUTES)}),
        18: ("close_key", {1: ("handle", U)}),
        19: ("cancel_operation", {1: ("operation", U)}),
        20: ("get_status", {}),
        21: ("get_implementations", {}),
        32: ("create_key", {1: ("name", S), 2: ("key_bits", U), 3: ("attributes", ATTRIBUTES),
                            4: ("unsafe_mixed_modes", U), 5: ("import", U)}),
        33: ("list_keys", {1: ("after", S), 2: ("max", U)}),
        34: ("describe_key", {1: ("name", S)}),
        35: ("destroy_key", {1: ("name", S)})}
STATUS = {1: ("server", S), 2: ("identity", S), 3: ("may_administer", U), 4: ("uptime_ms", U), 5: ("workers", U),
          6: ("connections", U), 7: ("inflight_bytes", U), 8: ("inflight_limit_bytes", U), 9: ("keys", U),
          10: ("draining", U)}
IMPLEMENTATION = {1: ("mode", U), 2: ("direction", U), 3: ("implementation", S), 4: ("compiled", U),
                  5: ("available", U), 6: ("used", U), 7: ("reason", S), 8: ("used_for", U)}
ANSWER = {1: ("request_id", U), 2: ("status", U), 3: ("text", S),
          16: ("key_handle", {1: ("handle", U), 2: ("key", KEY_INFO)}),
          17: ("key", KEY_INFO),
          18: ("key_list", {1: ("keys", [KEY_INFO]), 2: ("more", U)}),
          19: ("implementations", {1: ("rows", [IMPLEMENTATION])}),
          20: ("server_status", STATUS)}

# --- Frames ---

MAGIC, VERSION, PREFIX, ALIGN = b"CMIL", 1, 16, 64
F_HELLO, F_WELCOME, F_BATCH, F_BATCH_REPLY, F_CALL, F_ANSWER, F_GOODBYE, F_REFUSAL = range(1, 9)
ECB, CBC, CTR, GCM, XTS = 1, 2, 3, 4, 5
ENCRYPT, DECRYPT = 1, 2
SINGLE, FIRST, MIDDLE, LAST = 0, 1, 2, 3
OK, BAD_REQUEST, UNSUPPORTED, TOO_LARGE, VERSION_MISMATCH, BAD_LENGTH, BAD_IV = 0, 1, 2, 3, 4, 7, 8
OVERLOADED, GOING_AWAY, BAD_ATTRIBUTES, SESSION_FULL = 16, 17, 22, 23


def tweak(number):
    """XTS: the tweak of the data unit of that number."""
    return number.to_bytes(16, "little")


def round_up(value, step):
    return (value + step - 1) // step * step


def frame(kind, header, body=b"", version=VERSION):
    start = round_up(PREFIX + len(header), ALIGN)
    prefix = struct.pack("<4sBBHII", MAGIC, version, kind, 0, len(header), len(body))
    return (prefix + header).ljust(start, b"\0") + body


class Refused(Exception):
    """The daemon answered with a status that is not 0."""

    def __init__(self, status, text, fields=None):
        super().__init__(f"status {status}: {text}")
        self.status, self.text, self.fields = status, text, fields


class Reply:
    """Of a batch; columns with an entry an item."""

    def __init__(self, fields, outputs):
        self.request_id, self.key_version = fields["request_id"], fields["key_version"]
        self.status, self.text = fields["status"], fields["text"]
        count = len(fields["lengths"])
        self.outputs = outputs
        self.statuses = fields["statuses"] or [0] * count
        self.ivs = self._columns(fields["ivs"], fields["iv_length"], count)
        self.tags = self._columns(fields["tags"], fields["tag_length"], count)

    @staticmethod
    def _columns(data, width, count):
        return [data[i * width:(i + 1) * width] for i in range(count)] if width else [b""] * count


class Client:
    def __init__(self, endpoint, token=b"", timeout=30.0, hello=None):
        self.socket = self._connect(endpoint, timeout)
        self.buffer = bytearray()
        self.next_id = 1
        self.waiting = {}  # request id: strides and lengths that its reply needs
        self.goodbye = None
        self.send(F_HELLO, encode(HELLO, {"version_min": VERSION, "version_max": VERSION, "session_token": token,
                                          "client": "pyclient", **(hello or {})}))
        kind, header, _ = self.receive()
        if kind == F_REFUSAL:
            refusal = decode(REFUSAL, header)
            raise Refused(refusal["status"], refusal["text"], refusal)
        if kind != F_WELCOME:
            raise ValueError(f"frame type {kind} in place of a welcome")
        self.welcome = decode(WELCOME, header)
        self.limits = self.welcome["limits"]

    @staticmethod
    def _connect(endpoint, timeout):
        if endpoint.startswith("unix:"):
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(timeout)
            connection.connect(endpoint[5:])
        else:
            host, port = endpoint.removeprefix("tcp://").rsplit(":", 1)
            connection = socket.create_connection((host.strip("[]"), int(port)), timeout)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def close(self):
        self.socket.close()

    # --- Frames ---

    def send(self, kind, header, body=b""):
        self.socket.sendall(frame(kind, header, body))

    def _fill(self, length):
        while len(self.buffer) < length:
            data = self.socket.recv(1 << 20)
            if not data:
                raise EOFError("the daemon closed the connection")
            self.buffer += data

    def receive(self):
        """The next frame: (type, header, body)."""
        self._fill(PREFIX)
        magic, version, kind, reserved, header_length, body_length = struct.unpack_from("<4sBBHII", self.buffer)
        if magic != MAGIC or reserved != 0 or version != VERSION:
            raise ValueError(f"no frame of this protocol: {bytes(self.buffer[:16]).hex()}")
        start = round_up(PREFIX + header_length, ALIGN)
        self._fill(start + body_length)
        header = bytes(self.buffer[PREFIX:PREFIX + header_length])
        body = bytes(self.buffer[start:start + body_length])
        del self.buffer[:start + body_length]
        return kind, header, body

    def receive_answer(self):
        """The next frame that answers something; a goodbye on the way is kept in self.goodbye, a refusal raised."""
        while True:
            kind, header, body = self.receive()
            if kind == F_REFUSAL:
                refusal = decode(REFUSAL, header)
                raise Refused(refusal["status"], refusal["text"], refusal)
            if kind != F_GOODBYE:
                return kind, header, body
            self.goodbye = decode(GOODBYE, header)["last_request_id"]

    def take_id(self):
        self.next_id += 1
        return self.next_id - 1

    # --- Calls ---

    def call(self, name, fields=None, body=b"", operation_id=b""):
        """One call and its answer's fields; raises Refused."""
        self.send(F_CALL, encode(CALL, {"request_id": self.take_id(), "operation_id": operation_id,
                                        name: fields or {}}), body)
        kind, header, _ = self.receive_answer()
        if kind != F_ANSWER:
            raise ValueError(f"frame type {kind} in place of an answer")
        answer = decode(ANSWER, header)
        if answer["status"] != OK:
            raise Refused(answer["status"], answer["text"], answer)
        return answer

    def open_key(self, name):
        return self.call("open_key", {"name": name})["key_handle"]["handle"]

    def ephemeral_key(self, bits, modes, raw=b"", caller_iv=False):
        attributes = {"modes": sum(1 << mode for mode in modes), "encrypt": 1, "decrypt": 1, "caller_iv": caller_iv}
        return self.call("ephemeral_key", {"key_bits": bits, "attributes": attributes}, raw)["key_handle"]["handle"]

    def create_key(self, name, bits, modes=(GCM,), raw=b"", caller_iv=False):
        attributes = {"modes": sum(1 << mode for mode in modes), "encrypt": 1, "decrypt": 1, "caller_iv": caller_iv}
        return self.call("create_key", {"name": name, "key_bits": bits, "attributes": attributes,
                                        "import": bool(raw)}, raw, os.urandom(16))["key"]

    # --- Batches ---

    def batch_frame(self, handle, mode, direction, items, padding=False, ivs=None, aads=None, tags=None, parts=None,
                    operations=None, version=0, slot_align=0, slot_gap=0, extra=b""):
        """(request id, the bytes of the frame). `extra` is appended to the header as it is."""
        request_id = self.take_id()
        align = slot_align or 16
        strides = []
        for number, item in enumerate(items):
            length = len(item)
            if padding and direction == ENCRYPT and (parts is None or parts[number] in (SINGLE, LAST)):
                length = length // 16 * 16 + 16
            strides.append(round_up(length, align) + slot_gap)
        body = b"".join(item.ljust(stride, b"\0") for item, stride in zip(items, strides)) + b"".join(aads or [])
        header = encode(BATCH, {
            "request_id": request_id, "key_handle": handle, "key_version": version, "mode": mode,
            "direction": direction, "padding": padding, "slot_align": slot_align, "slot_gap": slot_gap,
            "lengths": list(map(len, items)), "iv_lengths": list(map(len, ivs or [])), "ivs": b"".join(ivs or []),
            "aad_lengths": list(map(len, aads or [])), "tags": b"".join(tags or []), "parts": parts or [],
            "operations": operations or []}) + extra
        self.waiting[request_id] = strides
        return request_id, frame(F_BATCH, header, body)

    def send_batch(self, *words, **options):
        request_id, data = self.batch_frame(*words, **options)
        self.socket.sendall(data)
        return request_id

    def receive_reply(self):
        kind, header, body = self.receive_answer()
        if kind != F_BATCH_REPLY:
            raise ValueError(f"frame type {kind} in place of a reply")
        fields = decode(BATCH_REPLY, header)
        strides, outputs, at = self.waiting.pop(fields["request_id"]), [], 0
        if fields["status"] == OK:
            for stride, length in zip(strides, fields["lengths"]):
                outputs.append(body[at:at + length])
                at += stride
            if at != len(body):
                raise ValueError(f"a reply's body of {len(body)} bytes where its slots take {at}")
        return Reply(fields, outputs)

    def batch(self, *words, **options):
        """One batch and its reply; raises Refused if it failed as a whole."""
        self.send_batch(*words, **options)
        reply = self.receive_reply()
        if reply.status != OK:
            raise Refused(reply.status, reply.text)
        return reply


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__.split("\n\n")[1])
    client = Client(sys.argv[1])
    reply = client.batch(client.open_key(sys.argv[2]), GCM, ENCRYPT, [word.encode() for word in sys.argv[3:]])
    for iv, output, tag in zip(reply.ivs, reply.outputs, reply.tags):
        print((iv + output + tag).hex())
    client.close()


if __name__ == "__main__":
    main()
