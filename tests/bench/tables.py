# SPDX-License-Identifier: Apache-2.0
"""Markdown tables from what bench-kernels and tests/bench/jdk print as JSON, and their places in BENCHMARKS.md.

A place is all between `<!-- begin NAME -->` and `<!-- end NAME -->`; what stands around it is written by hand.
"""
import re

MODES = ("ecb-encrypt", "ecb-decrypt", "cbc-encrypt", "cbc-decrypt", "ctr", "gcm-seal", "gcm-open", "xts-encrypt",
         "xts-decrypt")
REFERENCES = ("openssl", "ipsecmb")
NOISE = 0.05  # what a ratio may lack without being called short
PLACE = re.compile(r"(<!-- begin ([\w-]+) -->\n)(.*?)(<!-- end \2 -->)", re.S)


def size_text(size):
    if isinstance(size, str):
        return f"{size} B"
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def figure(value, digits=3):
    """A number with so many digits that count; a dash for what is not known."""
    if value is None:
        return "–"
    before_the_point = len(str(int(value))) if value >= 1 else 0
    return f"{value:.{max(0, digits - before_the_point)}f}"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join(["---"] + ["---:"] * (len(head) - 1)) + " |"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def distinct(rows, field):
    """The values of a field in the order in which they come."""
    return list(dict.fromkeys(row[field] for row in rows))


def only(rows, **wanted):
    return [row for row in rows if all(row[field] == value for field, value in wanted.items())]


def one(rows, **wanted):
    found = only(rows, **wanted)
    return found[0] if found else None


def throughput_cell(row):
    if row is None:
        return "–"
    if not row["verified"]:
        return "wrong"
    speed = figure(row["gb_per_s"])
    return speed if row["impl"] == "openssl" else f"{speed} ({figure(row['ratio_openssl'])})"


def limit_cell(rows):
    row = one(rows, size=16384)
    return f"{100 * row['limit_fraction']:.0f} %" if row and row["limit_fraction"] else "–"


def mode_table(rows):
    """One mode: an implementation a line, a size a column: GB/s, and in brackets how often OpenSSL's speed."""
    sizes, text = distinct(rows, "size"), ""
    for bits in distinct(rows, "key_bits"):
        lines = []
        for name in distinct(rows, "impl"):
            own = only(rows, key_bits=bits, impl=name)
            lines.append([name, *(throughput_cell(one(own, size=size)) for size in sizes), limit_cell(own)])
        text += table([f"AES-{bits}", *map(size_text, sizes), "of the limit at 16 KiB"], lines) + "\n"
    return text


def goal_cell(row):
    if row is None or row["goal"] is None:
        return ""
    text = f"{figure(row['ratio_openssl'])} / {row['goal']:.3g}"
    return f"**{text}**" if not row["verified"] or row["ratio_openssl"] < row["goal"] * (1 - NOISE) else text


def goal_counts(judged):
    met = sum(row["ratio_openssl"] >= row["goal"] for row in judged)
    short = sum(row["ratio_openssl"] < row["goal"] * (1 - NOISE) for row in judged)
    return f"{len(judged)} cells: {met} met, {len(judged) - met - short} within 5 %, {short} short.\n"


def goals_table(rows):
    """An implementation after the other: measured / goal, bold where it is short by more than the noise."""
    judged, text = [row for row in rows if row["goal"] is not None], ""
    for name in distinct(judged, "impl"):
        own = only(judged, impl=name)
        usual = [row for row in own if row["stride"] == "padded" and not isinstance(row["size"], str)]
        special = [row for row in own if row not in usual]
        sizes = sorted(distinct(usual, "size"))
        lines = [[f"{mode} {bits}", *(goal_cell(one(usual, mode=mode, key_bits=bits, size=size)) for size in sizes)]
                 for mode in distinct(usual, "mode") for bits in distinct(only(usual, mode=mode), "key_bits")]
        text += f"`{name}`, {goal_counts(own)}\n" + table(["", *map(size_text, sizes)], lines) + "\n"
        if special:
            text += table(["", "measured / goal", "ns a message"],
                          [[f"{row['mode']} {row['key_bits']}, {size_text(row['size'])}, {row['stride']}",
                            goal_cell(row), figure(row["ns_per_message"])] for row in special]) + "\n"
    return text


def short_table(rows):
    """A line for each implementation but the references, with its figures in full."""
    return table(["", "bytes", "ns a message", "GB/s", "cycles a byte", "× OpenSSL", "× IPSec-MB"],
                 [[f"{row['mode']} {row['key_bits']}, {row['impl']}", size_text(row["size"]),
                   figure(row["ns_per_message"]), figure(row["gb_per_s"]), figure(row["cycles_per_byte"]),
                   figure(row["ratio_openssl"]), figure(row["ratio_ipsecmb"])]
                  for row in rows if row["impl"] not in REFERENCES])


def per_block_table(rows):
    lines = []
    for row in rows:
        blocks = one(rows, impl=row["impl"] + "-per-block", key_bits=row["key_bits"], size=row["size"])
        if blocks:
            lines.append([f"{row['impl']} AES-{row['key_bits']}", size_text(row["size"]),
                          figure(row["ns_per_message"]), figure(blocks["ns_per_message"]),
                          figure(blocks["ns_per_message"] / row["ns_per_message"])])
    return table(["", "bytes", "ns, one call", "ns, a call a block", "times faster"], lines)


def choice_cell(rows):
    dispatch = one(rows, impl="dispatch")
    others = [row for row in rows if row["impl"] not in (*REFERENCES, "dispatch") and row["verified"]]
    if dispatch is None or not others:
        return "–"
    fastest = min(others, key=lambda row: row["ns_per_message"])
    excess = dispatch["ns_per_message"] / fastest["ns_per_message"] - 1
    return dispatch["kernel"] if excess <= NOISE else f"**{dispatch['kernel']}, +{100 * excess:.0f} % on {fastest['impl']}**"


def choices_table(rows):
    """What dispatch uses; bold, with how much longer it takes than the fastest, where that is more than the noise."""
    sizes = distinct(rows, "size")
    return table(["", *map(size_text, sizes)],
                 [[f"{mode} {bits}, {batch} a batch",
                   *(choice_cell(only(rows, mode=mode, key_bits=bits, batch=batch, size=size)) for size in sizes)]
                  for mode in distinct(rows, "mode") for bits in distinct(rows, "key_bits")
                  for batch in distinct(rows, "batch")])


def jdk_table(result):
    lines = []
    for row in result["rows"]:
        ns, ratio = row["ns_per_message"], row["ratio"]
        cells = [f"{figure(ns[name])} ({figure(ratio[name])} / {row['goal'][name]:g})" if name in ratio else "–"
                 for name in ("jdk", "jdk-avx2")]
        lines.append([f"AES-{row['key_bits']}, {size_text(row['size'])}", figure(ns["dispatch"]), *cells])
    return result["version"] + "\n\n" + table(["", "dispatch, ns", "JDK, ns (times slower / goal)", "JDK with UseAVX=2"],
                                               lines)


def fill(text, contents):
    """The text with every place filled; ValueError if places and contents are not the same ones."""
    places = [match.group(2) for match in PLACE.finditer(text)]
    if sorted(places) != sorted(contents):
        raise ValueError(f"places without content or content without a place: {sorted(set(places) ^ set(contents))}")
    return PLACE.sub(lambda match: f"{match.group(1)}{contents[match.group(2)].strip()}\n{match.group(4)}", text)
