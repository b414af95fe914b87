#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Jobs of several processes, started by an MPI's own launcher.
# Usage: run.sh MPIRUN JOB PLUGIN CASE [OTHER_PLUGIN]
set -eu
mpirun=$1 job=$2 case=$4 other=${5:-}
export OT_COMM_PLUGIN=$3
. "$(dirname "$0")/launch.inc"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# start N CASE: a job of N processes; what it prints, and its status.
start() {
    status=0
    timeout -k 5 45 "$mpirun" -n "$1" "$job" "$2" >"$work/out" 2>"$work/err" || status=$?
}

fail() {
    echo "run.sh: $1; status $status, and it says:" >&2
    cat "$work/out" "$work/err" >&2
    exit 1
}

# says N TEXT: so often. Launchers may put what two processes say into one line.
says() {
    [ "$(cat "$work/out" "$work/err" | grep -aoF "$2" | wc -l)" -eq "$1" ] || fail "'$2' is not said $1 times"
}

ends_well() {
    [ "$status" = 0 ] || fail "the job failed"
}

ends_badly() {
    case $status in
    0) fail "the job succeeded" ;;
    124 | 137) fail "the job hung" ;;
    esac
}

case $case in
work)
    for n in 1 2 3; do
        start $n work
        ends_well
        says $n "of $n ends"
    done
    ;;
fail)
    start 3 fail
    ends_well
    says 3 "rank 1: row 7 is bad"
    ;;
shards)
    export OT_JOB_DIRECTORY=$work
    for n in 3 1 2; do
        start $n save
        ends_well
    done
    ;;
kill)
    export OT_JOB_DIRECTORY=$work/run OT_JOB_RANK OT_JOB_CALL
    mkdir "$work/run"
    OT_JOB_RANK=1 OT_JOB_CALL=1 # a file of tensors is half made
    start 2 kill
    [ "$status" -gt 0 ] && [ "$status" != 124 ] || fail "nobody is killed" # 137 where the launcher tells the signal
    [ "$(cat "$work/run/latest")" = step-1 ] || fail "the first save is not the latest"
    start 2 latest
    ends_well
    OT_JOB_RANK=0 OT_JOB_CALL=20 # behind the rename, before 'latest' is written
    start 2 kill
    [ "$status" -gt 0 ] && [ "$status" != 124 ] || fail "nobody is killed" # 137 where the launcher tells the signal
    [ "$(cat "$work/run/latest")" = step-1 ] && [ -d "$work/run/step-2" ] || fail "it is another call"
    start 3 latest
    ends_well
    ;;
trainer)
    start 2 trainer
    ends_well
    says 2 "options.distributed.world_size is 3, found 2 processes"
    ;;
silent)
    export OT_COMM_TIMEOUT=0.5
    start 3 silent
    ends_badly
    grep -qF "rank 2: silent for 0.5 s in barrier (OT_COMM_TIMEOUT)" "$work/err" || fail "the silent rank is not named"
    ;;
leave)
    start 2 leave
    ends_badly
    ;;
other)
    OT_COMM_PLUGIN=$other
    start 2 work
    [ "$status" = 1 ] || fail "expected status 1"
    grep -qF "mpirun has started 2 processes" "$work/err" || fail "the launcher is not named"
    grep -qF "it is the mpirun of another MPI" "$work/err" || fail "it does not say why"
    says 0 "ends"
    ;;
missing)
    OT_COMM_PLUGIN=$work/none.so
    start 2 work
    [ "$status" = 1 ] || fail "expected status 1"
    grep -qF "the plugin for MPI cannot be loaded: $work/none.so" "$work/err" || fail "the plugin is not named"
    says 0 "ends"
    ;;
python)
    export OT_JOB_DIRECTORY=$work
    start 2 work
    ends_well
    says 2 " ends"
    grep -a "left out" "$work/out" || :
    start 2 leave
    ends_badly
    says 1 "RuntimeError: one leaves"
    OT_COMM_PLUGIN=$work/none.so
    start 2 missing
    [ "$status" = 1 ] || fail "expected status 1"
    grep -qF "the plugin for MPI cannot be loaded: $work/none.so" "$work/err" || fail "the plugin is not named"
    grep -qF "python -m onnxtrain.distributed.build" "$work/err" || fail "the remedy is not named"
    ;;
*)
    echo "run.sh: no case '$case'" >&2
    exit 2
    ;;
esac
