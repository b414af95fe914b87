# SPDX-License-Identifier: Apache-2.0
"""What the library logs goes to the logger "onnxtrain" of Python's logging.

Where one of the environment variables OT_LOG and OT_PROFILE is set, it goes to standard error, as in C programs.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import threading
import warnings
from typing import Iterator

from onnxtrain import _core

_LOG = logging.getLogger("onnxtrain")
_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING)  # of ot_log_level
_thread = threading.local()  # held: messages of this thread that are told in another way


def _deliver(level: int, text: str) -> None:
    held = getattr(_thread, "held", None)
    if held is None:
        _LOG.log(_LEVELS[level], "%s", text)
    else:
        held.append((_LEVELS[level], text))


@contextlib.contextmanager
def told_otherwise() -> Iterator[list[tuple[int, str]]]:
    """What this thread's calls log meanwhile is not for the logger, but for the list."""
    before, held = getattr(_thread, "held", None), []
    _thread.held = held
    try:
        yield held
    finally:
        _thread.held = before


def warnings_of(held: list[tuple[int, str]]) -> list[str]:
    """The warnings; the rest is logged."""
    for level, text in held:
        if level < logging.WARNING:
            _LOG.log(level, "%s", text)
    return [text for level, text in held if level >= logging.WARNING]


@contextlib.contextmanager
def as_warnings() -> Iterator[None]:
    """What this thread's calls log meanwhile becomes Python warnings, where it is one."""
    with told_otherwise() as held:
        yield
    for text in warnings_of(held):
        warnings.warn(text, stacklevel=5)


if not (os.environ.get("OT_LOG") or os.environ.get("OT_PROFILE")):
    _core.set_log(_deliver)
    atexit.register(_core.set_log, None)  # nothing may be called when the interpreter ends
