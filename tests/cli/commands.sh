#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every subcommand: help, manual page, usage errors, and what it prints.
. "$(dirname "$0")/cli.inc"
. "$here/models.inc"

run 0 --version
out "onnxtrain 0."
run 2
run 0 --help
for name in train eval export check info artifacts grad; do
    out "onnxtrain $name"
done
refuses 2 "there is no command 'trian'" trian
refuses 2 "there is no command 'x'" help x

for name in train eval export check info artifacts grad; do
    run 0 $name --help
    out "onnxtrain $name "
    out "Example"
    cp out help
    run 0 help $name
    same out help
    awk 'length > 100 { exit 1 }' help || fail "$name --help has a line above 100 characters"
    run 0 help --man $name
    out ".TH ONNXTRAIN-$name 1"
    # every option of the help is in the manual page, with its dashes escaped
    sed -n 's/^  --\([a-z0-9-]*\).*/\1/p' help | sed 's/-/\\-/g' >options
    while read -r option; do
        grep -qF -e ".B \\-\\-$option" out || fail "the manual page of $name lacks --$option"
    done <options
    # what the example shows are options there are
    for option in $(sed -n '/^Example/,$p' help | grep -o -e '--[a-z-]*'); do
        grep -q -e "^  $option" help || fail "the example of $name uses $option"
    done
    refuses 2 "unknown option '--nonsense'; \`onnxtrain $name --help\` lists the options" $name model.onnx --nonsense
    refuses 2 "takes" $name
    refuses 2 "got 2 arguments" $name one two
    case $name in
    export) needed="--out x.onnx" ;;
    grad) needed="--of y --wrt x --out x.onnx" ;;
    train | eval) needed="--data plain.csv" ;;
    *) needed= ;;
    esac
    refuses 1 "missing.onnx" $name missing.onnx $needed
done
run 0 help --man
out ".TH ONNXTRAIN 1"

refuses 2 "--epochs: '0' is not a whole number of at least 1" train mlp.onnxtxt --data plain.csv --epochs 0
refuses 2 "--lr: 'fast' is not a number" train mlp.onnxtxt --data plain.csv --lr fast
refuses 2 "--lr: 'nan' is not a number" train mlp.onnxtxt --data plain.csv --lr nan
refuses 2 "'adam_w' is not one of adamw, sgd, sgd-momentum, none, " train mlp.onnxtxt --data plain.csv --optimizer adam_w
refuses 2 "a value is missing after '--data'" train mlp.onnxtxt --data
refuses 2 "--data is missing" train mlp.onnxtxt
refuses 2 "--data is missing" eval mlp.onnxtxt
refuses 2 "--out is missing" export .
refuses 2 "neither a loss nor a model file" train mlp.onnxtxt --data plain.csv --loss hinge
refuses 2 "--resume needs --checkpoint-dir" train mlp.onnxtxt --data plain.csv --resume
refuses 2 "exclude each other" train mlp.onnxtxt --data plain.csv --split 0.5 --validation plain.csv
refuses 2 "--split: '1' is not a number of at least 0 and below 1" train mlp.onnxtxt --data plain.csv --split 1
refuses 1 "none to train on" train mlp.onnxtxt --data plain.csv --split 0.999
refuses 1 "none to validate on" train mlp.onnxtxt --data plain.csv --split 0.001
refuses 2 "training needs one" train mlp.onnxtxt --data plain.csv --optimizer none
refuses 1 "nowhere/x.onnx" train mlp.onnxtxt --data plain.csv --out nowhere/x.onnx
refuses 1 "is a directory" train mlp.onnxtxt --data plain.csv --out .

run 0 info mlp.onnxtxt
out "scores"
out "Gemm"
run 0 info mlp.onnxtxt --json
json inputs 'v[0]["name"] == "x"'
run 0 info mlp.onnxtxt --text
out "Relu"
run 0 info mlp.onnxtxt --json --batch-size 8
json step 'v["memory"]["total"] == sum(n for name, n in v["memory"].items() if name != "total")'
json step 'v["state_bytes"] + v["plan_bytes"] == sum(v["memory"][name] for name in ("parameters", "gradients", "moments", "activations", "scratch"))'
json step 'v["memory"]["structure"] > 0 and v["memory"]["derived"] == 0'
run 0 info mlp.onnxtxt --plan
out "memory "
out "reference kernels: "
run 0 info mlp.onnxtxt --plan --json
json steps 'all({"node", "kernel", "reason", "reference", "inputs", "outputs", "scratch_bytes"} == set(step) for step in v)'
json steps 'any(step["node"].startswith("UpdateStart ") and step["reference"] for step in v)'
json memory 'v["total"] > 0'
refuses 1 "are allowed (memory_max)" info mlp.onnxtxt --plan --memory-max 100
run 0 info mlp.onnxtxt --plan --memory-max 1G
run 0 info mlp.onnxtxt --json --parallel "D=4 zero=1 accumulate=3"
json parallel '[v[name] for name in ("ranks", "zero", "slices", "accumulate")] == [4, 1, 4, 3]'
json parallel 'v["memory"]["total"] == sum(n for name, n in v["memory"].items() if name != "total")'
json parallel 'v["memory"]["staging"] > 0 and v["memory"]["moments"] < v["memory"]["parameters"]'
once=$(sed -n 's/.*"sent_bytes": \([0-9]*\).*/\1/p' out)
run 0 info mlp.onnxtxt --json --parallel "D=4 zero=2 accumulate=3" # the sums go three times, values once
[ "$(sed -n 's/.*"sent_bytes": \([0-9]*\).*/\1/p' out)" -gt "$once" ] || fail "$ran: no more than with zero=1 ($once)"
run 0 info mlp.onnxtxt --json --parallel "D=4 sync-batch-norm=1"
json parallel 'v["sync_batch_norm"] is True'
run 0 info mlp.onnxtxt --json --parallel "D=4 zero=2"
parts=$(sed -n 's/.*"gradients": \([0-9]*\).*/\1/p' out | tail -n 1)
run 0 info mlp.onnxtxt --json --parallel "D=4 zero=2 reproducible=1" # which keeps gradients whole
json parallel 'v["reproducible"] is True'
[ "$(sed -n 's/.*"gradients": \([0-9]*\).*/\1/p' out | tail -n 1)" -gt "$parts" ] || fail "$ran: gradients are cut"
run 0 info mlp.onnxtxt --json --parallel "D=4" --batch-norm sync
json parallel 'v["sync_batch_norm"] is True'
refuses 2 "--batch-norm sync: artifacts are of one process" artifacts mlp.onnxtxt --batch-norm sync --out artifacts
run 0 artifacts mlp.onnxtxt --out whole --output scores --optimizer adamw
run 0 info mlp.onnxtxt --json --parallel "D=4 zero=1"
sent=$(sed -n 's/.*"sent_bytes": \([0-9]*\).*/\1/p' out)
run 0 info whole --json --parallel "D=4 zero=1"
[ "$(sed -n 's/.*"sent_bytes": \([0-9]*\).*/\1/p' out)" = "$sent" ] || fail "$ran: artifacts send other bytes than their model"
json inputs '[i["name"] for i in v] == ["x", "labels"]'
json parameters '(v["tensors"], v["elements"], v["trainable"]) == (4, 131, 131)'
refuses 1 "--loss: the artifacts in 'whole' have this built in" info whole --loss mse
refuses 1 "--text: 'whole' is a directory, expected a model" info whole --text
run 0 info mlp.onnxtxt --parallel "D=2"
out "parallel   D=2 zero=0 slices=2 accumulate=1: each process sends "
refuses 2 "--parallel: 'zero=3' does not say D=N, the number of processes" info mlp.onnxtxt --parallel zero=3
refuses 2 "--parallel: 'zero=4' is not zero=N with N from 0 to 3" info mlp.onnxtxt --parallel "D=2 zero=4"
refuses 2 "--parallel: 'E=2' is none of D=N, zero=STAGE, slices=N, accumulate=N" info mlp.onnxtxt --parallel "D=2 E=2"
refuses 2 "--parallel: D is given twice" info mlp.onnxtxt --parallel "D=2 D=3"
refuses 2 "--parallel: 2 slices for 4 processes" info mlp.onnxtxt --parallel "D=4 slices=2"
refuses 2 "--parallel and --plan exclude each other" info mlp.onnxtxt --parallel "D=4" --plan
refuses 1 "are allowed (memory_max)" info mlp.onnxtxt --parallel "D=4" --memory-max 100

run 0 check mlp.onnxtxt
out "the model can be trained"
run 0 check mlp.onnxtxt --freeze 'w1' --json
json trainable 'v is True'
json parameters '{p["name"]: p["trains"] for p in v} == {"w1": False, "b1": True, "w2": True, "b2": True}'
sed 's/r = Relu (h)/r0 = Floor (h) r = Relu (r0)/' mlp.onnxtxt >floor.onnxtxt
run 0 check floor.onnxtxt # what stands behind Floor still trains
run 1 check floor.onnxtxt --train w1 --json
json trainable 'v is False'
json problems 'len(v) > 0'

# Parameters that an exporter has folded away.
for name in train check; do
    run 1 $name mlp.onnxtxt $([ $name = check ] || echo --data plain.csv) --train 'conv.weight'
    cat out >>err
    err "'conv.weight' matches no initializer of the model"
    err "optimize=False"
done

# A file for another program's pipe: the model on standard output, the lines on standard error.
run 0 train mlp.onnxtxt --data plain.csv --epochs 1 --threads 1 --out file.onnx
out "epoch 1/1"
out "written: file.onnx"
[ ! -s err ] || fail "$ran: nothing is wrong, so nothing is said on standard error"
run 0 train mlp.onnxtxt --data plain.csv --epochs 1 --threads 1 --out -
same out file.onnx
err "epoch 1/1"
refuses 2 "both write to standard output" train mlp.onnxtxt --data plain.csv --out - --json
"$command" info - --json <file.onnx >out 2>err || fail "info does not read standard input"
json outputs 'v[0]["name"] == "scores"'

# Artifacts, a training run over them, and the export of what it saved.
run 0 artifacts mlp.onnxtxt --out artifacts --output scores
for file in training_model.onnx eval_model.onnx optimizer_model.onnx checkpoint; do
    [ -s "artifacts/$file" ] || fail "$ran: no artifacts/$file"
done
run 0 train artifacts --data plain.csv --epochs 2 --threads 1 --checkpoint-dir saved --out from_artifacts.onnx --json
json accuracy '0 <= v <= 1'
run 0 train mlp.onnxtxt --data plain.csv --epochs 2 --threads 1 --out from_model.onnx --json
json step 'v == 4'
run 0 eval from_model.onnx --data plain.csv --json
cp out expected
run 0 eval from_artifacts.onnx --data plain.csv --json
same out expected
run 0 export artifacts --checkpoint saved/checkpoint --output scores --out exported.onnx
run 0 eval exported.onnx --data plain.csv --json
same out expected
refuses 1 "nothing" export artifacts --output nothing --out exported.onnx

# The same by files in ONNX Runtime's own format.
run 0 artifacts mlp.onnxtxt --out standard --output scores --standard-ops
err "note: the training model keeps what ONNX's own operators cannot say: com.microsoft.InPlaceAccumulatorV2"
run 0 train standard --data plain.csv --epochs 2 --threads 1 --out from_standard.onnx --json
run 0 artifacts mlp.onnxtxt --out ort --output scores --ort-format
rm ort/*.onnx
run 0 train ort --data plain.csv --epochs 2 --threads 1 --out from_ort.ort --json
run 0 eval from_ort.ort --data plain.csv --json
same out expected
run 0 info from_ort.ort --json
json outputs 'v[0]["name"] == "scores"'
echo ok
