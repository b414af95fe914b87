#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Neither the library nor the command is linked with an MPI: who trains in one process pays nothing for it.
# Usage: links.sh READELF FILE...
set -eu
readelf=$1
shift
for file in "$@"; do
    needed=$("$readelf" -d "$file" | grep NEEDED)
    ! echo "$needed" | grep -i mpi || {
        echo "$file is linked with it" >&2
        exit 1
    }
done
