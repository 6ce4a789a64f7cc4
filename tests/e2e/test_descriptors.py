#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Out of descriptors the daemon pauses accepting, never spins, and recovers by itself."""
import socket
import time

from harness import SLOW, Case, main, openssl, pattern, process_seconds, wait_for
from pyclient import CTR, ENCRYPT, Client

IV = bytes(16)


class Descriptors(Case):
    def test_exhausted(self):
        d = self.daemon(wrapper=("prlimit", "--nofile=64:64"))
        key = self.import_key(d, "k", pattern(16))
        old = Client(d.unix)
        handle = old.open_key("k")
        # More than fit; the kernel takes them into the backlog, so that connecting succeeds all the same.
        crowd = []
        for _ in range(90):
            peer = socket.socket(socket.AF_UNIX)
            peer.settimeout(5)
            peer.connect(d.socket)
            crowd.append(peer)
        before, started = process_seconds(d.pid), time.monotonic()
        # Meanwhile the connections that are there are served.
        for turn in range(20):
            reply = old.batch(handle, CTR, ENCRYPT, [pattern(1000, turn)], ivs=[IV])
            self.assertEqual(reply.outputs, [openssl("ctr", key, pattern(1000, turn), IV)])
        time.sleep(max(0.0, 1.5 * SLOW - (time.monotonic() - started)))
        spent, took = process_seconds(d.pid) - before, time.monotonic() - started
        self.assertLess(spent, took / 3, "it spins")
        for peer in crowd:
            peer.close()

        def served():
            try:
                client = Client(d.unix, timeout=2)
            except (OSError, EOFError):
                return False
            client.close()
            return True

        wait_for(served, "a new connection to be served again")
        old.close()
        self.ok(d, "status")


if __name__ == "__main__":
    main()
