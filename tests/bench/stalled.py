#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What stalled peers cost the others: 600 connections under load, alone and beside 400 bad ones.

usage: stalled.py [--rounds N] [--seconds S] [--good N] [--half N] [--deaf N] [--json]
`half` connections stop half-way through a frame, `deaf` ones send for as long as the daemon takes anything and never
read. Rounds without and with them take turns; prints the median ratio of the others' throughput (goal: at least 0.8)
and the daemon's peak memory beside its configured limit. Against the release build unless CM_BIN says otherwise.
"""
import argparse
import json
import os
import selectors
import shutil
import statistics
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
os.environ.setdefault("CM_BIN", os.path.join(ROOT, "build", "release", "bin"))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
from harness import COMMAND, MIB, Daemon, process_status, run  # noqa: E402
from pyclient import CTR, ENCRYPT, Client  # noqa: E402

LIMIT_MIB = 512


def bad_peers(daemon, half, deaf):
    """Connects them and has the deaf ones send until nothing more is taken."""
    peers, pending = [], selectors.DefaultSelector()
    for number in range(half + deaf):
        client = Client(daemon.unix)
        handle = client.ephemeral_key(128, [CTR])
        _, data = client.batch_frame(handle, CTR, ENCRYPT, [bytes(MIB)])
        peers.append(client)
        if number < half:
            client.socket.sendall(data[:len(data) // 2])
        else:
            client.socket.setblocking(False)
            pending.register(client.socket, selectors.EVENT_WRITE, [data * 4, 0])
    quiet = time.monotonic()
    while pending.get_map() and time.monotonic() - quiet < 2:
        for event, _ in pending.select(0.1):
            state = event.data
            try:
                state[1] += event.fileobj.send(memoryview(state[0])[state[1]:])
                quiet = time.monotonic()
                if state[1] == len(state[0]):
                    pending.unregister(event.fileobj)  # it has sent all four; their replies stay unread
            except BlockingIOError:
                pass
            except OSError:
                pending.unregister(event.fileobj)
    return peers


def throughput(daemon, arguments):
    result = run([COMMAND, "--endpoint", daemon.unix, "bench", "--mode", "ctr", "--bits", "128", "--size", "1024",
                  "--batch", "16", "--inflight", "1", "--connections", str(arguments.good), "--duration",
                  str(arguments.seconds), "--json"], seconds=120)
    assert result.code == 0, result
    assert result.json["errors"] == 0 and result.json["mismatches"] == 0 and result.json["verified"] > 0, result
    return result.json["bytes_per_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("rounds", 5), ("seconds", 4), ("good", 600), ("half", 300), ("deaf", 100)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="cm-", dir="/tmp")
    config = os.path.join(folder, "c.conf")
    with open(config, "w", encoding="ascii") as file:
        file.write(f'limits {{ inflight = "{LIMIT_MIB}MiB" }}\n')
    daemon, rounds = Daemon(folder, "--config", config, tcp=False), []
    try:
        daemon.start()
        idle = process_status(daemon.pid, "VmRSS")
        throughput(daemon, arguments)
        for _ in range(arguments.rounds):
            alone = throughput(daemon, arguments)
            peers = bad_peers(daemon, arguments.half, arguments.deaf)
            rounds.append((alone, throughput(daemon, arguments)))
            for peer in peers:
                peer.close()
        peak = daemon.peak_kib()
        daemon.stop()
    finally:
        daemon.kill()
        shutil.rmtree(folder, True)
    ratios = sorted(beside / alone for alone, beside in rounds)
    result = {"good": arguments.good, "half": arguments.half, "deaf": arguments.deaf,
              "ratio": statistics.median(ratios), "ratios": ratios,
              "alone_bytes_per_s": statistics.median(alone for alone, _ in rounds), "idle_kib": idle,
              "peak_kib": peak, "inflight_limit_kib": LIMIT_MIB * 1024}
    if arguments.json:
        print(json.dumps(result, indent=2))
        return
    print(f"{arguments.good} connections beside {arguments.half} half-way and {arguments.deaf} deaf ones: "
          f"{result['ratio']:.2f} of their throughput alone ({ratios[0]:.2f} to {ratios[-1]:.2f} in {arguments.rounds} "
          f"rounds; alone {result['alone_bytes_per_s'] / 1e6:.0f} MB/s)\nmemory: {idle // 1024} MiB idle, "
          f"{peak // 1024} MiB at its peak, limit for what is in flight {LIMIT_MIB} MiB")


if __name__ == "__main__":
    main()
