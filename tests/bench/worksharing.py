#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What sharing work between workers is worth to one connection that sends 1 MiB CTR items.

usage: worksharing.py [--rounds N] [--seconds S] [--inflight N] [--json]
Two daemons, one with --workers 1 and one with a worker a core, take turns under the same load, for the portable and
for the fastest implementation. Prints the median ratio of each with its spread; goals: portable at least 1.7 on two
cores, the fastest never below 1. With more than one item in flight the client's own copying competes with the workers
for the same cores. Every answer is verified. Against the release build unless CM_BIN says otherwise.
"""
import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
os.environ.setdefault("CM_BIN", os.path.join(ROOT, "build", "release", "bin"))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
from harness import COMMAND, Daemon, run  # noqa: E402


def throughput(daemon, arguments):
    result = run([COMMAND, "--endpoint", daemon.unix, "bench", "--mode", "ctr", "--bits", "128", "--size", "1048576",
                  "--batch", "1", "--inflight", str(arguments.inflight), "--connections", "1", "--duration",
                  str(arguments.seconds), "--json"])
    assert result.code == 0, result
    assert result.json["errors"] == 0 and result.json["mismatches"] == 0 and result.json["verified"] > 0, result
    return result.json["bytes_per_s"]


def compare(folder, limit, arguments):
    env = {"CIPHERMILL_CPU": limit} if limit else {}
    daemons = []
    try:
        for workers in ("1", str(os.cpu_count())):
            place = os.path.join(folder, f"{limit or 'fastest'}{workers}")
            os.makedirs(place)
            daemons.append(Daemon(place, "--workers", workers, tcp=False, metrics=False, env=env).start())
        rounds = [[throughput(daemon, arguments) for daemon in daemons] for _ in range(arguments.rounds)]
        for daemon in daemons:
            daemon.stop()
    finally:
        for daemon in daemons:
            daemon.kill()
    ratios = [many / one for one, many in rounds]
    return {"implementation": limit or "fastest", "workers": os.cpu_count(), "ratio": statistics.median(ratios),
            "ratios": sorted(ratios), "one_worker_bytes_per_s": statistics.median(one for one, _ in rounds)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--inflight", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="cm-", dir="/tmp")
    try:
        results = [compare(folder, limit, arguments) for limit in ("portable", None)]
    finally:
        shutil.rmtree(folder, True)
    if arguments.json:
        print(json.dumps(results, indent=2))
        return
    for result in results:
        print(f"{result['implementation']:>9}: {result['workers']} workers give {result['ratio']:.2f} times the "
              f"throughput of one ({result['ratios'][0]:.2f} to {result['ratios'][-1]:.2f} in {arguments.rounds} rounds; "
              f"one: {result['one_worker_bytes_per_s'] / 1e6:.0f} MB/s)")


if __name__ == "__main__":
    main()
