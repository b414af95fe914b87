# SPDX-License-Identifier: Apache-2.0
"""A line of text that shows how far training is."""

from __future__ import annotations

import builtins
import sys
import time
from typing import Any, Mapping

_WIDTH = 24
_SECONDS_BETWEEN = 0.1


def _is_live() -> bool:
    """Whether a line can be drawn over: on a terminal and in a notebook."""
    return sys.stdout.isatty() or hasattr(builtins, "__IPYTHON__")


def text_of(metrics: Mapping[str, Any]) -> str:
    """``"loss 0.1234  accuracy 97.50 %"``"""
    words = []
    for name, value in metrics.items():
        words.append(f"{name} {100 * value:.2f} %" if name.endswith("accuracy") else f"{name} {value:.4g}")
    return "  ".join(words)


def _scaling(event: Any) -> str:
    scale = f"  scale {event.loss_scale:g}" if event.loss_scale else ""
    return scale + (f"  {event.n_skipped} skipped" if event.n_skipped else "")


class Progress:
    """A callback of :func:`onnxtrain.train`."""

    def __init__(self) -> None:
        self._live = _is_live()
        self._drawn = 0.0
        self._length = 0

    def __call__(self, event: Any) -> None:
        if event.kind == "step" and self._live and time.monotonic() - self._drawn > _SECONDS_BETWEEN:
            self._drawn = time.monotonic()
            done = _WIDTH * event.batch // max(event.batches, 1)
            bar = "=" * done + " " * (_WIDTH - done)
            self._draw(
                f"epoch {event.epoch}/{event.epochs} [{bar}] {event.batch}/{event.batches}  {text_of(event.metrics)}"
                + _scaling(event)
            )
        elif event.kind == "epoch":
            words = {**event.metrics, **{f"val_{name}": value for name, value in (event.validation or {}).items()}}
            self._draw(f"epoch {event.epoch}/{event.epochs}  {text_of(words)}{_scaling(event)}")
            self._end_line()
        elif event.kind == "early-stop":
            self._draw("stopped: no better for the epochs of `patience`")
            self._end_line()

    def _draw(self, line: str) -> None:
        if self._live:
            print("\r" + line.ljust(self._length), end="", flush=True)
            self._length = len(line)
        else:
            print(line, end="", flush=True)

    def _end_line(self) -> None:
        print(flush=True)
        self._length = 0
