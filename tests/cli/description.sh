#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# model_desc of a configuration: which output is the loss, and names and sizes of what is fed.
. "$(dirname "$0")/cli.inc"
. "$here/models.inc"
unset OT_SET

cat >own.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
own (float[batch, 2] x, float[batch, 1] target) => (float[batch, 1] y, float loss)
<float[2, 1] w = {0.0, 0.0}, float[1] b = {0.0}>
{
    y = Gemm (x, w, b)
    d = Sub (y, target)
    q = Mul (d, d)
    loss = ReduceMean <keepdims = 0> (q)
}
END

# describe INPUTS OUTPUTS: a configuration of this model.
describe() {
    cat >run.json <<END
{"model": "own.onnxtxt", "model_desc": {"inputs": [$1], "outputs": [$2]},
 "optimizer": {"name": "SGDOptimizer", "lr": 0.1}, "options": {"onnxtrain": {"threads": 1}},
 "train": {"data": ["line.csv"], "batch-size": 15, "epochs": 2}}
END
}
x='["x", ["b", 2]]' target='["target", ["b", 1]]' loss='["loss", [], true]' y='["y", ["b", 1]]'

# ---- the loss ----
run 0 train own.onnxtxt --loss none:loss --optimizer sgd --lr 0.1 --data line.csv --batch-size 15 --epochs 2 --threads 1 \
    --out wanted.onnx --quiet
for order in "$x, $target" "$target, $x"; do
    for outputs in "$loss, $y" "$y, $loss"; do
        describe "$order" "$outputs"
        run 0 train --config run.json --out found.onnx --log log --quiet
        same wanted.onnx found.onnx
    done
done
head -n 1 log | grep -qF '"model_desc":{"inputs":[["target",["b",1]],["x",["b",2]]],"outputs":[["y",["b",1]],["loss",[],true]]}' ||
    fail "$ran: the log does not have the description"
# Where an option says the loss, the description agrees, or says nothing of it.
run 0 train --config run.json --loss none:loss --out found.onnx --quiet
same wanted.onnx found.onnx
describe "$x, $target" "$y"
run 0 train --config run.json --loss mse:y --out found.onnx --quiet
describe "$x, $target" "$loss"
refuses 1 "the description says that output 'loss' is the loss, the training model has 'onnx::" \
    train --config run.json --loss mse:y

# ---- names ----
describe "$x, [\"labels\", [\"b\"]], [\"mask\", []]" "$loss, [\"scores\", []]"
refuses 1 "the description has input 'labels', input 'mask', output 'scores', which the training model lacks: its inputs are 'x', 'target', its outputs 'loss', 'y'" \
    train --config run.json
describe "$x" "$loss"
refuses 1 "the training model takes inputs that the description lacks: 'target'" train --config run.json

# ---- sizes ----
describe '["x", ["b", 3]]'", $target" "$loss"
refuses 1 "input 'x': axis 1 has size 2, expected 3" train --config run.json
describe '["x", ["b"]]'", $target" "$loss"
refuses 1 "input 'x' has 2 axes [15,2], expected 1" train --config run.json
describe '["x", ["b", "n"]], ["target", ["b", "n"]]' "$loss"
refuses 1 "input 'target': axis 1 'n' has size 1, but axis 1 of input 'x' has 2: one symbol stands for one size" \
    train --config run.json
# Of 60 rows four batches; what is held out is checked, too.
describe '["x", [15, 2]]'", $target" "$loss"
run 0 train --config run.json --out found.onnx --quiet
same wanted.onnx found.onnx
head -n 45 line.csv >most.csv
run 1 train --config run.json --data most.csv
err "input 'x': axis 0 has size 14, expected 15"
head -n 31 line.csv >most.csv
head -n 9 line.csv >few.csv
run 1 train --config run.json --data most.csv --validation few.csv
err "input 'x': axis 0 has size 8, expected 15"

# ---- a directory of artifacts ----
run 0 artifacts own.onnxtxt --loss none:loss --optimizer sgd --out made
describe "$target, $x" "$loss"
run 0 train made --config run.json --out found.onnx --quiet
describe '["x", ["b", 3]]'", $target" "$loss"
run 1 train made --config run.json
err "input 'x': axis 1 has size 2, expected 3"
echo ok
