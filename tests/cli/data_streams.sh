#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Data through pipes, and packed files that are made to fill disks.
. "$(dirname "$0")/cli.inc"
. "$here/models.inc"

# A pipe with a writer is read to its end, whether it has a name or not.
run 0 train mlp.onnxtxt --data plain.csv --threads 1 --epochs 1 --quiet --out file.onnx
mkfifo pipe
cat plain.csv >pipe &
run 0 train mlp.onnxtxt --data pipe --threads 1 --epochs 1 --quiet --out pipe.onnx
wait
same file.onnx pipe.onnx
for from in - /dev/stdin; do
    cat plain.csv | "$command" train mlp.onnxtxt --data $from --threads 1 --epochs 1 --quiet --out stdin.onnx ||
        fail "data from $from"
    same file.onnx stdin.onnx
done

# One that nobody writes into does not hang.
refuses 1 "pipe: is a pipe that nobody writes into" train mlp.onnxtxt --data pipe --threads 1 --epochs 1

# 70 MB of zeros; behind them stands what a CSV may have, so that the limit is all that is wrong.
(head -n 20 plain.csv; head -c 70000000 /dev/zero | tr '\000' '\n') | gzip -9 >bomb.csv.gz
refuses 1 "bomb.csv.gz: unpacks to more than 1000 times its" train mlp.onnxtxt --data bomb.csv.gz --epochs 1
err "--max-unpacked allows more"
run 0 train mlp.onnxtxt --data bomb.csv.gz --max-unpacked 100M --threads 1 --epochs 1 --quiet
refuses 1 "bomb.csv.gz: unpacks to more than the 1048576 bytes allowed" \
    train mlp.onnxtxt --data bomb.csv.gz --max-unpacked 1M --epochs 1
head -n 20 plain.csv | gzip >small.csv.gz
run 0 train mlp.onnxtxt --data small.csv.gz --threads 1 --epochs 1 --quiet
