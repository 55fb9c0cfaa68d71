#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Makes a C++ source from a text file: embed.py FILE NAME > SOURCE
import sys

path, name = sys.argv[1:]
print("namespace cudaconv::verify {\nextern const char %s[];\nconst char %s[] =" % (name, name))
for line in open(path, encoding="utf-8"):
  print('"%s\\n"' % line.rstrip("\n").replace("\\", "\\\\").replace('"', '\\"'))
print(";\n}")
