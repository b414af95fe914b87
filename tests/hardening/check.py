#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether built ELF files have what cmake/hardening.cmake asks for.

Usage: check.py READELF BUILD_DIR FILE...   (programs and shared objects)
"""

import json
import subprocess
import sys
from pathlib import Path


def read(readelf, option, path):
    command = [readelf, "-W", option, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True, env={"LC_ALL": "C"}).stdout


def missing(readelf, path):
    header, segments, dynamic = (read(readelf, option, path) for option in ("-h", "-l", "-d"))
    symbols = read(readelf, "--dyn-syms", path)
    if "DYN" not in header:
        yield "position-independent code"
    if "GNU_RELRO" not in segments:
        yield "read-only relocations (RELRO)"
    if "BIND_NOW" not in dynamic and "NOW" not in dynamic:
        yield "BIND_NOW"
    if any("GNU_STACK" in line and "E" in line.split()[-2] for line in segments.splitlines()):
        yield "a stack without code"
    if "TEXTREL" in dynamic:
        yield "code without relocations"
    if "__stack_chk_fail" not in symbols:
        yield "the stack protector"
    if "_chk@" not in symbols.replace("__stack_chk_fail", ""):
        yield "checked functions of the C library (_FORTIFY_SOURCE)"


def uncompiled(build, is_x86):
    """Sources that are compiled without options that leave no trace in the linked file: control-flow protection shows
    there only where the C library's own start files have it too."""
    options = ["-fstack-clash-protection"] + ["-fcf-protection"] * is_x86
    for entry in json.loads((Path(build) / "compile_commands.json").read_text()):
        if "/src/" in entry["file"]:
            for option in options:
                if option not in entry["command"]:
                    yield f"{entry['file']}: compiled without {option}"


def main():
    readelf, build, *files = sys.argv[1:]
    found = [f"{path}: lacks {what}" for path in files for what in missing(readelf, path)]
    found += uncompiled(build, bool(files) and "X86-64" in read(readelf, "-h", files[0]))
    print("\n".join(found) or "ok")
    return 1 if found or not files else 0


sys.exit(main())
