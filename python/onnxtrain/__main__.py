# SPDX-License-Identifier: Apache-2.0
"""The command: ``onnxtrain`` and ``python -m onnxtrain`` become the program that the package carries."""

import os
import signal
import sys

# What the interpreter ignores on its own account, and a program would inherit.
_IGNORED_BY_PYTHON = ("SIGPIPE", "SIGXFSZ")


def main() -> None:
    """Does not return: the program takes over the process, with its signals, files and exit status."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "onnxtrain")
    for name in _IGNORED_BY_PYTHON:
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execv(program, ["onnxtrain", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"onnxtrain: {program} cannot be run: {error.strerror}")


if __name__ == "__main__":
    main()
