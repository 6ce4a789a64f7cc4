#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""1 GiB through `ciphermill encrypt`: client and daemon stay under 64 MiB each, and `openssl enc -d` gives the file back.

usage: large_files.py [MIB]
CBC and CTR, three key sizes, with --iv and with the daemon's IV. Takes minutes and twice the file's size on disk in
TMPDIR; against the release build unless CM_BIN says otherwise. test_files.py has the short form.
"""
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
os.environ.setdefault("CM_BIN", os.path.join(HERE, "..", "..", "build", "release", "bin"))
from harness import COMMAND, MIB, Daemon, openssl_argv, pattern, run, run_measured  # noqa: E402

LIMIT_KIB = 64 * 1024
IV = bytes(range(16))


def digest(stream):
    sha = hashlib.sha256()
    while data := stream.read(MIB):
        sha.update(data)
    return sha.hexdigest()


def opened(path, mode, key, iv, skip):
    """The digest of what `openssl enc -d` makes of a file without its first bytes."""
    with open(path, "rb") as file, subprocess.Popen(openssl_argv(mode, key, iv, decrypt=True), stdin=subprocess.PIPE,
                                                    stdout=subprocess.PIPE) as judge:
        file.seek(skip)
        feeder = os.fork()
        if feeder == 0:
            judge.stdout.close()
            shutil.copyfileobj(file, judge.stdin, MIB)
            judge.stdin.flush()
            os._exit(0)
        judge.stdin.close()
        result = digest(judge.stdout)
        os.waitpid(feeder, 0)
    return result if judge.returncode == 0 else "openssl refused"


def main():
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
    folder, place = tempfile.mkdtemp(prefix="cm-", dir="/tmp"), tempfile.mkdtemp(prefix="cm-large-")
    plain, cipher, back = (os.path.join(place, name) for name in ("plain", "cipher", "back"))
    daemon, failed = Daemon(folder, tcp=False), 0
    try:
        daemon.start()
        part = pattern(MIB)
        with open(plain, "wb") as file:
            for number in range(size):
                file.write(number.to_bytes(8, "big") + part[8:])
            file.write(b"and a bit")
        with open(plain, "rb") as file:
            wanted = digest(file)
        for bits in (128, 192, 256):
            key = pattern(bits // 8, bits)
            base = [COMMAND, "--endpoint", daemon.unix]
            result = run([*base, "key", "import", f"k{bits}", "--algorithm", f"aes-{bits}", "--modes", "ecb,cbc,ctr",
                          "--caller-iv", "--hex", "-"], stdin=key.hex().encode())
            assert result.code == 0, result
            for mode in ("cbc", "ctr"):
                for iv in (IV, None):
                    words = ["--key", f"k{bits}", "--mode", mode, *(["--iv", iv.hex()] if iv else [])]
                    started = time.monotonic()
                    result = run_measured([*base, "encrypt", *words, "--in", plain, "--out", cipher])
                    took = time.monotonic() - started
                    assert result.code == 0, result
                    with open(cipher, "rb") as file:
                        used = iv or file.read(16)
                    right = opened(cipher, mode, key, used, 0 if iv else 16) == wanted
                    opening = run_measured([*base, "decrypt", *words, "--in", cipher, "--out", back])
                    assert opening.code == 0, opening
                    with open(back, "rb") as file:
                        right = right and digest(file) == wanted
                    peaks = (result.peak_kib, opening.peak_kib, daemon.peak_kib())
                    good = right and max(peaks) < LIMIT_KIB
                    failed += not good
                    print(f"{'ok' if good else 'FAILED'}: aes-{bits}-{mode} {'--iv' if iv else 'daemon IV'}: {size} MiB "
                          f"in {took:.1f} s, {'right' if right else 'WRONG'}; peaks in KiB: encrypt {peaks[0]}, decrypt "
                          f"{peaks[1]}, daemon {peaks[2]}", flush=True)
        daemon.stop()
    finally:
        daemon.kill()
        shutil.rmtree(folder, True)
        shutil.rmtree(place, True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
