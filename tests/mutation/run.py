#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Mutation tests: makes the mistakes in the lists of this folder, one by one, and runs the tests that should then fail.
#
#   tests/mutation/run.py                      all mistakes, which takes an hour or two on two cores
#   tests/mutation/run.py --only 'plan-*'      the mistakes whose names match; may be given several times
#   tests/mutation/run.py --list               lists the names
#   tests/mutation/run.py --check              checks that the tree has the text of each once; builds nothing
#
# The tree does not change: HEAD is copied to build-mutation/ and built there, with the stand-in for the CUDA runtime
# and without CUDA. Only targets that the tests of a mutant need are built. The copy stays, so a later run builds only
# changed files. The exit code is 0 if every mutant is found.
import argparse
import collections
import fnmatch
import glob
import json
import os
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD_LIMIT = 1800  # seconds
# A test hangs, and the mutant is found, if it takes SLOWER times as long as without the mutant, and at least
# LEAST_LIMIT seconds.
SLOWER, LEAST_LIMIT = 8, 40

Mutant = collections.namedtuple("Mutant", "name file tests equivalent old new")


def read_mutants(path):
  """Reads the mutants of a list. gst.txt explains the form of lists."""
  groups, mutants, fields = {}, [], None

  def end_mutant():
    if fields is None: return
    tests = []
    for name in fields["tests"].split(","):
      tests += groups.get(name.strip(), [name.strip()])
    mutants.append(Mutant(fields["name"], fields["file"], tests, fields["equivalent"], "\n".join(fields["old"]),
                          "\n".join(fields["new"])))

  with open(path, encoding="utf-8") as lines:
    for number, line in enumerate(lines, 1):
      line = line.rstrip("\n")
      if not line or line.startswith("#"): continue
      if line.startswith("["):
        end_mutant()
        fields = {"name": line.strip("[]"), "equivalent": "", "old": [], "new": []}
      elif line[0] in "-+" and fields is not None and line[1:2] in (" ", ""):
        fields["old" if line[0] == "-" else "new"].append(line[2:])
      elif line.startswith("group "):
        name, tests = line[len("group "):].split(":", 1)
        groups[name] = [test.strip() for test in tests.split(",")]
      elif fields is not None and line.split(" ")[0] in ("file", "tests", "equivalent"):
        word, rest = line.split(" ", 1)
        fields[word] = rest
      else:
        sys.exit("%s:%d: what is this? %s" % (path, number, line))
  end_mutant()
  return mutants


def check(mutants, root):
  """Checks the list of mutants. Returns a sentence for each fault."""
  wrong = []
  counts = collections.Counter(mutant.name for mutant in mutants)
  wrong += ["%s: %d mutants have that name" % item for item in counts.items() if item[1] > 1]
  for mutant in mutants:
    try:
      with open(os.path.join(root, mutant.file), encoding="utf-8") as file: text = file.read()
    except OSError as error:
      wrong.append("%s: %s" % (mutant.name, error))
      continue
    found = text.count(mutant.old) if mutant.old else 0
    if found != 1: wrong.append("%s: its text is %d times in %s, not once" % (mutant.name, found, mutant.file))
    if mutant.old == mutant.new: wrong.append("%s: it changes nothing" % mutant.name)
  return wrong


def run(command, limit=None, more_environment=None):
  """Runs a command. Returns its exit code, or None if it takes longer than the limit, and its output."""
  with subprocess.Popen(command, env=dict(os.environ, **(more_environment or {})), stdin=subprocess.DEVNULL,
                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True) as process:
    try:
      output, _ = process.communicate(timeout=limit)
      return process.returncode, output.decode(errors="replace")
    except BaseException as error:
      os.killpg(process.pid, signal.SIGTERM)  # Meson then ends its tests
      try:
        output, _ = process.communicate(timeout=10)
      except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
      if not isinstance(error, subprocess.TimeoutExpired): raise
      return None, output.decode(errors="replace")


def git(*arguments):
  return subprocess.run(["git", "-C", ROOT] + list(arguments), check=True, stdout=subprocess.PIPE).stdout


def write(path, data):
  with open(path, "wb") as file: file.write(data)


def copy_tree(target):
  """Copies the files of HEAD to the target, except files that are the same there."""
  listing = os.path.join(target, ".mutation-files")
  wanted = {}
  for entry in git("ls-tree", "-r", "-z", "HEAD").decode().split("\0"):
    if not entry: continue
    meta, path = entry.split("\t", 1)
    wanted[path] = meta.split()
  old = {}
  if os.path.exists(listing):
    with open(listing, encoding="utf-8") as file: old = json.load(file)
  for path in set(old) - set(wanted): os.remove(os.path.join(target, path))
  for path, (mode, _, blob) in wanted.items():
    to = os.path.join(target, path)
    data = git("cat-file", "blob", blob) if old.get(path) != blob or not os.path.exists(to) else None
    if data is None: continue
    os.makedirs(os.path.dirname(to), exist_ok=True)
    write(to, data)
    os.chmod(to, 0o755 if mode == "100755" else 0o644)
  write(listing, json.dumps({path: blob for path, (_, _, blob) in wanted.items()}).encode())


class Builder:
  """A copy of the tree, and its build."""

  def __init__(self, folder):
    self.folder = folder
    self.build = os.path.join(folder, "build")
    self.dirty = os.path.join(folder, ".mutation-file")  # names the file that is changed
    os.makedirs(folder, exist_ok=True)
    self.forget_interrupted()
    copy_tree(folder)
    if not os.path.exists(os.path.join(self.build, "build.ninja")):
      self.expect(["meson", "setup", self.build, folder, "-Dcuda=disabled", "-Dstandin=enabled", "-Dbench=disabled"])
    else:
      self.expect(["ninja", "-C", self.build, "build.ninja"])
    self.tests = {test["name"]: test for test in self.introspect("--tests")}
    self.limits = {}  # time limits by test, in seconds
    self.files = {target["id"]: target["filename"] for target in self.introspect("--targets")}

  # Makes copy_tree() restore the file that a killed run may have left changed.
  def forget_interrupted(self):
    listing = os.path.join(self.folder, ".mutation-files")
    if not os.path.exists(self.dirty) or not os.path.exists(listing): return
    with open(self.dirty, encoding="utf-8") as file: path = file.read()
    with open(listing, encoding="utf-8") as file: blobs = json.load(file)
    blobs.pop(path, None)
    write(listing, json.dumps(blobs).encode())
    os.remove(self.dirty)

  def expect(self, command):
    code, output = run(command, BUILD_LIMIT)
    if code != 0: sys.exit(output[-4000:] + "\nfailed: " + " ".join(command))
    return output

  def introspect(self, what):
    return json.loads(subprocess.run(["meson", "introspect", self.build, what], check=True,
                                     stdout=subprocess.PIPE).stdout)

  def build_for(self, test):
    """Builds the targets of the test. If the build fails, returns the end of its output, else None."""
    files = []
    for target in self.tests[test.partition(" @ ")[0]]["depends"]:
      files += [os.path.relpath(file, self.build) for file in self.files.get(target, [])]
    code, output = run(["ninja", "-C", self.build] + files, BUILD_LIMIT)
    return None if code == 0 else output[-3000:]

  def passes(self, test):
    name, _, checks = test.partition(" @ ")
    command = ["meson", "test", "-C", self.build, "--no-rebuild", name]
    if test in self.limits:
      command += ["--timeout-multiplier", "%.3f" % (self.limits[test] / self.tests[name]["timeout"])]
    code, output = run(command, BUILD_LIMIT, {"GST_CHECKS": checks.replace(" ", ",")} if checks else None)
    if "No suitable tests" in output: sys.exit(output)
    return code == 0

  def measure(self, test):
    """Runs the test without a mutant, and sets its time limit. A test that fails without a mutant ends the program."""
    output = self.build_for(test)
    if output is not None: sys.exit(output)
    begin = time.monotonic()
    if not self.passes(test): sys.exit("the test %s fails without any change" % test)
    self.limits[test] = max(LEAST_LIMIT, SLOWER * (time.monotonic() - begin))

  def try_tests(self, tests):
    """Runs the tests of a mutant. Returns "found by X", "NOT FOUND" or "does not build", and the compiler's output."""
    for test in tests:
      output = self.build_for(test)
      if output is not None: return "does not build", output
      if not self.passes(test): return "found by " + test, ""
    return "NOT FOUND", ""

  def try_mutant(self, mutant):
    path = os.path.join(self.folder, mutant.file)
    with open(path, "rb") as file: original = file.read()
    write(self.dirty, mutant.file.encode())
    try:
      write(path, original.replace(mutant.old.encode(), mutant.new.encode()))
      return self.try_tests(mutant.tests)
    finally:
      write(path, original)
      os.remove(self.dirty)


def main():
  parser = argparse.ArgumentParser(description="Whether the tests find the mistakes that are listed here.")
  parser.add_argument("--list", action="store_true", help="the mutants' names and tests; equivalents with the reason")
  parser.add_argument("--check", action="store_true", help="whether each one's text is in the tree once")
  parser.add_argument("--only", action="append", metavar="NAME", help="these alone; may hold * and be repeated")
  parser.add_argument("--folder", default=os.path.join(ROOT, "build-mutation"), help="to build in")
  arguments = parser.parse_args()

  mutants = [m for path in sorted(glob.glob(os.path.join(HERE, "*.txt"))) for m in read_mutants(path)]
  wrong = check(mutants, ROOT)
  if wrong: sys.exit("\n".join(wrong))
  if arguments.only:
    mutants = [m for m in mutants if any(fnmatch.fnmatch(m.name, pattern) for pattern in arguments.only)]
    if not mutants: sys.exit("no mutant has this name")
  if arguments.list:
    for m in mutants: print("%s: %s" % (m.name, "equivalent: " + m.equivalent if m.equivalent else ", ".join(m.tests)))
    return
  if arguments.check:
    print("%d mutants, %d of them equivalents" % (len(mutants), sum(1 for m in mutants if m.equivalent)))
    return

  changed = git("status", "--porcelain").decode()
  if changed: sys.exit("commit what has changed first: mutants are made of HEAD\n" + changed)
  mutants = [m for m in mutants if not m.equivalent]
  signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
  builder = Builder(os.path.abspath(arguments.folder))
  unknown = {test.partition(" @ ")[0] for m in mutants for test in m.tests} - set(builder.tests)
  if unknown: sys.exit("unknown tests: " + ", ".join(sorted(unknown)))

  for test in sorted({test for m in mutants for test in m.tests}): builder.measure(test)
  results = collections.Counter()
  for number, mutant in enumerate(mutants, 1):
    result, output = builder.try_mutant(mutant)
    results[result.split(" by ")[0]] += 1
    print("%d/%d %s: %s" % (number, len(mutants), mutant.name, result), flush=True)
    if output: print(output, flush=True)
  print("%d of %d found, %d not found, %d do not build" %
        (results["found"], len(mutants), results["NOT FOUND"], results["does not build"]))
  sys.exit(0 if results["found"] == len(mutants) else 1)


if __name__ == "__main__":
  main()
