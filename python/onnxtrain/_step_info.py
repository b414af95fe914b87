# SPDX-License-Identifier: Apache-2.0
"""Where a training stands."""

from __future__ import annotations

from typing import Any

from onnxtrain._asserts import expect, is_integer
from onnxtrain.optim.config import _OptimizerConfig


def _is_count(value: Any) -> bool:
    return is_integer(value) and value >= 0


class TrainStepInfo:
    """Where a training stands: what schedules and loss scalers decide by.

    Args:
        optimizer_config: the optimizer, whose `lr` is the base of schedules.
        all_finite: whether all gradients of the last update were finite.
        fetches: names of outputs that steps return instead of all; empty: all.
        optimization_step: updates that were applied so far.
        step: train steps so far.
    """

    def __init__(
        self,
        optimizer_config: _OptimizerConfig,
        all_finite: bool = True,
        fetches: list[str] = [],  # noqa: B006
        optimization_step: int = 0,
        step: int = 0,
    ) -> None:
        is_config = isinstance(optimizer_config, _OptimizerConfig)
        expect(is_config, f"optimizer_config is {type(optimizer_config).__name__}, expected an optimizer of optim")
        expect(isinstance(all_finite, bool), f"all_finite is {all_finite!r}, expected a bool")
        are_names = isinstance(fetches, list) and all(isinstance(name, str) for name in fetches)
        expect(are_names, f"fetches is {fetches!r}, expected a list of names")
        expect(_is_count(optimization_step), f"optimization_step is {optimization_step!r}, expected a count")
        expect(_is_count(step), f"step is {step!r}, expected a count")
        self.optimizer_config = optimizer_config
        self.all_finite = all_finite
        self.fetches = list(fetches)
        self.optimization_step = optimization_step
        self.step = step
