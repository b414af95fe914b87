#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Trains digits.onnxtxt on four fifths of the digits, writes trained.onnx, measures that file on the held-out fifth.
# usage: run.sh ONNXTRAIN [FOLDER]   fails when the held-out accuracy stays below 97 %
set -eu
command=$1
folder=${2:-build/demo}
here=$(dirname "$0")
data="--data $here/digits.csv.gz --scale 0.0625 --split 0.2 --seed 1" # pixels are 0..16

# Threads that spin while they wait gain nothing in so small a network and lose much where other programs run.
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"

mkdir -p "$folder"
echo "Training a convolutional network (digits.onnxtxt) on 1,438 handwritten digits, validating on 359 others"
began=$(date +%s)
"$command" train "$here/digits.onnxtxt" $data --epochs 20 --lr 0.002 --schedule cosine --out "$folder/trained.onnx"
seconds=$(($(date +%s) - began))

echo
echo "Measuring the file it wrote on the 359 digits it has not seen"
"$command" eval "$folder/trained.onnx" $data
"$command" eval "$folder/trained.onnx" $data --json |
    sed 's/.*"accuracy": *\([0-9.e-]*\).*/\1/' |
    awk -v seconds="$seconds" '{
        printf "trained in %d s; held-out accuracy %.2f %%, wanted 97 %%: %s\n", seconds, $1 * 100,
            ($1 >= 0.97 ? "reached" : "NOT REACHED")
        exit !($1 >= 0.97)
    }'
