#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: op_library.sh CC INCLUDE ONNXTRAIN EXAMPLES: a library of operators, compiled as its own comment says, in every
# command that reads models.
set -eu
cc=$1 include=$2 command=$3 examples=$4
here=$examples/op_library
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

"$cc" -shared -fPIC -O2 -std=c11 -Wall -Wextra -Werror -I "$include" "$here/operators.c" -o operators.so -lm

"$command" check "$here/model.onnxtxt" --op-library operators.so --loss mse >check
grep -q '^trains   w1' check
"$command" train "$here/model.onnxtxt" --op-library operators.so --data "$examples/c/line.csv" --loss mse --epochs 30 \
    --lr 0.02 --quiet --out trained.onnx --checkpoint-dir run
"$command" eval trained.onnx --op-library ./operators.so --data "$examples/c/line.csv" --loss mse --json >metrics
python3 -c 'import json; loss = json.load(open("metrics"))["loss"]; assert loss < 0.5, loss'
"$command" info trained.onnx --op-library operators.so --batch-size 2 >info
grep -q Squareplus info
"$command" artifacts "$here/model.onnxtxt" --op-library operators.so --loss mse --out artifacts
"$command" train artifacts --op-library operators.so --data "$examples/c/line.csv" --max-steps 2 --quiet --out more.onnx \
    --checkpoint-dir more
"$command" ckpt convert more/checkpoint converted --artifacts artifacts --op-library operators.so
"$command" ckpt ls . | grep -q converted
"$command" export run --op-library operators.so --out exported.onnx
"$command" grad trained.onnx --op-library operators.so --of y --wrt x --ones --out gradient.onnx >gradient
grep -q 'example.SquareplusGrad' gradient

code=0
"$command" train "$here/model.onnxtxt" --data "$examples/c/line.csv" --loss mse --out without.onnx 2>message || code=$?
[ $code = 1 ]
grep -q 'Center' message
code=0
"$command" train "$here/model.onnxtxt" --op-library missing.so --data "$examples/c/line.csv" --out without.onnx 2>message || code=$?
[ $code = 1 ]
grep -q 'missing.so: cannot be opened' message
