#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Install to a temporary prefix, then build and run a program against it: by pkg-config (shared and static) and by CMake.
# Usage: check.sh BUILD_DIR CC CMAKE GENERATOR
set -eu
build=$1 cc=$2 cmake=$3 generator=$4
source=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$cmake" --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/prefix" # an installed tree may be moved
libdir=$(dirname "$(find "$work/prefix" -name 'libonnxtrain.so')")
export PKG_CONFIG_PATH="$libdir/pkgconfig" LD_LIBRARY_PATH="$libdir"

echo "== pkg-config, shared"
"$cc" -std=c11 -Wall -Wextra -Werror "$source/consumer.c" -o "$work/shared" $(pkg-config --cflags --libs onnxtrain)
"$work/shared"

echo "== pkg-config, static"
"$cc" -std=c11 "$source/consumer.c" -o "$work/static" $(pkg-config --cflags onnxtrain) \
    "$libdir/libonnxtrain.a" $(pkg-config --static --libs onnxtrain | sed 's/-lonnxtrain//')
"$work/static"

echo "== CMake package"
"$cmake" -S "$source" -B "$work/build" -G "$generator" -DCMAKE_C_COMPILER="$cc" -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
"$cmake" --build "$work/build" >/dev/null
"$work/build/consumer"

echo "== a library of operators"
"$cc" -shared -fPIC -Wall -Wextra -Werror -I "$work/prefix/include" "$source/../../examples/op_library/operators.c" \
    -o "$work/operators.so" -lm
"$work/prefix/bin/onnxtrain" check "$source/../../examples/op_library/model.onnxtxt" --loss mse \
    --op-library "$work/operators.so" | grep '^trains   w1'
cat >"$work/load.c" <<'END'
#include <onnxtrain/onnxtrain.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    const ot_status st = argc > 1 ? ot_op_library_load(argv[1]) : OT_ERR_INVALID;

    if (st != OT_OK)
        fprintf(stderr, "%s\n", ot_error_message());
    return st;
}
END
"$cc" "$work/load.c" -o "$work/load" $(pkg-config --cflags --libs onnxtrain)
"$work/load" "$work/operators.so"
static_libs="$libdir/libonnxtrain.a $(pkg-config --static --libs onnxtrain | sed 's/-lonnxtrain//')"
"$cc" "$work/load.c" -rdynamic -o "$work/load" $(pkg-config --cflags onnxtrain) $static_libs
"$work/load" "$work/operators.so"
"$cc" "$work/load.c" -o "$work/load" $(pkg-config --cflags onnxtrain) $static_libs
code=0
"$work/load" "$work/operators.so" 2>"$work/message" || code=$?
[ $code = 5 ] # OT_ERR_UNSUPPORTED
grep -q "linked with -rdynamic" "$work/message"

echo "== command and manual pages"
"$work/prefix/bin/onnxtrain" --version
for page in onnxtrain onnxtrain-train; do
    grep -q '^\.SH NAME' "$work/prefix/share/man/man1/$page.1"
done
