#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check that every #include in src/, cli/ and examples/ respects the layers of src/layers.txt.

Usage: check_layers.py [repository]

A layer includes its own headers, the interface headers (`<layer>/<layer>.h`), the tables (`*.def`) and what includes a template
(`<layer>/by_*.tmpl.h`) of base, tensor and the layers in its row, public headers ("onnxtrain/..."), generated headers, and, with <>, system headers. A layer whose name ends in a
slash in a row opens its internal headers too. Programs include public headers only.
"""

import re
import sys
from pathlib import Path

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
GENERATED = {"onnx.pb-c.h": {"onnx"}}  # header: layers that may include it
BELOW_ALL = ("base", "tensor")
FOR_ALL = re.compile(r".*\.def|by_\w+\.tmpl\.h")  # besides the interface header


def read_layers(path):
    layers = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        name, colon, allowed = line.partition(":")
        if not colon:
            sys.exit(f"{path}:{number}: expected 'layer: allowed layers', found '{line}'")
        allowed = allowed.split()
        for other in allowed:
            if other.rstrip("/") not in layers:
                sys.exit(f"{path}:{number}: '{name}' may not include '{other}', which does not stand above this line")
        # base stands alone; whatever comes later also has those of BELOW_ALL that stand before it.
        layers[name] = {below for below in BELOW_ALL if below in layers} | set(allowed)
    return layers


def includes(path):
    text = path.read_text()
    for match in INCLUDE.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match.group(1)


def check_layer_file(layers, source, path):
    """Problems of one file of src/<layer>/, as (line, what)."""
    layer = path.relative_to(source).parts[0]
    if layer not in layers:
        yield 1, f"folder '{layer}' is not in layers.txt"
        return
    for line, name in includes(path):
        first, _, rest = name.partition("/")
        if first == "onnxtrain":
            continue
        if name in GENERATED:
            if layer not in GENERATED[name]:
                yield line, f"'{name}' is for {' '.join(sorted(GENERATED[name]))} only"
        elif not rest:
            if not (path.parent / name).exists():
                yield line, f"'{name}' is not a file of '{layer}'; write \"<layer>/<layer>.h\""
        elif first == layer:
            continue
        elif first not in layers:
            yield line, f"'{name}' is in no layer"
        elif f"{first}/" in layers[layer]:
            continue
        elif first not in layers[layer]:
            allowed = " ".join(other for other in layers if other in layers[layer])
            yield line, f"'{layer}' includes '{first}', allowed: {allowed or 'nothing'}"
        elif rest != f"{first}.h" and not FOR_ALL.fullmatch(rest):
            yield line, f"'{name}' is private to '{first}', include '{first}/{first}.h'"


def check_program_file(path):
    for line, name in includes(path):
        if not name.startswith("onnxtrain/") and not (path.parent / name).exists():
            yield line, f"'{name}' is not a public header"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    source = root / "src"
    layers = read_layers(source / "layers.txt")
    problems = []
    files = sorted(path for path in source.rglob("*") if path.suffix in (".c", ".h", ".def") and path.parent != source)
    for path in files:
        problems += [(path, *found) for found in check_layer_file(layers, source, path)]
    for folder in ("cli", "examples", "include"):
        for path in sorted((root / folder).rglob("*.[ch]")):
            files.append(path)
            problems += [(path, *found) for found in check_program_file(path)]
    for path, line, what in problems:
        print(f"{path.relative_to(root)}:{line}: {what}", file=sys.stderr)
    print(f"{len(files)} files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
