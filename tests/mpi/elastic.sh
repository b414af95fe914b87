#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A training that is killed in the middle and goes on with another number of processes, again and again, ends with the bits
# of one process that nobody has disturbed: a GPT with dropout, ZeRO, and checkpoints that are written meanwhile.
# Usage: elastic.sh MPIRUN COMMAND PLUGIN ZEROS N_RANKS..., where ZEROS are stages of ZeRO in one argument
set -eu
mpirun=$1 command=$2 zeros=$4
export OT_COMM_PLUGIN=$3
shift 4
. "$(dirname "$0")/launch.inc"
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
between=12 # steps from kill to kill
steps=60   # of the whole run

fail() {
    echo "elastic.sh: $1; what is said:" >&2
    cat out err >&2
    exit 1
}

sed -e 's/int64\[4\] split/float ratio = {0.2}, bool yes = {1}, int64[4] split/' -e 's/x1 = Add (x0, o3)/o4 = Dropout (o3, ratio, yes) x1 = Add (x0, o4)/' \
    -e 's/x2 = Add (x1, d1)/d2 = Dropout (d1, ratio, yes) x2 = Add (x1, d2)/' "$here/../dist/data/gpt.onnxtxt" >gpt.onnxtxt
# The token after each of six, of a sequence that the three before determine.
awk 'BEGIN {
    for (row = 0; row < 90; row++) {
        t[0] = row % 11; t[1] = int(row / 3) % 11; t[2] = int(row / 7) % 11
        for (i = 3; i < 7; i++) t[i] = (t[i - 1] + 2 * t[i - 2] + 3 * t[i - 3] + 1) % 11
        line = t[0]
        for (i = 1; i < 6; i++) line = line "," t[i]
        for (i = 1; i < 7; i++) line = line "," t[i]
        print line
    }
}' >tokens.csv
options="gpt.onnxtxt --data tokens.csv --bind x=0:5 --bind labels=6:11 --loss cross-entropy --batch-size 13 --accumulate 2 --epochs 1000
    --schedule cosine --warmup 5 --clip-norm 0.5 --schedule-steps $steps --seed 5 --threads 1 --reproducible"
cat >note_pid.sh <<'END'
echo $$ >pid.${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}
exec "$@"
END

# start N ARGUMENT...: `train` on N processes.
start() {
    n=$1
    shift
    if [ "$n" = 1 ]; then
        sh note_pid.sh "$command" train $options "$@"
    else
        timeout -k 5 100 "$mpirun" -n "$n" sh note_pid.sh "$command" train $options "$@"
    fi >out 2>err </dev/null
}

# disturb N RANK STEP ARGUMENT...: kill that rank after that step.
disturb() {
    n=$1 rank=$2 step=$3
    shift 3
    rm -f pid.*
    start "$n" --log log --out none.onnx "$@" &
    launcher=$!
    python3 "$here/kill_later.py" log "$step" "pid.$rank" || fail "nobody was killed on $n processes"
    wait $launcher 2>/dev/null && fail "a killed job ended well"
    [ ! -e none.onnx ] || fail "a model was written"
}

"$command" train $options --slices 8 --max-steps "$steps" --quiet --out whole.onnx
mkfifo log
for zero in $zeros; do
    saved="--checkpoint-dir zero$zero --save-async --save-every 3 --zero $zero"
    how="--slices 8" step=0
    for n in "$@"; do
        step=$((step + between))
        if [ "$step" = $((between * $#)) ]; then # the last
            start "$n" $saved $how --max-steps "$steps" --out "zero$zero.onnx" || fail "the last of the runs failed"
        else
            disturb "$n" $((2 * step / between % n)) "$step" $saved $how
        fi
        [ "$how" != --resume ] || grep -q "^resumed from zero$zero/step-" out || fail "it begins anew"
        how=--resume
    done
    cmp "zero$zero.onnx" whole.onnx || fail "with zero $zero on $* processes the bits are others"
done
