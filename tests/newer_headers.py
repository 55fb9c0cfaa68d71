#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compiles the plugin and the tests of its elements with the headers of newer GStreamers: of Ubuntu 24.04 and Debian.

    newer_headers.py SOURCES BUILD [SUITE...]

What stands behind GST_CHECK_VERSION and CUDACONV_ANALYTICS is left out by builds with an older GStreamer, and only seen
here. The headers come from packages, into BUILD/newer/SUITE, and nothing is installed. The compiler checks the sources,
and makes no code. BUILD is a configured build folder. Output is in the Test Anything Protocol. A suite is skipped where
its archive cannot be reached, or where its headers need other new packages.
"""
import concurrent.futures
import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

SUITES = ("noble", "trixie", "sid", "experimental")  # GStreamer 1.24, 1.26, 1.28, 1.29 in November 2026
WHOLE = (SUITES[0], SUITES[-1])  # all sources of the plugin; elsewhere those that ask for a version
PACKAGES = ("libgstreamer1.0-dev", "libgstreamer-plugins-base1.0-dev", "libgstreamer-plugins-bad1.0-dev", "liborc-0.4-dev")
AT_ONCE = 7  # sources


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def archive():
    """The address of Debian's archive that this machine's apt uses, or None."""
    try:
        lines = run("apt-get", "indextargets", "--format", "$(REPO_URI) $(SUITE)", "Origin: Debian").split("\n")
    except (OSError, subprocess.CalledProcessError):
        return None
    return next((line.split()[0] for line in lines if line and not line.endswith("-security")), None)


def ubuntu_archive():
    """The address of Ubuntu's archive that debootstrap uses, or None."""
    try:
        with open("/usr/share/debootstrap/scripts/gutsy", encoding="utf-8") as script:
            return re.search(r"default_mirror (http://archive\S+)", script.read()).group(1)
    except (OSError, AttributeError):
        return None


def sources_list(address, suite):
    """The lines for apt. A Debian machine lacks Ubuntu's keys, but runs nothing of these packages."""
    if suite == "noble":
        return f"deb [trusted=yes] {address} noble main universe\n"
    parts = ("sid", suite) if suite == "experimental" else (suite,)  # which has only what is newer than in sid
    return "".join(f"deb {address} {part} main\n" for part in parts)


def fetch_headers(address, suite, folder):
    """Unpacks the packages of a suite in folder/root, whose pkg-config files name that folder."""
    root = os.path.join(folder, "root")
    if os.path.exists(root):
        return root
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(os.path.join(folder, "lists/partial"))
    with open(os.path.join(folder, "sources.list"), "w", encoding="ascii") as sources:
        sources.write(sources_list(address, suite))
    apt = ["apt-get", "-q", "-o", f"Dir::Etc::SourceList={folder}/sources.list", "-o", "Dir::Etc::SourceParts=-",
           "-o", f"Dir::State::Lists={folder}/lists", "-o", f"Dir::Cache={folder}", "-o", "APT::Sandbox::User="]
    run(*apt, "update", "--error-on=any")
    run(*apt, "-t", suite, "download", *PACKAGES, cwd=folder)
    for package in glob.glob(folder + "/*.deb"):
        run("dpkg-deb", "-x", package, root + ".part")
    for file in glob.glob(root + ".part/usr/**/*.pc", recursive=True):
        with open(file, encoding="utf-8") as description:
            text = description.read()
        with open(file, "w", encoding="utf-8") as description:
            description.write(text.replace("prefix=/usr", f"prefix={root}/usr", 1))
    os.rename(root + ".part", root)
    return root


def compile_commands(sources, build, folder, root):
    """Configures a build with the headers, and returns the commands for the plugin's sources, and for the tests that
    ask which metas there are. What asks for nothing and compiles with the oldest and the newest headers is left out
    between."""
    with open(os.path.join(build, "meson-info/intro-buildoptions.json"), encoding="utf-8") as file:
        options = {option["name"]: option["value"] for option in json.load(file)}
    paths = ":".join(glob.glob(root + "/usr/lib/*/pkgconfig"))
    again = ["--reconfigure"] if os.path.exists(folder + "/build") else []
    run("meson", "setup", *again, folder + "/build", sources,
        "-Dcuda=" + options["cuda"], "-Dcuda-arch=" + ",".join(options["cuda-arch"]), "-Danalytics=enabled",
        "-Dtune=disabled", "-Dbench=disabled", "-Dstandin=disabled", env={**os.environ, "PKG_CONFIG_PATH": paths})
    with open(folder + "/build/compile_commands.json", encoding="utf-8") as file:
        commands = {os.path.relpath(os.path.join(entry["directory"], entry["file"]), sources): entry
                    for entry in json.load(file)}
    for name, entry in commands.items():
        if not name.startswith(("gst/", "tests/element/")):
            continue
        with open(os.path.join(sources, name), encoding="utf-8") as file:
            text = file.read()
        asks = "CUDACONV_ANALYTICS" in text or "GST_CHECK_VERSION" in text or "gstcudacompat.h" in text
        if name.startswith("gst/") and (asks or os.path.basename(folder) in WHOLE) or "CUDACONV_ANALYTICS" in text:
            yield entry


def grouped(entries):
    """Lists of sources that are compiled with the same arguments: the compiler reads the headers once for each list."""
    lists = {}
    for entry in entries:
        words = shlex.split(entry["command"])
        at = words.index("-o")
        words[at:at + 2] = []
        words = [word for word in words
                 if word not in ("-MD", "-MQ", "-MF", entry["file"]) and not word.endswith((".o", ".o.d"))]
        lists.setdefault((tuple(words), entry["directory"]), []).append(entry["file"])
    return [(words, folder, files[at:at + AT_ONCE]) for (words, folder), files in lists.items()
            for at in range(0, len(files), AT_ONCE)]


def errors_of(words, folder, files):
    text = "".join(f'#include "{os.path.abspath(os.path.join(folder, file))}"\n' for file in files)
    result = subprocess.run([*words, "-x", "c++", "-fsyntax-only", "-O0", "-Werror", "-Wno-cpp", "-"], cwd=folder,
                            input=text, capture_output=True, text=True)
    if result.returncode and len(files) > 1:  # sources alone have other errors, or none
        return "".join(errors_of(words, folder, [file]) for file in files)
    return result.stderr if result.returncode else ""


def check(sources, build, suite, address):
    """Returns why the suite cannot be checked, or "", and the errors."""
    folder = os.path.join(build, "newer", suite)
    try:
        commands = list(compile_commands(sources, build, folder, fetch_headers(address, suite, folder)))
    except subprocess.CalledProcessError as error:  # without a network, or the headers need newer ones of other packages
        return re.search(r".*(?:ERROR|E): .*|$", error.stdout + error.stderr).group() or str(error), []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        errors = list(filter(None, pool.map(lambda group: errors_of(*group), grouped(commands))))
    print(f"# {suite}: {len(commands)} sources, {len(errors)} with errors")
    return "", errors


def main():
    sources, build = map(os.path.abspath, sys.argv[1:3])
    suites = sys.argv[3:] or SUITES
    print(f"1..{len(suites)}")
    failed = 0
    for number, suite in enumerate(suites, 1):
        address = ubuntu_archive() if suite == "noble" else archive()
        why_not, errors = (("no address of its archive", []) if address is None else check(sources, build, suite, address))
        failed += bool(errors)
        print(f"{'not ok' if errors else 'ok'} {number} - the headers of {suite}" + (why_not and f" # SKIP {why_not}" or ""),
              flush=True)
        print("\n".join(errors), file=sys.stderr, end="")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
