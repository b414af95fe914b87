#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A run that diverges destroys nothing, and says what is to blame.
. "$(dirname "$0")/cli.inc"
. "$here/models.inc"
options="--data plain.csv --batch-size 10 --threads 1 --quiet"

# Three epochs; then a rate that ruins the weights; then a sane one, which goes on from the third epoch.
run 0 train mlp.onnxtxt $options --epochs 3 --checkpoint-dir saved
cp saved/checkpoint before
run 1 train mlp.onnxtxt $options --epochs 6 --checkpoint-dir saved --resume --lr 1e20
err "epoch 4"
err "lower the learning rate, or clip gradients"
same saved/checkpoint before
run 0 train mlp.onnxtxt $options --epochs 6 --checkpoint-dir saved --resume --log log --out resumed.onnx
grep -q '"epoch":4,"step":19' log || fail "$ran: does not go on from the third epoch"
run 0 train mlp.onnxtxt $options --epochs 6 --out unbroken.onnx
same resumed.onnx unbroken.onnx

# The same where the ruinous step is the last one.
cp saved/checkpoint before
run 1 train mlp.onnxtxt $options --epochs 7 --max-steps 37 --checkpoint-dir saved --resume --lr 1e20 --out ruined.onnx
err "after step 37"
same saved/checkpoint before
[ ! -e ruined.onnx ] || fail "$ran: wrote a model"
run 1 train mlp.onnxtxt $options --max-steps 1 --lr 1e30 --out ruined.onnx
[ ! -e ruined.onnx ] || fail "$ran: wrote a model"

# Another run's folder is not begun anew.
refuses 1 "saved/checkpoint is of an earlier run" train mlp.onnxtxt $options --epochs 1 --checkpoint-dir saved
same saved/checkpoint before
run 0 train mlp.onnxtxt $options --epochs 1 --checkpoint-dir saved --overwrite

# A run that has all its steps makes no more.
run 0 train mlp.onnxtxt $options --max-steps 8 --checkpoint-dir eight
cp eight/checkpoint before
run 0 train mlp.onnxtxt $options --max-steps 8 --checkpoint-dir eight --resume
same eight/checkpoint before

# A mask that leaves nothing of a row is blamed, not the learning rate.
cat >masked.onnxtxt <<'END2'
<ir_version: 8, opset_import: ["" : 17]>
masked (float[batch, 4] x) => (float[batch, 3] scores)
<float[3] mask = {-inf, -inf, -inf}>
{
    w = RandomNormal <shape = [4, 3], scale = 0.5> ()
    s = MatMul (x, w)
    m = Add (s, mask)
    p = Softmax (m)
    scores = Add (p, s)
}
END2
run 1 train masked.onnxtxt $options --freeze mask
err "the loss is nan at batch 1 of epoch 1, before any update: "
err "'mask' has -inf"
grep -q "learning rate" err && fail "$ran: blames the learning rate"
# So are numbers that no float can hold.
run 1 train line.onnxtxt --data line.csv --loss mse --scale 1e30 --init w=ones --threads 1
err "before any update: inputs, targets or parameters are too large"
grep -q "learning rate" err && fail "$ran: blames the learning rate"
# Gradients may be too large for the optimizer while the loss is finite: then nothing is learnt any more.
run 1 train line.onnxtxt --data line.csv --loss mse --scale 1e30 --threads 1
err "the optimizer's moment of parameter 'w' has inf after step 2: scale inputs and targets, or clip gradients"
echo ok
