#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Removes dead links from the Markdown files of a folder: unlink.py FOLDER"""
import pathlib
import re
import sys

for file in pathlib.Path(sys.argv[1]).rglob("*.md"):
    def keep(match, folder=file.parent):
        target = match[2].split("#")[0]
        there = not target or ":" in target or (folder / target).exists()
        return match[0] if there else match[1]

    text = file.read_text()
    text = re.sub(r"!\[([^]]*)\]\(([^)]*)\)", keep, text)  # pictures first, since the text of a link may be a picture
    file.write_text(re.sub(r"(?<!!)\[([^]]*)\]\(([^)]*)\)", keep, text))
