#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# train --precision: what is said of scale and skipped updates, going on bit for bit, and where scaling does not help.
. "$(dirname "$0")/cli.inc"
. "$here/models.inc"
options="--data plain.csv --batch-size 10 --threads 1"

# ---- it trains, and goes on ----
for precision in bf16 f16; do
    run 0 train mlp.onnxtxt $options --quiet --epochs 4 --precision $precision --out whole.onnx --log log
    run 0 train mlp.onnxtxt $options --quiet --epochs 2 --precision $precision --checkpoint-dir $precision
    run 0 train mlp.onnxtxt $options --quiet --epochs 4 --precision $precision --checkpoint-dir $precision --resume --out resumed.onnx
    same whole.onnx resumed.onnx
    run 0 train mlp.onnxtxt $options --quiet --epochs 4 --out f32.onnx
    cmp -s whole.onnx f32.onnx && fail "$ran: $precision gives what f32 gives"
    cp log $precision.log
    run 0 info whole.onnx
done
grep -q '"loss_scale":' bf16.log && fail "bf16 has no loss scale"
[ "$(grep -c '"loss_scale":65536' f16.log)" -gt 20 ] || fail "the log does not tell of the loss scale"
run 0 train mlp.onnxtxt $options --epochs 1 --precision f16
out "  scale 65536  lr "

# The scale goes on from the checkpoint, too.
scaler='options.mixed_precision.loss_scaler={"type": "DynamicLossScaler", "up_scale_window": 3}'
once="mlp.onnxtxt $options --quiet --precision f16"
run 0 train $once --set "$scaler" --epochs 2 --log whole.log
run 0 train $once --set "$scaler" --epochs 1 --checkpoint-dir scaled
run 0 train $once --set "$scaler" --epochs 2 --checkpoint-dir scaled --resume --log resumed.log
[ "$(tail -n 1 whole.log | grep -o '"loss_scale":[0-9]*')" = "$(grep '"event":"epoch"' resumed.log | tail -n 1 | grep -o '"loss_scale":[0-9]*')" ] ||
    fail "the scale does not go on"

# ---- a row that no scale helps: its updates are skipped; f16 says so, bf16 ends as f32 does ----
sed '7s/.*/3e38,3e38,3e38,3e38,1/' plain.csv >huge.csv
once="mlp.onnxtxt --data huge.csv --scale 1 --batch-size 1 --epochs 1 --threads 1"
run 0 train $once --precision f16 --log steps
grep -q '  scale [0-9]*  [1-9] skipped  lr ' out || fail "$ran: does not tell of it"
tail -n 1 steps | grep -q '"skipped":[1-9],"loss_scale":' || fail "$ran: the log does not tell of it"
run 1 train $once --precision bf16 --quiet
err "the loss is "
run 0 train $once --precision bf16 --set options.onnxtrain.skip_non_finite=true
out "1 skipped  lr "

# ---- the scale is at its least, and the loss still not finite: the state that was good stays ----
run 0 train mlp.onnxtxt $options --quiet --precision f16 --epochs 1 --checkpoint-dir saved
cp saved/checkpoint before
run 1 train mlp.onnxtxt $options --quiet --precision f16 --epochs 9 --checkpoint-dir saved --resume --lr 1e20 --save-every 1
err "the loss is "
err "lower the learning rate, or clip gradients"
same saved/checkpoint before
run 0 train mlp.onnxtxt $options --quiet --precision f16 --epochs 2 --checkpoint-dir saved --resume

# ---- what is wrong ----
refuses 2 "--precision: " train mlp.onnxtxt $options --precision f8
printf '%s\n' '{"model": "mlp.onnxtxt", "options": {"mixed_precision": {"enabled": false}}, "train": {"data": ["plain.csv"]}}' >run.json
refuses 1 "mixed_precision.enabled: is false, but onnxtrain.precision is bf16" train --config run.json --precision bf16
run 0 train --config run.json --precision f32 --dry-run --quiet
run 0 train mlp.onnxtxt $options --set options.mixed_precision.enabled=true --epochs 1 --out enabled.onnx --quiet
run 0 train mlp.onnxtxt $options --precision f16 --epochs 1 --out f16.onnx --quiet
same enabled.onnx f16.onnx
refuses 2 "mixed_precision.loss_scaler: needs mixed_precision.enabled" train mlp.onnxtxt $options --set "$scaler"
run 0 artifacts mlp.onnxtxt --loss cross-entropy --out made
refuses 1 "options.onnxtrain.precision: the artifacts in 'made' have this built in" train made $options --precision f16

# ---- instruction sets ----
export OT_LOG=info
for isa in base avx2 avx512; do
    OT_ISA=$isa run 0 train mlp.onnxtxt $options --precision bf16 --epochs 1 --quiet
    err "precision bf16 saves memory, but no time"
done
OT_ISA=sse9 run 0 train mlp.onnxtxt $options --epochs 1 --quiet
err "OT_ISA is 'sse9', expected base, avx2, avx512 or avx512_bf16: it has no effect"

# ---- what info predicts of a step in another type, or of one that makes values again ----
activations() {
    sed -n 's/.*"activations": \([0-9]*\).*/\1/p' out
}
run 0 info mlp.onnxtxt --json
f32=$(activations)
run 0 info mlp.onnxtxt --json --precision bf16
[ "$(activations)" -lt "$f32" ] || fail "$ran: as many bytes as in f32 ($f32)"
run 0 info mlp.onnxtxt --plan --precision f16
out " f16["
out ", derived "
refuses 2 "--precision: " info mlp.onnxtxt --precision f8
refuses 2 "--recompute: 'all' is unknown" info mlp.onnxtxt --recompute all
run 0 info mlp.onnxtxt --recompute gelu
