#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# onnxtrain ckpt: checkpoint directories are listed, shown, verified, and written for other numbers of processes.
. "$(dirname "$0")/cli.inc"

cp -r "$here/../unit/shards/recorded/run" .
chmod -R u+w run

# ---- looking ----
run 0 ckpt ls run
out "run/step-7: step 7, 2023-11-14 22:13:20 UTC, 3 processes, 178 B"
run 0 ckpt show run
out "run/step-7: step 7, 2023-11-14 22:13:20 UTC, written by 3 processes: 3 tensors in 5 parts, 178 B in 3 files"
out "  model.fc.weight f32[8,5], 3 parts"
out "  model.step i64[], 1 part"
out "  train.lr = 0.25"
out '  train.names.0 = "a"'
out "  train.names.1 = null"
out "  train.odd = 2 bytes"
run 0 info run
out "run/step-7: step 7, 2023-11-14 22:13:20 UTC, written by 3 processes: 3 tensors in 5 parts, 178 B in 3 files"
out "items: model train"
run 0 info run/step-7 --json
json step "v == 7"
json processes "v == 3"
json items "v == ['model', 'train']"
run 0 ckpt verify run/step-7
out "all checksums are right"
[ ! -s err ] || fail "there is nothing to warn of"
touch run/step-7/notes.txt run/step-7/data-00009-00000.safetensors
run 0 ckpt verify run/step-7
out "all checksums are right"
err "note: run/step-7: the index does not name: data-00009-00000.safetensors, notes.txt"
rm run/step-7/notes.txt run/step-7/data-00009-00000.safetensors
mkdir run/step-8
mkfifo run/step-8/otckpt.index.json # which nobody writes into
run 1 ckpt ls run
out "run/step-7: step 7"
err "run/step-8/otckpt.index.json: is a pipe, expected a file"
refuses 1 "run/step-8/otckpt.index.json: is a pipe, expected a file" ckpt show run/step-8
rm -r run/step-8
cp -r run/step-7 run/step-9
rm run/step-9/data-00002-00000.safetensors
run 1 ckpt ls run
out "run/step-7: step 7"
err "run/step-9/data-00002-00000.safetensors: cannot be read: No such file"
refuses 1 "run/step-9/data-00002-00000.safetensors" ckpt show run/step-9
rm -r run/step-9

# ---- a file of another maker ----
base64 -d >foreign.safetensors <<'END'
kAAAAAAAAAB7Il9fbWV0YWRhdGFfXyI6eyJmb3JtYXQiOiJwdCJ9LCJ3Ijp7ImR0eXBlIjoiRjMyIiwic2hhcGUiOlsyLDJdLCJkYXRh
X29mZnNldHMiOlswLDE2XX0sImIiOnsiZHR5cGUiOiJGMTYiLCJzaGFwZSI6WzNdLCJkYXRhX29mZnNldHMiOlsxNiwyMl19fSAAAIA/
AAAAQAAAQEAAAIBAADwAQABC
END
for action in "ckpt show" "ckpt verify" info; do
    run 0 $action foreign.safetensors
    out "foreign.safetensors: safetensors: 2 tensors, 22 B in 1 file"
done
run 0 ckpt show foreign.safetensors
out "  model.w f32[2,2], 1 part"
run 0 info foreign.safetensors --json
json tensors "v == 2"

run 0 ckpt reshard foreign.safetensors ours --ranks 2
run 0 ckpt show ours
out "written by 2 processes: 2 tensors in 4 parts, 22 B in 2 files"
run 0 ckpt verify ours

# ---- writing anew ----
run 0 ckpt reshard run whole --ranks 1
run 0 ckpt show whole
out "written by 1 process: 3 tensors in 3 parts, 178 B in 1 file"
out "  train.seed = 12"
refuses 1 "whole: there is a checkpoint already, which is not replaced" ckpt reshard run whole
run 0 ckpt reshard run whole --ranks 4 --replace
run 0 ckpt verify whole
out "written by 4 processes"
run 0 ckpt ls .
out "./whole: step 7"

# ---- a checkpoint file to a directory and back ----
. "$here/models.inc"
run 0 artifacts mlp.onnxtxt --out artifacts --output scores
run 0 train artifacts --data plain.csv --epochs 2 --threads 1 --checkpoint-dir saved --out trained.onnx
run 0 ckpt convert saved/checkpoint moved --artifacts artifacts
run 0 ckpt reshard moved parts --ranks 3
run 0 ckpt convert parts back --artifacts artifacts
for checkpoint in saved/checkpoint back; do
    run 0 export artifacts --checkpoint $checkpoint --output scores --out "$(basename $checkpoint).onnx"
done
same checkpoint.onnx back.onnx
run 0 ckpt convert back again --artifacts artifacts # moments too: by their checksums
for name in moved again; do
    grep -o '"c":"[0-9a-f]*"' $name/otckpt.index.json >$name.sums
done
[ "$(wc -l <moved.sums)" -gt 8 ] || fail "moments are not there"
same moved.sums again.sums
refuses 1 "back: exists already, and is not replaced without --replace" ckpt convert parts back --artifacts artifacts
run 0 ckpt convert parts back --artifacts artifacts --replace

# ---- files of another tool: the parameters of the model, over two files and in a narrower type ----
run 0 ckpt reshard moved one --ranks 1
cat >as_others.py <<'END'
import json, struct, sys
kind, out, lacks = sys.argv[1:]
raw = open("one/data-00000-00000.safetensors", "rb").read()
n = 8 + struct.unpack("<Q", raw[:8])[0]
parts, names = ({}, {}), {}
for key, entry in json.loads(raw[8:n]).items():
    name = key.removeprefix("model.").split("@")[0]
    if key.startswith("model.") and name != lacks:
        begin, end = entry["data_offsets"]
        data = raw[n + begin : n + end]
        if kind == "BF16":
            data = b"".join(data[i + 2 : i + 4] for i in range(0, len(data), 4))
        parts[len(names) % 2][name] = (entry["shape"], data)
        names[name] = f"model-0000{len(names) % 2 + 1}-of-00002.safetensors"
for i, tensors in enumerate(parts):
    header, body = {"__metadata__": {"format": "pt"}}, b""
    for name, (shape, data) in tensors.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    open(f"{out}/model-0000{i + 1}-of-00002.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + body)
json.dump({"metadata": {}, "weight_map": names}, open(f"{out}/model.safetensors.index.json", "w"))
END
mkdir tool narrow lacking
python3 as_others.py F32 tool none
python3 as_others.py BF16 narrow none
for path in tool tool/model.safetensors.index.json; do
    run 0 export artifacts --checkpoint $path --output scores --out foreign.onnx
    same foreign.onnx checkpoint.onnx
done
run 0 ckpt convert tool taken --artifacts artifacts
run 0 export artifacts --checkpoint taken --output scores --out taken.onnx
same taken.onnx checkpoint.onnx
run 0 ckpt convert narrow taken --artifacts artifacts --replace
run 0 export artifacts --checkpoint taken --output scores --out taken.onnx
run 0 export artifacts --checkpoint narrow --output scores --out narrow.onnx
same taken.onnx narrow.onnx
run 0 eval narrow.onnx --data plain.csv --loss cross-entropy
python3 as_others.py F32 lacking w2
refuses 1 "w2" export artifacts --checkpoint lacking --output scores --out none.onnx
refuses 1 "w2" ckpt convert lacking none --artifacts artifacts
refuses 1 "b" export artifacts --checkpoint foreign.safetensors --output scores --out none.onnx
head -c 60 tool/model-00002-of-00002.safetensors >lacking/model-00002-of-00002.safetensors
refuses 1 "lacking/model-00002-of-00002.safetensors" export artifacts --checkpoint lacking --output scores --out none.onnx
refuses 1 "lacking/model-00002-of-00002.safetensors" ckpt convert lacking none --artifacts artifacts
refuses 1 "lacking/model-00002-of-00002.safetensors" ckpt reshard lacking none
printf '{"weight_map":{"w1":"../tool/model-00001-of-00002.safetensors"}}' >lacking/model.safetensors.index.json
refuses 1 "lacking/model.safetensors.index.json" ckpt convert lacking none --artifacts artifacts
[ ! -e none ] && [ ! -e none.onnx ] || fail "something was written"

# ---- what is wrong ----
printf 'x' | dd of=run/step-7/data-00002-00000.safetensors bs=1 seek=139 conv=notrunc 2>/dev/null
refuses 1 "data-00002-00000.safetensors" ckpt verify run
refuses 1 "data-00002-00000.safetensors" ckpt reshard run other
[ ! -e other ] || fail "what is damaged is not written anew"
refuses 1 "nowhere: no checkpoint directory" ckpt show nowhere
mkdir copied
cp -r whole copied/checkpoint
refuses 1 "copied/checkpoint: is a checkpoint directory, which ot_shards_load()" \
    train mlp.onnxtxt --data plain.csv --checkpoint-dir copied --resume
refuses 1 "nowhere: cannot be read" ckpt ls nowhere
mkdir empty
refuses 1 "empty: no checkpoint directories" ckpt ls empty
refuses 2 "'shwo' is none of ls, show, verify, reshard, convert; did you mean 'show'?" ckpt shwo run
refuses 2 "reshard takes two paths, got 1 argument" ckpt reshard run
refuses 2 "show takes one directory, got 2 arguments" ckpt show run whole
refuses 2 "--artifacts is missing" ckpt convert run x
refuses 2 "--artifacts is for convert" ckpt show run --artifacts artifacts
refuses 2 "--replace is for reshard and convert" ckpt ls run --replace
refuses 2 "--ranks is for reshard" ckpt show run --ranks 2

# ---- the model of a run that saves directories ----
run 0 train mlp.onnxtxt --data plain.csv --epochs 2 --threads 1 --checkpoint-dir parted --checkpoint-format directory --out trained.onnx
run 0 export parted --out exported.onnx
same exported.onnx trained.onnx
run 0 export parted --checkpoint "$(cat parted/latest)" --out exported.onnx
same exported.onnx trained.onnx
run 1 export parted --checkpoint step-0 --out exported.onnx
err "step-0: "
