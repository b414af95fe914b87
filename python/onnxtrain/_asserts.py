# SPDX-License-Identifier: Apache-2.0
"""Errors of use, which are AssertionError where ``onnxruntime.training`` has one, also under ``python -O``."""

from __future__ import annotations

import math
from typing import Any


def expect(holds: bool, message: str) -> None:
    """AssertionError with that message where the condition does not hold."""
    if not holds:
        raise AssertionError(message)


def is_integer(value: Any) -> bool:
    """Whether it is an int; a bool is none."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether it is an int or a float, infinities included."""
    return is_integer(value) or isinstance(value, float)


def expect_non_negative(name: str, value: Any) -> float:
    """The value as a float."""
    expect(is_number(value) and value >= 0, f"{name} is {value!r}, expected a number of at least 0")
    return float(value)


def expect_float(name: str, value: Any, low: float = -math.inf, high: float = math.inf) -> float:
    """The value, which is a float with low <= value < high."""
    fits = isinstance(value, float) and low <= value and (value < high or high == math.inf)
    expect(fits, f"{name} is {value!r}, expected a float" + (f" of {low} or more" if math.isfinite(low) else ""))
    return value
