#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an installed libciphermill offers to others: find_package, pkg-config for static linking, C++, its symbols."""
import glob
import os
import re
import shlex
import unittest

from harness import ROOT, SANITIZE, Case, main, run

BUILD = os.environ.get("CM_BUILD", os.path.join(ROOT, "build", "dev"))

CMAKE_PROJECT = """\
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES C CXX)
find_package(ciphermill 0.1 REQUIRED)
add_executable(first first.c)
add_executable(plus plus.cc)
foreach(program first plus)
    target_compile_options(${program} PRIVATE -Wall -Wextra -Wpedantic -Werror)
    target_link_libraries(${program} PRIVATE ciphermill::ciphermill)
endforeach()
set_property(TARGET first PROPERTY C_STANDARD 11)
set_property(TARGET plus PROPERTY CXX_STANDARD 11)
"""

PLUS = """\
#include <ciphermill/admin.h>
#include <cstdio>

int main()
{
    cm_client *client = nullptr;
    cm_error error = CM_ERROR_INIT;
    cm_options options = CM_OPTIONS_INIT;
    options.connections = 2;
    cm_server_details details = cm_server_details();
    details.size = sizeof details;
    int rc = cm_connect(&client, nullptr, &options, &error);
    if (rc == 0)
        rc = cm_get_status(client, &details, &error);
    std::printf("%s\\n", rc == 0 ? details.identity : error.text);
    cm_close(client);
    return rc != 0;
}
"""


@unittest.skipIf(SANITIZE, "a program without the sanitizer can't link a sanitized library")
class Consumer(Case):
    def setUp(self):
        super().setUp()
        self.prefix = self.path("prefix")
        self.works(["cmake", "--install", BUILD, "--prefix", self.prefix])
        with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
            self.write("first.c", re.search(r"^```c\n(.*?)^```", file.read(), re.S | re.M)[1].encode())

    def works(self, argv, **options):
        result = run(argv, **options)
        self.assertEqual(result.code, 0, result)
        return result.out.decode()

    def installed(self, name):
        found = glob.glob(os.path.join(self.prefix, "**", name), recursive=True)
        self.assertEqual(len(found), 1, (name, found))
        return found[0]

    def check_first(self, program):
        d = self.daemon()
        self.ok(d, "key", "create", "orders", "--algorithm", "aes-256")
        self.assertEqual(self.works([program], env={"CIPHERMILL_ENDPOINT": d.unix}), "ok 5\nok 5\n")
        return d

    def test_find_package(self):
        self.write("CMakeLists.txt", CMAKE_PROJECT.encode())
        self.write("plus.cc", PLUS.encode())
        build = self.path("build")
        self.works(["cmake", "-S", self.folder, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}"])
        self.works(["cmake", "--build", build])
        d = self.check_first(os.path.join(build, "first"))
        out = self.works([os.path.join(build, "plus")], env={"CIPHERMILL_ENDPOINT": d.unix})
        self.assertEqual(out, f"uid:{os.getuid()}\n")

    def test_find_package_refuses_another_version(self):
        self.write("CMakeLists.txt", CMAKE_PROJECT.replace("0.1 REQUIRED", "0.2 REQUIRED").encode())
        self.write("plus.cc", PLUS.encode())
        result = run(["cmake", "-S", self.folder, "-B", self.path("b"), f"-DCMAKE_PREFIX_PATH={self.prefix}"])
        self.assertNotEqual(result.code, 0)
        self.assertIn(b"version", result.err)

    def test_static_linking(self):
        env = {"PKG_CONFIG_PATH": os.path.dirname(self.installed("ciphermill.pc"))}
        flags = self.works(["pkg-config", "--static", "--cflags", "--libs", "ciphermill"], env=env)
        flags = flags.replace("-lciphermill", "-l:libciphermill.a")
        program = self.path("first")
        self.works(["sh", "-c", f"cc -std=c11 -Wall -Wextra -Werror {shlex.quote(self.path('first.c'))} "
                                f"-o {shlex.quote(program)} {flags}"])
        self.assertNotIn("libciphermill", self.works(["ldd", program]))
        self.check_first(program)

    def test_the_library_exports_what_the_headers_declare(self):
        declared = set()
        for header in glob.glob(os.path.join(self.prefix, "include", "ciphermill", "*.h")):
            with open(header, encoding="utf-8") as file:
                declared |= set(re.findall(r"\b(cm_\w+)\(", " ".join(re.findall(r"CM_API[^;]*;", file.read()))))
        out = self.works(["nm", "-D", "--defined-only", "--format=posix", self.installed("libciphermill.so")])
        exported = {line.split()[0].split("@")[0] for line in out.splitlines() if line.split()[1] != "A"}
        self.assertGreater(len(declared), 25)
        self.assertEqual(exported, declared)


if __name__ == "__main__":
    main()
