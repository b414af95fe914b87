# SPDX-License-Identifier: Apache-2.0
"""The command: ``onnxtrain`` and ``python -m onnxtrain`` become the program that the package carries."""

import os
import signal
import sys

# What the interpreter ignores on its own account, and a program would inherit.
_IGNORED_BY_PYTHON = ("SIGPIPE", "SIGXFSZ")


def main() -> None:
    """Does not return: the program takes over the process, with its signals, files and exit status."""
    package = os.path.dirname(os.path.abspath(__file__))
    program = os.path.join(package, "bin", "onnxtrain")
    plugin = os.path.join(package, "libonnxtrain_mpi.so")  # of distributed.build
    if os.path.exists(plugin):
        os.environ.setdefault("OT_COMM_PLUGIN", plugin)
    for name in _IGNORED_BY_PYTHON:
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execv(program, ["onnxtrain", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"onnxtrain: {program} cannot be run: {error.strerror}")


if __name__ == "__main__":
    main()
