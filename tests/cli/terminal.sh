#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# On a terminal: a bar that is drawn over and cleared. In a pipe: plain lines.
. "$(dirname "$0")/cli.inc"
. "$here/models.inc"
return_mark=$(printf '\r')
escape_mark=$(printf '\033')

run 0 train mlp.onnxtxt --data plain.csv --split 0.2 --epochs 12 --lr 0.01 --threads 1
grep -q "$return_mark\|$escape_mark" out err && fail "$ran: a pipe gets plain text"
[ "$(grep -c '^epoch ' out)" = 12 ] || fail "$ran: not one line an epoch"
out "epoch 12/12  loss "
out "loss over the epochs: * training, o validation"
grep -q '^ *[0-9.]* |[ *o]*\*' out || fail "$ran: no curve"
[ "$(grep -c '^ *[-0-9.e]* |' out)" = 10 ] || fail "$ran: the curve has not ten rows"
out "validation: loss "
run 0 train mlp.onnxtxt --data plain.csv --epochs 200 --threads 1 # more epochs than columns
awk 'length > 110 { exit 1 }' out || fail "$ran: a line above 110 characters"
run 0 train mlp.onnxtxt --data plain.csv --epochs 3 --threads 1 --json
[ "$(wc -l <out)" = 1 ] || fail "$ran: not one JSON object"
json rows 'v == 60'
[ ! -s err ] || fail "$ran: nothing is wrong"
# The square root of what is negative is NaN, on some processors with a sign, which says nothing.
sed 's/scores = Gemm <transB = 1> (r/s = Gemm <transB = 1> (r/; s/^}/e = Exp (s) n = Neg (e) scores = Sqrt (n)\n}/' mlp.onnxtxt >root.onnxtxt
run 0 eval root.onnxtxt --data plain.csv --threads 1
out "loss nan"
grep -q -e '-nan' out err && fail "$ran: NaN has a sign"

# Closed standard files: what is opened next must not take their places.
"$command" train mlp.onnxtxt --data plain.csv --epochs 2 --threads 1 --log closed.jsonl <&- >&- 2>&- ||
    fail "train with its standard files closed: exit code $?"
ran="onnxtrain train with its standard files closed"
[ -s closed.jsonl ] || fail "$ran: no log"
grep -qv '^{' closed.jsonl && fail "$ran: the log holds what is not JSON"
code=0
"$command" train mlp.onnxtxt --data plain.csv --epochs 2 --threads 1 --out - >&- 2>err || code=$?
[ "$code" = 1 ] || fail "onnxtrain train --out - with standard output closed: exit code $code, wanted 1"
err "--out: standard output is closed"

command -v script >/dev/null || { echo "no script command: the terminal is not tested"; exit 0; }
export TERM=xterm
script -qec "'$command' train mlp.onnxtxt --data plain.csv --epochs 2 --threads 1 --overwrite" /dev/null </dev/null >out
ran="onnxtrain train on a terminal"
out "${return_mark}epoch 1/2 ["
out "rows/s"
out "s left"
out "$escape_mark[K"
out "epoch 2/2  loss "
script -qec "'$command' train mlp.onnxtxt --data plain.csv --epochs 2 --threads 1 --overwrite --quiet" /dev/null </dev/null >out
[ ! -s out ] || fail "$ran --quiet prints something"
script -qec "'$command' train mlp.onnxtxt --data plain.csv --epochs 2 --threads 1 --overwrite --json" /dev/null </dev/null >out
grep -q "^\(.*$escape_mark\[K\)\{0,1\}{\"rows\":60" out || fail "$ran --json: the object does not stand alone"
# A terminal that cannot draw over lines gets plain ones; a narrow one no line longer than itself.
script -qec "TERM=dumb '$command' train mlp.onnxtxt --data plain.csv --epochs 2 --threads 1 --overwrite" /dev/null </dev/null >out
grep -q "$escape_mark" out && fail "$ran: escapes on a dumb terminal"
out "epoch 2/2  loss "
script -qec "stty cols 40; '$command' train mlp.onnxtxt --data plain.csv --epochs 1 --threads 1 --overwrite" /dev/null </dev/null >out
tr '\r' '\n' <out | grep "\[=" | sed "s/$escape_mark\[K//g" | awk 'length > 39 { exit 1 }' || fail "$ran: the bar is wider than 40 columns"
tr '\r' '\n' <out | grep -q "\[====\]" || fail "$ran: no bar on 40 columns"
echo ok
