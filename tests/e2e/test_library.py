#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libciphermill against a daemon that stops, ends or comes back, and across fork; called through ctypes."""
import os
import time

from harness import SANITIZE, SLOW, Case, gcm_open, main, openssl, pattern, wait_for

if not SANITIZE:
    import libcm


class Library(Case):
    def setUp(self):
        if SANITIZE:
            self.skipTest("a sanitized library can't be loaded into this interpreter")
        super().setUp()
        self.d = self.daemon()
        self.key = self.import_key(self.d, "k", pattern(16))

    def client(self, **options):
        client = libcm.Client(self.d.unix, **options)
        self.addCleanup(client.close)
        return client

    def test_batch(self):
        key = self.client().key("k")
        messages = [pattern(size, size + 1) for size in (0, 1, 16, 1000, 100000)]
        for mode, word in ((libcm.CBC, "cbc"), (libcm.CTR, "ctr")):
            out = key.encrypt(mode, messages)
            for (status, cipher, iv, _), plain in zip(out, messages):
                self.assertEqual((status, len(iv)), (0, 16))
                self.assertEqual(cipher, openssl(word, self.key, plain, iv))
            back = key.decrypt(mode, [(cipher, iv, b"") for _, cipher, iv, _ in out])
            self.assertEqual([plain for _, plain, _, _ in back], messages)
        key.close()

    def test_a_bad_item_leaves_its_neighbours(self):
        gcm = self.import_key(self.d, "g", pattern(32, 4), "gcm", caller_iv=False)
        key = self.client().key("g")
        sealed = [(cipher, iv, tag) for _, cipher, iv, tag in key.encrypt(libcm.GCM, [b"one", b"two", b"three"])]
        self.assertEqual(gcm_open(gcm, sealed[1][1], sealed[1][0], sealed[1][2]), b"two")
        sealed[1] = (sealed[1][0], sealed[1][1], bytes(16))
        out = key.decrypt(libcm.GCM, sealed)
        self.assertEqual([status for status, *_ in out], [0, -5, 0])
        self.assertEqual([plain for _, plain, *_ in out], [b"one", b"", b"three"])
        key.close()

    def test_stopped_daemon_gives_a_time_out_of_class_unknown(self):
        client = self.client(request_timeout_ms=500, no_reconnect=1)
        key = client.key("k")
        key.encrypt(libcm.CTR, [b"x"])
        self.d.suspend()
        try:
            started = time.monotonic()
            with self.assertRaises(libcm.Failed) as caught:
                key.encrypt(libcm.CTR, [b"x"])
            self.assertLess(time.monotonic() - started, 10 * SLOW)
            self.assertEqual((caught.exception.code, caught.exception.retry), (libcm.ERR_TIMEOUT, libcm.RETRY_UNKNOWN))
        finally:
            self.d.resume()
        key.close()

    def test_connecting_to_a_stopped_daemon_ends_in_time(self):
        self.d.suspend()
        try:
            with self.assertRaises(libcm.Failed) as caught:
                libcm.Client(self.d.unix, connect_timeout_ms=500)
            self.assertEqual(caught.exception.retry, libcm.RETRY_NOT_EXECUTED)
        finally:
            self.d.resume()

    def test_reconnects_after_a_restart(self):
        client = self.client()
        key = client.key("k")
        key.encrypt(libcm.CTR, [b"x"])
        self.d.stop()
        with self.assertRaises(libcm.Failed):
            key.encrypt(libcm.CTR, [b"x"])
        self.d.start()

        def again():
            try:
                return key.encrypt(libcm.CTR, [b"hello"])
            except libcm.Failed:
                return None

        status, cipher, iv, _ = wait_for(again, "the client to connect anew")[0]
        self.assertEqual((status, cipher), (0, openssl("ctr", self.key, b"hello", iv)))
        key.close()

    def test_fork(self):
        """The child's use fails cleanly, closing in the child is harmless, and the parent goes on."""
        client = self.client()
        key = client.key("k")
        key.encrypt(libcm.CTR, [b"before"])
        child = os.fork()
        if child == 0:
            code = 1
            try:
                key.encrypt(libcm.CTR, [b"child"])
            except libcm.Failed as failed:
                code = 0 if failed.code == libcm.ERR_FORKED else 2
            try:
                key.close()
                client.close()
                own = libcm.Client(self.d.unix)  # connecting anew is fine
                mine = own.key("k")
                status, cipher, iv, _ = mine.encrypt(libcm.CTR, [b"child"])[0]
                if status != 0 or cipher != openssl("ctr", self.key, b"child", iv):
                    code = 3
                mine.close()
                own.close()
            except libcm.Failed:
                code = 4
            os._exit(code)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        status, cipher, iv, _ = key.encrypt(libcm.CTR, [b"parent"])[0]
        self.assertEqual((status, cipher), (0, openssl("ctr", self.key, b"parent", iv)))
        key.close()


if __name__ == "__main__":
    main()
