#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A trained model says how it was trained: eval and a later train do the same, and say so.
. "$(dirname "$0")/cli.inc"
. "$here/models.inc"

# Loss, scale, mean and std of a regression.
run 0 train line.onnxtxt --data line.csv --loss mse --scale 0.1 --mean 0.25 --std 0.333333333333333333 \
    --epochs 3 --threads 1 --quiet --out trained.onnx
run 0 eval trained.onnx --data line.csv --loss mse --scale 0.1 --mean 0.25 --std 0.333333333333333333 --json \
    --ignore-recorded
cp out told
run 0 eval trained.onnx --data line.csv --json
same out told
run 0 eval trained.onnx --data line.csv
out "as the model was trained: loss mse:y=target, scale 0.1, mean 0.25, std 0.3333333333333333"
[ "$(wc -l <out)" = 2 ] || fail "$ran: more than two lines"
run 0 eval trained.onnx --data line.csv --loss mse --scale 0.1 --json
same out told
if LC_ALL=de_DE.UTF-8 "$command" eval trained.onnx --data line.csv --json >out 2>err; then same out told; fi

# What is given must be what is recorded.
refuses 1 "--loss: l1 is given, the model was trained with mse:y=target; --ignore-recorded takes what is given" \
    eval trained.onnx --data line.csv --loss l1
refuses 1 "--scale: 1 is given, the model was trained with 0.1" eval trained.onnx --data line.csv --scale 1
refuses 1 "--mean: 0.5 is given, the model was trained with 0.25" eval trained.onnx --data line.csv --mean 0.5
refuses 1 "--std: 2 is given, the model was trained with 0.3333333333333333" eval trained.onnx --data line.csv --std 2
refuses 1 "--reduction: sum is given, the model was trained with mean" eval trained.onnx --data line.csv --reduction sum
refuses 1 "--class-axis: the model was trained without cross-entropy" eval trained.onnx --data line.csv --class-axis -1
refuses 1 "--loss: mse=other is given, the model was trained with mse:y=target" eval trained.onnx --data line.csv --target other
run 0 eval trained.onnx --data line.csv --loss l1 --ignore-recorded --json
json loss 'v > 0'

# Going on from it does as before.
run 0 train trained.onnx --data line.csv --epochs 1 --threads 1 --out again.onnx
out "as the model was trained: loss mse:y=target, scale 0.1, mean 0.25"
run 0 train trained.onnx --data line.csv --loss mse --scale 0.1 --mean 0.25 --std 0.333333333333333333 --epochs 1 \
    --threads 1 --quiet --ignore-recorded --out told.onnx
same again.onnx told.onnx
refuses 1 "--scale: 3 is given, the model was trained with 0.1" train trained.onnx --data line.csv --scale 3 --epochs 1
run 0 train trained.onnx --data line.csv --loss l1 --ignore-recorded --epochs 1 --threads 1 --quiet --out l1.onnx
run 0 eval l1.onnx --data line.csv
out "as the model was trained: loss l1:y=target"

# Artifacts that are made of it do, too; what they have built in is not said again.
run 0 artifacts trained.onnx --out artifacts
run 0 train artifacts --data line.csv --epochs 1 --threads 1 --out of_artifacts.onnx
out "as the model was trained: loss mse:y=target, scale 0.1, mean 0.25"
run 0 eval of_artifacts.onnx --data line.csv --json
cp out told
run 0 eval again.onnx --data line.csv --json
same out told
refuses 1 "--scale: 3 is given, the model was trained with 0.1" train artifacts --data line.csv --scale 3 --epochs 1

# Text labels are the same classes, also where the data lack one; so are ignored labels and class weights.
sed 's/0$/zero/; s/1$/one/; s/2$/two/' header.csv >names.csv
run 0 train mlp.onnxtxt --data names.csv --class-weights 1,2,0.1 --ignore-index 2 --epochs 2 --threads 1 --quiet \
    --out classes.onnx
grep -v 'one$' names.csv >lacks.csv
run 0 eval classes.onnx --data lacks.csv
out "loss cross-entropy:scores=labels, classes one to zero (3)"
sed 's/zero$/2/; s/two$/1/' lacks.csv >numbers.csv
cp out told
run 0 eval classes.onnx --data numbers.csv
same out told
refuses 1 "--class-weights: 1,1,1 is given, the model was trained with 1,2,0.1" \
    eval classes.onnx --data names.csv --class-weights 1,1,1
refuses 1 "--ignore-index: 1 is given, the model was trained with 2" eval classes.onnx --data names.csv --ignore-index 1
sed '3s/[a-z]*$/three/' names.csv >unknown.csv
refuses 1 "'three' is not a known class" eval classes.onnx --data unknown.csv
