#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the built crypto library asks of others: a short list of libc's functions; no allocation, socket, thread, file.

usage: symbols.py ARCHIVE
"""
import re
import subprocess
import sys

ALLOWED = re.compile(r"^(__)?(mem(cpy|set|cmp|move|chr)|str(cmp|ncmp|len|chr|cspn|spn|tok_r)|v?snprintf|explicit_bzero)"
                     r"(_chk)?$|^(getenv|secure_getenv|abort|getauxval|__assert_fail|__stack_chk_fail|"
                     r"__explicit_bzero_chk|_GLOBAL_OFFSET_TABLE_|__cpu_model|\.TOC\.)$")


def wrong(archive):
    """The undefined symbols that are not allowed; None if the archive defines nothing at all."""
    text = subprocess.run(["nm", archive], capture_output=True, text=True, check=True).stdout
    defined, used = set(), set()
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3:
            defined.add(words[2])
        elif len(words) == 2 and words[0] in "Uwv":
            used.add(words[1])
    return sorted(s for s in used - defined if not ALLOWED.match(s)) if defined else None


def main():
    found = wrong(sys.argv[1])
    if found is None:
        sys.exit(f"{sys.argv[1]}: no symbol was looked at")
    if found:
        sys.exit(f"{sys.argv[1]}: uses {', '.join(found)}")
    print(f"{sys.argv[1]}: nothing but the permitted part of libc")


if __name__ == "__main__":
    main()
