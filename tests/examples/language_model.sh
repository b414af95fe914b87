#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: language_model.sh EXAMPLE ONNXTRAIN SOURCE_DIR: the transformer learns this project's guide, its file knows it, and the
# program is under 100 lines.
set -eu
example=$1 command=$2 source=$3
model=$source/tests/curves/data/causal.onnx text=$source/docs/guide.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$example" "$model" "$text" "$work/trained.onnx" >"$work/losses"
cat "$work/losses"
python3 -c '
import sys
losses = [float(line.split()[-1]) for line in open(sys.argv[1])]
assert len(losses) == 4 and losses == sorted(losses, reverse=True), losses' "$work/losses"
[ "$(wc -l <"$source/examples/c/language_model.c")" -lt 100 ]

# The mean cost of a byte of the text, which is ln 128 = 4.85 for who knows nothing, and 3.3 for who knows how often each is.
python3 - "$text" "$work" <<'END'
import struct
import sys

text = [byte & 127 for byte in open(sys.argv[1], "rb").read()]
rows = range(0, len(text) - 33, 320)
for name, first in (("tokens", 0), ("labels", 1)):
    values = [text[row + first + k] for row in rows for k in range(32)]
    header = "{'descr': '<i8', 'fortran_order': False, 'shape': (%d, 32), }" % len(rows)
    header += " " * ((64 - (10 + len(header) + 1) % 64) % 64) + "\n"
    with open(sys.argv[2] + "/" + name + ".npy", "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack("<%dq" % len(values), *values))
END
"$command" eval "$work/trained.onnx" --data "$work/tokens.npy" --data "$work/labels.npy" --loss none:loss --json >"$work/result"
cat "$work/result"
python3 -c 'import json, sys; sys.exit(not json.load(open(sys.argv[1]))["loss"] < 3.25)' "$work/result"

code=0
"$example" "$work/missing.onnx" "$text" "$work/x.onnx" 2>"$work/message" || code=$?
[ $code = 1 ]
grep -q missing.onnx "$work/message"
