#!/bin/sh
# Ten steps of ours against ten of ONNX Runtime training 1.19.2 on the same artifacts, on request: ours as .onnx and
# as .ort files, and the .ort files that its generate_artifacts makes of the same model.
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

# model loss optimizer batch classes rate
one() {
    out=$work/out
    rm -rf "$out"
    mkdir "$out"
    printf '  ours as .onnx: '
    "$work/steps" "$1" "$out" "$2" "$3" 10 "$4" "$5" "$6" >"$out/losses" &&
        "$python" "$here/compare.py" "$out" 10 "$4" "$5" "$6" || return 1
    rm "$out"/*_model.onnx
    printf '  ours as .ort: '
    again "$4" "$5" "$6" || return 1
    rm -r "$out"
    mkdir "$out"
    printf '  theirs as .ort: '
    if "$python" "$here/generate.py" "$1" "$out" "$2" "$3" 2>"$work/messages"; then
        again "$4" "$5" "$6"
    else # not every model: batch normalisation that trains, layer normalisation as one operator
        printf 'not made there: %s\n' "$(grep Error "$work/messages" | tail -n 1 | cut -c 1-150)"
    fi
}

# batch classes rate: the artifacts that are in the folder
again() {
    "$work/steps" - "$out" - - 10 "$1" "$2" "$3" >"$out/losses" &&
        "$python" "$here/compare.py" "$out" 10 "$1" "$2" "$3"
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
        printf '%s %s:\n' "$name" "$optimizer"
        one "$work/$name.onnx" "$loss" "$optimizer" "$batch" "$classes" 0.01 || failed=1
    done
done <"$work/list"
exit $failed
