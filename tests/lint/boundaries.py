#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who may include whom: the rooms of the house, checked in the sources.

usage: boundaries.py [ROOT]
Each rule looks at a set of files and fails when it finds something forbidden, or when its set is empty: a rule
that looked at nothing has shown nothing. Includes are followed through the project's own headers, so that a
forbidden header cannot arrive through a permitted one.
"""
import os
import re
import sys

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*', re.S)
ROOMS = ("crypto", "crypto/x86", "crypto/ppc", "proto", "client", "client/cli", "client/bench", "client/include",
         "daemon")
KERNELS = ("portable", "aesni", "vaes", "vaes256", "vaes512", "power8", "power9", "neon")

WIRE = re.compile(r'protobuf-c|\.pb-c\.h$')
LOOP = re.compile(r'^uv(/.*)?\.h$|^uv\.h$')
SOCKET = re.compile(r'^(sys/(socket|un)|netinet/.*|arpa/inet)\.h$')
# What crypto/ may use beyond its own headers: the freestanding part of libc, and the processor's own.
CRYPTO_LIBC = re.compile(r'^(assert|limits|stdalign|stdarg|stdatomic|stdbool|stddef|stdint|stdio|stdlib|string|'
                         r'inttypes|endian|cpuid|[a-z]*intrin|altivec|sys/auxv|sys/platform/ppc)\.h$')


class Tree:
    def __init__(self, root):
        self.root = root
        self.files = {}
        for folder, folders, names in os.walk(root):
            folders[:] = [f for f in folders if f not in (".git", "build")]
            for name in names:
                if name.endswith((".c", ".h")) or name == "CMakeLists.txt":
                    path = os.path.relpath(os.path.join(folder, name), root)
                    with open(os.path.join(folder, name), encoding="utf-8") as file:
                        self.files[path] = file.read()

    def sources(self, *prefixes):
        return sorted(p for p in self.files if p.startswith(prefixes) and p.endswith((".c", ".h")))

    def resolve(self, includer, mark, name):
        """The project's file that an include names, or None for a system header."""
        if mark == "<" and not name.startswith("ciphermill/"):
            return None
        for folder in (os.path.dirname(includer), *ROOMS):
            path = os.path.normpath(os.path.join(folder, name))
            if path in self.files:
                return path
        return None

    def includes(self, path):
        return [(mark, name, self.resolve(path, mark, name)) for mark, name in INCLUDE.findall(self.files[path])]

    def reached(self, path):
        """Every include in and below a file, as (file that includes, name, project file or None)."""
        seen, todo, found = {path}, [path], []
        while todo:
            at = todo.pop()
            for _, name, own in self.includes(at):
                found.append((at, name, own))
                if own and own not in seen:
                    seen.add(own)
                    todo.append(own)
        return found

    def target_sources(self, folder, target):
        """The sources that a CMakeLists.txt lists for a target, and the headers beside them of the same name."""
        text = re.sub(r'#[^\n]*', '', self.files.get(f"{folder}/CMakeLists.txt", ""))
        paths = set()
        for body in re.findall(r'(?:add_library|target_sources)\(\s*' + target + r'\b([^)]*)\)', text):
            for word in body.split():
                path = os.path.normpath(os.path.join(folder, word))
                if path in self.files:
                    paths.update({path, path[:-2] + ".h"} & self.files.keys())
        return sorted(paths)


def forbid_reach(tree, files, wrong):
    """Complaints about includes below `files` for which wrong(includer, name, own) holds."""
    return sorted({f"{file}: includes {name}" + (f" through {at}" if at != file else "")
                   for file in files for at, name, own in tree.reached(file) if wrong(at, name, own)})


def room(path):
    return path.split("/")[0] if path else ""


def service_without_loop_or_wire(tree):
    files = tree.target_sources("daemon", "cm_daemon_service")
    return files, forbid_reach(tree, files, lambda at, name, own:
                               LOOP.search(name) or WIRE.search(name) or SOCKET.search(name))


def kernels_named_in_crypto_only(tree):
    files = tree.sources("daemon/", "client/", "proto/")
    words = re.compile(r'(?<![a-zA-Z0-9])(' + "|".join(KERNELS) + r')(?![a-zA-Z0-9])', re.I)
    complaints = []
    for file in files:
        # Comments may explain, and the command's help texts may tell a user the words to type.
        text = COMMENT.sub(lambda m: "\n" * m.group().count("\n"), tree.files[file])
        for number, line in enumerate(text.split("\n"), 1):
            if words.search(line) and not re.search(r'CIPHERMILL_CPU', line):
                complaints.append(f"{file}:{number}: names a kernel: {line.strip()}")
    return files, complaints


def daemon_without_client(tree):
    files = tree.sources("daemon/")
    complaints = forbid_reach(tree, files, lambda at, name, own:
                              room(own) == "client" or name.startswith("ciphermill/"))
    text = re.sub(r'#[^\n]*', '', tree.files.get("daemon/CMakeLists.txt", ""))
    complaints += [f"daemon/CMakeLists.txt: names {word}" for word in
                   re.findall(r'\b(?:libciphermill\w*|\S*client/\S*|cm_client\w*)', text)]
    return files, complaints


def client_without_daemon_and_crypto(tree):
    files = tree.sources("client/")
    return files, forbid_reach(tree, files, lambda at, name, own:
                               room(own) in ("daemon", "crypto") or LOOP.search(name))


def protobuf_in_the_codec_only(tree):
    files = [f for f in tree.sources("crypto/", "proto/", "client/", "daemon/") if not f.startswith("proto/codec")]
    return files, forbid_reach(tree, files, lambda at, name, own: WIRE.search(name))


def crypto_with_libc_only(tree):
    files = tree.sources("crypto/")
    return files, forbid_reach(tree, files, lambda at, name, own:
                               room(own) != "crypto" if own else not CRYPTO_LIBC.search(name))


def proto_without_loop_and_crypto(tree):
    files = tree.sources("proto/")
    return files, forbid_reach(tree, files, lambda at, name, own:
                               room(own) in ("crypto", "daemon", "client") or LOOP.search(name) or
                               name.startswith("openssl/"))


def kernels_included_by_dispatch_only(tree):
    files = tree.sources("crypto/", "proto/", "client/", "daemon/")
    return files, [f"{file}: includes {name}" for file in files for _, name, own in tree.includes(file)
                   if own and own.startswith(("crypto/x86/", "crypto/ppc/"))
                   and not file.startswith(os.path.dirname(own) + "/") and file != "crypto/dispatch.c"]


RULES = [service_without_loop_or_wire, kernels_named_in_crypto_only, daemon_without_client,
         client_without_daemon_and_crypto, protobuf_in_the_codec_only, crypto_with_libc_only,
         proto_without_loop_and_crypto, kernels_included_by_dispatch_only]


def check(root, report=print):
    """The number of rules that failed."""
    tree = Tree(root)
    failed = 0
    for rule in RULES:
        files, complaints = rule(tree)
        if not files:
            complaints = ["no file was looked at"]
        failed += bool(complaints)
        report(f"{'FAILED' if complaints else 'ok'}: {rule.__name__.replace('_', ' ')} ({len(files)} files)")
        for complaint in complaints:
            report(f"    {complaint}")
    return failed


if __name__ == "__main__":
    default = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    sys.exit(1 if check(sys.argv[1] if len(sys.argv) > 1 else os.path.normpath(default)) else 0)
