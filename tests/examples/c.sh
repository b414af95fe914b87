#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: c.sh EXAMPLE ONNXTRAIN FOLDER: the program of examples/c learns its line, and the command agrees.
set -eu
example=$1 command=$2 folder=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$example" "$folder/line.onnxtxt" "$folder/line.csv" "$work/trained.onnx"
"$command" eval "$work/trained.onnx" --data "$folder/line.csv" --bind x=a,b --label c --loss mse --json >"$work/result"
cat "$work/result"
python3 -c 'import json, sys; sys.exit(json.load(open(sys.argv[1]))["r2"] < 0.999)' "$work/result"

code=0
"$example" "$folder/missing.onnx" "$folder/line.csv" "$work/trained.onnx" 2>"$work/message" || code=$?
[ $code = 1 ]
grep -q missing.onnx "$work/message"
