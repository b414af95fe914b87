#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Install the packages a task needs, on Debian and its relatives; elsewhere check that they are there.
#
#   tools/install-deps.sh [build] [clang] [format] [python] [venv] [mpi] [mpich]
#   tools/install-deps.sh arm64      after build
#
# Does nothing when nothing is missing. Installs as root or with sudo; without either it prints the line to run.
set -eu
cd "$(dirname "$0")/.."

libraries="libprotobuf-c-dev zlib1g-dev libzip-dev libjansson-dev libdnnl-dev libhdf5-dev libcmocka-dev"

# What not every release of Debian has, and nothing needs: with it more tests run.
extras_of() {
    case $1 in
    python) echo "python3-onnx" ;;
    esac
}

packages_of() {
    case $1 in
    build) echo "gcc g++ libc6-dev cmake ninja-build pkgconf protobuf-c-compiler python3 $libraries" ;;
    clang) echo "clang libclang-rt-dev libomp-dev llvm" ;;
    format) echo "clang-format" ;;
    python) echo "python3-dev python3-numpy" ;;
    venv) echo "python3-venv" ;;
    mpi) echo "libopenmpi-dev openmpi-bin" ;;
    mpich) echo "libmpich-dev mpich" ;;
    arm64)
        # libdnnl-dev and libhdf5-dev cannot stand beside the native ones (see unpack_arm64_dnnl), but the libraries can.
        dnnl=$(dpkg-query -W -f='${Depends}' libdnnl-dev | grep -o 'libdnnl[0-9.]*' | head -n 1)
        hdf5=$(dpkg-query -W -f='${Depends}' libhdf5-dev | grep -o 'libhdf5-[0-9][0-9-]*' | head -n 1)
        echo "gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user libc6:arm64 libgomp1:arm64 $dnnl:arm64 $hdf5:arm64"
        for library in $libraries; do
            case $library in libdnnl-dev | libhdf5-dev) ;; *) echo "$library:arm64" ;; esac
        done
        ;;
    *)
        echo "install-deps.sh: no group '$1', expected build, clang, format, python, venv, mpi, mpich or arm64" >&2
        exit 2
        ;;
    esac
}

# Another distribution: nothing is installed, but what is missing is said at once and by name.
check_by_probing() {
    missing=
    for command in cc cmake pkg-config protoc-c python3; do
        command -v $command >/dev/null || missing="$missing $command"
    done
    if command -v pkg-config >/dev/null; then
        for module in libprotobuf-c zlib libzip jansson cmocka; do
            pkg-config --exists $module || missing="$missing $module"
        done
    fi
    [ -z "$missing" ] && return
    echo "This is no Debian, so nothing was installed. Missing:$missing" >&2
    echo "Needed: a C compiler, CMake 3.20, ninja or make, pkg-config, protobuf-c with protoc-c, zlib, libzip," >&2
    echo "jansson, oneDNN (or -DOT_WITH_ONEDNN=OFF), libhdf5 (or -DOT_WITH_HDF5=OFF), cmocka and Python 3.9 for the tests," >&2
    echo "which run jobs of several processes where there is an MPI with mpicc and mpirun." >&2
    exit 1
}

# A name without an architecture means this machine's.
is_installed() {
    case $1 in
    *:*) architecture=${1#*:} ;;
    *) architecture=$(dpkg --print-architecture) ;;
    esac
    dpkg-query -W -f='${db:Status-Status} ${Architecture}\n' "${1%:*}" 2>/dev/null |
        grep -qx -e "installed $architecture" -e "installed all"
}

# arm64's libdnnl-dev, in build/arm64-dnnl: one of its headers differs from the native package's.
unpack_arm64_dnnl() {
    [ ! -e build/arm64-dnnl/usr ] || return 0
    mkdir -p build/arm64-dnnl
    (
        cd build/arm64-dnnl
        apt-get download -q -o Acquire::Retries=3 libdnnl-dev:arm64 >../setup.log 2>&1
        dpkg-deb -x libdnnl-dev*.deb .
        link=usr/lib/aarch64-linux-gnu/libdnnl.so
        ln -sf "/usr/lib/aarch64-linux-gnu/$(readlink $link)" $link
    )
}

if ! command -v apt-get >/dev/null; then
    check_by_probing
    exit 0
fi

finish() {
    case " $groups " in
    *" arm64 "*) unpack_arm64_dnnl ;;
    esac
    exit 0
}

groups=${*:-build}
wanted= extras=
for group in $groups; do
    wanted="$wanted $(packages_of "$group")"
    extras="$extras $(extras_of "$group")"
done
missing=
for package in $wanted; do
    is_installed "$package" || missing="$missing $package"
done
[ -n "$missing" ] || finish

update="apt-get update -o Acquire::Retries=3"
case $missing in
*:arm64*) [ "$(dpkg --print-foreign-architectures | grep -c '^arm64$')" = 1 ] || update="dpkg --add-architecture arm64 && $update" ;;
esac
install="apt-get install -y --no-install-recommends -o Acquire::Retries=3"
if [ "$(id -u)" = 0 ]; then
    as_root=
elif command -v sudo >/dev/null; then
    as_root=sudo
else
    echo "Packages are missing, and installing them needs root. Run as root:" >&2
    echo "  $update && $install$missing" >&2
    exit 1
fi
echo "installing$missing"
log=build/setup.log
mkdir -p build
if ! $as_root env DEBIAN_FRONTEND=noninteractive sh -c "$update && $install$missing" >$log 2>&1; then
    echo "packages could not be installed; the end of $log:" >&2
    tail -n 20 $log >&2
    exit 1
fi
for package in $extras; do
    $as_root env DEBIAN_FRONTEND=noninteractive $install "$package" >>$log 2>&1 || echo "there is no package $package"
done
finish
