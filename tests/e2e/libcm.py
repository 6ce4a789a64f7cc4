# SPDX-License-Identifier: Apache-2.0
"""libciphermill through ctypes: the public header's structs and calls, as a program in another language sees them."""
import ctypes
import glob
import os
from ctypes import POINTER, byref, c_char, c_char_p, c_int, c_size_t, c_uint32, c_uint8, c_void_p

from harness import LIB

ECB, CBC, CTR, GCM = 1, 2, 3, 4
RETRY_NONE, RETRY_NOT_EXECUTED, RETRY_UNKNOWN, RETRY_FINAL = 0, 1, 2, 3
ERR_GOING_AWAY, ERR_TIMEOUT, ERR_DISCONNECTED, ERR_FORKED = -17, -107, -108, -109


class Error(ctypes.Structure):
    _fields_ = [("code", c_int), ("retry", c_int), ("text", c_char * 248)]

    def __str__(self):
        return f"{self.code} (retry class {self.retry}): {self.text.decode(errors='replace')}"


class Item(ctypes.Structure):
    _fields_ = [("in_", c_void_p), ("in_length", c_size_t), ("out", c_void_p), ("out_capacity", c_size_t),
                ("out_length", c_size_t), ("aad", c_void_p), ("aad_length", c_size_t), ("long_iv", c_void_p),
                ("long_iv_length", c_size_t), ("iv", c_uint8 * 16), ("tag", c_uint8 * 16), ("iv_length", c_uint32),
                ("tag_length", c_uint32), ("status", c_int), ("reserved", c_uint32 * 5)]


class Options(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("connect_timeout_ms", c_uint32), ("request_timeout_ms", c_uint32),
                ("connections", c_uint32), ("inflight", c_uint32), ("no_reconnect", c_uint32), ("program", c_char_p)]


def _load():
    found = sorted(glob.glob(os.path.join(LIB, "libciphermill.so*")))
    if not found:
        raise FileNotFoundError(f"no libciphermill.so in {LIB}")
    library = ctypes.CDLL(found[0])
    library.cm_connect.argtypes = [POINTER(c_void_p), c_char_p, POINTER(Options), POINTER(Error)]
    library.cm_close.argtypes = [c_void_p]
    library.cm_key_open.argtypes = [POINTER(c_void_p), c_void_p, c_char_p, POINTER(Error)]
    library.cm_key_close.argtypes = [c_void_p]
    for name in ("cm_encrypt", "cm_decrypt"):
        getattr(library, name).argtypes = [c_void_p, c_int, POINTER(Item), c_size_t, POINTER(Error)]
    library.cm_retry_name.restype = c_char_p
    return library


lib = _load()


class Failed(Exception):
    def __init__(self, error):
        super().__init__(str(error))
        self.code, self.retry, self.text = error.code, error.retry, error.text.decode(errors="replace")


class Client:
    def __init__(self, endpoint, **options):
        self._client, error = c_void_p(), Error()
        chosen = Options(size=ctypes.sizeof(Options), **options)
        if lib.cm_connect(byref(self._client), endpoint.encode(), byref(chosen), byref(error)) != 0:
            raise Failed(error)

    def key(self, name):
        key, error = c_void_p(), Error()
        if lib.cm_key_open(byref(key), self._client, name.encode(), byref(error)) != 0:
            raise Failed(error)
        return Key(key)

    def close(self):
        lib.cm_close(self._client)
        self._client = None


class Key:
    def __init__(self, key):
        self._key = key

    def close(self):
        lib.cm_key_close(self._key)

    def encrypt(self, mode, messages, iv=None):
        """[(status, output, iv, tag)] for a batch; raises Failed if it failed as a whole."""
        return self._batch(lib.cm_encrypt, mode, [(m, iv or b"", b"") for m in messages])

    def decrypt(self, mode, messages):
        """As encrypt, of [(input, iv, tag)]."""
        return self._batch(lib.cm_decrypt, mode, messages)

    def _batch(self, call, mode, messages):
        items, error, keep = (Item * len(messages))(), Error(), []
        for item, (data, iv, tag) in zip(items, messages):
            source, target = ctypes.create_string_buffer(data, len(data) + 1), ctypes.create_string_buffer(len(data) + 16)
            keep.append((source, target))
            item.in_, item.in_length = ctypes.addressof(source), len(data)
            item.out, item.out_capacity = ctypes.addressof(target), len(data) + 16
            item.iv_length, item.tag_length = len(iv), len(tag)
            item.iv[:len(iv)], item.tag[:len(tag)] = iv, tag
        result = call(self._key, mode, items, len(messages), byref(error))
        if result < 0:
            raise Failed(error)
        return [(item.status, target.raw[:item.out_length], bytes(item.iv[:item.iv_length]),
                 bytes(item.tag[:item.tag_length])) for item, (_, target) in zip(items, keep)]
