#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: custom_loss.sh EXAMPLE FOLDER: the loss written in C teaches a line its plane, and is under 60 lines.
set -eu
example=$1 folder=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$example" "$folder/line.onnxtxt" >"$work/output"
cat "$work/output"
python3 -c 'import sys; word, loss = open(sys.argv[1]).read().split(); sys.exit(word != "loss" or not float(loss) < 1e-4)' "$work/output"
[ "$(wc -l <"$folder/custom_loss.c")" -lt 60 ]

code=0
"$example" "$folder/missing.onnx" 2>"$work/message" || code=$?
[ $code = 1 ]
grep -q missing.onnx "$work/message"
