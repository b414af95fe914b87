#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The same rows in every format train the same file, bit for bit.
. "$(dirname "$0")/cli.inc"
. "$here/models.inc"
options="--scale 0.00390625 --epochs 15 --batch-size 16 --lr 0.02 --threads 1 --quiet"

run 0 train mlp.onnxtxt --data plain.csv $options --out expected.onnx
run 0 eval expected.onnx --data plain.csv --scale 0.00390625 --json
json accuracy 'v > 0.95'
json rows 'v == 60'

# trains ARGUMENT...: gives the same file.
trains() {
    run 0 train "$@" $options --out trained.onnx
    [ ! -s out ] || fail "$ran: --quiet prints nothing"
    same trained.onnx expected.onnx
}
trains mlp.onnxtxt --data plain.csv.gz
trains mlp.onnxtxt --data header.csv
trains mlp.onnxtxt --data header.csv.gz --label kind
trains mlp.onnxtxt --data header.csv --label -1 --bind x=a:d
trains mlp.onnxtxt --data header.csv --bind x=a,b,2:3 --bind labels=kind
trains mlp.onnxtxt --data dos.csv
trains mlp.onnxtxt --data semicolon.csv
trains mlp.onnxtxt --data label_first.csv --header yes --label kind
trains mlp.onnxtxt --data label_first.csv --header yes --label '#0' --bind 'x=#1:#4'
trains mlp.onnxtxt --data x.npy --data y.npy
trains mlp.onnxtxt --data y.npy --data x.npy --label y
trains mlp.onnxtxt --data x.npy.gz --data labels=y.npy.gz
trains mlp.onnxtxt --data x=x_big_endian.npy --data y.npy
trains mlp.onnxtxt --data x_fortran.npy --data y.npy
trains mlp.onnxtxt --data packed.npz
trains mlp.onnxtxt --data stored.npz
trains mlp.onnxtxt --data stored.npz --bind x=x --label labels

# A header whose column names are numbers: names win over positions, so column "1" is the third.
refuses 1 "input 'x' wants rows of [4]" train mlp.onnxtxt --data label_first.csv --header yes --label kind --bind x=1:3 $options

# Images: u8 [N,2,2] feeds f32 [N,1,2,2]; the model differs, so does the file it gives.
run 0 train images.onnxtxt --data images.idx --data labels.idx $options --out expected.onnx
trains images.onnxtxt --data images.idx.gz --data labels.idx.gz
trains images.onnxtxt --data plain.csv
run 0 eval trained.onnx --data image=images.idx --data labels=labels.idx.gz --scale 0.00390625 --json
json accuracy 'v > 0.95'

# Validation files may have other names than the training files.
cp images.idx other-images.idx
cp labels.idx other-labels.idx
run 0 train images.onnxtxt --data images.idx --data labels.idx --validation other-images.idx --validation other-labels.idx \
    --scale 0.00390625 --epochs 2 --json
json data 'v == "validation"'
json rows 'v == 60'

# --mean and --std: (x - mean) / std after --scale.
run 0 train mlp.onnxtxt --data plain.csv --scale 0.5 --mean 8 --std 4 --epochs 1 --threads 1 --quiet --out one.onnx
python3 - <<'END'
with open("plain.csv") as file, open("shifted.csv", "w") as out:
    for line in file:
        *x, label = line.split(",")
        out.write(",".join(repr((int(v) * 0.5 - 8) / 4) for v in x) + "," + label)
END
run 0 train mlp.onnxtxt --data shifted.csv --epochs 1 --threads 1 --quiet --out two.onnx
run 0 eval one.onnx --data shifted.csv --ignore-recorded --json
cp out one.json
run 0 eval two.onnx --data shifted.csv --json
same out one.json
run 0 train mlp.onnxtxt --data plain.csv --mean 8,8,8,8 --std 4,4,4,4 --epochs 1 --threads 1 --quiet
refuses 2 "--mean" train mlp.onnxtxt --data plain.csv --mean 1,x
refuses 1 "3 means or deviations" train mlp.onnxtxt --data plain.csv --mean 1,2,3
echo ok
