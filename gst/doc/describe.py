#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Prints what gst-inspect-1.0 says of cudaconv and roihold in the form that hotdoc's extension for GStreamer reads."""
import json
import os
import re
import subprocess


def match(pattern, text):
    found = re.search(pattern, text, re.M)
    return found[1].strip() if found else ""


# The parts of a text that begin with a line of this pattern, by the pattern's group.
def parts(pattern, text):
    pieces = re.split(pattern, text, flags=re.M)[1:]
    return dict(zip(pieces[::2], pieces[1::2]))


def pad_template(block):
    caps = block.split("Capabilities:\n")[1]
    return {"caps": re.sub(r"^ {6}", "", caps, flags=re.M).strip(), "direction": "sink" if block.startswith("SINK")
            else "src", "presence": match(r"Availability: (\w+)", block).lower()}


def property_of(block):
    kind = match(r'^ +(Enum "\w+"|[A-Z][\w ]+?)(?: Default| of type "\w+"|\.)', block)
    names = {"Boolean": "gboolean", "Double": "gdouble", "Integer": "gint", "String": "gchararray",
             "Unsigned Integer": "guint", "Unsigned Integer64": "guint64", "Boxed pointer": "GstStructure",
             "Object": "GstObject"}
    return {"blurb": block.split("\n")[0], "conditionally-available": False, "construct": False,
            "construct-only": False, "controllable": "controllable" in block, "readable": True,
            "writable": "writable" in match(r"flags: (.*)", block),
            "default": match(r'Default: +(.*?)(?: *$|, ")', block),
            "type": kind[6:-1] if kind.startswith("Enum") else names[kind]}


def enumeration(block):
    values = re.findall(r"^ +\((-?\d+)\): (\S+) +- (.*)$", block, re.M)
    return {"kind": "enum", "values": [{"name": name, "value": value, "desc": text} for value, name, text in values]}


# An element, the enumerations of its properties, and the details of the plugin.
def element_of(factory):
    text = subprocess.run(["gst-inspect-1.0", "--no-colors", factory], check=True, capture_output=True, text=True,
                          env={**os.environ, "LC_ALL": "C.UTF-8"}).stdout  # else it translates words
    blocks = {name: block for name, block in
              parts(r"^  ([a-z0-9-]+) +: ", text[text.index("Element Properties:"):]).items()
              if name not in ("name", "parent", "qos")}
    templates = text[text.index("Pad Templates:"):text.index("Element has no clocking")]
    pads = re.split(r"^  (?=SRC|SINK)", templates, flags=re.M)[1:]
    hierarchy = re.findall(r"\+----(\w+)|^(GObject)$", text, re.M)
    element = {
        "author": match(r"Author +(.*)", text), "description": match(r"Description +(.*)", text),
        "hierarchy": [a or b for a, b in reversed(hierarchy)], "interfaces": ["GstPreset"],
        "klass": match(r"Klass +(.*)", text), "long-name": match(r"Long-name +(.*)", text),
        "rank": match(r"Rank +(\w+)", text),
        "pad-templates": {pad["direction"]: pad for pad in map(pad_template, pads)},
        "properties": {name: property_of(block) for name, block in blocks.items()}}
    enums = {match(r'Enum "(\w+)"', block): enumeration(block) for block in blocks.values() if 'Enum "' in block}
    return element, enums, text[text.index("Plugin Details:"):]


def main():
    elements, types = {}, {}
    for factory in ("cudaconv", "roihold"):
        elements[factory], enums, details = element_of(factory)
        types.update(enums)
    print(json.dumps({"cudaconv": {
        "description": match(r"Description +(.*)", details), "elements": elements,
        "filename": "gstcudaconv", "license": match(r"License +(.*)", details), "other-types": types,
        "package": match(r"Binary package +(.*)", details), "source": match(r"Source module +(.*)", details),
        "tracers": {}, "url": match(r"Origin URL +(.*)", details)}}, indent=1))


main()
