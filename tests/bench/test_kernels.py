#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench-kernels: what it prints is complete and well-formed, and everything that it compares is right.

usage: test_kernels.py BENCH_KERNELS
Times are not looked at: they prove nothing on a machine that does something else beside.
"""
import csv
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile

MODES = {"ecb-encrypt", "ecb-decrypt", "cbc-encrypt", "cbc-decrypt", "ctr", "gcm-seal", "gcm-open", "xts-encrypt",
         "xts-decrypt"}
FIELDS = ("impl", "mode", "key_bits", "size", "batch", "stride", "ns_per_message", "gb_per_s", "cycles_per_byte",
          "ratio_openssl", "ratio_ipsecmb", "limit_fraction", "verified")
NUMBERS = ("ns_per_message", "gb_per_s", "ratio_openssl")  # known everywhere; the others may be null

bench = sys.argv[1]
failures = 0


def check(condition, what):
    global failures
    if not condition:
        print(f"FAILED: {what}")
        failures += 1


def run(*arguments, statuses=(0,), env=None, given=""):
    done = subprocess.run([bench, *arguments], input=given, capture_output=True, text=True, env=env)
    check(done.returncode in statuses, f"{' '.join(arguments)}: status {done.returncode}\n{done.stderr}")
    return done


def rows_of(*arguments, statuses=(0,)):
    done = run("--quick", "--json", *arguments, statuses=statuses)
    rows = json.loads(done.stdout)
    check(rows, f"{arguments}: no rows")
    for row in rows:
        check(all(field in row for field in FIELDS), f"{arguments}: fields missing in {row}")
        check(row["verified"] is True, f"{arguments}: not verified: {row}")
        for field in NUMBERS:
            check(isinstance(row[field], (int, float)) and row[field] > 0, f"{arguments}: {field} in {row}")
    return rows


def values(rows, field):
    return {row[field] for row in rows}


# Every mode, key length and stride, and whatever runs here, beside OpenSSL.
rows = rows_of("--sizes", "16,64,1024", "--stride", "both", "--per-block")
check(values(rows, "mode") == MODES, f"modes: {values(rows, 'mode')}")
check(values(rows, "key_bits") == {128, 256}, "key lengths")
check(values(rows, "size") == {16, 64, 1024}, "sizes")
check(values(rows, "stride") == {"padded", "contiguous"}, "strides")
check(values(rows, "batch") == {64}, "batches")
implementations = values(rows, "impl")
check({"openssl", "dispatch", "portable", "portable-per-block"} <= implementations, f"{implementations}")
for mode in MODES:
    of_mode = [row for row in rows if row["mode"] == mode]
    check({"openssl", "dispatch", "portable"} <= values(of_mode, "impl"), f"{mode}: {values(of_mode, 'impl')}")
    with_ipsecmb = "ipsecmb" in implementations and not mode.startswith("xts")
    check(("ipsecmb" in values(of_mode, "impl")) == with_ipsecmb, f"{mode}: ipsecmb")
    check(all((row["ratio_ipsecmb"] is not None) == with_ipsecmb for row in of_mode), f"{mode}: ratio_ipsecmb")
    check(all(row["kernel"] for row in of_mode if row["impl"] == "dispatch"), f"{mode}: what dispatch uses")
if "ipsecmb" not in implementations:
    reason = run("--quick", "--modes", "ctr", "--sizes", "16").stdout
    check("built without libipsec-mb" in reason, f"no reason why IPSec-MB is missing: {reason}")

# What is unequal, short, padded, or cut to what was asked for.
rows = rows_of("--lengths", "random:0-4096")
check(values(rows, "mode") == MODES and values(rows, "size") == {"0-4096"}, "random lengths")
rows = rows_of("--padding", "pkcs7", "--modes", "ecb-encrypt,ecb-decrypt,cbc-encrypt,cbc-decrypt", "--sizes",
               "15,16,17,400", "--per-block")
check(values(rows, "padding") == {"pkcs7"}, "padding")
rows = rows_of("--modes", "ctr", "--bits", "192", "--sizes", "48", "--batch", "1,3", "--impl", "portable")
check(values(rows, "batch") == {1, 3} and values(rows, "key_bits") == {192}, "batches, key lengths")
check(values(rows, "impl") - {"ipsecmb"} == {"openssl", "portable"}, f"--impl: {values(rows, 'impl')}")

# CSV has the same columns.
text = run("--quick", "--csv", "--modes", "gcm-seal", "--sizes", "16").stdout
table = list(csv.DictReader(io.StringIO(text)))
check(table and tuple(table[0])[:len(FIELDS)] == FIELDS, f"CSV: {text}")
check(all(None not in row.values() and row["verified"] == "true" for row in table), f"CSV: {text}")

# Judgements: one for each cell of dispatch. Which way they go is not for a test.
if "vaes512" in implementations:
    rows = rows_of("--goals", "--modes", "ecb-encrypt,ctr", statuses=(0, 1))
    check(sum(row["goal"] is not None for row in rows) == 2 * 2 * 6 + 1, "goals of ECB and CTR")
    check({row["impl"] for row in rows if row["goal"]} == {"dispatch"}, "goals are dispatch's")
judged = run("--quick", "--dispatch", "--modes", "ctr", "--bits", "128", "--sizes", "16,4096", "--batch", "1,64",
             statuses=(0, 1)).stdout
check(judged.count("fastest") == 4, f"--dispatch: {judged}")

# Rounds on demand.
lines = run("--on-request", "--modes", "ecb-encrypt", "--sizes", "32", "--bits", "128", "--padding", "pkcs7",
            given="\n\n").stdout.split("\n")
check([line.split(" ")[0] for line in lines[:4]] == ["key", "text", "answer", "ready"], f"--on-request: {lines}")
check([len(line) for line in lines[:3]] == [4 + 32, 5 + 64, 7 + 96], f"--on-request: {lines}")
check(all(line.startswith("openssl ") for line in lines[4:6]) and lines[6:] == [""], f"--on-request: {lines}")

# Plots.
with tempfile.TemporaryDirectory() as folder:
    drawn = os.path.join(folder, "plot.svg")
    plot = ("--quick", "--modes", "ctr", "--sizes", "16,64", "--plot", drawn)
    refused = run(*plot, statuses=(2,), env={"PATH": folder})
    check("gnuplot" in refused.stderr and not os.path.exists(drawn), f"no gnuplot: {refused.stderr}")
    if shutil.which("gnuplot"):
        run(*plot)
        with open(drawn, encoding="utf-8") as file:
            picture = file.read()
        check("<svg" in picture and "AES-256 ctr" in picture and "openssl" in picture, "the plot's contents")
    else:
        print("skipped: no gnuplot")

for wrong in (("--modes", "cfb"), ("--sizes", "17"), ("--sizes", "0"), ("--bits", "64"), ("--batch", "0"),
              ("--impl", "fastest"), ("--lengths", "16-32"), ("--stride", "odd"), ("--padding", "zero"),
              ("--goals", "--dispatch"), ("--on-request",), ("--padding", "pkcs7", "--modes", "ctr"), ("rest",)):
    check(run(*wrong, statuses=(2,)).stdout == "", f"{wrong} prints rows")

sys.exit(1 if failures else 0)
