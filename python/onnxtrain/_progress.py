# SPDX-License-Identifier: Apache-2.0
"""A line of text that shows how far training is."""

from __future__ import annotations

import builtins
import json
import math
import os
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


class Log:
    """A file that gets a JSON object per event, one a line, as the command writes it."""

    def __init__(self, path: str | os.PathLike, goes_on: bool) -> None:
        self._file = open(path, "a" if goes_on else "w", encoding="utf-8", errors="backslashreplace")  # JSON's escapes

    def write(
        self,
        event: str,
        epoch: int,
        step: int,
        rate: float,
        path: str | None,
        training: Mapping[str, float],
        validation: Mapping[str, float] | None,
    ) -> None:
        row: dict[str, Any] = {"event": event.replace("-", "_"), "epoch": epoch, "step": step, "lr": rate}
        groups = {"training": training, "validation": validation if event == "epoch" else None}
        if event == "saved":
            row["path"], groups = path, {}
        for name, metrics in groups.items():
            if metrics is not None:
                row[name] = {key: value if math.isfinite(value) else None for key, value in metrics.items()}
        self._write(row)

    def note(self, text: str) -> None:
        self._write({"event": "note", "text": text})

    def _write(self, row: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(row, separators=(",", ":"), ensure_ascii=False) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


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
            )
        elif event.kind == "epoch":
            words = {**event.metrics, **{f"val_{name}": value for name, value in (event.validation or {}).items()}}
            self._draw(f"epoch {event.epoch}/{event.epochs}  {text_of(words)}")
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
