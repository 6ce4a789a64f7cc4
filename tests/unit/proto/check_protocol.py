#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PROTOCOL.md against what it describes: the statuses and frame types of the headers, the names and numbers of
ciphermill.proto, and the golden frames of its worked example.

usage: check_protocol.py [ROOT]
"""
import os
import re
import sys


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def table(document, heading, columns):
    """The rows, as lists of cells, of every table below a heading that has so many columns."""
    section = re.search(r'^#+ ' + re.escape(heading) + r'\n(.*?)(?=^#|\Z)', document, re.M | re.S)
    rows = [[cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]
            for line in (section.group(1) if section else "").split("\n") if line.startswith("| ")]
    return [row for row in rows if len(row) == columns and not row[0].startswith("---")]


def statuses(root, document):
    classes = {"NONE": "none", "NOT_EXECUTED": "not executed", "UNKNOWN": "unknown", "FINAL": "final"}
    header = read(root, "proto/status.h").replace("\\\n", "\n")
    wanted = [[number, f"`{name.lower()}`", classes[retry], "".join(re.findall(r'"([^"]*)"', text))]
              for name, number, retry, text in
              re.findall(r'\bX\((\w+),\s*(\d+),\s*(\w+),\s*((?:"[^"]*"\s*)+)\)', header)]
    yield "statuses of status.h", wanted, table(document, "Statuses", 4)[1:]


def frame_types(root, document):
    body = re.search(r'enum cm_frame_type \{(.*?)\}', read(root, "proto/frame.h"), re.S).group(1)
    wanted = [[number, name] for name, number in re.findall(r'CM_FRAME_(\w+) = (\d+)', body)]
    yield "frame types of frame.h", wanted, [row[:2] for row in table(document, "Frame", 5)[1:]]


def key_states(root, document):
    body = re.search(r'enum cm_wire_key_state \{(.*?)\}', read(root, "proto/message.h"), re.S).group(1)
    wanted = [[number, name.lower().replace("_", "-")] for name, number in
              re.findall(r'CM_WIRE_KEY_(\w+) = (\d+)', body)]
    yield "key states of message.h", wanted, [row[:2] for row in table(document, "Versions and states", 3)[1:]]


def calls(root, document):
    body = re.search(r'oneof call \{(.*?)\}', read(root, "proto/ciphermill.proto"), re.S).group(1)
    wanted = [[f"`{name}`", number] for name, number in re.findall(r'(\w+) = (\d+);', body)]
    yield "calls of ciphermill.proto", wanted, [row[:2] for row in table(document, "Calls", 5)[1:]]


def fields_are_named(root, document):
    """Every field of the messages that the document explains in tables stands in it, in code quotes."""
    proto = re.sub(r'//[^\n]*', '', read(root, "proto/ciphermill.proto"))
    quoted = set(re.findall(r'\w+', " ".join(re.findall(r'`([^`\n]+)`', document))))
    for message in ("Limits", "Hello", "Welcome", "Refusal", "Goodbye", "KeyAttributes", "Batch", "BatchReply"):
        body = re.search(r'message ' + message + r' \{(.*?)\}', proto, re.S).group(1)
        fields = re.findall(r'(\w+) = \d+;', body)
        yield f"fields of {message}", fields, [field for field in fields if field in quoted]


def golden(root, document):
    blocks = re.findall(r'^```golden (\w+)\n(.*?)^```', document, re.M | re.S)
    for name, text in blocks:
        out = b""
        for line in text.split("\n"):
            # Bytes and, after three blanks, what they are.
            for word in re.split(r' {3}', line)[0].split():
                byte, _, times = word.partition("*")
                out += bytes.fromhex(byte) * int(times or 1)
        with open(os.path.join(root, "tests/golden", name + ".frame"), "rb") as file:
            yield f"golden frame {name}", [file.read().hex()], [out.hex()]


def main(root):
    document = read(root, "proto/PROTOCOL.md")
    failed = 0
    for check in (statuses, frame_types, key_states, calls, fields_are_named, golden):
        results = list(check(root, document))
        if not results:
            print(f"FAILED: {check.__name__}: nothing to compare")
            failed += 1
        for what, wanted, found in results:
            good = bool(wanted) and wanted == found
            print(f"{'ok' if good else 'FAILED'}: {what} ({len(wanted)})")
            if not good:
                failed += 1
                print(f"    should be {[w for w in wanted if w not in found]}")
                print(f"    but says  {[f for f in found if f not in wanted]}")
    return 1 if failed else 0


if __name__ == "__main__":
    default = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else os.path.normpath(default)))
