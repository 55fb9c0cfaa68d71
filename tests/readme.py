#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compares the tables of README.md that say what the plugin can do with what it says itself.

    readme.py README CAPABILITIES [--write]

CAPABILITIES is the program tests/kernels/capabilities. --write puts the tables into README. The table of formats is that of
GStreamer 1.22 with CUDA: with a newer GStreamer there may be more, and without CUDA only system memory is compared.
"""
import re
import subprocess
import sys


def formats_by_memory():
    text = subprocess.run(["gst-inspect-1.0", "cudaconv"], check=True, capture_output=True, text=True).stdout
    sink = text[text.index("SINK template"):]
    sink = sink[:sink.index("SRC template")] if "SRC template" in sink else sink
    memories = {"system": [], "cuda": []}
    memory = None
    for line in sink.splitlines():
        if "video/x-raw" in line:
            memory = "cuda" if "CUDAMemory" in line else "system"
        elif memory and "format:" in line:
            memories[memory] += re.findall(r"\(string\)([A-Za-z0-9_]+)", line) or re.findall(
                r"[A-Za-z0-9_]{3,}", line.split("format:")[1])
            memory = None
    return {memory: sorted(set(formats)) for memory, formats in memories.items()}


def version():
    text = subprocess.run(["gst-inspect-1.0", "--version"], check=True, capture_output=True, text=True).stdout
    return tuple(int(n) for n in re.search(r"GStreamer (\d+)\.(\d+)", text).groups())


def format_table(memories):
    lines = ["| format | system memory | CUDA memory |", "|---|---|---|"]
    lines += ["| %s | x | %s |" % (f, "x" if f in memories["cuda"] else "") for f in memories["system"]]
    return "\n".join(lines)


def section(text, name):
    return re.search(r"(<!-- %s -->\n)(.*?)(\n<!-- end -->)" % name, text, re.S)


def main():
    readme, capabilities = sys.argv[1:3]
    text = open(readme, encoding="utf-8").read()
    memories = formats_by_memory()
    masks = subprocess.run([capabilities], check=True, capture_output=True, text=True).stdout.strip()
    if "--write" in sys.argv:
        for name, table in (("formats", format_table(memories)), ("methods", masks)):
            found = section(text, name)
            text = text[:found.start(2)] + table + text[found.end(2):]
        open(readme, "w", encoding="utf-8").write(text)
        return 0

    wrong = []
    if section(text, "methods").group(2) != masks:
        wrong.append("masks by method; it should be\n" + masks)
    rows = [[cell.strip() for cell in line.split("|")[1:4]] for line in section(text, "formats").group(2).splitlines()[2:]]
    claimed = {"system": {r[0] for r in rows if r[1]}, "cuda": {r[0] for r in rows if r[2]}}
    for memory in claimed:
        if memory == "cuda" and not memories["cuda"]:
            continue
        missing = claimed[memory] - set(memories[memory])
        more = set(memories[memory]) - claimed[memory] if version() == (1, 22) else set()
        if missing:
            wrong.append("formats in %s memory that the plugin does not take: %s" % (memory, " ".join(sorted(missing))))
        if more:
            wrong.append("formats in %s memory that are not listed: %s" % (memory, " ".join(sorted(more))))
    for w in wrong:
        print("README: " + w)
    print("%d passed, %d failed" % (2 - min(len(wrong), 2), min(len(wrong), 2)))
    return 1 if wrong else 0


sys.exit(main())
