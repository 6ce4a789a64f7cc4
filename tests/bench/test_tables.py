#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of BENCHMARKS.md: what the maker makes of known rows, and that document and maker know the same places."""
import importlib.machinery
import importlib.util
import os
import re
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "../.."))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import tables  # noqa: E402


def report():
    loader = importlib.machinery.SourceFileLoader("report", os.path.join(HERE, "report"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("report", loader))
    loader.exec_module(module)
    return module


def row(**fields):
    usual = {"impl": "dispatch", "mode": "ctr", "key_bits": 128, "size": 16384, "batch": 16, "stride": "padded",
             "ns_per_message": 800.0, "gb_per_s": 20.48, "cycles_per_byte": 0.18, "ratio_openssl": 2.25,
             "ratio_ipsecmb": None, "limit_fraction": 0.874, "verified": True, "spread": 0.01, "padding": "none",
             "kernel": "vaes512", "goal": None}
    return {**usual, **fields}


def cells(text, start):
    """The cells of the first line that begins with a cell."""
    line = next(line for line in text.split("\n") if line.startswith(f"| {start} |"))
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


class Figures(unittest.TestCase):
    def test_three_digits_count(self):
        for value, text in ((0.048, "0.048"), (0.9464, "0.946"), (1.25, "1.25"), (20.48, "20.5"), (123.4, "123"),
                            (12345.6, "12346"), (None, "–")):
            self.assertEqual(tables.figure(value), text)

    def test_sizes(self):
        for size, text in ((16, "16 B"), (1000, "1000 B"), (4096, "4 KiB"), (1 << 20, "1 MiB"), ("0-64", "0-64 B")):
            self.assertEqual(tables.size_text(size), text)


class Tables(unittest.TestCase):
    def test_mode(self):
        text = tables.mode_table([row(impl="openssl", gb_per_s=9.1, limit_fraction=None), row(size=16, gb_per_s=7.0),
                                  row(), row(impl="aesni", verified=False, gb_per_s=None, limit_fraction=None)])
        self.assertEqual(cells(text, "AES-128"), ["16 KiB", "16 B", "of the limit at 16 KiB"])
        self.assertEqual(cells(text, "openssl"), ["9.10", "–", "–"])
        self.assertEqual(cells(text, "dispatch"), ["20.5 (2.25)", "7.00 (2.25)", "87 %"])
        self.assertEqual(cells(text, "aesni"), ["wrong", "–", "–"])

    def test_goals(self):
        rows = [row(size=size, goal=2.0, ratio_openssl=ratio)
                for size, ratio in ((16, 2.0), (64, 1.901), (256, 1.899), (1024, 3.0))]
        rows += [row(size="64-256", goal=8.0, ratio_openssl=12.0, ns_per_message=11.0), row(impl="openssl")]
        text = tables.goals_table(rows)
        self.assertEqual(cells(text, "ctr 128"), ["2.00 / 2", "1.90 / 2", "**1.90 / 2**", "3.00 / 2"])
        self.assertEqual(cells(text, "ctr 128, 64-256 B, padded"), ["12.0 / 8", "11.0"])
        self.assertIn("5 cells: 3 met, 1 within 5 %, 1 short.", text)

    def test_a_wrong_answer_meets_no_goal(self):
        self.assertEqual(tables.goal_cell(row(goal=2.0, ratio_openssl=3.0, verified=False)), "**3.00 / 2**")

    def test_short(self):
        text = tables.short_table([row(impl="openssl"), row(impl="ipsecmb"), row(ratio_ipsecmb=1.1)])
        self.assertEqual(cells(text, "ctr 128, dispatch"), ["16 KiB", "800", "20.5", "0.180", "2.25", "1.10"])
        self.assertEqual(text.count("\n"), 3)

    def test_per_block(self):
        text = tables.per_block_table([row(impl="aesni"), row(impl="aesni-per-block", ns_per_message=1200.0)])
        self.assertEqual(cells(text, "aesni AES-128"), ["16 KiB", "800", "1200", "1.50"])
        self.assertEqual(text.count("\n"), 3)

    def test_choices(self):
        others = [row(impl="openssl", ns_per_message=1.0), row(impl="vaes512", ns_per_message=800.0)]
        good = [row(), *others, row(impl="aesni", ns_per_message=770.0)]
        self.assertEqual(cells(tables.choices_table(good), "ctr 128, 16 a batch"), ["vaes512"])
        bad = [row(), *others, row(impl="aesni", ns_per_message=640.0)]
        self.assertEqual(cells(tables.choices_table(bad), "ctr 128, 16 a batch"), ["**vaes512, +25 % on aesni**"])

    def test_jdk(self):
        text = tables.jdk_table({"version": "openjdk 99", "rows": [
            {"size": 8192, "key_bits": 128, "verified": True, "ns_per_message": {"dispatch": 400.0, "jdk": 1000.0},
             "ratio": {"jdk": 2.5}, "goal": {"jdk": 2.3}}]})
        self.assertIn("openjdk 99", text)
        self.assertEqual(cells(text, "AES-128, 8 KiB"), ["400", "1000 (2.50 / 2.3)", "–"])


class Places(unittest.TestCase):
    TEXT = "before\n<!-- begin one -->\nold\n<!-- end one -->\nbetween\n<!-- begin two -->\n<!-- end two -->\n"

    def test_what_is_between_the_marks_is_replaced_and_nothing_else(self):
        filled = tables.fill(self.TEXT, {"one": "new\n", "two": "more"})
        self.assertEqual(filled, self.TEXT.replace("old", "new").replace("two -->\n<", "two -->\nmore\n<"))
        self.assertEqual(tables.fill(filled, {"one": "new\n", "two": "more"}), filled)

    def test_a_place_or_content_without_the_other_is_refused(self):
        for contents in ({"one": ""}, {"one": "", "two": "", "three": ""}):
            with self.assertRaises(ValueError):
                tables.fill(self.TEXT, contents)


class Document(unittest.TestCase):
    def setUp(self):
        with open(os.path.join(ROOT, "BENCHMARKS.md"), encoding="utf-8") as file:
            self.text = file.read()

    def test_has_the_places_that_are_measured_each_with_its_command(self):
        measurements = report().MEASUREMENTS
        places = {match.group(2): match.group(3) for match in tables.PLACE.finditer(self.text)}
        self.assertEqual(sorted(places), sorted(["machine", *measurements]))
        for name, (command, _) in measurements.items():
            self.assertIn(f"```sh\n{command}\n```\n\n", places[name])
            self.assertIn("| --- |", places[name])

    def test_has_its_pictures(self):
        pictures = re.findall(r"!\[[^]]*\]\(([^)]+)\)", self.text)
        self.assertEqual(len(pictures), len(tables.MODES))
        for picture in pictures:
            self.assertTrue(os.path.getsize(os.path.join(ROOT, picture)) > 1000, picture)


if __name__ == "__main__":
    unittest.main()
