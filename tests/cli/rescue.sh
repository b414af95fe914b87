#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What is left of a run: without --out, interrupted by every signal, broken off by an error, or with nobody reading. And
# models from a run's folder.
. "$(dirname "$0")/cli.inc"
. "$here/models.inc"
options="--data plain.csv --batch-size 10 --threads 1"
mkfifo log

# signalled NAME ARGUMENT...: a run that gets SIGNAME after its third step. The log is a pipe: the command waits when
# nobody reads it. Scripts start what is in the background with SIGINT ignored: it is put back first.
signalled() {
    signal=$1
    shift
    python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$command" "$@" --log log >out 2>err &
    pid=$!
    exec 3<log
    for i in 1 2 3; do read -r line <&3; done
    kill -"$signal" $pid
    cat <&3 >rest
    exec 3<&-
    code=0
    wait $pid || code=$?
    ran="onnxtrain $* (SIG$signal)"
}

# Without --out and --checkpoint-dir the model goes beside where the command runs, and says so; never over a file.
mkdir elsewhere && cp mlp.onnxtxt elsewhere/net.v2.onnxtxt
run 0 train elsewhere/net.v2.onnxtxt $options --epochs 2
out "the trained model goes to net.v2-trained.onnx"
out "written: net.v2-trained.onnx"
run 0 train elsewhere/net.v2.onnxtxt $options --epochs 2 --quiet --out named.onnx
cp named.onnx net.v2-trained.onnx
code=0
"$command" train elsewhere/net.v2.onnxtxt $options --epochs 1 >out 2>err || code=$?
ran="train over a file"
[ $code = 1 ] || fail "ends with $code, wanted 1"
err "net.v2-trained.onnx is there already: --overwrite replaces it, --out names another file"
same net.v2-trained.onnx named.onnx
"$command" train elsewhere/net.v2.onnxtxt $options --epochs 1 --quiet --overwrite >out 2>err || fail "--overwrite"
cmp -s net.v2-trained.onnx named.onnx && fail "--overwrite does not"
run 0 train mlp.onnxtxt $options --epochs 1 --quiet --checkpoint-dir saved
[ ! -e mlp-trained.onnx ] || fail "$ran: with --checkpoint-dir no model is written"
"$command" train - $options --epochs 1 --json <mlp.onnxtxt >out 2>err || fail "a model from standard input"
json model 'v == "model-trained.onnx"'
run 0 artifacts mlp.onnxtxt --loss cross-entropy --out made
run 0 train made/ $options --epochs 1 --json
json model 'v == "made-trained.onnx"'
run 0 train "$work/made/." $options --epochs 1 --json
json model 'v == "model-trained.onnx"'

# A dry run goes as far as a step, and writes nothing.
rm -rf ./*-trained.onnx saved
files() { ls -A | grep -v -x -e out -e err; }
files=$(files)
run 0 train mlp.onnxtxt $options --dry-run --split 0.2 --checkpoint-dir saved --out dry.onnx --log dry.log
out "dry run: one step was made, nothing is written"
run 0 train mlp.onnxtxt $options --dry-run
out "dry run: nothing is written; the trained model would go to mlp-trained.onnx"
grep -q "model goes to" out && fail "$ran: promises a file"
run 0 train mlp.onnxtxt $options --dry-run --json
json step 'v == 1'
json dry_run 'v is True'
[ "$(files)" = "$files" ] || fail "$ran: wrote something"
run 1 train mlp.onnxtxt --data no.csv --dry-run

# Ctrl-C, a terminal that closes, a service that is stopped: the model as it is.
for name in INT TERM HUP; do
    signalled $name train mlp.onnxtxt $options --epochs 400 --out stopped.onnx
    [ $code = 130 ] || fail "$ran: ends with $code, wanted 130"
    err "stopped at epoch "
    steps=$(sed -n 's/.*stopped.onnx: written with the parameters after step \([0-9]*\)/\1/p' err)
    [ -n "$steps" ] || fail "$ran: does not say how many steps"
    run 0 train mlp.onnxtxt $options --epochs 400 --max-steps "$steps" --quiet --out expected.onnx
    same stopped.onnx expected.onnx
    rm stopped.onnx
done
signalled HUP train mlp.onnxtxt $options --epochs 400 --checkpoint-dir saved
[ $code = 130 ] || fail "$ran: ends with $code, wanted 130"
err "saved to saved/checkpoint after step "
run 0 train mlp.onnxtxt $options --epochs 400 --checkpoint-dir saved --resume --quiet --out resumed.onnx
run 0 train mlp.onnxtxt $options --epochs 400 --quiet --out unbroken.onnx
same resumed.onnx unbroken.onnx
# What is ignored from the start, as by nohup, stays so.
trap '' HUP
signalled HUP train mlp.onnxtxt $options --epochs 4 --quiet --out whole.onnx
trap - HUP
[ $code = 0 ] || fail "$ran: ends with $code, wanted 0"

# An error in the middle: the steps before it are not lost. Labels are looked at as their rows are read.
{ head -n 45 plain.csv; sed -n 46p plain.csv | sed 's/.$/99/'; tail -n +47 plain.csv; } >bad.csv
run 1 train mlp.onnxtxt --data bad.csv --batch-size 2 --threads 1 --epochs 2 --out partial.onnx
err "bad.csv"
steps=$(sed -n 's/.*partial.onnx: written with the parameters after step \([0-9]*\)/\1/p' err)
[ -n "$steps" ] || fail "$ran: does not say how many steps"
run 0 train mlp.onnxtxt --data plain.csv --batch-size 2 --threads 1 --epochs 2 --max-steps "$steps" --quiet --out expected.onnx
same partial.onnx expected.onnx
# Batches of a step that is not whole count for nothing.
run 1 train mlp.onnxtxt --data bad.csv --batch-size 2 --accumulate 4 --threads 1 --epochs 2 --out partial.onnx
steps=$(sed -n 's/.*partial.onnx: written with the parameters after step \([0-9]*\)/\1/p' err)
run 0 train mlp.onnxtxt --data plain.csv --batch-size 2 --accumulate 4 --threads 1 --epochs 2 --max-steps "$steps" --quiet --out expected.onnx
same partial.onnx expected.onnx
run 1 train mlp.onnxtxt --data bad.csv --batch-size 60 --threads 1 --out none.onnx
[ "$(wc -l <err)" = 1 ] || fail "$ran: speaks of a model where there has been no step"
[ ! -e none.onnx ] || fail "$ran: wrote a model"
run 1 train mlp.onnxtxt $options --lr 1e20 --out none.onnx
err "none.onnx: not written: the parameters after step 1 are worth nothing"
[ ! -e none.onnx ] || fail "$ran: wrote a model"

# A file that may not become so large (1,024 bytes) is an error that says which, and nothing of it stays.
code=0
(ulimit -f 2 && exec "$command" train mlp.onnxtxt $options --epochs 1 --quiet --out large.onnxtxt) >out 2>err || code=$?
ran="train with a limit on the size of files"
[ $code = 1 ] || fail "$ran ends with $code, wanted 1"
err "large.onnxtxt: "
err "File too large"
[ -z "$(ls -A | grep large)" ] || fail "$ran: something is left"
# A checkpoint that cannot be written, moments and all: the training goes on, and the model is what is kept of it.
code=0
(ulimit -f 2 && exec "$command" train mlp.onnxtxt $options --epochs 2 --quiet --checkpoint-dir limited --out kept.onnx) >out 2>err || code=$?
ran="train with a limit on the size of checkpoints"
[ $code = 1 ] || fail "$ran ends with $code, wanted 1"
err "onnxtrain: not saved, and tried again with the next checkpoint: limited/checkpoint: "
err "onnxtrain: limited/checkpoint: "
err "kept.onnx: written with the parameters after step "
[ -z "$(ls -A limited | grep check)" ] || fail "$ran: something is left"
run 0 train mlp.onnxtxt $options --epochs 2 --quiet --out whole.onnx
same kept.onnx whole.onnx

# Nobody reads: the run ends, saves and says nothing, as programs do in a pipe.
{ "$command" train mlp.onnxtxt $options --epochs 400 --checkpoint-dir unread 2>err; echo $? >code; } | head -n 1 >out
ran="train in a pipe"
[ "$(cat code)" = 141 ] || fail "ends with $(cat code), wanted 141, which is SIGPIPE"
[ ! -s err ] || fail "something is said"
run 0 info unread/eval_model.onnx
"$command" train mlp.onnxtxt $options --epochs 400 --checkpoint-dir unread --resume --quiet --out resumed.onnx || fail "resume"
run 0 train mlp.onnxtxt $options --epochs 400 --quiet --out unbroken.onnx
same resumed.onnx unbroken.onnx

# Models from a run's folder, however it began: those that --out gives.
sed 's/scores = Gemm/scores = Gemm/; s/(float\[batch, 3\] scores)/(float[batch, 3] scores, float[batch, 16] r)/' mlp.onnxtxt >two.onnxtxt
run 0 train two.onnxtxt --data text.csv --split 0.2 --epochs 8 --lr 0.2 --threads 1 --quiet --keep-best --checkpoint-dir two --out two.onnx
run 0 export two --checkpoint best --out best.onnx
same best.onnx two.onnx
run 0 export two --out last.onnx
cmp -s last.onnx two.onnx && fail "$ran: the last epoch is the best, so nothing is tested"
run 0 train two.onnxtxt --data text.csv --split 0.2 --epochs 8 --lr 0.2 --threads 1 --quiet --out expected.onnx
same last.onnx expected.onnx
run 0 export two --checkpoint two/best --output r --out part.onnx
run 0 train made $options --epochs 2 --quiet --checkpoint-dir of_artifacts --out direct.onnx
run 0 export of_artifacts --out exported.onnx
same exported.onnx direct.onnx
run 1 export nowhere --out x.onnx
echo ok
