# SPDX-License-Identifier: Apache-2.0
"""Errors of use, which are AssertionError as in ``onnxruntime.training``, also under ``python -O``."""

from __future__ import annotations

from typing import Any

from onnxtrain import _core


class InvalidUse(_core.InvalidArgument, AssertionError):
    """An argument that is wrong in a way that ``onnxruntime.training`` asserts."""

    __module__ = "onnxtrain"


def expect(holds: bool, message: str) -> None:
    """InvalidUse with that message where the condition does not hold."""
    if not holds:
        raise InvalidUse(message)


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


def expect_float(name: str, value: Any, low: float) -> float:
    """The value, which is a float of at least `low`."""
    expect(isinstance(value, float) and value >= low, f"{name} is {value!r}, expected a float of at least {low}")
    return value
