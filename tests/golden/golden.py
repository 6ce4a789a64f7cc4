#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The golden frames, from an encoder of their own: no protobuf library, and nothing of proto/.

NAME.frame is a frame as version 1 defines it; newer/NAME.frame says the same with one more field in every message,
inner ones included, as a later version of the other side might.

usage: golden.py          compares every frame with its file beside this script
       golden.py --write  writes the files anew. Only a new major version of the protocol may change one that exists;
                          otherwise frames are added.
"""
import os
import struct
import sys

HELLO, WELCOME, BATCH, BATCH_REPLY, CALL, ANSWER, GOODBYE, REFUSAL = range(1, 9)


def varint(value):
    """Seven bits a byte, the low ones first; the top bit says that more follow."""
    out = bytearray()
    while value > 0x7f:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def delimited(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


class Message(bytes):
    """An encoded message: unlike bytes it is written even when it is empty, because its being there says something."""


def encode(fields):
    """fNUMBER: value, in rising order. int: a varint; bytes and str: as they are; list of int: packed; list of
    Message: one field each. What is zero or empty is left out."""
    out = b""
    for name, value in fields.items():
        number = int(name.removeprefix("f"))
        if isinstance(value, Message):
            out += delimited(number, value)
        elif isinstance(value, (bytes, str)):
            content = value.encode() if isinstance(value, str) else value
            out += delimited(number, content) if content else b""
        elif isinstance(value, list):
            if value and isinstance(value[0], Message):
                out += b"".join(delimited(number, one) for one in value)
            elif value:
                out += delimited(number, b"".join(varint(one) for one in value))
        elif value:
            out += varint(number << 3) + varint(int(value))
    return out


def frame(kind, header, body=b"", version=1):
    out = struct.pack("<4sBBHII", b"CMIL", version, kind, 0, len(header), len(body)) + header
    return out + bytes(-len(out) % 64) + body


def slots(*items):
    """(bytes, slot length) one after the other, filled up with zeros."""
    return b"".join(content + bytes(length - len(content)) for content, length in items)


def run(first, count):
    """count bytes, counting up from first."""
    return bytes((first + i) & 0xff for i in range(count))


TOKEN = run(0xa0, 16)
KEY_ID = run(0x40, 16)
OPERATION_ID = run(0x70, 16)

# AES-128 in CBC with PKCS#7, key 000102…0f, by the openssl command:
#   printf hello | openssl enc -aes-128-cbc -K 000102030405060708090a0b0c0d0e0f -iv 101112131415161718191a1b1c1d1e1f
#   printf 'sixteen byte msg' | openssl enc … -iv 202122232425262728292a2b2c2d2e2f
HELLO_CBC = bytes.fromhex("32f6d6ea1ec8872debccea8596d9c3c3")
SIXTEEN_CBC = bytes.fromhex("dfe205f759f1622504af4c973e0ba38d822b781304a0d3533d88914ac985fa38")


def frames(more):
    """Every golden frame by its name, with the bytes `more` at the end of every message."""
    def message(**fields):
        return Message(encode(fields) + more)

    limits = message(f1=65536, f2=16777216, f3=1024, f4=8388608, f5=33554432, f6=64, f7=1024)
    block_modes = message(f1=1 << 1 | 1 << 2 | 1 << 3, f2=True, f3=True, f4=True)
    gcm_only = message(f1=1 << 4, f2=True, f5=12)
    orders = message(f1="orders", f2=KEY_ID, f3=256, f4=gcm_only,
                     f5=[message(f1=1, f2=2, f3=1700000000), message(f1=2, f2=1, f3=1800000000)])
    # No two flags of a message are set in the same frames, so that none can stand for another.
    plain = message(f1="plain", f2=run(0x50, 16), f3=128, f4=message(f1=1 << 1 | 1 << 2, f3=True), f5=[message(f1=1, f2=1, f3=1750000000)])

    return {
        "hello": frame(HELLO, message(f1=1, f2=1, f5="golden")),
        "hello_join": frame(HELLO, message(f1=1, f2=3, f3=1 << 40 | 5, f4=TOKEN, f5="golden")),
        "welcome": frame(WELCOME, message(f1=1, f2=9, f3=TOKEN, f4=limits, f5="ciphermilld 0.1.0", f6="uid:1000", f7=True)),
        "refusal": frame(REFUSAL, message(f1=4, f2="upgrade the client", f3=2, f4=3)),
        "goodbye": frame(GOODBYE, message(f1=300, f2="draining")),

        # PROTOCOL.md's worked example: two items, IVs of the caller's, padding.
        "batch_cbc": frame(BATCH, message(f1=2, f2=1, f4=2, f5=1, f6=True, f9=[5, 16], f10=[16], f11=run(0x10, 32)),
                           slots((b"hello", 16), (b"sixteen byte msg", 32))),
        "batch_reply_cbc": frame(BATCH_REPLY, message(f1=2, f4=1, f5=[16, 32]), HELLO_CBC + SIXTEEN_CBC),

        # GCM, opening: IVs of two lengths, additional data, tags of 12 bytes, an old version, wide slots with a gap.
        "batch_gcm": frame(BATCH, message(f1=3, f2=7, f3=1, f4=4, f5=2, f7=64, f8=32, f9=[20, 0, 65], f10=[12, 16, 12],
                                          f11=run(1, 40), f12=[3, 0, 5], f13=run(0x80, 36)),
                           slots((run(0, 20), 96), (b"", 32), (run(0, 65), 160)) + b"abc" + b"defgh"),
        # Parts of two operations beside a single item; the daemon makes the IVs.
        "batch_parts": frame(BATCH, message(f1=4, f2=7, f4=3, f5=1, f9=[16, 32, 7, 1], f14=[1, 2, 3, 0],
                                            f15=[70000, 5, 6, 0]),
                             slots((run(0, 16), 16), (run(0, 32), 32), (run(0, 7), 16), (b"x", 16))),
        # XTS: data units 1,337 and 1,338, the second with a ragged end; a tweak is a number, little-endian.
        "batch_xts": frame(BATCH, message(f1=8, f2=7, f4=5, f5=1, f9=[32, 17], f10=[16],
                                          f11=(1337).to_bytes(16, "little") + (1338).to_bytes(16, "little")),
                           slots((run(0, 32), 32), (run(0, 17), 32))),
        "batch_empty": frame(BATCH, message(f1=5, f2=7, f4=1, f5=1)),
        # GCM, sealing: what the daemon made comes back; the second of three items failed.
        "batch_reply_gcm": frame(BATCH_REPLY, message(f1=6, f4=2, f5=[1, 0, 300], f6=[0, 7, 0], f7=12,
                                                      f8=run(0, 12) + bytes(12) + run(12, 12), f9=16,
                                                      f10=run(0x20, 16) + bytes(16) + run(0x30, 16)),
                                 slots((b"y", 16), (b"", 16), (run(9, 300), 304))),
        "batch_reply_failed": frame(BATCH_REPLY, message(f1=7, f2=10, f3="no such handle")),

        "call_open_key": frame(CALL, message(f1=10, f16=message(f1="orders"))),
        "call_ephemeral_key": frame(CALL, message(f1=11, f17=message(f1=128, f2=block_modes)), run(0, 16)),
        "call_close_key": frame(CALL, message(f1=12, f18=message(f1=7))),
        "call_cancel_operation": frame(CALL, message(f1=13, f19=message(f1=70000))),
        "call_get_status": frame(CALL, message(f1=14, f20=message())),
        "call_get_implementations": frame(CALL, message(f1=15, f21=message())),
        "call_create_key": frame(CALL, message(f1=16, f2=OPERATION_ID,
                                               f32=message(f1="mixed", f2=256, f3=message(f1=31, f2=True, f3=True), f4=True))),
        "call_import_key": frame(CALL, message(f1=20, f2=OPERATION_ID,
                                               f32=message(f1="plain", f2=256, f3=block_modes, f5=True)), run(0, 32)),
        # AES-128 in XTS: two keys of 16 bytes.
        "call_import_xts": frame(CALL, message(f1=21, f2=OPERATION_ID,
                                               f32=message(f1="disk", f2=128, f3=message(f1=1 << 5, f2=True, f3=True),
                                                           f5=True)), run(0, 32)),
        "call_list_keys": frame(CALL, message(f1=17, f33=message(f1="orders", f2=100))),
        "call_describe_key": frame(CALL, message(f1=18, f34=message(f1="orders"))),
        "call_destroy_key": frame(CALL, message(f1=19, f2=OPERATION_ID, f35=message(f1="orders"))),

        "answer_done": frame(ANSWER, message(f1=12)),
        "answer_failed": frame(ANSWER, message(f1=16, f2=15, f3="a key of that name exists")),
        "answer_key_handle": frame(ANSWER, message(f1=10, f16=message(f1=7, f2=orders))),
        "answer_key": frame(ANSWER, message(f1=18, f17=orders)),
        "answer_key_list": frame(ANSWER, message(f1=17, f18=message(f1=[orders, plain], f2=True))),
        "answer_implementations": frame(ANSWER, message(f1=15, f19=message(f1=[
            message(f1=1, f2=2, f3="first", f4=True, f5=True, f6=True),
            message(f1=1, f2=2, f3="second", f4=True, f5=True, f7="another one is faster"),
            message(f1=4, f2=1, f3="third", f4=True, f7="processor lacks it")]))),
        # Which size class an implementation serves: one short batches, the other long ones.
        "answer_size_classes": frame(ANSWER, message(f1=15, f19=message(f1=[
            message(f1=5, f2=1, f3="first", f4=True, f5=True, f8=1),
            message(f1=5, f2=1, f3="second", f4=True, f5=True, f6=True, f8=2)]))),
        "answer_server_status": frame(ANSWER, message(f1=14, f20=message(
            f1="ciphermilld 0.1.0", f2="uid:1000", f4=123456789, f5=2, f6=17, f7=1 << 33, f8=1 << 34, f9=3, f10=True))),
    }


def main(arguments):
    folder = os.path.dirname(os.path.abspath(__file__))
    if arguments not in ([], ["--write"]):
        sys.exit(__doc__)
    # Field 1000, a number: no message has it.
    wanted = {f"{name}.frame": content for name, content in frames(b"").items()}
    wanted |= {f"newer/{name}.frame": content for name, content in frames(varint(1000 << 3) + varint(150)).items()}
    if arguments:
        os.makedirs(os.path.join(folder, "newer"), exist_ok=True)
        for name, content in wanted.items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(content)
    there = {os.path.relpath(os.path.join(path, name), folder)
             for path, _, names in os.walk(folder) for name in names if name.endswith(".frame")}
    complaints = [f"{name}: this script knows no such frame" for name in there - wanted.keys()]
    complaints += [f"{name}: is missing" for name in wanted.keys() - there]
    for name in there & wanted.keys():
        with open(os.path.join(folder, name), "rb") as file:
            if file.read() != wanted[name]:
                complaints.append(f"{name}: differs from what this script makes")
    print("\n".join(sorted(complaints) + [f"{len(wanted)} frames, {len(complaints)} complaints"]))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
