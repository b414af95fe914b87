#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The shared library exports exactly the functions that the public headers declare with OT_API. Programs and modules
that have the library inside export at least those that libraries of operators call (op.h, tensor.h, base.h), and no
internal one.

Usage: check.py NM INCLUDE_DIR LIBRARY [PROGRAM...]
"""

import re
import subprocess
import sys
from pathlib import Path

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
DECLARATION = re.compile(r"\bOT_API\b[^;{}()]*?\b(\w+)\s*[(;\[]")


def declared_names(include, pattern="*"):
    names = set()
    for path in sorted((include / "onnxtrain").glob(f"{pattern}.h")):
        lines = [line for line in COMMENT.sub("", path.read_text()).splitlines() if not line.startswith("#")]
        names.update(DECLARATION.findall("\n".join(lines)))
    return names


def exported_names(nm, library):
    listing = subprocess.run([nm, "-D", "--defined-only", "-P", library], check=True, capture_output=True, text=True)
    symbols = [line.split()[:2] for line in listing.stdout.splitlines()]
    return {name.split("@")[0] for name, kind in symbols if kind != "A"}  # A: the version's own name


def check_programs(nm, include, programs):
    called = set().union(*(declared_names(include, header) for header in ("op", "tensor", "base")))
    good = bool(called)
    for program in programs:
        exported = exported_names(nm, program)
        for name in sorted(called - exported):
            print(f"{program} does not export {name}, which libraries of operators call", file=sys.stderr)
        for name in sorted(name for name in exported if name.startswith("ot__")):
            print(f"{program} exports {name}, which is internal", file=sys.stderr)
            good = False
        good = good and called <= exported
    return good


def main():
    nm, include, library, *programs = sys.argv[1:]
    include = Path(include)
    declared, exported = declared_names(include), exported_names(nm, library)
    for name in sorted(exported - declared):
        print(f"{name} is exported but in no public header", file=sys.stderr)
    for name in sorted(declared - exported):
        print(f"{name} is declared but not in the library", file=sys.stderr)
    print(f"{len(declared)} declared, {len(exported)} exported")
    good = check_programs(nm, include, programs)
    return 0 if good and declared and declared == exported else 1


if __name__ == "__main__":
    sys.exit(main())
