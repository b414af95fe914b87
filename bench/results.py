# SPDX-License-Identifier: Apache-2.0
"""Sections of bench/RESULTS.md."""

import os


def replace_section(path, title, lines):
    """The section of that title, or a new one at the end."""
    parts = open(path).read().rstrip("\n").split("\n## ") if os.path.exists(path) else ["# Measured\n"]
    new = f"{title}\n\n" + "\n".join(lines) + "\n"
    places = [i for i, part in enumerate(parts) if i > 0 and part.split("\n", 1)[0] == title]
    if places:
        parts[places[0]] = new
    else:
        parts.append(new)
    with open(path, "w") as out:
        out.write("\n## ".join(part if part.endswith("\n") else part + "\n" for part in parts))
