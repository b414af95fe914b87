# SPDX-License-Identifier: Apache-2.0
"""Learning rates over the updates, as ``onnxruntime.training.optim.lr_scheduler``.

All rise from 0 over the first ``warmup * total_steps`` updates. A schedule of one's own is a subclass:

    class Halving(_LRScheduler):
        def get_lr(self, train_step_info):
            return [train_step_info.optimizer_config.lr * 0.5 ** (train_step_info.optimization_step // 100)]
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from onnxtrain import _core
from onnxtrain._asserts import expect, expect_float, is_integer
from onnxtrain._options import SCHEDULES

if TYPE_CHECKING:
    from onnxtrain._step_info import TrainStepInfo

__all__ = [
    "ConstantWarmupLRScheduler",
    "CosineWarmupLRScheduler",
    "LinearWarmupLRScheduler",
    "PolyWarmupLRScheduler",
]


class _LRScheduler:
    """Base of schedules. A trainer asks :meth:`get_lr` in every train step, also in those that only accumulate."""

    _last_lr: list[float] = []

    def get_lr(self, train_step_info: TrainStepInfo) -> list[float]:
        """The learning rate of a step: a list with one number, or with one for each group of parameters."""
        raise NotImplementedError(f"{type(self).__name__} has no get_lr()")

    def get_last_lr(self) -> list[float]:
        """What :meth:`get_lr` gave last in training; empty before the first step."""
        return self._last_lr

    def _step(self, train_step_info: TrainStepInfo) -> None:
        self._last_lr = self.get_lr(train_step_info)


class _WarmupLRScheduler(_LRScheduler):
    """Base of the schedules that the library computes."""

    _kind = ""

    def __init__(self, total_steps: int, warmup: float) -> None:
        is_count = is_integer(total_steps) and total_steps > 0
        expect(is_count, f"total_steps is {total_steps!r}, expected a whole number above 0")
        is_part = isinstance(warmup, float) and 0 <= warmup < 1
        expect(is_part, f"warmup is {warmup!r}, expected a float of at least 0 and below 1")
        self.total_steps = total_steps
        self.warmup = warmup

    @property
    def _warmup_steps(self) -> float:
        return self.warmup * self.total_steps

    def _shape(self, lr: float) -> tuple[float, float, float]:
        """Power, end factor and cycles."""
        return 1.0, 0.0, 0.0

    def get_lr(self, train_step_info: TrainStepInfo) -> list[float]:
        """The learning rate after `train_step_info.optimization_step` updates."""
        lr = train_step_info.optimizer_config.lr
        fixed = (SCHEDULES[self._kind], lr, self._warmup_steps, self.total_steps)
        return [_core.schedule_value(*fixed, *self._shape(lr), train_step_info.optimization_step)]

    def _options(self) -> dict[str, Any]:
        """As options of the library."""
        return {"type": type(self).__name__, **{k: v for k, v in vars(self).items() if not k.startswith("_")}}


class ConstantWarmupLRScheduler(_WarmupLRScheduler):
    """The optimizer's learning rate.

    Args:
        total_steps: updates of the whole training.
        warmup: part of them over which the rate rises from 0.
    """

    _kind = "constant"

    def __init__(self, total_steps: int, warmup: float = 0.002) -> None:
        super().__init__(total_steps, warmup)


class CosineWarmupLRScheduler(_WarmupLRScheduler):
    """Falls and rises as a cosine.

    Args:
        total_steps: updates of the whole training.
        cycles: how many of the cosine until `total_steps`; 0.5: down to 0.
        warmup: part of the updates over which the rate rises from 0.
    """

    _kind = "cosine"

    def __init__(self, total_steps: int, cycles: float = 0.5, warmup: float = 0.002) -> None:
        super().__init__(total_steps, warmup)
        fits = isinstance(cycles, float) and 0 < cycles < math.inf
        expect(fits, f"cycles is {cycles!r}, expected a float above 0")
        self.cycles = cycles

    def _shape(self, lr: float) -> tuple[float, float, float]:
        return 1.0, 0.0, self.cycles


class LinearWarmupLRScheduler(_WarmupLRScheduler):
    """Falls evenly to 0.

    Args:
        total_steps: updates of the whole training.
        warmup: part of them over which the rate rises from 0.
    """

    _kind = "linear"

    def __init__(self, total_steps: int, warmup: float = 0.002) -> None:
        super().__init__(total_steps, warmup)


class PolyWarmupLRScheduler(_WarmupLRScheduler):
    """Falls as a power of the updates that are left.

    Args:
        total_steps: updates of the whole training.
        lr_end: the last learning rate, below the optimizer's.
        power: the exponent; 1: evenly.
        warmup: part of the updates over which the rate rises from 0.
    """

    _kind = "polynomial"

    def __init__(self, total_steps: int, lr_end: float = 1e-7, power: float = 1.0, warmup: float = 0.002) -> None:
        super().__init__(total_steps, warmup)
        self.lr_end = expect_float("lr_end", lr_end, 0.0)
        self.power = expect_float("power", power, 0.0)

    def _shape(self, lr: float) -> tuple[float, float, float]:
        expect(lr > self.lr_end, f"lr_end is {self.lr_end}, expected below the learning rate, which is {lr}")
        return self.power, self.lr_end / lr, 0.0


def is_built_in(schedule: Any) -> bool:
    """Whether the library computes the schedule by itself; subclasses may do anything."""
    kinds = (
        ConstantWarmupLRScheduler,
        CosineWarmupLRScheduler,
        LinearWarmupLRScheduler,
        PolyWarmupLRScheduler,
    )
    return type(schedule) in kinds
