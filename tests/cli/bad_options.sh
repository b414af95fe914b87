#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Wrong values of options, and files that would be lost: one line, nothing written.
. "$(dirname "$0")/cli.inc"
. "$here/models.inc"
once="--data plain.csv --epochs 1 --threads 1"

for option in lr gamma power end-factor beta1 epsilon weight-decay momentum clip-norm split scale; do
    for value in inf nan 1e999 '' x 1,5 '1 '; do
        refuses 2 "--$option: '$value' is not a number" train mlp.onnxtxt $once --$option "$value"
    done
done
refuses 2 "--threads: 99999999999, expected at most 1024" train mlp.onnxtxt --data plain.csv --threads 99999999999
refuses 2 "--threads: 1025, expected at most 1024" eval mlp.onnxtxt --data plain.csv --threads 1025
run 0 train mlp.onnxtxt --data plain.csv --threads 1 --epochs 9223372036854775807 --max-steps 1 --quiet
for weights in 1,2,inf nan,1,2 1,-2,3 1,,2; do
    refuses 2 "is not a weight" train mlp.onnxtxt $once --class-weights $weights
done

# What is read is never written over, by whatever name.
cp mlp.onnxtxt model.copy
cp plain.csv data.copy
ln -s plain.csv link.csv
ln mlp.onnxtxt hard.onnxtxt
for name in plain.csv ./plain.csv link.csv mlp.onnxtxt hard.onnxtxt; do
    for option in out log; do
        case $name in ./* | link.* | hard.*) code=1 ;; *) code=2 ;; esac # seen in the files alone
        refuses $code "--$option: '$name' is what is read; it would be lost" train mlp.onnxtxt $once --$option $name
    done
done
refuses 2 "is what is read" train mlp.onnxtxt --data x=x.npy --data y.npy --epochs 1 --out x.npy
refuses 2 "is what is read" train mlp.onnxtxt $once --validation header.csv --out header.csv
refuses 2 "same file 'both'" train mlp.onnxtxt $once --out both --log both
same mlp.onnxtxt model.copy
same plain.csv data.copy
refuses 2 "--out: the name is empty" train mlp.onnxtxt $once --out ''
refuses 2 "--log: the name is empty" train mlp.onnxtxt $once --log ''
refuses 2 "--tensorboard: the name is empty" train mlp.onnxtxt $once --tensorboard ''
refuses 1 "plain.csv: is a file, expected a directory" train mlp.onnxtxt $once --tensorboard plain.csv/board
run 0 train mlp.onnxtxt $once --tensorboard made/board --dry-run
[ ! -e made ] || fail "$ran: a dry run writes nothing"
run 0 train mlp.onnxtxt $once --tensorboard made/board
ls made/board/events.out.tfevents.* >/dev/null || fail "$ran: no event file"
mkdir folder
refuses 1 "folder: is a directory" train mlp.onnxtxt $once --log folder
refuses 1 "nowhere/x: cannot be written" train mlp.onnxtxt $once --log nowhere/x
if [ -c /dev/full ]; then
    run 1 train mlp.onnxtxt $once --log /dev/full --quiet
    err "/dev/full: cannot be written"
    run 1 train mlp.onnxtxt $once --out /dev/full --quiet
    err "/dev/full: cannot be written"
fi
refuses 2 "--checkpoint-dir: the name is empty" train mlp.onnxtxt $once --checkpoint-dir ''
run 0 train mlp.onnxtxt $once --checkpoint-dir saved --quiet
refuses 1 "saved/checkpoint is not of this model and these options: " \
    train line.onnxtxt --data line.csv --loss mse --checkpoint-dir saved --resume
refuses 2 "--loss: 'hinge' is neither a loss nor a model file" info mlp.onnxtxt --loss hinge --json
echo ok
