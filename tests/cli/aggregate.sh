#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# onnxtrain aggregate: files of several processes to one, as HDF5 or as a checkpoint that exports take.
. "$(dirname "$0")/cli.inc"

mixed="$here/../hdf5/shards/mixed" columns="$here/../hdf5/shards/columns"
if ! "$command" aggregate "${mixed}0.ortcp" "${mixed}1.ortcp" --out probe >out 2>err && grep -q OT_WITH_HDF5 err; then
    exit 0 # built without HDF5
fi

# ---- a checkpoint ----
cat >model.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
net (float[n, 3] x) => (float[n, 4] y)
<float[3, 4] "layer/kernel" = {0,0,0,0,0,0,0,0,0,0,0,0}, float[3] "layer/bias" = {0,0,0}>
{ a = Add(x, "layer/bias") y = MatMul(a, "layer/kernel") }
END
for kind in "$mixed" "$columns"; do
    run 0 artifacts model.onnxtxt --loss mse --out artifacts
    run 0 aggregate "${kind}1.ortcp" "${kind}0.ortcp" --out artifacts/checkpoint
    out "artifacts/checkpoint: 2 weights of 2 files, after 3 updates"
    run 0 export artifacts --out "$(basename "$kind").onnx"
done
same mixed.onnx columns.onnx

# ---- HDF5 ----
run 0 aggregate "${mixed}0.ortcp" "${mixed}1.ortcp" --out whole.ortcp --quiet
[ ! -s out ] || fail "$ran: --quiet prints nothing"
run 0 aggregate "${mixed}0.ortcp" "${mixed}1.ortcp" --out apart.ortcp --quiet --untrusted
same whole.ortcp apart.ortcp
refuses 1 "whole.ortcp: " aggregate "${mixed}0.ortcp" "${mixed}1.ortcp" --out whole.ortcp
run 0 aggregate "${mixed}0.ortcp" "${mixed}1.ortcp" --out other --format hdf5
same whole.ortcp other
run 0 aggregate "${mixed}0.ortcp" "${mixed}1.ortcp" --out odd.h5 --format checkpoint
cmp -s odd.h5 whole.ortcp && fail "$ran: it is an HDF5 file"

# ---- what is wrong ----
refuses 2 "--out is missing" aggregate "${mixed}0.ortcp"
refuses 2 "aggregate takes FILE..., got 0 arguments" aggregate --out x
refuses 2 "--out" aggregate "${mixed}0.ortcp" "${mixed}1.ortcp" --out "${mixed}1.ortcp"
refuses 1 "1 file, expected 2: there is none of rank 1" aggregate "${mixed}0.ortcp" --out x
refuses 1 "are both of rank 0, expected each rank once" aggregate "${mixed}0.ortcp" "${mixed}0.ortcp" --out x
refuses 1 "columns1.ortcp: zero_stage is 0, expected 1 as in" aggregate "${mixed}0.ortcp" "${columns}1.ortcp" --out x
refuses 1 "the state has no 'partition_info'" aggregate whole.ortcp --out x
refuses 1 "missing.ortcp" aggregate missing.ortcp --out x
head -c 2000 "${mixed}1.ortcp" >cut.ortcp
refuses 1 "cut.ortcp: " aggregate "${mixed}0.ortcp" cut.ortcp --out x --untrusted
[ ! -e x ] || fail "what is refused leaves no file"
