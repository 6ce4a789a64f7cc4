#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How the daemon starts: sockets, their modes, who else is there; the master key; the configuration."""
import grp
import hashlib
import os
import stat

from harness import DAEMON, Case, main, pattern, run


def listeners(pid):
    """Local addresses (hex, as /proc says) of the TCP sockets on which a process listens."""
    inodes = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            link = os.readlink(f"/proc/{pid}/fd/{name}")
        except FileNotFoundError:
            continue
        if link.startswith("socket:["):
            inodes.add(link[8:-1])
    found = []
    for family in ("tcp", "tcp6"):
        with open(f"/proc/{pid}/net/{family}", encoding="ascii") as file:
            for line in list(file)[1:]:
                fields = line.split()
                if fields[3] == "0A" and fields[9] in inodes:
                    found.append(fields[1].split(":")[0])
    return found


class Start(Case):
    def fails(self, daemon, *words):
        """It has to end by itself, not with 0, and say every one of `words`."""
        daemon.start(ready=False)
        code = daemon.wait()
        daemon.process = None
        self.assertGreater(code, 0, daemon.log())
        for word in words:
            self.assertIn(word.lower(), daemon.log().lower())
        return daemon.log()

    def test_listens_on_loopback_and_unix_only(self):
        d = self.daemon()
        found = listeners(d.pid)
        self.assertEqual(found, ["0100007F"] * 2)  # 127.0.0.1 for clients and for metrics, and nothing else
        for uri in ("tcp://0.0.0.0:0", "tcp://0.0.0.0:7700", "tcp://192.0.2.1:7700"):
            self.fails(self.make_daemon(name="x", listen=[uri], metrics=False), "loopback")

    def test_mode_and_group_as_configured(self):
        group = grp.getgrgid(os.getgid()).gr_name
        groups = os.getgroups()
        if os.getuid() == 0:
            group = "daemon"
        elif groups:
            group = grp.getgrgid(groups[-1]).gr_name
        d = self.make_daemon(listen=[], metrics=False)
        config = self.write("c.conf", f'listen "{d.unix}" {{ group = "{group}" mode = "0620" admin = true }}\n'.encode())
        d.argv += ["--config", config]
        d.start()
        found = os.stat(d.socket)
        self.assertEqual(stat.S_IMODE(found.st_mode), 0o620)
        self.assertEqual(found.st_gid, grp.getgrnam(group).gr_gid)

    def test_second_daemon_on_a_socket_is_refused(self):
        d = self.daemon()
        second = self.make_daemon(name="second", listen=[d.unix], metrics=False)
        self.fails(second, d.socket, "already listens")
        self.ok(d, "status")

    def test_second_daemon_on_a_state_folder_is_refused(self):
        d = self.daemon()
        second = self.make_daemon(name="second", tcp=False, metrics=False)
        second.argv[second.argv.index("--state") + 1] = d.state
        self.fails(second, d.state)
        self.ok(d, "status")

    def test_stale_socket_is_replaced(self):
        d = self.daemon()
        d.process.kill()
        d.process.wait()
        self.assertTrue(stat.S_ISSOCK(os.stat(d.socket).st_mode))
        d.start()
        self.ok(d, "status")

    def test_a_file_in_the_sockets_place_stays(self):
        d = self.make_daemon(metrics=False)
        with open(d.socket, "w", encoding="ascii") as file:
            file.write("precious")
        self.fails(d, d.socket)
        with open(d.socket, encoding="ascii") as file:
            self.assertEqual(file.read(), "precious")

    def test_socket_goes_with_the_daemon(self):
        d = self.daemon()
        d.stop()
        self.assertFalse(os.path.exists(d.socket))

    # --- The master key ---

    def store_bytes(self, d):
        return {name: hashlib.sha256(open(os.path.join(d.state, name), "rb").read()).hexdigest()
                for name in sorted(os.listdir(d.state))}

    def stopped_with_a_key(self):
        d = self.daemon()
        self.import_key(d, "k", pattern(16))
        d.stop()
        return d, os.path.join(d.state, "master.key")

    def test_master_key_is_made_once_and_closed(self):
        d, path = self.stopped_with_a_key()
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        self.assertEqual(os.stat(path).st_size, 32)
        self.assertIn("back", d.log().lower())  # "back this up"
        before = self.store_bytes(d)["master.key"]
        d.start()
        d.stop()
        self.assertEqual(self.store_bytes(d)["master.key"], before)

    def test_open_master_key_is_refused(self):
        d, path = self.stopped_with_a_key()
        os.chmod(path, 0o644)
        before = self.store_bytes(d)
        self.fails(d, path, "0644", "0600", "chmod")
        self.assertEqual(self.store_bytes(d), before)
        os.chmod(path, 0o600)
        d.start()
        self.ok(d, "key", "describe", "k")

    def test_missing_master_key_is_refused(self):
        d, path = self.stopped_with_a_key()
        os.rename(path, path + ".away")
        before = self.store_bytes(d)
        log = self.fails(d, path)
        self.assertRegex(log.lower(), "restore|backup|put back|back up")
        self.assertEqual(self.store_bytes(d), before)

    def test_another_master_key_is_refused(self):
        d, path = self.stopped_with_a_key()
        with open(path, "wb") as file:
            file.write(pattern(32, 99))
        before = self.store_bytes(d)
        self.fails(d, path)
        self.assertEqual(self.store_bytes(d), before)

    def test_master_key_of_a_wrong_length_is_refused(self):
        d, path = self.stopped_with_a_key()
        with open(path, "wb") as file:
            file.write(bytes(31))
        self.fails(d, path, "31 bytes")

    # --- The configuration ---

    def check(self, text, *flags):
        path = self.write("c.conf", text.encode())
        return run([DAEMON, "--config", path, "--check-config", *flags])

    def test_check_config(self):
        good = (f'listen "unix:{self.folder}/s" {{ mode = "0600" }}\nmetrics = "127.0.0.1:7701"\n'
                f'state = "{self.folder}"\nlimits {{ frame = "32MiB" }}\n')
        for text in (good, f'state = "{self.folder}"\n', ""):
            result = self.check(text)
            self.assertEqual((result.code, result.err), (0, b""), result)
        self.assertFalse(os.path.exists(self.path("s")), "checking must not listen")
        self.assertFalse(os.path.exists(self.path("keys.db")), "checking must not make a store")

    def test_errors_name_file_and_line(self):
        for text, line in (('metrics = "127.0.0.1:7701"\nfrobnicate = 1\n', 2),
                           ('\n\nlimits { frame = "many" }\n', 3),
                           ('limits {\n  framez = "1MiB"\n}\n', 2),
                           ('listen "unix:/x" {\n  mode = "0999"\n}\n', 2)):
            with self.subTest(text=text):
                result = self.check(text)
                self.assertGreater(result.code, 0, result)
                self.assertRegex(result.err.decode(), rf"c\.conf:{line}\b", result)

    def test_print_config_shows_what_is_in_force(self):
        path = self.write("c.conf", b'limits { frame = "32MiB" }\n')
        result = run([DAEMON, "--config", path, "--state", self.folder, "--print-config"])
        self.assertEqual(result.code, 0, result)
        text = result.out.decode()
        self.assertRegex(text, r"frame\s*=\s*\"?(32MiB|33554432)")
        self.assertIn("listen", text)
        # What it prints is a configuration that it takes.
        again = self.check(text)
        self.assertEqual(again.code, 0, again)

    def test_unknown_flags_and_help(self):
        result = run([DAEMON, "--frobnicate"])
        self.assertGreater(result.code, 0)
        self.assertIn("frobnicate", result.err.decode())
        result = run([DAEMON, "--help"])
        self.assertEqual(result.code, 0)
        for flag in ("--listen", "--metrics", "--state", "--workers", "--config", "--check-config", "--print-config"):
            self.assertIn(flag, result.out.decode())

    def test_descriptors_do_not_leak_into_it(self):
        """Only its own: what it opens is close-on-exec."""
        d = self.daemon()
        for name in os.listdir(f"/proc/{d.pid}/fdinfo"):
            if int(name) <= 2:
                continue
            try:
                with open(f"/proc/{d.pid}/fdinfo/{name}", encoding="ascii") as file:
                    flags = next(int(line.split()[1], 8) for line in file if line.startswith("flags:"))
            except FileNotFoundError:
                continue  # the connection that asked for readiness has just ended
            self.assertTrue(flags & os.O_CLOEXEC, f"{name}: {os.readlink(f'/proc/{d.pid}/fd/{name}')}")


if __name__ == "__main__":
    main()
