#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check that every source file names its licence, as SPDX writes it, in its first three lines.

Usage: check_licence.py [repository]
"""

import os
import sys
from pathlib import Path

LINE = "SPDX-License-Identifier: Apache-2.0"
ENDINGS = {".c", ".h", ".py", ".pyi", ".sh", ".inc", ".def", ".cmake", ".proto"}
NAMES = {"CMakeLists.txt", "dev", "run"}  # run: of .ci
NOT_OURS = {"build", ".git", "corpus", "__pycache__"}


def is_source(path, root):
    return (path.suffix in ENDINGS or path.name == "CMakeLists.txt" or
            path.name in NAMES and path.parent in (root, root / ".ci"))


def sources(root):
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(set(folders) - NOT_OURS)
        yield from (path for path in (Path(folder, name) for name in sorted(files)) if is_source(path, root))


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    missing, n_files = [], 0
    for path in sources(root):
        n_files += 1
        with open(path, encoding="utf-8") as file:
            if not any(LINE in file.readline() for _ in range(3)):
                missing.append(path)
    for path in missing:
        print(f"{path.relative_to(root)}: the line '{LINE}' is missing at the top")
    print(f"{n_files} source files, {len(missing)} without a licence")
    return 1 if missing or n_files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
