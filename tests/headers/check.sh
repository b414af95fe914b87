#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every public header compiles alone, in C11 and in C++17.
# Usage: check.sh INCLUDE_DIR CC CXX
set -eu
include=$1 cc=$2 cxx=$3
count=0
failed=0

compiles() { # LANGUAGE COMPILER STANDARD HEADER
    echo "#include <onnxtrain/$4>" |
        "$2" -x "$1" -std="$3" -I"$include" -Wall -Wextra -Wpedantic -Werror -fsyntax-only - || {
        echo "onnxtrain/$4 does not compile alone as $3" >&2
        failed=1
    }
}

for path in "$include"/onnxtrain/*.h; do
    header=${path##*/}
    compiles c "$cc" c11 "$header"
    compiles c++ "$cxx" c++17 "$header"
    count=$((count + 1))
done
[ "$count" -gt 0 ]
echo "$count headers"
exit $failed
