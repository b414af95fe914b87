#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The shared library exports exactly the functions that the public headers declare with OT_API.

Usage: check.py NM LIBRARY INCLUDE_DIR
"""

import re
import subprocess
import sys
from pathlib import Path

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
DECLARATION = re.compile(r"\bOT_API\b[^;{}()]*?\b(\w+)\s*[(;\[]")


def declared_names(include):
    names = set()
    for path in sorted((include / "onnxtrain").glob("*.h")):
        lines = [line for line in COMMENT.sub("", path.read_text()).splitlines() if not line.startswith("#")]
        names.update(DECLARATION.findall("\n".join(lines)))
    return names


def exported_names(nm, library):
    listing = subprocess.run([nm, "-D", "--defined-only", "-P", library], check=True, capture_output=True, text=True)
    symbols = [line.split()[:2] for line in listing.stdout.splitlines()]
    return {name.split("@")[0] for name, kind in symbols if kind != "A"}  # A: the version's own name


def main():
    nm, library, include = sys.argv[1:4]
    declared, exported = declared_names(Path(include)), exported_names(nm, library)
    for name in sorted(exported - declared):
        print(f"{name} is exported but in no public header", file=sys.stderr)
    for name in sorted(declared - exported):
        print(f"{name} is declared but not in the library", file=sys.stderr)
    print(f"{len(declared)} declared, {len(exported)} exported")
    return 0 if declared and declared == exported else 1


if __name__ == "__main__":
    sys.exit(main())
