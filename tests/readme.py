#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compares the tables of README.md and gst/README.md with what the plugin itself says that it can do.

    readme.py README MANUAL CAPABILITIES [--write]

README and MANUAL, gst/README.md, have to list every mask, MANUAL with the text of gst-inspect-1.0. MANUAL has to list
every property of cudaconv and roihold with its type and default, the presets of GST_PRESET_PATH for both, the formats,
and which method does which mask. Links among the manuals have to lead somewhere. CAPABILITIES is the program
tests/kernels/capabilities. --write puts the tables of masks, formats and methods into MANUAL. The table of formats has
the version of GStreamer that a format needs, where that is newer than 1.22. Without CUDA only system memory is
compared. With a GStreamer newer than LAST_VERSION there may be more formats than in the table.
"""
import configparser
import os
import re
import subprocess
import sys

LAST_VERSION = (1, 28)  # the newest version whose formats gst/README.md lists
MEMORIES = ("system", "cuda")
MANUALS = ("README.md", "gst/NEWS.md", "gst/README.md", "kernels/README.md", "kernels/numbers.md",
           "pipelines/README.md", "pipelines/coming-from.md", "tests/bench/README.md", "tests/package/README.md")
INHERITED = ("name", "parent", "qos")
TYPES = {"Enum": "enum", "Unsigned Integer64": "uint64", "Unsigned Integer": "uint", "Integer": "int",
         "Double": "double", "String": "string", "Boolean": "bool"}


def inspect(element):
    return subprocess.run(["gst-inspect-1.0", "--no-colors", element], check=True, capture_output=True,
                          text=True).stdout


def property_blocks(text):
    parts = re.split(r"^  ([a-z-]+) +: ", text[text.index("Element Properties:"):], flags=re.M)[1:]
    return {name: block for name, block in zip(parts[::2], parts[1::2]) if name not in INHERITED}


# The type and default of a property, as in the table of MANUAL.
def type_and_default(name, block):
    if "Boxed pointer" in block:
        return "GstStructure, read only"
    kind, default = re.search(r"^ +(%s)\b.*Default: +(.*?) *$" % "|".join(TYPES), block, re.M).groups()
    if kind == "String":
        return "string"
    if kind == "Enum":
        return "enum, `%s`" % default.split('"')[1]
    return "%s, %s" % (TYPES[kind], "0x%x" % int(default) if name.endswith("-color") else default)


def properties(text):
    return {"`%s`%s" % (name, " (R)" if "changeable only in NULL or READY" in block else ""):
            type_and_default(name, block) for name, block in property_blocks(text).items()}


# The names of the properties that a controller can animate.
def animated(text):
    return [name for name, block in property_blocks(text).items() if "controllable" in block]


# The range of a number, as gst-inspect-1.0 prints it; None for other properties.
def range_of(block):
    found = re.search(r"Range: +(\S+) - +(\S+)", block)
    return found and tuple(map(float, found.groups()))


# The names of the masks, each with its text.
def masks(text):
    return dict(re.findall(r"^ +\(\d+\): ([a-z0-9-]+) +- (.*)$", property_blocks(text)["mask"], re.M))


def mask_table(text):
    return "\n".join(["| `mask` | result |", "|---|---|"] + ["| `%s` | %s |" % mask for mask in masks(text).items()])


# The rows of the table of a section, each a list of cells, without the heading.
def rows_of(text, title):
    part = text[text.index("\n## %s\n" % title) + 1:]
    lines = part[:part.index("\n## ")].splitlines()
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| ")][1:]


# The masks of the table in the section Masks.
def listed_masks(text):
    return [name for row in rows_of(text, "Masks") for name in re.findall("`([^`]*)`", row[1])]


def formats_by_memory(text):
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


# The table of formats, with the plugin's formats added.
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


def difference(what, listed, there):
    missing, more = [n for n in there if n not in listed], [n for n in listed if n not in there]
    text = []
    if missing:
        text.append("%s that are not listed: %s" % (what, " ".join(missing)))
    if more:
        text.append("%s that the plugin does not have: %s" % (what, " ".join(more)))
    return text


def check_formats(rows, memories):
    wrong = []
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
    return wrong


def check_types(rows, inspected):
    listed, there = {row[0]: row[1] for row in rows}, properties(inspected)
    return difference("properties", listed, there) + [
        "the property %s is %s, not %s" % (name, there[name], listed[name])
        for name in listed if name in there and listed[name] != there[name]]


# All properties in the table of roihold but stats may change while it plays.
def check_roihold(text, inspected):
    rows = rows_of(text, "roihold")
    wrong = check_types(rows, inspected)
    for row in rows:
        name = row[0].strip("`")
        block = property_blocks(inspected).get(name, "")
        if name != "stats" and "PLAYING state" not in block:
            wrong.append("%s does not change while the element plays" % name)
    return wrong


# The properties of roihold that the presets set, by the table of MANUAL and by the file.
def check_parts(text, inspected, folder):
    listed = {name: sorted(re.findall("`([^`]*)`", row[2])) for row in rows_of(text, "Presets")
              for name in re.findall("`([^`]*)`", row[0]) if row[2]}
    wrong = difference("presets of roihold", listed, presets(inspected))
    file = configparser.RawConfigParser(delimiters="=")
    file.read(os.path.join(folder, "GstRoiHold.prs"), encoding="utf-8")
    for name, parts in listed.items():
        there = sorted(key for key in (file[name] if name in file else ()) if not key.startswith("_"))
        wrong += ["the preset %s sets %s of roihold, not %s" % (name, there, parts)] if there != parts else []
    return wrong


def check_properties(text, inspected):
    rows = rows_of(text, "Properties")
    wrong = check_types(rows, inspected)
    claim = re.search(r"controller can animate(.*?)\.", text, re.S).group(1)
    wrong += difference("properties to animate", re.findall(r"`([a-z-]+)`", claim), animated(inspected))
    blocks = property_blocks(inspected)
    for row in rows:
        # A property with several ranges lists them by mask.
        ranges = re.findall(r"(-?[\d.]+(?:e\d+)?) to (-?[\d.]+(?:e\d+)?)\b", row[2])
        name = row[0].strip("`")
        if len(ranges) == 1 and name in blocks and range_of(blocks[name]) != tuple(map(float, ranges[0])):
            wrong.append("%s goes from %s to %s, not %s to %s" % (name, *range_of(blocks[name]), *ranges[0]))
    return wrong


def presets(text):
    return re.findall(r'^  "(.*?)": ', text[text.index("Presets:"):], re.M) if "Presets:" in text else []


def listed_presets(text):
    return [name for row in rows_of(text, "Presets") for name in re.findall("`([^`]*)`", row[0])]


# The headings of a file, in the form that links to them have.
def anchors(path):
    text = re.sub(r"^```.*?^```", "", open(path, encoding="utf-8").read(), flags=re.M | re.S)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-")
            for heading in re.findall(r"^#+ +(.*)$", text, re.M)}


def check_links(paths):
    wrong = []
    for path in paths:
        for link in re.findall(r"\]\(([^):]+)\)", open(path, encoding="utf-8").read()):
            file, _, anchor = link.partition("#")
            target = os.path.join(os.path.dirname(path), file) if file else path
            if not os.path.exists(target) or anchor and anchor not in anchors(target):
                wrong.append("%s has a link to %s, which is not there" % (path, link))
    return wrong


# The newest heading of the news is of this version of the project.
def check_news(news, build):
    version_there = re.search(r"^ *version: '(.*)'", open(build, encoding="utf-8").read(), re.M)[1]
    heading = re.search(r"^## (.*)$", open(news, encoding="utf-8").read(), re.M)[1]
    return [] if re.match(r"%s(,|$)" % re.escape(version_there), heading) else [
        "the first heading is \"%s\", and meson.build has %s" % (heading, version_there)]


def main():
    readme, manual, capabilities = sys.argv[1:4]
    text = open(manual, encoding="utf-8").read()
    inspected, roihold = inspect("cudaconv"), inspect("roihold")
    memories = formats_by_memory(inspected)
    methods = subprocess.run([capabilities], check=True, capture_output=True, text=True).stdout.strip()
    rows = read_format_table(section(text, "formats").group(2))
    if "--write" in sys.argv:
        for name, table in (("masks", mask_table(inspected)), ("formats", format_table(rows, memories)),
                            ("methods", methods)):
            found = section(text, name)
            text = text[:found.start(2)] + table + text[found.end(2):]
        open(manual, "w", encoding="utf-8").write(text)
        return 0

    top = os.path.dirname(readme)
    manuals = [os.path.join(top, *name.split("/")) for name in MANUALS]
    checks = {
        "links": check_links(manuals),
        "gst/NEWS.md": check_news(os.path.join(top, "gst", "NEWS.md"), os.path.join(top, "meson.build")),
        "README.md": difference("masks", listed_masks(open(readme, encoding="utf-8").read()), masks(inspected)),
        "gst/README.md, masks": [] if section(text, "masks").group(2) == mask_table(inspected)
                                else ["masks; it should be\n" + mask_table(inspected)],
        "gst/README.md, properties": check_properties(text, inspected),
        "gst/README.md, roihold": check_roihold(text, roihold),
        "gst/README.md, presets": difference("presets", listed_presets(text), presets(inspected)) +
                                  check_parts(text, roihold, os.path.join(top, "gst", "presets")),
        "gst/README.md, methods": [] if section(text, "methods").group(2) == methods
                                  else ["masks by method; it should be\n" + methods],
        "gst/README.md, formats": check_formats(rows, memories),
    }
    for name, wrong in checks.items():
        for w in wrong:
            print("%s: %s" % (name, w))
    failed = sum(map(bool, checks.values()))
    print("%d passed, %d failed" % (len(checks) - failed, failed))
    return 1 if failed else 0


sys.exit(main())
