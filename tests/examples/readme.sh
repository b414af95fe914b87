#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: readme.sh README EXAMPLE ONNXTRAIN: every line of the README's C stands in the example, which is compiled and
# run; the README's first `train` line runs; every page that README and docs link to is there.
set -eu
readme=$1 example=$2 command=$3
lines=$(sed -n '/^```c$/,/^```$/p' "$readme" | grep -v '^```' | sed 's/^ *//')
[ "$(echo "$lines" | wc -l)" -ge 10 ]
echo "$lines" | while read -r line; do
    grep -qF -e "$line" "$example" || { echo "README.md shows what $example has not: $line" >&2; exit 1; }
done
cd "$(dirname "$readme")"
line=$(sed -n 's|^build/release/cli/onnxtrain \(train .*\) --out build/digits.onnx$|\1|p' README.md)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2086 # the line's words
"$command" $line --max-steps 3 --threads 1 --out "$work/digits.onnx"
[ -s "$work/digits.onnx" ]
for page in README.md docs/*.md; do
    grep -o '](\([^)#]*\)' "$page" | sed 's/^](//' | grep -v '^https\?:' | while read -r target; do
        [ -e "$(dirname "$page")/$target" ] || { echo "$page links to $target, which is not there" >&2; exit 1; }
    done
done
