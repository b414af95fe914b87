# SPDX-License-Identifier: Apache-2.0
"""The loss scale of training in few bits, as ``onnxruntime.training.amp.loss_scaler``.

The gradient of `loss_scale` times the loss is computed, so that small gradients do not become 0. A rule of one's own is
a subclass:

    class Falling(LossScaler):
        def update(self, train_step_info):
            self.loss_scale *= 0.9
            return self.loss_scale
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onnxtrain import _core
from onnxtrain._asserts import expect, is_number

if TYPE_CHECKING:
    from onnxtrain._step_info import TrainStepInfo

__all__ = ["DynamicLossScaler", "LossScaler"]


def _checked(loss_scale: Any) -> float:
    expect(is_number(loss_scale) and loss_scale > 0, f"loss_scale is {loss_scale!r}, expected a number above 0")
    return float(loss_scale)


class LossScaler:
    """Base of loss scalers.

    Args:
        loss_scale: the scale to begin with, above 0.
    """

    def __init__(self, loss_scale: float) -> None:
        self._input_name: str | None = None
        self._loss_scale = _checked(loss_scale)
        self._initial_loss_scale = self._loss_scale

    @property
    def input_name(self) -> str | None:
        """The input of the training graph that takes the scale; None before there is a graph."""
        return self._input_name

    @input_name.setter
    def input_name(self, name: str | None) -> None:
        is_name = name is None or (isinstance(name, str) and len(name) > 0)
        expect(is_name, f"input_name is {name!r}, expected the name of an input")
        self._input_name = name

    @property
    def loss_scale(self) -> float:
        """The present scale."""
        return self._loss_scale

    @loss_scale.setter
    def loss_scale(self, loss_scale: float) -> None:
        self._loss_scale = _checked(loss_scale)

    def reset(self) -> None:
        """Back to the scale to begin with."""
        self.loss_scale = self._initial_loss_scale

    def update(self, train_step_info: TrainStepInfo) -> float:
        """The scale after an update of the parameters, applied or skipped."""
        raise NotImplementedError(f"{type(self).__name__} has no update()")


def _field(name: str, doc: str) -> Any:
    """A property that the library's scaler has."""

    def get(self: DynamicLossScaler) -> Any:
        return getattr(self._scaler, name)

    def put(self: DynamicLossScaler, value: Any) -> None:
        setattr(self._scaler, name, value)

    return property(get, put, doc=doc)


class DynamicLossScaler(LossScaler):
    """Doubles the scale after `up_scale_window` updates with finite gradients in a row, halves it after one without.

    Args:
        automatic_update: False: the scale stays what it is set to.
        loss_scale: the scale to begin with, above 0.
        up_scale_window: updates in a row.
        min_loss_scale, max_loss_scale: bounds of the scale.
    """

    def __init__(
        self,
        automatic_update: bool = True,
        loss_scale: float = float(1 << 16),
        up_scale_window: int = 2000,
        min_loss_scale: float = 1.0,
        max_loss_scale: float = float(1 << 24),
    ) -> None:
        self._scaler = _core.LossScaler.create(
            _checked(loss_scale), automatic_update, up_scale_window, min_loss_scale, max_loss_scale
        )
        super().__init__(loss_scale)

    _loss_scale = _field("loss_scale", "The present scale.")
    _initial_loss_scale = _field("initial_loss_scale", "The scale to begin with.")
    _stable_steps_count = _field("n_stable", "Updates with finite gradients since the scale last changed.")
    automatic_update = _field("automatic_update", "Whether :meth:`update` changes the scale.")
    up_scale_window = _field("up_scale_window", "Updates in a row with finite gradients that double the scale.")
    min_loss_scale = _field("min_loss_scale", "The least scale.")
    max_loss_scale = _field("max_loss_scale", "The greatest scale.")

    def reset(self) -> None:
        """Back to the scale to begin with; updates in a row are counted anew."""
        self._scaler.reset()

    def update(self, train_step_info: TrainStepInfo) -> float:
        """The scale after an update of the parameters, applied or skipped."""
        return self._scaler.update(train_step_info.all_finite)
