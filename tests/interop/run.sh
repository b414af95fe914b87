#!/bin/sh
# Ten steps of ours against ten of ONNX Runtime training 1.19.2 on the same artifacts, on request:
#
#   tests/interop/run.sh LIBRARY_FOLDER [MODEL LOSS OPTIMIZER BATCH CLASSES RATE]
#
# LIBRARY_FOLDER holds a built libonnxtrain.so. Without a model: all of models.py, which takes PyTorch.
# Needs: a C compiler; PYTHON (3.8 to 3.11) with onnxruntime-training-cpu==1.19.2, numpy < 2.3, onnx;
# TORCH_PYTHON with torch and onnx for models.py. Not part of the normal tests: nothing here is
# installed by them.
set -eu
here=$(dirname "$0")
library=$1
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc -std=c11 -I"$here/../../include" "$here/steps.c" -L"$library" -lonnxtrain -lm \
    -Wl,-rpath,"$library" -o "$work/steps"

one() { # model loss optimizer batch classes rate
    mkdir -p "$work/out"
    "$work/steps" "$1" "$work/out" "$2" "$3" 10 "$4" "$5" "$6" >"$work/out/losses"
    "$python" "$here/compare.py" "$work/out" 10 "$4" "$5" "$6"
    rm -r "$work/out"
}

if [ $# -gt 1 ]; then
    shift
    one "$@"
    exit
fi
"${TORCH_PYTHON:-$python}" "$here/models.py" "$work"
failed=0
while read -r name loss batch classes; do
    for optimizer in sgd adamw; do
        printf '%s %s: ' "$name" "$optimizer"
        one "$work/$name.onnx" "$loss" "$optimizer" "$batch" "$classes" 0.01 || failed=1
    done
done <"$work/list"
exit $failed
