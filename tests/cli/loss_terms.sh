#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Weighted sums of losses: --loss given several times, with weights, values and targets.
. "$(dirname "$0")/cli.inc"
. "$here/models.inc"

# Two heads over one body: classes and a number, and an auxiliary head for the classes.
cat >heads.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
heads (float[batch, 4] x) => (float[batch, 3] scores, float[batch, 1] depth, float[batch, 3] aux)
{
    w1 = RandomNormal <shape = [4, 16], scale = 0.5> ()
    w2 = RandomNormal <shape = [16, 3], scale = 0.3> ()
    w3 = RandomNormal <shape = [16, 1], scale = 0.3> ()
    w4 = RandomNormal <shape = [16, 3], scale = 0.3> ()
    h = MatMul (x, w1)
    r = Relu (h)
    scores = MatMul (r, w2)
    depth = MatMul (r, w3)
    aux = MatMul (r, w4)
}
END
# depth = (a + b) / 100, exactly
awk -F , 'BEGIN { OFS = ","; print "a,b,c,d,kind,depth" } { print $1, $2, $3, $4, $5, ($1 + $2) / 100 }' plain.csv >heads.csv
data="--data heads.csv --bind x=a:d --label kind --bind depth_target=depth --scale 0.01 --threads 1"
two="--loss cross-entropy:scores --loss 0.5*mse:depth=depth_target"

# Both heads learn; the head that no loss needs is kept; the metrics are the first term's.
run 0 train heads.onnxtxt $data $two --epochs 60 --lr 0.02 --out two.onnx --json
json accuracy 'v > 0.95'
run 0 info two.onnx --json
json outputs '[o["name"] for o in v] == ["scores", "depth", "aux"]'
run 0 eval two.onnx $data $two --json
json accuracy 'v > 0.95'
loss_of() { python3 -c 'import json; print(json.load(open("out"))["loss"])'; }
sum=$(loss_of)
run 0 eval two.onnx --data heads.csv --bind x=a:d --label kind --scale 0.01 --loss cross-entropy:scores --ignore-recorded --json
first=$(loss_of)
run 0 eval two.onnx --data heads.csv --bind x=a:d --label depth --scale 0.01 --loss mse:depth=depth_target --ignore-recorded --json
json r2 'v > 0.9'
second=$(loss_of)
awk -v s="$sum" -v a="$first" -v b="$second" 'BEGIN { d = s - (a + 0.5 * b); exit !(d < 1e-5 && d > -1e-5 && b > 0) }' ||
    fail "the sum of the losses is $sum, expected $first + 0.5 * $second"

# The order of terms says what is measured.
run 0 train heads.onnxtxt --data heads.csv --bind x=a:d --bind labels=kind --bind depth_target=depth --scale 0.01 \
    --loss 1*mse:depth=depth_target --loss 2*cross-entropy:scores --epochs 2 --threads 1 --json
json r2 'v <= 1'

# Heads that share their labels: neither needs a target of its own.
classes="--data heads.csv --bind x=a:d --label kind --scale 0.01 --threads 1"
run 0 train heads.onnxtxt $classes --loss cross-entropy --loss 0.3*cross-entropy:aux --epochs 2 --json
json accuracy '0 <= v <= 1'

# A file among the terms, weighted.
cat >small.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
small (float[batch, 1] depth) => (float loss)
{
    square = Mul (depth, depth)
    loss = ReduceMean <keepdims = 0> (square)
}
END
run 0 train heads.onnxtxt $classes --loss cross-entropy --loss 1e-2*small.onnxtxt --epochs 2 --quiet

# Artifacts keep the sum: the same training as from the model, metrics and all.
options="$data --epochs 4 --lr 0.01 --split 0.2 --seed 3"
run 0 train heads.onnxtxt $two $options --out from_model.onnx --json
cp out expected
of_expected() { python3 -c 'import json, sys; print(json.load(open("expected"))[sys.argv[1]])' "$1"; }
run 0 artifacts heads.onnxtxt $two --seed 3 --out artifacts
run 0 train artifacts $options --json
for key in loss accuracy step; do
    json $key "v == $(of_expected $key)"
done
refuses 1 "--loss: the artifacts in 'artifacts' have this built in" train artifacts $options --loss mse
refuses 1 "--optimizer: the artifacts in 'artifacts' have this built in" train artifacts $options --optimizer sgd
run 0 train artifacts $options --checkpoint-dir saved --quiet
run 0 export artifacts --checkpoint saved/checkpoint --output scores --output depth --out from_folder.onnx
run 0 eval from_folder.onnx $data $two --split 0.2 --seed 3 --json
json accuracy "v == $(of_expected accuracy)"
# A label that does not count travels with them.
sed '3s/.*/1,2,3,4,-7,0/' heads.csv >hole.csv
run 0 artifacts heads.onnxtxt $two --ignore-index -7 --out ignoring
run 0 train ignoring --data hole.csv --bind x=a:d --label kind --bind depth_target=depth --epochs 1 --quiet
sed '3s/.*/1,2,3,4,-8,0/' heads.csv >hole.csv
refuses 1 "hole.csv: line 3, column 5 ('kind'): label -8 is outside 0..2" \
    train ignoring --data hole.csv --bind x=a:d --label kind --bind depth_target=depth --epochs 1 --threads 1 --batch-size 1000 --quiet

# Resuming continues bit for bit.
run 0 train heads.onnxtxt $two $options --max-steps 3 --schedule-steps 8 --schedule linear --checkpoint-dir resumed --quiet
run 0 train heads.onnxtxt $two $options --schedule-steps 8 --schedule linear --checkpoint-dir resumed --resume --quiet --out resumed.onnx
run 0 train heads.onnxtxt $two $options --schedule-steps 8 --schedule linear --quiet --out unbroken.onnx
same resumed.onnx unbroken.onnx

# What is wrong is said.
no() { refuses "$1" "$2" train heads.onnxtxt --data heads.csv --loss cross-entropy --loss "$3"; }
no 2 "'x' in 'x*mse:depth' is not a weight" 'x*mse:depth'
no 2 "'0.5x' in '0.5x*mse:depth' is not a weight" '0.5x*mse:depth'
no 2 "'' in '*mse:depth' is not a weight" '*mse:depth'
no 2 "weight 0, expected a finite one other than 0" '0*mse:depth'
no 2 "weight inf, expected a finite one" 'inf*mse:depth'
no 2 "weight nan, expected a finite one" 'nan*mse:depth'
no 2 "weight inf, expected a finite one" '1e999*mse:depth'
no 2 "'hinge' is neither a loss nor a model file" '2*hinge:depth'
no 2 "'mse:' lacks a name" 'mse:'
no 2 "'mse:depth=' lacks a name" 'mse:depth='
no 1 "none compares with nothing" 'none:depth=t'
no 1 "loss input 'height' is not a value of the model" 'mse:height'
no 1 "'cross-entropy' and '0.5*cross-entropy:scores' are the same term" '0.5*cross-entropy:scores'
no 1 "'cross-entropy' and 'cross-entropy:scores=labels' are the same term" 'cross-entropy:scores=labels'
refuses 2 "'small.onnxtxt' is given twice" train heads.onnxtxt --data heads.csv --loss small.onnxtxt --loss small.onnxtxt
refuses 2 "--loss-input: where --loss names its value" train heads.onnxtxt --data heads.csv --loss mse:depth --loss-input scores
refuses 2 "--target: where --loss names its value" train heads.onnxtxt --data heads.csv $two --target kind
refuses 2 "--class-weights: no --loss is cross-entropy" train line.onnxtxt --data line.csv --loss mse --class-weights 1,2
refuses 2 "--ignore-index: no --loss is cross-entropy" train line.onnxtxt --data line.csv --loss mse --ignore-index 1
refuses 1 "loss terms have shapes [batch] and [batch,1]: only equal ones, or scalars, are summed" \
    train heads.onnxtxt $data $two --reduction none
# Two targets: the last column is not taken for one of them by guessing.
refuses 1 "nothing in the data is left for input 'labels'" train heads.onnxtxt --data heads.csv --bind x=a:d $two
echo ok
