#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A model that takes 4 rows and no other number, since it adds a tensor of 4 rows: that size is used, and what is left over
# is said.
. "$(dirname "$0")/cli.inc"
cat >fixed.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
fixed (float[4, 2] x) => (float[4, 1] y)
<float[2, 1] w = {0.0, 0.0}, float[4, 1] rows = {1.0, 2.0, 3.0, 4.0}>
{
    p = MatMul (x, w)
    y = Add (p, rows)
}
END
awk 'BEGIN { print "a,b,target"; for (i = 0; i < 10; i++) print i "," 1 "," 2 * i + 1 }' >ten.csv
head -n 9 ten.csv >eight.csv
options="--loss mse --epochs 1 --threads 1"
stays="the batch size stays 4, which the exporter fixed: Add of 'y' reads 'rows', which holds the batch size 4; export with dynamic_axes or dynamic_shapes for another"
left="2 of the 10 training rows are left over and not used: the model takes batches of 4 rows and no others"

run 0 check fixed.onnxtxt --loss mse
out "$stays"
run 0 train fixed.onnxtxt --data ten.csv $options --log log
out "note: $stays"
out "note: $left"
grep -qF "\"text\":\"$left\"" log || fail "$ran: the log lacks '$left'"
run 0 train fixed.onnxtxt --data ten.csv $options --json
json rows 'v == 8'
run 0 train fixed.onnxtxt --data ten.csv $options --quiet
[ ! -s out ] || fail "$ran: prints"

# Nothing is left over of 8 rows; of validation data it is said, too.
run 0 train fixed.onnxtxt --data eight.csv $options
grep -q "left over" out && fail "$ran: nothing is left over"
run 0 train fixed.onnxtxt --data eight.csv --validation ten.csv $options
out "note: 2 of the 10 validation rows are left over"
run 0 train fixed.onnxtxt --data ten.csv $options --batch-size 4
out "note: $left"

# Artifacts of it say the same.
run 0 artifacts fixed.onnxtxt --loss mse --out artifacts
run 0 train artifacts --data ten.csv --epochs 1 --threads 1
out "note: $left"

# So does a measurement, to those who read its result.
run 0 train fixed.onnxtxt --data ten.csv $options --quiet --out trained.onnx
run 0 eval trained.onnx --data ten.csv --json
json rows 'v == 8'
err "note: 2 of the 10 rows are left over and not used: the model takes batches of 4 rows and no others"
run 0 eval trained.onnx --data eight.csv
grep -q "left over" err && fail "$ran: nothing is left over"

# Another number is refused with the remedy, and fewer rows than it takes.
refuses 1 "--batch-size: 5, but input 'x' takes 4 rows and no other number; export with dynamic_axes or dynamic_shapes for another" \
    train fixed.onnxtxt --data ten.csv $options --batch-size 5
run 1 train fixed.onnxtxt --data ten.csv $options --slices 2
err "slices: 2, but input 'x' takes 4 rows and no other number, which cannot be cut; export with dynamic_axes or dynamic_shapes"
head -n 4 ten.csv >three.csv
refuses 1 "3 rows are fewer than the 4 that the model takes at once" train fixed.onnxtxt --data three.csv $options

# Where the size is opened, files hold the constants that take its place.
cat >opened.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
opened (float[1, 2] x) => (float[1, 1] y)
<float[2, 1] w = {0.0, 0.0}, int64[3] pairs = {1, 1, 2}, int64[2] rows = {1, 2}>
{
    p = Reshape (x, pairs)
    t = Tanh (p)
    r = Reshape (t, rows)
    y = MatMul (r, w)
}
END
run 0 train opened.onnxtxt --data ten.csv $options --checkpoint-dir run --out trained.onnx
run 0 eval trained.onnx --data ten.csv --json
json rows 'v == 10'
run 0 train opened.onnxtxt --data ten.csv $options --slices 2 --json # which cuts what was opened
json rows 'v == 10'
run 0 artifacts opened.onnxtxt --loss mse --out opened
for folder in run opened; do
    run 0 export $folder --out exported.onnx
    run 0 eval exported.onnx --data ten.csv --loss mse --json
    json rows 'v == 10'
done
run 0 train opened --data ten.csv --epochs 1 --threads 1 --out again.onnx
echo ok
