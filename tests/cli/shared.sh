#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What an exporter merged trains apart, unless --shared says otherwise.
. "$(dirname "$0")/cli.inc"
. "$here/models.inc"

cat >merged.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
merged (float[batch, 4] x) => (float[batch, 3] scores)
<float[4] "n1.weight" = {1, 1, 1, 1}, float[4] "n1.bias" = {0, 0, 0, 0},
 float[4, 3] "head.weight" = {1, 0, -1, 0, 1, 0, 0.5, 0, 1, 0, 0.5, 1}>
{
    "n2.weight" = Identity ("n1.weight")
    "n2.bias" = Identity ("n1.bias")
    a = LayerNormalization ("x", "n1.weight", "n1.bias")
    t = Tanh (a)
    b = LayerNormalization (t, "n2.weight", "n2.bias")
    scores = MatMul (b, "head.weight")
}
END
data="--data plain.csv --threads 1"

run 0 check merged.onnxtxt
out "trains   n1.weight f32[4]"
out "trains   n2.weight f32[4]"
out "note     'n1.weight' was what an exporter made of several parameters: 'n1.weight' and 'n2.weight' train separately"
run 0 check merged.onnxtxt --json
json parameters 'len(v) == 5'
run 0 check merged.onnxtxt --shared keep --json
json parameters 'len(v) == 3'
json notes 'v == []'
run 0 check merged.onnxtxt --shared 'n2.w*' --json
json parameters 'sorted(p["name"] for p in v) == ["head.weight", "n1.bias", "n1.weight", "n2.bias"]'
run 1 check merged.onnxtxt --shared n3.weight
out "problem  shared 'n3.weight' matches no tensor that would be separated or joined"

# The header says it, the log too; what trained has its own name in the model.
run 0 train merged.onnxtxt $data --epochs 2 --lr 0.1 --log log.jsonl --out trained.onnx
out "'n1.bias' was what an exporter made of several parameters: 'n1.bias' and 'n2.bias' train separately"
grep -q "'n1.bias' was what an exporter made" log.jsonl || fail "$ran: not in the log"
run 0 info trained.onnx --json
json parameters 'v["tensors"] == 5'
run 0 train merged.onnxtxt $data --epochs 2 --lr 0.1 --shared keep --out kept.onnx
grep -q "an exporter made" out err && fail "$ran: says that it separated something"
run 0 info kept.onnx --shared keep --json
json parameters 'v["tensors"] == 3'
run 1 train merged.onnxtxt $data --epochs 2 --lr 0.1 --shared n3.weight --out other.onnx
err "shared 'n3.weight' matches no tensor that would be separated or joined"
run 0 artifacts merged.onnxtxt --shared keep --out apart
