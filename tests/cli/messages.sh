#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What is said of wrong use, whole lines: 2 for what the command line alone shows, before anything is opened, else 1.
. "$(dirname "$0")/cli.inc"
. "$here/models.inc"
printf 'MedInc,HouseAge,AveRooms,price\n1,2,3,0\n4,5,6,1\n' >houses.csv
run 0 artifacts mlp.onnxtxt --out artifacts
: >empty
printf 'a,b,c,d,class\n1,2,3,4,1.5\n' >half.csv
printf 'a,b,c,d,class\n1,2,3,4,0\n1,2,3,4,2\n' >flowers.csv
printf 'a,b,c,d,class\n1,2,3,4,0\n1,2,3,4,\n' >missing_label.csv
printf 'a,b,c,d,class\n1,2,3,4,red\n1,2,3,4," "\n' >missing_text.csv
mkdir folder run
cp artifacts/checkpoint run
cp artifacts/checkpoint checkpoint.onnx
cat >swish.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17, "my" : 1]>
swish (float[batch, 4] x) => (float[batch, 3] y)
<float[4, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}>
{
    product = MatMul (x, w)
    swish = ImageDecoder (product)
    y = Relu (swish)
}
END
sed 's/ImageDecoder/my.Thing/' swish.onnxtxt >thing.onnxtxt
sed 's/Relu (swish)/my.Thing (swish)/' swish.onnxtxt >both.onnxtxt
sed '/Relu/d; s/swish = ImageDecoder/y = ImageDecoder/' swish.onnxtxt >last.onnxtxt
cat >tokens.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
tokens (float[batch, seq, 2] x) => (float[batch, seq, 3] scores)
{
    w = RandomNormal <shape = [2, 3], scale = 0.5> ()
    scores = MatMul (x, w)
}
END
sed 's/(float\[batch, seq, 3\] scores)/(float[batch, 3, 2] turned)/; s/seq/2/; s/^}/    turned = Transpose <perm = [0, 2, 1]> (scores)\n}/' \
    tokens.onnxtxt >turned.onnxtxt
python3 - <<'END'
import struct
import zipfile

with zipfile.ZipFile("text.zip", "w") as archive:
    archive.writestr("notes.txt", "nothing")

def save(name, descr, shape):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    size = int(descr[2:])
    for extent in shape:
        size *= extent
    open(name, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(size))

save("sequences.npy", "<f4", (6, 2, 2))
save("tags.npy", "<i8", (6, 2))
END

# A row: CODE|LINE|ARGUMENTS. The line is all that is printed, behind "onnxtrain: ".
check_rows() {
    while IFS='|' read -r code line arguments; do
        case $code in '' | '#'*) continue ;; esac
        eval "refuses $code \"\" $arguments"
        printf 'onnxtrain: %s\n' "$line" >wanted
        cmp -s wanted err || fail "$ran: wanted the line
$(cat wanted)"
    done
}

check_rows <<'END'
# subcommands and options
2|there is no command 'trian'; commands are train, eval, export, check, info, artifacts, grad, aggregate, ckpt, ops; did you mean 'train'?|trian
2|there is no command 'trian'; commands are train, eval, export, check, info, artifacts, grad, aggregate, ckpt, ops; did you mean 'train'?|help trian
2|there is no command 'fly'; commands are train, eval, export, check, info, artifacts, grad, aggregate, ckpt, ops|fly
2|unknown option '--versoin'; a command comes first: `onnxtrain --help` lists them|--versoin
2|train takes MODEL, got 0 arguments; `onnxtrain train --help` tells more|train
2|MODEL: the name is empty|info ''
2|unknown option '--dta'; did you mean '--data'? `onnxtrain train --help` lists the options|train m --dta x.csv
2|unknown option '--weight_decay'; did you mean '--weight-decay'? `onnxtrain train --help` lists the options|train m --weight_decay=1
2|unknown option '--learning-rate'; did you mean '--lr'? `onnxtrain train --help` lists the options|train m --learning-rate 1
2|unknown option '--nonsense'; `onnxtrain train --help` lists the options|train m --nonsense
2|unknown option '-z'; `onnxtrain train --help` lists the options|train m -z
2|option '--sch' is unclear: --schedule, --schedule-steps|train m --sch cosine
2|--quiet takes no value, got '3'|train m --quiet=3
2|a value is missing after '--data'; `onnxtrain train --help` lists the options|train m --data
# values of options
2|--no-decay: sgd has no weight decay|train m --data d --optimizer sgd --no-decay b
2|--optimizer: training needs one|train m --data d --optimizer none
2|--schedule: 'consine' is not one of constant, linear, cosine, step, exponential, polynomial; did you mean 'cosine'?|train m --data d --schedule consine
2|--loss: 'crossentropy' is neither a loss nor a model file; losses are cross-entropy, mse, l1, bce-with-logits, none; did you mean 'cross-entropy'?|train m --data d --loss crossentropy
2|--loss: 'bce' is neither a loss nor a model file; losses are cross-entropy, mse, l1, bce-with-logits, none; did you mean 'bce-with-logits'?|check m --loss 2*bce:y
2|--loss: 'hinge' is neither a loss nor a model file; losses are cross-entropy, mse, l1, bce-with-logits, none|artifacts m --loss hinge
2|--loss: 'mse' is given twice|info m --loss mse --loss mse
2|--loss: 'mse:' lacks a name|eval m --data d --loss mse:
2|--loss: 'x' in 'x*mse' is not a weight|train m --data d --loss 'x*mse'
2|--loss-input: where --loss names its value or is given several times, it says --loss LOSS:VALUE=TARGET|check m --loss mse:y --loss-input y
2|--class-weights: no --loss is cross-entropy|check m --loss mse --class-weights 1,2
2|--class-weights: 'x' is not a weight|check m --class-weights 1,x
2|--ignore-index: 'x' is not a label|check m --ignore-index x
2|--class-axis: '2' is not one of 1, -1|check m --class-axis 2
2|--init: 'kaiming' is not one of kaiming_uniform, kaiming_normal, xavier_uniform, xavier_normal, zeros, ones; did you mean 'kaiming_uniform'?|train m --data d --init 'w*=kaiming'
2|--init: 'w' is not PATTERN=KIND|train m --data d --init w
2|--beta1: '1' is not a number of at least 0 and below 1|check m --beta1 1
2|--lr: '-1' is not a number of at least 0|train m --data d --lr -1
2|--scale: 'x' is not a number|train m --data d --scale x
2|--epochs: '0' is not a whole number of at least 1|train m --data d --epochs 0
2|--memory-max: '1T' is not a whole number of at least 0, perhaps with K, M or G, or none|train m --data d --memory-max 1T
2|--threads: 1025, expected at most 1024|eval m --data d --threads 1025
2|--split: '2' is not a number of at least 0 and below 1|train m --data d --split 2
2|--validation and --split exclude each other|train m --data d --split 0.5 --validation v
2|--std: 0 is not above 0|train m --data d --std 0
2|--mean has 2 numbers, --std 1|train m --data d --mean 1,2 --std 1
2|--mean: 'x' is not a number|eval m --data d --mean x
2|--bind: 'x' is not INPUT=FIELD|train m --data d --bind x
2|--data is missing|train m
2|--data: the name is empty|eval m --data ''
2|--resume needs --checkpoint-dir|train m --data d --resume
2|--out: 'd' is what is read; it would be lost|train m --data d --out d
2|--out: 'd' is what is read; it would be lost|train m --data x=d --out d
2|--out and --log are the same file 'o'|train m --data d --out o --log o
2|--out is missing|export d
2|--out: the name is empty|export d --out ''
2|--prefix: 'a/b' contains '/', but begins the names of files|artifacts m --prefix a/b
2|--wrt is missing|grad m --of y --out g.onnx
2|--out: an .npy holds one array, 2 are wanted|grad m --of y --wrt a --wrt b --data d --out g.npy
# what files show
1|--out: './plain.csv' is what is read; it would be lost|train mlp.onnxtxt --data plain.csv --out ./plain.csv
1|--out: 'artifacts/training_model.onnx' is what is read; it would be lost|export artifacts --out artifacts/training_model.onnx
1|--out: './artifacts/training_model.onnx' is what is read; it would be lost|artifacts artifacts/training_model.onnx --out ./artifacts
1|missing.onnx: cannot be opened: No such file or directory|info missing.onnx
1|folder: is a directory, not a model|check folder
1|artifacts: is a directory of artifacts, not a model|eval artifacts --data plain.csv
1|run: is a directory with the checkpoint of a run, not a model|info run
1|artifacts/checkpoint: is a checkpoint, not a model|train artifacts/checkpoint --data plain.csv
1|checkpoint.onnx: is a checkpoint, not a model|grad checkpoint.onnx --of y --wrt x --out g.onnx
1|x.npy: is an .npy array, not a model|info x.npy
1|plain.csv: is a text, not a model|info plain.csv
1|empty: is empty, expected a model|info empty
1|the model is the training model of artifacts, expected a forward model: train their directory|train artifacts/training_model.onnx --data plain.csv
1|the model is the optimizer model of artifacts, expected a forward model: train their directory|train artifacts/optimizer_model.onnx --data plain.csv
1|folder: is not a directory of artifacts: it lacks training_model.onnx|train folder --data plain.csv
1|missing: there is no such directory|export missing --out e.onnx
1|folder: is not a directory of artifacts, or of a run: it lacks eval_model.onnx|export folder --out e.onnx
1|mlp.onnxtxt: is a file, not a directory of artifacts|export mlp.onnxtxt --out e.onnx
1|mlp.onnxtxt: is a model in ONNX's textual syntax, not a checkpoint|export artifacts --checkpoint mlp.onnxtxt --out e.onnx
1|artifacts/eval_model.onnx: is an ONNX model, not a checkpoint|export artifacts --checkpoint artifacts/eval_model.onnx --out e.onnx
1|run: is a directory, whose checkpoint is 'run/checkpoint'|export artifacts --checkpoint run --out e.onnx
1|plain.csv: is a file, expected a directory|artifacts mlp.onnxtxt --out plain.csv
1|--target: there is no input 'lables'; inputs are x, labels; did you mean 'labels'?|train artifacts --data plain.csv --target lables
# names in models
1|loss input 'scoers' is not a value of the model; its outputs are scores; did you mean 'scores'?|train mlp.onnxtxt --data plain.csv --loss mse:scoers
1|additional output 'scoers' is not a tensor of the model; did you mean 'scores'?|artifacts mlp.onnxtxt --output scoers --out a
1|the eval model computes no value 'scoers'; its outputs are scores; did you mean 'scores'?|export artifacts --output scoers --out e.onnx
1|wrt: the model has no value 'X'; its outputs are y; did you mean 'x'?|grad line.onnxtxt --of y --wrt X --out g.onnx
# operators
1|operator ImageDecoder is not supported: it makes 'swish', which Relu of 'y' takes|train swish.onnxtxt --data plain.csv --loss mse
1|operator my.Thing is not supported: it makes 'swish', which Relu of 'y' takes; to carry it along, state its type in the model's value_info|train thing.onnxtxt --data plain.csv --loss mse
1|ImageDecoder is not supported: 1 operator on the way to 'onnx::reducemean_output::6' without gradient: ImageDecoder of 'y' (from 'w' by MatMul); freeze 'w', which leaves nothing to train|train last.onnxtxt --data plain.csv --loss mse
1|2 operators are not supported: ImageDecoder (opset 17), my.Thing|grad both.onnxtxt --of y --wrt x --out g.onnx
# data
1|mlp.onnxtxt: is a model in ONNX's textual syntax, not data: .npz, .npy, CSV or IDX|train mlp.onnxtxt --data mlp.onnxtxt
1|artifacts/checkpoint: is a checkpoint, not data: .npz, .npy, CSV or IDX|train mlp.onnxtxt --data artifacts/checkpoint
1|--label: the data has no field 'clas', but a, b, c, d, class; did you mean 'class'?|train mlp.onnxtxt --data flowers.csv --label clas
1|input 'x': the data has no field 'e', but a, b, c, d, class|train mlp.onnxtxt --data flowers.csv --bind x=a,b,c,e
1|--bind: there is no input 'X', but x, labels; did you mean 'x'?|train mlp.onnxtxt --data flowers.csv --bind X=a:d
1|nothing in the data is left for input 'labels'; --bind labels=FIELD names it, of x|train mlp.onnxtxt --data x.npy
1|input 'x' wants rows of [4], got the columns MedInc to AveRooms (3 columns)|train mlp.onnxtxt --data houses.csv
1|input 'x' wants rows of [4], got the columns a, c|train mlp.onnxtxt --data flowers.csv --bind x=a,c
1|missing_label.csv: line 3, column 5 ('class'): is missing|train mlp.onnxtxt --data missing_label.csv
1|missing_text.csv: line 3, column 5 ('class'): is missing|train mlp.onnxtxt --data missing_text.csv
1|input 'target' wants rows of [3], field 'labels' has one number a row|train mlp.onnxtxt --data x=x.npy --data labels=labels.idx --loss mse
1|text.zip: has no arrays, which are members named .npy|train mlp.onnxtxt --data text.zip
1|half.csv: line 2, column 5 ('class'): label 1.5 is not a whole number; the loss mse takes such targets|train mlp.onnxtxt --data half.csv
# the axis of the classes
1|input 'labels' wants rows of [3], field 'labels' has [2]; the scores have their classes on the last axis: --class-axis -1|train tokens.onnxtxt --data x=sequences.npy --data labels=tags.npy
1|input 'labels' wants rows of [3], field 'labels' has [2]; the scores have their classes on the second axis: --class-axis 1|train turned.onnxtxt --data x=sequences.npy --data labels=tags.npy --class-axis -1
END

run 0 info mlp.onnxtxt --loss-input scoers
out "step       none: loss input 'scoers' is not a value of the model; its outputs are scores; did you mean 'scores'?"

# Time per operator, most first, without any OT_LOG.
OT_PROFILE=1 "$command" train mlp.onnxtxt --data plain.csv --epochs 1 --threads 1 --quiet 2>err || fail "no profile"
err "profile of graph 'mlp': "
err "Gemm 'Gemm_2'"
awk '/share +us  step/ { n++; last = 101 } / % / { if ($2 + 0 > last) exit 1; last = $2 + 0 } END { exit n < 2 }' err ||
    fail "the profile is not sorted"
echo ok
