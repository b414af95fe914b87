#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Memory of a large model's way through artifacts, training steps, saves and export.
#   check.sh ONNXTRAIN MAKE_MODEL PEAK MIB
# The model lies in a folder below TMPDIR, which goes away at the end.
set -eu
onnxtrain=$1 make_model=$2 peak=$3 mib=$4

folder=$(mktemp -d "${TMPDIR:-/tmp}/onnxtrain-large.XXXXXX")
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM

# The model, its artifacts, the checkpoint with two moments, before and after, and the exported model.
need=$((mib * 10 + 100))
free=$(df -Pm "$folder" | awk 'NR == 2 { print $4 }')
if [ "$free" -lt "$need" ]; then
    echo "$folder: has $free MiB of space, needs $need (set TMPDIR)" >&2
    exit 1
fi

# What a small model takes matters little beside a large one.
base=0
[ "$mib" -ge 1024 ] || base=64
once=$((mib * 12 / 10 + base))
state=$((mib * 4 * 11 / 10 + base)) # parameters, gradients and the moments of AdamW

failed=0
"$make_model" "$folder" "$mib"
if python3 -c 'import onnx' 2>/dev/null; then # external data, as the package onnx wants them
    python3 -c 'import onnx, sys; onnx.checker.check_model(sys.argv[1])' "$folder/model.onnx" || failed=1
fi
"$peak" $once artifacts "$onnxtrain" artifacts "$folder/model.onnx" --out "$folder/artifacts" || failed=1
rm "$folder"/model.onnx*
if [ "$mib" -le 1024 ]; then # more does not fit into one protobuf message
    "$make_model" "$folder" "$mib" embedded
    "$peak" $once "artifacts, no external data" "$onnxtrain" artifacts "$folder/model.onnx" --out "$folder/other" || failed=1
    rm -r "$folder"/model.onnx "$folder/other"
fi
"$peak" $state "a step and a save" "$onnxtrain" train "$folder/artifacts" --data "$folder/train.csv" \
    --batch-size 8 --max-steps 1 --checkpoint-dir "$folder/run" --out "$folder/trained.onnx" --quiet || failed=1
rm "$folder"/trained.onnx*
"$peak" $state "a step after resuming" "$onnxtrain" train "$folder/artifacts" --data "$folder/train.csv" \
    --batch-size 8 --max-steps 2 --checkpoint-dir "$folder/run" --resume --quiet || failed=1
"$peak" $once export "$onnxtrain" export "$folder/artifacts" --checkpoint "$folder/run/checkpoint" \
    --output scores --out "$folder/trained.onnx" || failed=1
exit $failed
