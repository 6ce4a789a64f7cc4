#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Wrong endpoints: each gives an error of its own within the connect timeout."""
import http.server
import os
import re
import socket
import threading
import time

from harness import COMMAND, NOBODY, SLOW, Case, main, programs_for_anybody, run


class Quiet(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Endpoints(Case):
    def fails_with(self, uri, *says, user=None, command=COMMAND):
        started = time.monotonic()
        result = run([command, "--endpoint", uri, "status"], user=user)
        self.assertLess(time.monotonic() - started, 8 * SLOW, "the connect timeout is 5 s")
        self.assertGreater(result.code, 0, result)
        text = result.err.decode().strip()
        self.assertTrue(text, result)
        for word in says:
            self.assertIn(word.lower(), text.lower())
        return text

    def no_such_socket(self):
        return self.fails_with(f"unix:{self.path('absent')}", self.path("absent"))

    def no_permission(self):
        d = self.daemon(tcp=False)
        if os.getuid() == 0:
            command = os.path.join(programs_for_anybody(self.folder), "bin", "ciphermill")
            os.chmod(d.folder, 0o755)
            os.chmod(d.socket, 0o600)
            return self.fails_with(d.unix, f"uid {NOBODY}", f"gid {NOBODY}", "may not connect", user=NOBODY, command=command)
        os.chmod(d.socket, 0)
        return self.fails_with(d.unix, f"uid {os.getuid()}", f"gid {os.getgid()}", "may not connect")

    def http_server(self):
        server = http.server.HTTPServer(("127.0.0.1", 0), Quiet)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            return self.fails_with(f"tcp://127.0.0.1:{server.server_port}")
        finally:
            server.shutdown()
            server.server_close()

    def silence(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            return self.fails_with(f"tcp://127.0.0.1:{server.getsockname()[1]}")

    def test_four_wrong_endpoints_four_errors(self):
        texts = [self.no_such_socket(), self.no_permission(), self.http_server(), self.silence()]
        words = [re.search(r"\[(\w+), retry: ", text)[1] for text in texts]
        self.assertEqual(words, ["not_found", "no_access", "not_ciphermill", "connect_timeout"])
        self.assertNotIn("timed out", texts[2].lower())

    def test_nobody_listens_on_the_port(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        self.fails_with(f"tcp://127.0.0.1:{port}", str(port))

    def test_what_is_no_uri(self):
        for uri in ("", "nonsense", "unix:", "tcp://", "tcp://127.0.0.1", "tcp://127.0.0.1:0", "tcp://127.0.0.1:99999",
                    "http://127.0.0.1:80", "unix:" + "/x" * 200):
            with self.subTest(uri=uri):
                self.fails_with(uri)

    def test_environment_names_the_endpoint(self):
        d = self.daemon()
        result = run([COMMAND, "status"], env={"CIPHERMILL_ENDPOINT": d.unix})
        self.assertEqual(result.code, 0, result)


if __name__ == "__main__":
    main()
