#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Metrics in Prometheus text, health and readiness; they count what happened, exactly."""
import re
import socket

from harness import COMMAND, Case, main, pattern, run

SAMPLE = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (-?[0-9.eE+]+|NaN|\+Inf)$')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(?:,|$)')


def parse(text):
    """{(name, labels): value as text} and {name: type}; raises on a line that is none."""
    samples, types = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in types, f"{name} is typed twice"
            types[name] = kind
        elif line and not line.startswith("#"):
            match = SAMPLE.match(line)
            assert match, f"no sample: {line!r}"
            labels = tuple(sorted(LABEL.findall(match[2] or "")))
            assert (match[1], labels) not in samples, f"twice: {line!r}"
            samples[match[1], labels] = match[3]
    return samples, types


class Metrics(Case):
    def setUp(self):
        super().setUp()
        self.d = self.daemon()

    def scrape(self):
        status, text = self.d.get("/metrics")
        self.assertEqual(status, 200)
        return parse(text)

    def total(self, samples, name, **labels):
        return sum(int(v) for (n, l), v in samples.items()
                   if n == name and all(item in l for item in labels.items()))

    def test_well_formed(self):
        samples, types = self.scrape()
        for name, _ in samples:
            self.assertTrue(name.startswith("ciphermill_"), name)
            base = re.sub(r"_(bucket|sum|count)$", "", name)
            self.assertTrue(name in types or types.get(base) == "histogram", f"{name} has no type")

    def test_counts_are_exact(self):
        self.import_key(self.d, "k", pattern(16))
        before, _ = self.scrape()
        for _ in range(3):
            self.ok(self.d, "encrypt", "--key", "k", "--mode", "cbc", stdin=pattern(1000))
        self.refused(self.d, "encrypt", "--key", "k", "--mode", "gcm", stdin=b"x")
        after, _ = self.scrape()

        def grew(name, **labels):
            return self.total(after, name, **labels) - self.total(before, name, **labels)

        self.assertEqual(grew("ciphermill_bytes_total", mode="cbc", direction="encrypt"), 3000)
        self.assertEqual(grew("ciphermill_items_total", mode="cbc", direction="encrypt"), 3)
        self.assertGreaterEqual(grew("ciphermill_requests_total"), 3)

    def test_histogram_is_cumulative(self):
        self.import_key(self.d, "k", pattern(16))
        self.ok(self.d, "encrypt", "--key", "k", "--mode", "cbc", stdin=pattern(1000))
        samples, _ = self.scrape()
        series = {}
        for (name, labels), value in samples.items():
            if name == "ciphermill_request_seconds_bucket":
                bound = dict(labels)["le"]
                rest = tuple(item for item in labels if item[0] != "le")
                series.setdefault(rest, []).append((float(bound.replace("+Inf", "inf")), int(value)))
        self.assertTrue(series)
        for rest, buckets in series.items():
            buckets.sort()
            counts = [count for _, count in buckets]
            self.assertEqual(counts, sorted(counts))
            self.assertEqual(buckets[-1][0], float("inf"))
            self.assertEqual(counts[-1], int(samples["ciphermill_request_seconds_count", rest]))

    def test_what_operators_alert_on(self):
        samples, _ = self.scrape()
        names = {name for name, _ in samples}
        for name in ("ready", "inflight_bytes", "inflight_limit_bytes", "connections", "implementation_info"):
            self.assertIn(f"ciphermill_{name}", names)
        self.assertEqual(samples["ciphermill_ready", ()], "1")
        self.assertTrue(any("busy" in name for name in names), "busy time by worker")

    def test_health_and_wrong_paths(self):
        self.assertEqual(self.d.get("/healthz")[0], 200)
        self.assertEqual(self.d.get("/readyz")[0], 200)
        self.assertEqual(self.d.get("/nonsense")[0], 404)

    def test_slow_askers_do_not_hide_the_daemons_health(self):
        slow = []
        for _ in range(100):
            slow.append(socket.create_connection(("127.0.0.1", self.d.metrics_port)))
            self.addCleanup(slow[-1].close)
            slow[-1].sendall(b"GET /metrics HTTP/1.1\r\nX-Slow: ")
            self.assertEqual(self.d.get("/healthz")[0], 200)

    def test_no_key_names(self):
        self.ok(self.d, "key", "create", "very-secret-name", "--algorithm", "aes-128")
        self.ok(self.d, "encrypt", "--key", "very-secret-name", stdin=b"x")
        self.assertNotIn("very-secret-name", self.d.get("/metrics")[1])

    def test_implementation_in_use_follows_the_environment(self):
        for d, wanted in ((self.d, None), (self.daemon(name="p", env={"CIPHERMILL_CPU": "portable"}), "portable")):
            rows = run([COMMAND, "--endpoint", d.unix, "implementations", "--json"]).json
            rows = rows if isinstance(rows, list) else rows["implementations"]
            used = {row["implementation"] for row in rows if row.get("used", row.get("in_use"))}
            self.assertTrue(used)
            if wanted:
                self.assertEqual(used, {wanted})


if __name__ == "__main__":
    main()
