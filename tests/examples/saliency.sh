#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: saliency.sh EXAMPLE ONNXTRAIN FOLDER: the map of a digit by a model trained for a moment, and the command's gradient.
set -eu
example=$1 command=$2 folder=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$command" train "$folder/digits.onnxtxt" --data "$folder/digits.csv.gz" --scale 0.0625 --max-steps 4 --batch-size 16 --quiet \
    --out "$work/trained.onnx"
"$example" "$work/trained.onnx" "$folder/digits.csv.gz" 5 >"$work/map"
cat "$work/map"
[ "$(wc -l <"$work/map")" = 9 ]
head -n 8 "$work/map" | awk 'length != 8 { exit 1 }'
grep -q "@" "$work/map" # the steepest pixel
grep -q "[.: -]" "$work/map"

code=0
"$example" "$work/missing.onnx" "$folder/digits.csv.gz" 5 2>"$work/message" || code=$?
[ $code = 1 ]
grep -q missing.onnx "$work/message"
