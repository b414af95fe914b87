#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Configurations of train: what goes before what, --print-config, and all that may be wrong.
. "$(dirname "$0")/cli.inc"
. "$here/models.inc"
unset OT_SET

# value PATH: what a configuration in out, as --print-config writes it, has there.
value() {
    python3 -c 'import functools, json, sys
print(json.dumps(functools.reduce(lambda v, k: v[k], sys.argv[1].split("."), json.load(open("out")))))' "$1"
}
# has PATH JSON: and that it is this.
has() { [ "$(value "$1")" = "$2" ] || fail "$ran: $1 is $(value "$1"), expected $2"; }

# ---- OT_SET < file < options of the command line, for each kind of value ----
steps=options.batch.gradient_accumulation_steps
cat >run.json <<'END'
{"model": "mlp.onnxtxt",
 "optimizer": {"name": "AdamOptimizer", "lr": 0.02, "alpha": 0.7},
 "options": {"batch": {"gradient_accumulation_steps": 2}, "onnxtrain": {"threads": 1},
             "lr_scheduler": {"type": "linear", "warmup_steps": 3, "total_steps": 40}},
 "train": {"data": ["plain.csv"], "scale": 0.01, "epochs": 3}}
END
run 0 train --print-config
has $steps 1
has train.epochs 10
has options.lr_scheduler null
has optimizer.name '"AdamWOptimizer"'
export OT_SET="$steps=7
 train.epochs = 8
train.early-stop=5
options.lr_scheduler={\"type\": \"cosine\", \"cycles\": 2}

optimizer.lr=0.5"
run 0 train --print-config
has $steps 7
has train.epochs 8
has options.lr_scheduler.type '"cosine"'
run 0 train --config run.json --print-config
has $steps 2
has train.epochs 3
has train.early-stop 5 # of which the file says nothing
has optimizer.lr 0.02
has options.lr_scheduler.type '"linear"'
has options.lr_scheduler.cycles 0.0 # another kind begins anew
run 0 train line.onnxtxt --config run.json --accumulate 4 --epochs 9 --lr 0.03 --threads 2 --warmup 6 --beta1 0.8 \
    --data a.csv --data b.csv --set optimizer.beta=0.99 --set train.save-every=11 --print-config
has model '"line.onnxtxt"'
has $steps 4
has train.epochs 9
has train.save-every 11
has train.data '["a.csv", "b.csv"]'
has optimizer.lr 0.03
has optimizer.name '"AdamOptimizer"'
has optimizer.alpha 0.8 # what --beta1 is called there
has optimizer.beta 0.99
has options.onnxtrain.threads 2
has options.lr_scheduler.warmup_steps 6.0
has options.lr_scheduler.type '"linear"'
has options.lr_scheduler.total_steps 40
run 0 train --config run.json --schedule step --gamma 0.5 --print-config
has options.lr_scheduler.type '"step"'
has options.lr_scheduler.step_size 1000 # the command's
has options.lr_scheduler.warmup_steps 0.0
unset OT_SET
run 0 train --config run.json --set train.epochs=5 --epochs 6 --print-config
has train.epochs 6

# ---- what is printed is a configuration that says the same ----
run 0 train --config run.json --print-config
cp out once.json
run 0 train --config once.json --print-config
same out once.json
run 0 train mlp.onnxtxt --data plain.csv --scale 0.01 --optimizer lamb --weight-decay 0.1 --no-decay 'b*' --clip-norm 2 \
    --schedule cosine --schedule-steps 50 --seed 4 --memory-max 1G --max-unpacked none --keep-best --loss cross-entropy \
    --bind x=0:3 --reproducible --print-config
has train.max-unpacked '"none"'
has train.keep-best true
has options.onnxtrain.memory_max 1073741824
cp out flags.json
run 0 train --config flags.json --print-config
same out flags.json
run 0 train --recompute gelu --recompute layers=2 --print-config
has options.graph_transformer.gelu_recompute true
has options.graph_transformer.transformer_layer_recompute true
has options.graph_transformer.number_recompute_layers 2
has options.graph_transformer.attn_dropout_recompute false
run 0 train --recompute attn-dropout --recompute layers --print-config
has options.graph_transformer.attn_dropout_recompute true
has options.graph_transformer.number_recompute_layers 0
run 2 train --recompute layers=0 --print-config
err "'layers=0' is unknown"
run 0 train --memory-max none --print-config
has options.onnxtrain.memory_max '"unlimited"'

# ---- a run from flags, from the file that says the same, and from what the log has as its first line ----
flags="--data plain.csv --scale 0.01 --optimizer adam --beta1 0.7 --lr 0.02 --accumulate 2 --schedule linear --warmup 3
    --schedule-steps 40 --threads 1 --epochs 3"
run 0 train mlp.onnxtxt $flags --quiet --out flags.onnx
run 0 train --config run.json --set optimizer.max_norm_clip=0 --log log --out file.onnx
same file.onnx flags.onnx
sed -n 's/^{"event":"options","options":\(.*\)}$/\1/p' log >logged.json
[ "$(wc -l <logged.json)" = 1 ] || fail "$ran: the log has no options"
[ "$(head -n 1 log | cut -c 1-19)" = '{"event":"options",' ] || fail "$ran: the options are not the first line"
run 0 train --config logged.json --out again.onnx
same again.onnx flags.onnx

# Interrupted, and resumed by the configuration that the checkpoint has.
run 0 train --config run.json --epochs 60 --out unbroken.onnx --quiet
mkfifo pipe
"$command" train --config run.json --epochs 60 --log pipe --checkpoint-dir saved --out broken.onnx >out 2>err &
pid=$!
exec 3<pipe
for i in 1 2 3 4 5 6 7; do read -r line <&3; done
kill -TERM $pid
cat <&3 >/dev/null
exec 3<&-
code=0
wait $pid || code=$?
ran="the interrupted run"
[ $code = 130 ] || fail "$ran ends with $code, wanted 130"
err "saved to saved/checkpoint after step "
python3 - <<'END' || fail "the checkpoint has no configuration"
import json
data = open("saved/checkpoint", "rb").read()
start = data.index(b'{"model":"mlp.onnxtxt"')
json.dump(json.JSONDecoder().raw_decode(data[start:].decode("utf-8", "replace"))[0], open("saved.json", "w"))
END
run 0 train --config saved.json --print-config
has train.epochs 60
has train.checkpoint-dir '"saved"'
run 0 train --config saved.json --resume --log log2 --out resumed.onnx --quiet
same resumed.onnx unbroken.onnx
grep -q '"resume":true' log2 || fail "$ran: its options are not those of the log"

# Artifacts have their optimizer built in, which is said; its learning rate counts.
run 0 artifacts mlp.onnxtxt --out made --output scores
run 0 train made --config run.json --epochs 1 --schedule constant --out made.onnx
out "note: of the configuration's optimizer only the learning rate counts"
out "lr 0.02"
run 0 train made --data plain.csv --set optimizer.lr=0.02 --out made.onnx
grep -q "optimizer only" out && fail "$ran: nothing is to be noted"
refuses 1 "options.utils.frozen_weights: the artifacts in 'made' have this built in" \
    train made --config run.json --set 'options.utils.frozen_weights=["w1"]'
refuses 1 "--loss: the artifacts in 'made' have this built in" train made --config run.json --set 'train.loss=["mse"]'

# Options of the trainer that change what trains.
run 0 train --config run.json --set 'options.utils.frozen_weights=["w1"]' --dry-run --quiet
refuses 1 "'w9' matches no initializer" train --config run.json --set 'options.utils.frozen_weights=["w9"]'

# A row that makes every number infinite: the run ends there, or where it is told to, skips its update and says so.
sed '7s/.*/3e38,3e38,3e38,3e38,1/' plain.csv >huge.csv
once="mlp.onnxtxt --data huge.csv --scale 1 --batch-size 1 --epochs 1 --threads 1"
run 1 train $once --quiet
err "the loss is "
run 0 train $once --set options.onnxtrain.skip_non_finite=true --log steps --checkpoint-dir kept --save-every 1
out "1 skipped  lr "
[ "$(tail -n 2 steps | grep -c '"skipped":1')" = 2 ] || fail "$ran: the log does not tell of it"
head -n 2 steps | grep -q skipped && fail "$ran: the first step is skipped already"
run 0 train $once --set options.onnxtrain.skip_non_finite=true --json
json step 'v == 59'
json rows 'v == 59'

# ---- what is wrong: all of it at once ----
cat >bad.json <<'END'
{"modle": "x", "optimizer": {"name": "AdamOptimizer", "alpa": 2, "alpha": 3},
 "options": {"batch": {"gradient_accumulation_steps": 0}, "onnxtrain": {"threads": 1.5}},
 "train": {"epochs": 0, "epoch": 3, "lr": 1, "config": "x", "data": ["a", {}], "keep-best": 1, "reduction": "man"}}
END
refuses 1 "configuration: 12 violations: " train --config bad.json
for text in "modle: unknown field; did you mean 'model'?" "optimizer.alpa: unknown field; did you mean 'alpha'?" \
    "optimizer.alpha: alpha is 3, expected" "options.batch.gradient_accumulation_steps: min value is 1" \
    "options.onnxtrain.threads: must be of integer type" "train.epochs: '0' is not a whole number of at least 1" \
    "train.epoch: unknown field; did you mean 'epochs'?" "train.lr: is an option of the command; it stands in optimizer.lr" \
    "train.config: is an option of the command line alone" "train.data.1: must be a string" \
    "train.keep-best: '1' is neither true nor false" "train.reduction: 'man' is not one of mean, sum, none; did you mean 'mean'?"; do
    err "$text"
done
run 1 train mlp.onnxtxt --config bad.json --print-config
# A bad value of the environment is one too, unless something goes before it.
export OT_SET='train.epochs=0'
refuses 1 "configuration: train.epochs: '0' is not" train mlp.onnxtxt --data plain.csv
run 0 train mlp.onnxtxt --epochs 1 --print-config
export OT_SET='train.epochs'
refuses 1 "OT_SET: line 1: 'train.epochs' has no '='" train mlp.onnxtxt --data plain.csv
unset OT_SET

# Names of files that are not UTF-8 work as before, and stand in no configuration.
odd=$(printf 'm\377.onnxtxt')
cp mlp.onnxtxt "$odd"
run 0 train "$odd" --data plain.csv --epochs 1 --out odd.onnx --log odd --quiet
grep -q '"model":"m?.onnxtxt"' odd || fail "$ran: the log does not have the model's name"
refuses 1 "is not UTF-8, which a configuration is" train "$odd" --print-config

# ---- what the command line alone shows ends with 2 ----
refuses 2 "--set: 'epochs' is not PATH=JSON" train mlp.onnxtxt --data plain.csv --set epochs
refuses 2 "is no JSON (a text needs quotes)" train mlp.onnxtxt --config run.json --set train.out=x.onnx
refuses 2 "configuration: train.epochs: '0' is not" train mlp.onnxtxt --data plain.csv --set train.epochs=0
refuses 2 "takes MODEL, got 0 arguments" train --data plain.csv
refuses 2 "takes MODEL, got 2 arguments" train --config run.json one two
refuses 2 "--data is missing" train mlp.onnxtxt --set train.epochs=2
refuses 2 "--resume needs --checkpoint-dir" train mlp.onnxtxt --set 'train.data=["plain.csv"]' --resume
# With a file these are known only when it has been read.
echo '{"train": {"data": ["plain.csv"]}}' >less.json
refuses 1 "takes MODEL, got 0 arguments" train --config less.json
refuses 1 "--resume needs --checkpoint-dir" train mlp.onnxtxt --config less.json --resume
refuses 1 "is what is read; it would be lost" train mlp.onnxtxt --config less.json --log less.json
refuses 1 "training needs one" train mlp.onnxtxt --config less.json --set optimizer.name=null

# ---- options that this version refuses, by name ----
refuses 1 "not supported: options.device.id is \"cuda\", expected \"cpu\"" \
    train --config run.json --set 'options.device.id="cuda"'
refuses 1 "options.distributed.world_size is 2, found 1 process" train --config run.json --set options.distributed.world_size=2 \
    --set options.distributed.allreduce_post_accumulation=true

# ---- graphs that are saved ----
run 0 train --config run.json --out graphs.onnx --set 'options.debug.graph_save_paths.model_with_gradient_graph_path="x.onnx"' \
    --set 'options.debug.graph_save_paths.model_with_training_graph_path="y.onnx"'
run 0 info x.onnx
out "w1_grad.accumulation.buffer"
run 0 info y.onnx
out AdamOptimizer

# ---- files ----
printf '{"model": 1,\n "train" {}}' >line2.json
refuses 1 "line2.json: line 2, column 10: " train --config line2.json
printf '{"train": {}, "train": {}}' >twice.json
refuses 1 "twice.json: line 1, " train --config twice.json
printf '[]' >list.json
refuses 1 "list.json: the configuration is no JSON object" train --config list.json
printf '{}x' >rest.json
refuses 1 "rest.json: line 1, column 3: " train --config rest.json
printf '{"model": "\377"}' >bytes.json
refuses 1 "bytes.json: line 1, " train --config bytes.json
printf '{"model": "a\0b"}' >zero.json
refuses 1 "zero.json: has a zero byte" train --config zero.json
: >empty.json
refuses 1 "empty.json: line 1, " train --config empty.json
refuses 1 "nowhere.json: cannot be read: No such file" train --config nowhere.json
refuses 1 ".: cannot be read: Is a directory" train --config .
deep() { python3 -c 'import sys; n = int(sys.argv[1]); print("{\"provider\":" * n + "1" + "}" * n)' "$1"; }
deep 65 >deep.json
refuses 1 "more than " train --config deep.json
deep 60000 >deep.json
refuses 1 "objects and arrays inside each other" train --config deep.json
# 1 MiB is read, and one byte more is not.
python3 -c 'import sys; t = "{\"model\": \"mlp.onnxtxt\"}"; sys.stdout.write(t + " " * ((1 << 20) - len(t)))' >most.json
run 0 train --config most.json --print-config
has model '"mlp.onnxtxt"'
echo >>most.json
refuses 1 "most.json: has more than 1048576 bytes, which is the most" train --config most.json
echo ok
