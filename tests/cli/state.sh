#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# States in HDF5 files: what `info` shows of them, in the process itself and in one of its own.
. "$(dirname "$0")/cli.inc"
data=$here/../hdf5/data

code=0
"$command" info "$data/default.h5" >out 2>err || code=$?
if [ $code = 1 ] && grep -q OT_WITH_HDF5 err; then # built without libhdf5
    exit 0
fi
for untrusted in "" --untrusted; do
    run 0 info "$data/default.h5" $untrusted
    out "model/full_precision/fc.weight  f32[2,3]"
    out "learned  f32[]"
    out "step  -5"
    out "rate  0.1"
    out 'is_it  true'
    out 'name  "Größe"'
    out "nothing/"
    run 0 info "$data/gzip_shuffle.h5" $untrusted --json
    json rate "v == 0.1"
    json model "v['full_precision']['half'] == {'dtype': 'f16', 'shape': [4]}"
    json integers "v['u8'] == {'dtype': 'u64', 'shape': [3]}"
    refuses 1 "'b': is a link to another file, which is not followed" info "$data/refused_external_link.h5" $untrusted
    refuses 1 "missing.h5" info missing.h5 $untrusted
done

# A model that comes through a pipe is not looked into beforehand.
. "$here/models.inc"
for name in - /dev/stdin; do
    cat mlp.onnxtxt | "$command" info $name >out 2>err || fail "info $name of a pipe"
    grep -q "^parameters" out || fail "info $name of a pipe shows no parameters"
done

# Cut anywhere, a file is refused, and a file that breaks libhdf5 ends no more than the process that reads it.
size=$(wc -c <"$data/gzip_shuffle.h5")
at=512
while [ $at -lt "$size" ]; do
    head -c $at "$data/gzip_shuffle.h5" >cut.h5
    refuses 1 "cut.h5: " info cut.h5 --untrusted
    at=$((at + 512))
done
