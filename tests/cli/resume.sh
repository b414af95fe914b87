#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A run that is broken off and resumed gives the same file as an unbroken one, bit for bit; so do 1 and 2 threads with
# --reproducible. Early stop and the best epoch.
. "$(dirname "$0")/cli.inc"
. "$here/models.inc"
sed 's/r = Relu (h)/ratio = Constant <value = float {0.25}> () r0 = Relu (h) r = Dropout (r0, ratio)/' mlp.onnxtxt >dropout.onnxtxt
options="--data text.csv --split 0.2 --batch-size 5 --lr 0.01 --schedule cosine --epochs 60 --seed 7 --threads 1 --keep-best"

run 0 train dropout.onnxtxt $options --quiet --out unbroken.onnx

# Stopped. The log is a pipe: the command waits when nobody reads it, so the signal comes in the middle of the run.
mkfifo log
"$command" train dropout.onnxtxt $options --log log --checkpoint-dir saved --out broken.onnx >out 2>err &
pid=$!
exec 3<log
for i in 1 2 3 4 5 6 7; do read -r line <&3; done
kill -TERM $pid
cat <&3 >/dev/null
exec 3<&-
code=0
wait $pid || code=$?
ran="the interrupted run"
[ $code = 130 ] || fail "$ran ends with $code, wanted 130"
err "onnxtrain: stopped at epoch "
err "saved to saved/checkpoint after step "
err "the same command with --resume goes on"
[ ! -e broken.onnx ] || fail "$ran writes no model"
grep -q "^epoch 60" out && fail "$ran went on to its end"
run 0 train dropout.onnxtxt $options --checkpoint-dir saved --resume --quiet --out resumed.onnx
same resumed.onnx unbroken.onnx

# A kill between two checkpoints.
rm -rf saved
"$command" train dropout.onnxtxt $options --log log --checkpoint-dir saved --save-every 3 >out 2>err &
pid=$!
exec 3<log
for i in 1 2 3 4 5 6 7 8 9 10 11; do read -r line <&3; done
kill -KILL $pid
exec 3<&-
wait $pid 2>/dev/null && fail "the run was not killed"
run 0 train dropout.onnxtxt $options --checkpoint-dir saved --save-every 3 --resume --quiet --out resumed.onnx
same resumed.onnx unbroken.onnx

# Resumed at its end it only writes the model; without a checkpoint it starts anew.
run 0 train dropout.onnxtxt $options --checkpoint-dir saved --resume --quiet --out again.onnx
same again.onnx unbroken.onnx
run 0 train dropout.onnxtxt $options --checkpoint-dir new --resume --quiet --out again.onnx
same again.onnx unbroken.onnx

# By slices, which have masks of their own; the run that is resumed says how many.
run 0 train dropout.onnxtxt $options --schedule-steps 900 --slices 3 --quiet --out sliced.onnx
run 0 train dropout.onnxtxt $options --schedule-steps 900 --quiet --out whole.onnx
cmp -s sliced.onnx whole.onnx && fail "slices have masks of their own"
run 0 train dropout.onnxtxt $options --schedule-steps 900 --set train.slices=3 --max-steps 50 --checkpoint-dir slices --quiet
run 0 train dropout.onnxtxt $options --schedule-steps 900 --checkpoint-dir slices --resume --quiet --out resumed.onnx
same resumed.onnx sliced.onnx
run 0 train dropout.onnxtxt $options --slices 6 --max-steps 1 --quiet --out few.onnx
err "onnxtrain: note: batches of 5 rows have 6 slices, of which some have no row"
run 2 train dropout.onnxtxt $options --slices -1
err "'-1' is not a whole number of at least 0"

# A kill, and directories, which are written while the run goes on; --resume takes the later of file and directory.
"$command" train dropout.onnxtxt $options --schedule-steps 900 --log log --checkpoint-dir parts --save-every 3 --save-async >out 2>err &
pid=$!
exec 3<log
for i in 1 2 3 4 5 6 7 8 9 10 11; do read -r line <&3; done
kill -KILL $pid
exec 3<&-
wait $pid 2>/dev/null && fail "the run was not killed"
[ ! -e parts/checkpoint ] || fail "directories were asked for"
run 0 train dropout.onnxtxt $options --schedule-steps 900 --checkpoint-dir parts --checkpoint-format directory --max-steps 100 --resume
out "resumed from parts/step-"
run 0 ckpt ls parts
out "step-100"
[ "$(ls -d parts/step-* | wc -l)" = 1 ] || fail "expected one directory"
run 0 train dropout.onnxtxt $options --schedule-steps 900 --checkpoint-dir parts --checkpoint-format file --max-steps 110 --resume --quiet
[ ! -e parts/latest ] && [ ! -e parts/step-100 ] || fail "the directory is left"
run 0 train dropout.onnxtxt $options --schedule-steps 900 --checkpoint-dir parts --save-every 60 --save-async --resume --out resumed.onnx
out "resumed from parts/checkpoint, after step 110"
[ ! -e parts/checkpoint ] || fail "the file is left"
same resumed.onnx whole.onnx
rm parts/best*
run 1 train dropout.onnxtxt $options --checkpoint-dir parts
err "parts/latest is of an earlier run"
run 2 train dropout.onnxtxt $options --save-async
err "--save-async needs --checkpoint-dir"
run 2 train dropout.onnxtxt $options --checkpoint-dir parts --checkpoint-format file --save-async
err "--save-async needs --checkpoint-format directory"

# What is damaged is passed over, and told: the run goes on from the newest that is whole, by directories and the file.
short="--data text.csv --split 0.2 --batch-size 5 --lr 0.01 --epochs 60 --seed 7 --threads 1 --checkpoint-dir older --resume"
run 0 train dropout.onnxtxt $short --max-steps 6 --quiet
cp older/checkpoint file
run 0 train dropout.onnxtxt $short --max-steps 10 --checkpoint-format directory --quiet
cp -r older/step-10 directory
run 0 train dropout.onnxtxt $short --max-steps 14 --checkpoint-format directory --quiet
cp -r older/step-14 older/step-99 # of a run that was overwritten: later than what `latest` names
[ ! -e older/step-10 ] || fail "an older directory is left"
cp file older/checkpoint
cp -r directory older/step-10
printf x >>older/step-14/otckpt.index.json
cp -r older damaged
run 0 train dropout.onnxtxt $short --max-steps 20 --out older.onnx
out "resumed from older/step-10, after step 10"
err "older/step-14/otckpt.index.json"
err "; passed over"
[ "$(wc -l <err)" = 1 ] || fail "$ran: more is said"
run 0 train dropout.onnxtxt ${short% --checkpoint-dir*} --max-steps 20 --quiet --out newer.onnx
same older.onnx newer.onnx
rm -r older && mv damaged older
data=$(ls older/step-10/*.safetensors | head -n 1)
python3 -c 'import sys
text = bytearray(open(sys.argv[1], "rb").read())
text[-5] ^= 1
open(sys.argv[1], "wb").write(text)' "$data"
cp -r older damaged
run 0 train dropout.onnxtxt $short --max-steps 20
out "resumed from older/checkpoint, after step 6"
[ "$(grep -c '; passed over' err)" = 2 ] || fail "$ran: two are passed over"
err "${data#older/step-10/}"
rm -r older && mv damaged older
head -c 100 file >older/checkpoint
run 1 train dropout.onnxtxt $short --max-steps 20
err "older/checkpoint"
err "; there is no other checkpoint to go on from (overwrite begins anew)"
rm older/latest && mkfifo older/latest # is not waited for
run 0 train dropout.onnxtxt $short --max-steps 20
err "older/latest: is a pipe, expected a file; passed over"

# Plain SGD goes on from a run of another optimizer, which is said once; one with moments of its own refuses those. After
# plain SGD there are none to go on with.
cp -r saved adamw
again() { # again EPOCHS ARGUMENT...
    last=$1
    shift
    rm -f log2
    run 0 train dropout.onnxtxt $(echo "$options" | sed "s/--epochs 60/--epochs $last/") --checkpoint-dir adamw --resume --log log2 "$@"
}
again 60 --optimizer adamw
grep -q '"note"' log2 && fail "$ran: nothing is to be noted"
refuses 1 "the checkpoint's optimizer state is that of AdamWOptimizer, the optimizer model has SGDOptimizer" \
    train dropout.onnxtxt $options --checkpoint-dir adamw --resume --optimizer sgd-momentum
again 61 --optimizer sgd
out "note: the run was made with AdamWOptimizer: sgd goes on from its parameters and drops its moments"
grep -q '"text":"the run was made with AdamWOptimizer' log2 || fail "$ran: the log has no note"
again 62 --optimizer sgd
grep -q '"note"' log2 && fail "$ran: nothing is to be noted"
again 63 --optimizer adamw
out "note: the run was made with sgd: adamw goes on from its parameters with new moments, after step 0"
again 64 --optimizer adamw
grep -q '"note"' log2 && fail "$ran: nothing is to be noted"

# A checkpoint of other data is noticed; a damaged one is refused.
run 0 train mlp.onnxtxt --data packed.npz --batch-size 5 --checkpoint-dir other --max-steps 7 --quiet
refuses 1 "data or batch size are not those" train mlp.onnxtxt --data packed.npz --batch-size 60 --checkpoint-dir other --resume --quiet
head -c 100 saved/checkpoint >cut && mv cut saved/checkpoint
run 1 train dropout.onnxtxt $options --checkpoint-dir saved --resume
err "saved/checkpoint"

# The same bits for any number of threads, and from run to run.
fixed="--data images.idx --data labels.idx --epochs 3 --seed 3 --scale 0.004 --quiet"
cat >conv.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
conv (float[batch, 1, 2, 2] image) => (float[batch, 3] scores)
{
    k = RandomNormal <shape = [24, 1, 2, 2], scale = 0.5> ()
    c = Conv <pads = [1, 1, 1, 1]> (image, k)
    r = Relu (c)
    f = Flatten (r)
    w = RandomNormal <shape = [216, 3], scale = 0.1> ()
    scores = MatMul (f, w)
}
END
run 0 train conv.onnxtxt $fixed --reproducible --threads 1 --out one.onnx
run 0 train conv.onnxtxt $fixed --reproducible --threads 2 --out two.onnx
same one.onnx two.onnx
run 0 train conv.onnxtxt $fixed --threads 2 --out first.onnx
run 0 train conv.onnxtxt $fixed --threads 2 --out second.onnx
same first.onnx second.onnx
run 0 train conv.onnxtxt $fixed --threads 2 --seed 4 --out other.onnx
cmp -s other.onnx first.onnx && fail "another seed gives the same file"

# Labels that nothing can be learnt from: the loss soon stops falling on the held-out rows.
awk -F , 'BEGIN { OFS = ","; srand(5) } { $5 = int(rand() * 3); print }' plain.csv >noise.csv
run 0 train mlp.onnxtxt --data noise.csv --scale 0.01 --split 0.5 --epochs 300 --lr 0.05 --early-stop 3 --threads 1
out "stopped early"
grep -q "^epoch 300/" out && fail "$ran: did not stop"
# The best epoch's parameters: evaluating the file gives the smallest validation loss of the lines.
run 0 train mlp.onnxtxt --data noise.csv --scale 0.01 --split 0.5 --epochs 40 --lr 0.05 --keep-best --threads 1 --out best.onnx
best=$(sed -n 's/.*validation loss \([0-9.]*\).*/\1/p' out | sort -n | head -n 1)
last=$(sed -n 's/.*validation loss \([0-9.]*\).*/\1/p' out | tail -n 1)
[ "$best" != "$last" ] || fail "$ran: the last epoch is the best, so nothing is tested"
run 0 eval best.onnx --data noise.csv --scale 0.01 --split 0.5
out "30 rows: loss $best"
echo ok
