#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The command over several processes, started by an MPI's own launcher, against the command alone.
# Usage: train.sh MPIRUN COMMAND PLUGIN [OTHER_PLUGIN]
set -eu
mpirun=$1 command=$2 other=${4:-}
export OT_COMM_PLUGIN=$3 OT_COMM_TIMEOUT=40
. "$(dirname "$0")/launch.inc"
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
here=$here/../cli
. "$here/models.inc"
sed 's/r = Relu (h)/ratio = Constant <value = float {0.25}> () r0 = Relu (h) r = Dropout (r0, ratio)/' mlp.onnxtxt >dropout.onnxtxt
options="dropout.onnxtxt --data text.csv --split 0.2 --batch-size 7 --epochs 6 --seed 7 --threads 1 --reproducible --keep-best"

fail() {
    echo "train.sh: $1; status $status, and it says:" >&2
    cat out err >&2
    exit 1
}

# job N CODE ARGUMENT...: `train` on N processes ends with CODE.
job() {
    n=$1 wanted=$2 status=0
    shift 2
    timeout -k 5 50 "$mpirun" -n "$n" "$command" train "$@" >out 2>err </dev/null || status=$?
    [ "$status" = "$wanted" ] || fail "expected status $wanted of $*"
}

same() { cmp -s "$1" "$2" || fail "$1 and $2 differ"; }
# -a: what launchers say may have other bytes than text.
says() { [ "$(cat out err | grep -aoF "$2" | wc -l)" -eq "$1" ] || fail "'$2' is not said $1 times"; }

"$command" train $options --slices 2 --quiet --out one.onnx --log one.log
job 2 0 $options --out two.onnx --log two.log
same two.onnx one.onnx
says 1 "epoch 6/6"
[ "$(wc -l <two.log)" = "$(wc -l <one.log)" ] || fail "the log is not written once"

# Stopped on two processes, resumed on one.
job 2 0 $options --max-steps 11 --checkpoint-dir saved --quiet
cp -r saved begun
"$command" train $options --checkpoint-dir saved --resume --quiet --out resumed.onnx
"$command" train $options --slices 2 --max-steps 11 --checkpoint-dir saved1 --quiet
"$command" train $options --checkpoint-dir saved1 --resume --quiet --out resumed1.onnx
same resumed.onnx resumed1.onnx

# Each process with a part of the optimizer's state: stopped on two, gone on with by three, ended by one. The bits are
# those of one process with as many slices.
clipped="$options --clip-norm 0.5"
"$command" train $clipped --slices 3 --quiet --out whole.onnx
job 2 0 $clipped --slices 3 --zero 1 --max-steps 11 --checkpoint-dir parts --quiet
[ ! -e parts/checkpoint ] || fail "parts were saved as one file"
job 3 0 $clipped --zero 1 --max-steps 25 --checkpoint-dir parts --resume
says 1 "resumed from parts/step-11, after step 11"
cp -r parts damaged
"$command" train $clipped --checkpoint-dir parts --resume --quiet --out parts.onnx
same parts.onnx whole.onnx
# The later one is damaged where the index does not show it: the earlier one is taken by all, which is said once.
cp begun/checkpoint damaged/checkpoint
data=$(ls damaged/step-25/*.safetensors | head -n 1)
python3 -c 'import sys
text = bytearray(open(sys.argv[1], "rb").read())
text[-5] ^= 1
open(sys.argv[1], "wb").write(text)' "$data"
job 2 0 $options --zero 1 --max-steps 13 --checkpoint-dir damaged --resume
says 1 "; passed over"
says 1 "${data#damaged/step-25/}"
says 1 "resumed from damaged/checkpoint, after step 11"
job 2 1 $options --zero 4 --out none.onnx
says 1 "zero is 4, expected 0 to 3"

# The best epoch, of which each process has a part: that of one process, also from the file that is saved.
plain=$(echo "$options --lr 0.3" | sed 's/--reproducible//')
"$command" train $plain --slices 3 --quiet --out best.onnx --checkpoint-dir best1
job 3 0 $plain --set options.distributed.deepspeed_zero_optimization.stage=3 --out best3.onnx --checkpoint-dir best3
same best3.onnx best.onnx
for n in 1 3; do "$command" export best$n --checkpoint best --out saved$n.onnx; done
same saved3.onnx saved1.onnx

# The same with parts of the gradients and of the values. Batches of 7 rows leave the last one with 4, of which slices differ.
last=$(echo "$options" | sed 's/--keep-best//')
clipped="$last --clip-norm 0.5 --accumulate 2"
"$command" train $clipped --slices 3 --quiet --out whole.onnx
for zero in 2 3; do
    job 2 0 $clipped --slices 3 --zero $zero --max-steps 5 --checkpoint-dir parts$zero --quiet
    job 3 0 $clipped --zero $zero --max-steps 11 --checkpoint-dir parts$zero --resume --quiet
    job 2 0 $clipped --zero $zero --checkpoint-dir parts$zero --resume --out parts.onnx
    same parts.onnx whole.onnx
    # Where gradients are summed in every step: with a slice for each process, and one step an update, the sums are the same.
    plain=$(echo "$last" | sed 's/--reproducible//')
    "$command" train $plain --slices 3 --quiet --out plain.onnx
    job 3 0 $plain --zero $zero --out parts.onnx
    same parts.onnx plain.onnx
    job 2 0 $plain --slices 3 --zero $zero --accumulate 3 --clip-norm 0.5 --out parts.onnx # slices that one process lacks
done

# Batch normalisation by the statistics of all processes is that of one process, but for rounding; by its own it is not.
cp "$here/../dist/data/cnn.onnxtxt" .
awk 'BEGIN {
    for (row = 0; row < 48; row++) {
        line = ""
        for (k = 0; k < 72; k++) line = line (row * row * 7 + k * k * 3 + row * k * 11) % 23 / 5 + row % 4 ","
        print line row % 5
    }
}' >images.csv
images="cnn.onnxtxt --data images.csv --loss cross-entropy --batch-size 12 --epochs 3 --lr 0.01 --seed 7 --threads 1 --json"
"$command" train $images --out whole.onnx >whole.json
job 2 0 $images --batch-norm sync --out sync.onnx
cp out sync.json
job 2 0 $images --out own.onnx
python3 - whole.json sync.json out <<'END' || fail "statistics of all processes are not those of one"
import json, sys
whole, sync, own = (json.load(open(name))["loss"] for name in sys.argv[1:])
sys.exit(not (abs(sync - whole) < 1e-5 and abs(own - whole) > 1e-3))
END
job 2 1 $images --sync-batch-norm --slices 4 --out none.onnx
says 1 "slices: 4, expected 2, one for each process"

# What fails on all is said once; what one process finds out, too.
job 2 1 $options --data none.csv --out none.onnx
says 1 "none.csv"
job 3 1 $options --slices 2 --out none.onnx
says 1 "slices: 2, expected at least 1 for each of the 3 processes"
[ ! -e none.onnx ] || fail "a model was written"

# What one process alone finds wrong ends all: a column that is not there, a file that it lacks.
cat >odd.sh <<'END'
odd=$1
shift
case ${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}$odd in
1OT_*) exec env "$odd" "$@" ;;
1*) exec "$@" $odd ;;
*) exec "$@" ;;
esac
END
# odd CODE TEXT ARGUMENT...: rank 1 has $odd behind them, or in its environment, and TEXT is what is said of it.
odd() {
    wanted=$1 text=$2 status=0
    shift 2
    timeout -k 5 50 "$mpirun" -n 2 sh odd.sh "$odd" "$command" train $options --out none.onnx "$@" >out 2>err </dev/null || status=$?
    [ "$status" = "$wanted" ] || fail "expected status $wanted"
    says 1 "onnxtrain: $text"
    [ ! -e none.onnx ] || fail "a model was written"
}
for odd in "--label none" "--data none.csv" "--config none.json"; do
    odd 1 "rank 1: "
done
odd="--none"
odd 2 "rank 1: unknown option '--none'"
# One that cannot join the others: with MPICH they would wait for it without end.
odd="OT_COMM_PLUGIN=none.so"
odd 1 "mpirun has started 2 processes (" --comm-timeout 2
# A folder that they do not share, with a checkpoint for one of them.
odd="--checkpoint-dir none"
odd 1 "rank 1: none/checkpoint: " --zero 1 --checkpoint-dir begun --resume
odd="--checkpoint-dir begun"
odd 1 "rank 1: begun/checkpoint is there, and rank 0 has none: " --zero 1 --checkpoint-dir none --resume

# None of them trains alone: without a plugin, or with that of another MPI.
(
    OT_COMM_PLUGIN=none.so
    job 2 1 $options --out none.onnx
    grep -qF "the plugin for MPI cannot be loaded: none.so" err || fail "the plugin is not named"
    [ -n "$other" ] || exit 0
    OT_COMM_PLUGIN=$other
    job 2 1 $options --out none.onnx
    grep -qF "it is the mpirun of another MPI" err || fail "it does not say why"
)
[ ! -e none.onnx ] || fail "a model was written"

# A signal to one of them stops all after the same step, saved. The log is a pipe: rank 0 waits when nobody reads it.
cat >stop.sh <<'END'
echo $$ >pid.${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}
exec python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL) # which is ignored in the background of a script
os.execv(sys.argv[1], sys.argv[1:])' "$@"
END
# begin ARGUMENT...: a job of two in the background, started by $limit; goes on when it has made its first steps.
limit=
mkfifo log
begin() {
    $limit "$mpirun" -n 2 sh stop.sh "$command" train $options "$@" --log log >out 2>err </dev/null &
    launcher=$!
    exec 3<log
    for i in 1 2 3 4 5; do read -r line <&3; done
}
# What it logs until it ends,
read_log() {
    cat <&3 >/dev/null
    exec 3<&-
}
# and how it ends.
ends_badly() {
    status=0
    wait $launcher || status=$?
    [ "$status" != 0 ] && [ "$status" != 124 ] || fail "expected an end with an error"
}
for signal in TERM INT USR1; do
    rm -rf stopped
    begin --epochs 60 --checkpoint-dir stopped
    kill -$signal "$(cat pid.1)"
    read_log
    ends_badly
    says 1 "onnxtrain: stopped at epoch "
    says 1 "saved to stopped/checkpoint after step "
done
"$command" train $options --epochs 60 --checkpoint-dir stopped --resume --quiet --out resumed.onnx
"$command" train $options --epochs 60 --slices 2 --quiet --out whole.onnx
same resumed.onnx whole.onnx

# One that cannot write large files: the training comes to its end, and the model is written, for no checkpoint is.
begin --epochs 60 --zero 1 --save-every 400 --checkpoint-dir limited --out limited.onnx
python3 -c 'import resource, sys
resource.prlimit(int(sys.argv[1]), resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))' "$(cat pid.1)"
read_log
ends_badly
says 1 "onnxtrain: not saved, and tried again with the next checkpoint: rank 1: limited/"
says 1 "onnxtrain: rank 1: limited/"
says 2 "File too large"
says 1 "limited.onnx: written with the parameters of the best epoch"
same limited.onnx whole.onnx
! ls -A limited | grep '^\.step' || fail "what could not be written is left"

# One that is silent is named after the time that the option says, and all end.
limit="timeout -k 5 50"
begin --epochs 600 --comm-timeout 1 --out left.onnx
kill -STOP "$(cat pid.1)"
read_log
i=0
while ! cat out err | grep -qaF "silent for" && [ $i -lt 100 ]; do # MPICH's launcher passes on nothing after a process is killed
    i=$((i + 1))
    sleep 0.1
done
kill -KILL "$(cat pid.1)" 2>/dev/null || : # MPICH waits for what is stopped
ends_badly
says 1 "rank 1: silent for 1 s in "
