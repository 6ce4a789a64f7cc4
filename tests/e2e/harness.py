# SPDX-License-Identifier: Apache-2.0
"""Starts the real programs for the end-to-end tests and asks the `openssl` command (or libcrypto) who is right.

The environment comes from ctest: CM_BIN is the folder of the programs, CM_LIB that of the libraries, CM_SANITIZE
the sanitizers that they were built with. Nothing here sleeps to synchronise: everything waits for a condition,
with a deadline that is generous and multiplied under sanitizers.
"""
import atexit
import ctypes
import ctypes.util
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BIN = os.environ.get("CM_BIN", os.path.join(ROOT, "build", "dev", "bin"))
LIB = os.environ.get("CM_LIB", os.path.join(ROOT, "build", "dev", "lib"))
SANITIZE = os.environ.get("CM_SANITIZE", "")
SLOW = 10 if "thread" in SANITIZE else 4 if SANITIZE else 1
DAEMON = os.path.join(BIN, "ciphermilld")
COMMAND = os.path.join(BIN, "ciphermill")
NOBODY = 65534
MIB = 1 << 20
PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)


def _die_with_parent():
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def wait_for(condition, what, seconds=20.0):
    """Waits until condition() is true and returns its value."""
    deadline = time.monotonic() + seconds * SLOW
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds * SLOW:.0f} s in vain for {what}")
        time.sleep(0.01)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def process_status(pid, field):
    """A field of /proc/PID/status in KiB or as a number; None if the process is gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith(field + ":"):
                    return int(line.split()[1])
    except (FileNotFoundError, ProcessLookupError):
        pass
    return None


def process_seconds(pid):
    """Processor time that a process has used so far."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Daemon:
    """One ciphermilld over a Unix socket and TCP, with its state in a folder of its own."""

    def __init__(self, folder, *arguments, tcp=True, metrics=True, env=None, listen=None, wrapper=(), bin_folder=None):
        self.folder = folder
        self.socket = os.path.join(folder, "cm.sock")
        self.state = os.path.join(folder, "state")
        self.unix = f"unix:{self.socket}"
        self.tcp = f"tcp://127.0.0.1:{free_port()}" if tcp else None
        self.metrics_port = free_port() if metrics else None
        self.env = {**os.environ, **(env or {})}
        self.log_path = os.path.join(folder, "log")
        argv = [*wrapper, os.path.join(bin_folder or BIN, "ciphermilld")]
        for uri in [self.unix, self.tcp] if listen is None else listen:
            argv += ["--listen", uri] if uri else []
        if metrics:
            argv += ["--metrics", f"127.0.0.1:{self.metrics_port}"]
        self.argv = [*argv, "--state", self.state, *arguments]
        self.process = None

    def start(self, ready=True):
        os.makedirs(self.state, mode=0o700, exist_ok=True)
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.argv, env=self.env, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, preexec_fn=_die_with_parent)
        if ready:
            wait_for(self.is_ready, f"{' '.join(self.argv)} to be ready")
        return self

    @property
    def pid(self):
        return self.process.pid

    def is_ready(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the daemon ended with {self.process.returncode}:\n{self.log()}")
        if self.metrics_port:
            try:
                return self.get("/readyz")[0] == 200
            except OSError:
                return False
        try:
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(self.socket)
            return True
        except OSError:
            return False

    def get(self, path):
        """Asks the metrics listener: (status, text)."""
        connection = http.client.HTTPConnection("127.0.0.1", self.metrics_port, timeout=10 * SLOW)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def peak_kib(self):
        return process_status(self.pid, "VmHWM")

    def wait(self, seconds=30.0):
        try:
            return self.process.wait(seconds * SLOW)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the daemon did not end:\n{self.log()}") from None

    def stop(self):
        """Ends it as an operator would. Its exit status has to be 0, and no sanitizer may have spoken."""
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        status = self.wait()
        self.process = None
        text = self.log()
        assert status == 0, f"the daemon ended with {status}:\n{text}"
        for word in ("Sanitizer", "runtime error:"):
            assert word not in text, f"a sanitizer spoke:\n{text}"

    def suspend(self):
        """SIGSTOP, and waits until every thread stands still: the signal alone only asks for it."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitpid(self.pid, os.WUNTRACED)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process = None


class Result:
    """What a command gave."""

    def __init__(self, argv, code, out, err, peak_kib):
        self.argv, self.code, self.out, self.err, self.peak_kib = argv, code, out, err, peak_kib

    @property
    def json(self):
        return json.loads(self.out)

    def __str__(self):
        return (f"{' '.join(self.argv)}\n  ended with {self.code}\n  stdout: {self.out[:2000]!r}\n"
                f"  stderr: {self.err.decode(errors='replace')[:4000]}")


def run(argv, stdin=None, env=None, seconds=60.0, user=None):
    """Runs a program to its end. `stdin` is bytes or a path-like open file."""
    argv = [str(word) for word in argv]
    feed = stdin if isinstance(stdin, bytes) else None
    source = subprocess.PIPE if feed is not None else stdin if stdin is not None else subprocess.DEVNULL
    extra = {"user": user, "group": user, "extra_groups": []} if user is not None else {}
    process = subprocess.Popen(argv, stdin=source, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env={**os.environ, **(env or {})}, preexec_fn=_die_with_parent, **extra)
    try:
        out, err = process.communicate(feed, timeout=seconds * SLOW)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"{' '.join(argv)} did not end in {seconds * SLOW} s: {err.decode()}") from None
    return Result(argv, process.returncode, out, err, None)


def run_measured(argv, seconds=600.0, env=None):
    """As run, without input and with little output; gives the peak of its resident memory as well."""
    argv = [str(word) for word in argv]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                   env={**os.environ, **(env or {})}, preexec_fn=_die_with_parent)
        peak, deadline = 0, time.monotonic() + seconds * SLOW
        while process.poll() is None:
            # VmHWM only grows, so that the last look before the end is as good as the peak.
            peak = max(peak, process_status(process.pid, "VmHWM") or 0)
            if time.monotonic() > deadline:
                process.kill()
            time.sleep(0.005)
        for file in (out, err):
            file.seek(0)
        return Result(argv, process.returncode, out.read(), err.read(), peak)


# --- The judges -------------------------------------------------------------------------------------------------

def openssl_argv(mode, key, iv=None, decrypt=False, padding=True):
    argv = ["openssl", "enc", f"-aes-{len(key) * 8}-{mode}", "-d" if decrypt else "-e", "-K", key.hex()]
    argv += ["-iv", iv.hex()] if mode != "ecb" else []
    return argv + ([] if padding else ["-nopad"])


def openssl(mode, key, data, iv=None, decrypt=False, padding=True):
    """What the `openssl` command makes of it; raises if it refuses."""
    return subprocess.run(openssl_argv(mode, key, iv, decrypt, padding), input=data, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=True).stdout


_crypto = None


def _libcrypto():
    global _crypto
    if _crypto is None:
        _crypto = ctypes.CDLL(ctypes.util.find_library("crypto") or "libcrypto.so.3")
        _crypto.EVP_CIPHER_CTX_new.restype = ctypes.c_void_p
        for bits in (128, 192, 256):
            getattr(_crypto, f"EVP_aes_{bits}_gcm").restype = ctypes.c_void_p
    return _crypto


def _gcm(key, iv, aad, data, encrypt, tag=None, tag_length=16):
    crypto = _libcrypto()
    context = ctypes.c_void_p(crypto.EVP_CIPHER_CTX_new())
    cipher = ctypes.c_void_p(getattr(crypto, f"EVP_aes_{len(key) * 8}_gcm")())
    out, length = ctypes.create_string_buffer(len(data) + 16), ctypes.c_int(0)
    try:
        ok = crypto.EVP_CipherInit_ex(context, cipher, None, None, None, encrypt)
        ok &= crypto.EVP_CIPHER_CTX_ctrl(context, 9, len(iv), None)  # EVP_CTRL_AEAD_SET_IVLEN
        ok &= crypto.EVP_CipherInit_ex(context, None, None, key, iv, encrypt)
        if aad:
            ok &= crypto.EVP_CipherUpdate(context, None, ctypes.byref(length), aad, len(aad))
        ok &= crypto.EVP_CipherUpdate(context, out, ctypes.byref(length), data, len(data))
        if not encrypt:
            ok &= crypto.EVP_CIPHER_CTX_ctrl(context, 17, len(tag), tag)  # EVP_CTRL_AEAD_SET_TAG
        final = crypto.EVP_CipherFinal_ex(context, ctypes.create_string_buffer(16), ctypes.byref(length))
        assert ok == 1, "libcrypto refused GCM's parameters"
        if not encrypt:
            return out.raw[:len(data)] if final == 1 else None
        result = ctypes.create_string_buffer(16)
        assert final == 1 and crypto.EVP_CIPHER_CTX_ctrl(context, 16, tag_length, result) == 1
        return out.raw[:len(data)], result.raw[:tag_length]
    finally:
        crypto.EVP_CIPHER_CTX_free(context)


def gcm_seal(key, iv, data, aad=b"", tag_length=16):
    """(ciphertext, tag) by libcrypto."""
    return _gcm(key, iv, aad, data, 1, tag_length=tag_length)


def gcm_open(key, iv, data, tag, aad=b""):
    """The plaintext by libcrypto, or None if the tag is wrong."""
    return _gcm(key, iv, aad, data, 0, tag=tag)


def libcrypto(mode, bits, key, data, iv=None, decrypt=False, padding=True):
    """What the library behind the `openssl` command makes of it: for many short messages, and for XTS, which the
    command does not know."""
    crypto = _libcrypto()
    crypto.EVP_get_cipherbyname.restype = ctypes.c_void_p
    context = ctypes.c_void_p(crypto.EVP_CIPHER_CTX_new())
    cipher = ctypes.c_void_p(crypto.EVP_get_cipherbyname(f"aes-{bits}-{mode}".encode()))
    out, length, rest = ctypes.create_string_buffer(len(data) + 16), ctypes.c_int(0), ctypes.c_int(0)
    try:
        ok = crypto.EVP_CipherInit_ex(context, cipher, None, key, iv, 0 if decrypt else 1)
        ok &= crypto.EVP_CIPHER_CTX_set_padding(context, 1 if padding else 0)
        if data:
            ok &= crypto.EVP_CipherUpdate(context, out, ctypes.byref(length), data, len(data))
        ok &= crypto.EVP_CipherFinal_ex(context, ctypes.byref(out, length.value), ctypes.byref(rest))
        assert ok == 1, f"libcrypto refused aes-{bits}-{mode} of {len(data)} bytes"
        return out.raw[:length.value + rest.value]
    finally:
        crypto.EVP_CIPHER_CTX_free(context)


def xts(key, tweak, data, decrypt=False):
    """A data unit by libcrypto, under a key of 32 or 64 bytes."""
    return libcrypto("xts", len(key) * 4, key, data, tweak, decrypt)


def xts_units(key, data, first, unit_bytes, decrypt=False):
    """Data units of so many bytes, the last one maybe shorter, numbered from `first`, as of a disk's image."""
    return b"".join(xts(key, (first + n).to_bytes(16, "little"), data[at:at + unit_bytes], decrypt)
                    for n, at in enumerate(range(0, len(data), unit_bytes)))


def pattern(length, seed=1):
    """Bytes that look random, always the same for a seed, made fast: the key stream of a fixed key."""
    block = openssl("ctr", seed.to_bytes(16, "big"), bytes(min(length, MIB)), bytes(16))
    return (block * (length // len(block) + 1))[:length] if length else b""


# --- The tests' frame -------------------------------------------------------------------------------------------

class Case(unittest.TestCase):
    """A test with a scratch folder, and daemons that are stopped, and looked at, in the end."""

    def setUp(self):
        # Short: a Unix socket's path has to fit 107 bytes.
        self.folder = tempfile.mkdtemp(prefix="cm-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self._daemons = []
        self.addCleanup(self._end)

    def _end(self):
        for daemon in self._daemons:
            daemon.kill()

    def tearDown(self):
        for daemon in self._daemons:
            daemon.stop()

    def daemon(self, *arguments, name="d", **options):
        """Starts a daemon that has to end well."""
        daemon = self.make_daemon(*arguments, name=name, **options)
        return daemon.start()

    def make_daemon(self, *arguments, name="d", **options):
        folder = os.path.join(self.folder, name)
        os.makedirs(folder, exist_ok=True)
        daemon = Daemon(folder, *arguments, **options)
        self._daemons.append(daemon)
        return daemon

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data, mode=0o600):
        path = self.path(name)
        with open(path, "wb") as file:
            file.write(data)
        os.chmod(path, mode)
        return path

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def command(self, endpoint, *words, stdin=None, **options):
        """Runs `ciphermill` against an endpoint (a Daemon or a URI)."""
        uri = endpoint.unix if isinstance(endpoint, Daemon) else endpoint
        return run([COMMAND, "--endpoint", uri, *words], stdin=stdin, **options)

    def ok(self, endpoint, *words, stdin=None, **options):
        result = self.command(endpoint, *words, stdin=stdin, **options)
        self.assertEqual(result.code, 0, result)
        return result

    def refused(self, endpoint, *words, stdin=None, says=(), code=None, **options):
        """The command has to fail, by its own decision and with a reason that holds every word of `says`."""
        result = self.command(endpoint, *words, stdin=stdin, **options)
        self.assertGreater(result.code, 0, result)
        self.assertLess(result.code, 100, result)
        self.assertTrue(result.err.strip(), result)
        if code is not None:
            self.assertEqual(result.code, code, result)
        for word in says:
            self.assertIn(word.lower(), result.err.decode().lower(), result)
        return result

    def import_key(self, endpoint, name, key, modes="ecb,cbc,ctr", caller_iv=True):
        bits = len(key) * (4 if modes == "xts" else 8)
        self.ok(endpoint, "key", "import", name, "--algorithm", f"aes-{bits}", "--modes", modes,
                *(["--caller-iv"] if caller_iv else []), "--hex", "-", stdin=key.hex().encode())
        return key


def programs_for_anybody(folder):
    """Copies the programs to a folder where any user can run them; the build tree may be closed to others."""
    place = os.path.join(folder, "programs")
    os.makedirs(os.path.join(place, "bin"))
    for name in ("ciphermill", "ciphermilld"):
        shutil.copy(os.path.join(BIN, name), os.path.join(place, "bin"))
    shutil.copytree(LIB, os.path.join(place, "lib"), symlinks=True)
    os.chmod(folder, 0o755)
    return place


def main():
    """Runs the calling file's tests. 77 tells ctest that everything was skipped; single skips are printed so that
    tests/run can count them."""
    if not os.access(DAEMON, os.X_OK) or not os.access(COMMAND, os.X_OK):
        sys.exit(f"no programs in {BIN}")
    atexit.register(sys.stdout.flush)
    program = unittest.main(exit=False, verbosity=2)
    result = program.result
    for case, reason in result.skipped:
        print(f"skipped: {case.id()}: {reason}", flush=True)
    if not result.wasSuccessful() or result.testsRun == 0:
        sys.exit(1)
    sys.exit(77 if len(result.skipped) == result.testsRun else 0)
