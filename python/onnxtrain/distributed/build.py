# SPDX-License-Identifier: Apache-2.0
"""Compiles the plugin for MPI: ``python -m onnxtrain.distributed.build [--mpicc PATH] [--out DIR]``.

Each MPI needs a plugin of its own, which its own compiler makes. It is put beside the library, where it is found.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Sequence

_NAME = "libonnxtrain_mpi.so"
_SOURCES = Path(__file__).resolve().parent / "mpi"
_BESIDE_LIBRARY = Path(__file__).resolve().parents[1]
_FLAGS = "-std=c11 -O2 -fPIC -shared -fvisibility=hidden".split()
_VERSION_MAX = 8192  # MPI_MAX_LIBRARY_VERSION_STRING of any MPI


class _Failure(Exception):
    pass


def _find_mpicc(given: str | None) -> str:
    name = given or os.environ.get("MPICC") or "mpicc"
    found = shutil.which(name)
    if found is None:
        raise _Failure(f"{name}: not found; install an MPI with its compiler (Debian: libopenmpi-dev), or give --mpicc")
    return found


def _compile(mpicc: str, to: Path) -> None:
    command = [mpicc, *_FLAGS, f"-I{_SOURCES / 'include'}", str(_SOURCES / "comm_mpi.c"), "-o", str(to)]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise _Failure(f"{mpicc}: {error.strerror}") from None
    if done.returncode != 0:
        raise _Failure(f"{shlex.join(command)}: exit status {done.returncode}\n{done.stderr.strip()}")


def _version(plugin: Path) -> str:
    """Load it as the library will; of which MPI it is."""
    try:
        loaded = ctypes.CDLL(str(plugin))
        text, length = ctypes.create_string_buffer(_VERSION_MAX), ctypes.c_int()
        if not hasattr(loaded, "ot_transport_mpi"):
            raise _Failure("the compiler made something that is no plugin")
        loaded.MPI_Get_library_version(text, ctypes.byref(length))
    except (OSError, AttributeError) as error:
        raise _Failure(f"the plugin cannot be loaded: {error}") from None
    return text.value.decode(errors="replace").replace("\t", " ").splitlines()[0].split(",")[0]


def build(mpicc: str | None = None, out: str | None = None) -> tuple[Path, str]:
    """Compile it; where it is, and of which MPI."""
    compiler = _find_mpicc(mpicc)
    folder = Path(out).absolute() if out is not None else _BESIDE_LIBRARY
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".onnxtrain-") as work:
            made = Path(work) / _NAME
            _compile(compiler, made)
            version = _version(made)
            os.replace(made, folder / _NAME)
    except OSError as error:
        raise _Failure(f"{folder}: {error.strerror}; name another directory with --out") from None
    return folder / _NAME, version


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m onnxtrain.distributed.build", description="Compile the plugin for MPI.")
    parser.add_argument("--mpicc", metavar="PATH", help="the MPI's compiler; else $MPICC, else mpicc on the path")
    parser.add_argument("--out", metavar="DIR", help="where the plugin is put; else beside the library, which finds it")
    given = parser.parse_args(arguments)
    try:
        path, version = build(given.mpicc, given.out)
    except _Failure as failure:
        print(f"onnxtrain: {failure}", file=sys.stderr)
        return 1
    print(f"{path}: the plugin for {version}")
    if path.parent != _BESIDE_LIBRARY:
        print(f"export OT_COMM_PLUGIN={shlex.quote(str(path))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
