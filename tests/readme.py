#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compares the tables of README.md that say what the plugin can do with what it says itself.

    readme.py README CAPABILITIES [--write]

CAPABILITIES is the program tests/kernels/capabilities. --write puts the tables into README. The table of formats says of
each the version of GStreamer that it needs, where that is newer than 1.22. Without CUDA only system memory is compared.
With a newer GStreamer than LAST_VERSION there may be more formats than the table has.
"""
import re
import subprocess
import sys

LAST_VERSION = (1, 28)  # that README.md knows the formats of
MEMORIES = ("system", "cuda")


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


def read_format_table(table):
    rows = [[cell.strip() for cell in line.split("|")[1:4]] for line in table.splitlines()[2:]]
    return {row[0]: dict(zip(MEMORIES, row[1:])) for row in rows}


# What the plugin takes, added to what the table says.
def format_table(rows, memories):
    here = version()
    mark = "x" if here == (1, 22) else "%d.%d" % here
    for memory in MEMORIES:
        for name in memories[memory]:
            row = rows.setdefault(name, dict.fromkeys(MEMORIES, ""))
            row[memory] = row[memory] or mark
    lines = ["| format | system memory | CUDA memory |", "|---|---|---|"]
    lines += ["| %s | %s | %s |" % (name, rows[name]["system"], rows[name]["cuda"]) for name in sorted(rows)]
    return "\n".join(lines)


def is_there(mark):
    return mark == "x" or (mark != "" and tuple(int(n) for n in mark.split(".")) <= version())


def section(text, name):
    return re.search(r"(<!-- %s -->\n)(.*?)(\n<!-- end -->)" % name, text, re.S)


def main():
    readme, capabilities = sys.argv[1:3]
    text = open(readme, encoding="utf-8").read()
    memories = formats_by_memory()
    masks = subprocess.run([capabilities], check=True, capture_output=True, text=True).stdout.strip()
    rows = read_format_table(section(text, "formats").group(2))
    if "--write" in sys.argv:
        for name, table in (("formats", format_table(rows, memories)), ("methods", masks)):
            found = section(text, name)
            text = text[:found.start(2)] + table + text[found.end(2):]
        open(readme, "w", encoding="utf-8").write(text)
        return 0

    wrong = []
    if section(text, "methods").group(2) != masks:
        wrong.append("masks by method; it should be\n" + masks)
    for memory in MEMORIES:
        if memory == "cuda" and not memories["cuda"]:
            continue
        claimed = {name for name in rows if is_there(rows[name][memory])}
        missing = claimed - set(memories[memory])
        more = set(memories[memory]) - claimed if version() <= LAST_VERSION else set()
        if missing:
            wrong.append("formats in %s memory that the plugin does not take: %s" % (memory, " ".join(sorted(missing))))
        if more:
            wrong.append("formats in %s memory that are not listed: %s" % (memory, " ".join(sorted(more))))
    for w in wrong:
        print("README: " + w)
    print("%d passed, %d failed" % (2 - min(len(wrong), 2), min(len(wrong), 2)))
    return 1 if wrong else 0


sys.exit(main())
