#!/bin/sh
# Install the packages a task needs, on Debian and its relatives; elsewhere check that they are there.
#
#   tools/install-deps.sh [build] [clang] [format] [arm64]
#
# Does nothing when nothing is missing. Installs as root or with sudo; without either it prints the line to run.
set -eu
cd "$(dirname "$0")/.."

libraries="libprotobuf-c-dev zlib1g-dev libzip-dev libjansson-dev libdnnl-dev libcmocka-dev"

packages_of() {
    case $1 in
    build) echo "gcc g++ libc6-dev cmake ninja-build pkgconf protobuf-c-compiler python3 $libraries" ;;
    clang) echo "clang libomp-dev" ;;
    format) echo "clang-format" ;;
    arm64)
        echo "gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user libc6:arm64 libgomp1:arm64"
        for library in $libraries; do echo "$library:arm64"; done
        ;;
    *)
        echo "install-deps.sh: no group '$1', expected build, clang, format or arm64" >&2
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
    echo "jansson, oneDNN (or -DOT_WITH_ONEDNN=OFF), cmocka and Python 3.9 for the tests." >&2
    exit 1
}

is_installed() {
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

if ! command -v apt-get >/dev/null; then
    check_by_probing
    exit 0
fi

wanted=
for group in "${@:-build}"; do
    wanted="$wanted $(packages_of "$group")"
done
missing=
for package in $wanted; do
    is_installed "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

update="apt-get update -o Acquire::Retries=3"
case $missing in
*:arm64*) [ "$(dpkg --print-foreign-architectures | grep -c '^arm64$')" = 1 ] || update="dpkg --add-architecture arm64 && $update" ;;
esac
install="apt-get install -y --no-install-recommends -o Acquire::Retries=3$missing"
if [ "$(id -u)" = 0 ]; then
    as_root=
elif command -v sudo >/dev/null; then
    as_root=sudo
else
    echo "Packages are missing, and installing them needs root. Run as root:" >&2
    echo "  $update && $install" >&2
    exit 1
fi
echo "installing$missing"
log=build/setup.log
mkdir -p build
if ! $as_root env DEBIAN_FRONTEND=noninteractive sh -c "$update && $install" >$log 2>&1; then
    echo "packages could not be installed; the end of $log:" >&2
    tail -n 20 $log >&2
    exit 1
fi
