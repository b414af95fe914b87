# SPDX-License-Identifier: Apache-2.0
"""Descriptions of a model's inputs and outputs, as ``onnxruntime.training.model_desc_validation``.

    {
        "inputs": [("x", ["batch", 784]), ("label", ["batch"])],
        "outputs": [("loss", [], True), ("scores", ["batch", 10])],
    }

A size is a whole number, or a name that stands for the same number within a step. The order is the one in which steps
take inputs and return outputs; one output is the loss.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple, Union

import numpy as np

from onnxtrain import _arrays, _config
from onnxtrain._asserts import expect, is_integer

LEARNING_RATE_IO_DESCRIPTION_NAME = "__learning_rate"
ALL_FINITE_IO_DESCRIPTION_NAME = "__all_finite"
LOSS_SCALE_INPUT_IO_DESCRIPTION_NAME = "__loss_scale_input"
GRADIENT_ACCUMULATION_IO_DESCRIPTION_NAME = "__gradient_accumulation"

_Shape = list[Union[int, str]]


class _InputDescription(NamedTuple):
    name: str
    shape: _Shape


class _InputDescriptionTyped(NamedTuple):
    name: str
    shape: _Shape
    dtype: Any


class _OutputDescription(NamedTuple):
    name: str
    shape: _Shape
    is_loss: bool


class _OutputDescriptionTyped(NamedTuple):
    name: str
    shape: _Shape
    is_loss: bool
    dtype: Any
    dtype_amp: Any


def _dtype(name: str) -> Any:
    """The element type of that name: torch's where torch is loaded, else numpy's."""
    torch = sys.modules.get("torch")
    return getattr(torch, name) if hasattr(torch, name) else np.dtype(name)


def dtype_of(number: int) -> Any:
    """The element type that ONNX has the number for; of strings it is str."""
    return str if number == _arrays.STRING else _dtype(_arrays.numpy_dtype(number).name)


def _plain_value(value: Any) -> Any:
    """A described input or output for the check, which tells tuples from lists."""
    if not isinstance(value, tuple):
        return None
    shape_is_list = len(value) < 2 or isinstance(value[1], list)
    return [_config.encodable(part if k != 1 or shape_is_list else None) for k, part in enumerate(value)]


def _plain(description: dict[str, Any]) -> dict[str, Any]:
    return {
        str(key): [_plain_value(value) for value in values]
        if key in ("inputs", "outputs") and isinstance(values, list)
        else _config.encodable(values)
        for key, values in description.items()
    }


class _ORTTrainerModelDesc:
    """A description that has been checked.

    Attributes:
        inputs, outputs: descriptions in order, with types once they are known.
        learning_rate, all_finite, loss_scale_input, gradient_accumulation: what training adds; None where it is not
            asked for.
    """

    _InputDescription = _InputDescription
    _InputDescriptionTyped = _InputDescriptionTyped
    _OutputDescription = _OutputDescription
    _OutputDescriptionTyped = _OutputDescriptionTyped

    def __init__(self, model_desc: dict[str, Any]) -> None:
        _config.check("model_desc", _plain(model_desc))
        self._original = dict(model_desc)
        self._validated = {key: list(model_desc[key]) for key in ("inputs", "outputs")}
        self.inputs: list[Any] = [_InputDescription(name, list(shape)) for name, shape in model_desc["inputs"]]
        self.outputs: list[Any] = [
            _OutputDescription(name, list(shape), loss == [True]) for name, shape, *loss in model_desc["outputs"]
        ]
        self._named: dict[str, Any] = {}
        self.learning_rate = LEARNING_RATE_IO_DESCRIPTION_NAME

    @property
    def learning_rate(self) -> Any:
        """The input that takes the learning rate. Assigned is its name."""
        return self._named.get("learning_rate")

    @learning_rate.setter
    def learning_rate(self, name: str) -> None:
        self._named["learning_rate"] = _InputDescriptionTyped(name, [1], _dtype("float32"))

    @property
    def loss_scale_input(self) -> Any:
        """The input that takes the loss scale. Assigned is its name."""
        return self._named.get("loss_scale_input")

    @loss_scale_input.setter
    def loss_scale_input(self, name: str) -> None:
        self._named["loss_scale_input"] = _InputDescriptionTyped(name, [], _dtype("float32"))

    @property
    def all_finite(self) -> Any:
        """The output that says whether all gradients are finite. Assigned is its name."""
        return self._named.get("all_finite")

    @all_finite.setter
    def all_finite(self, name: str) -> None:
        self._named["all_finite"] = _OutputDescriptionTyped(name, [1], False, _dtype("bool"), None)

    @property
    def gradient_accumulation(self) -> Any:
        """The output of steps that only accumulate. Assigned is its name."""
        return self._named.get("gradient_accumulation")

    @gradient_accumulation.setter
    def gradient_accumulation(self, name: str) -> None:
        self._named["gradient_accumulation"] = _OutputDescriptionTyped(name, [1], False, _dtype("bool"), None)

    def _check_new(self, name: Any, shape: Any, described: list[Any]) -> None:
        expect(isinstance(name, str) and len(name) > 0, f"name is {name!r}, expected a str that is not empty")
        expect(all(name != one.name for one in described), f"'{name}' is described already")
        sizes = shape if isinstance(shape, list) else [None]
        fits = all(is_integer(size) or (isinstance(size, str) and len(size) > 0) for size in sizes)
        expect(fits, f"the shape of '{name}' is {shape!r}, expected a list of whole numbers and names")

    def add_input_description(self, name: str, shape: _Shape) -> None:
        """Describe one more input."""
        self._check_new(name, shape, self.inputs)
        self.inputs.append(_InputDescription(name, list(shape)))

    def add_output_description(self, name: str, shape: _Shape, is_loss: bool = False) -> None:
        """Describe one more output."""
        self._check_new(name, shape, self.outputs)
        expect(isinstance(is_loss, bool), f"is_loss is {is_loss!r}, expected a bool")
        losses = [one.name for one in self.outputs if one.is_loss]
        expect(not (is_loss and losses), f"'{name}' cannot be the loss besides '{', '.join(losses)}'")
        self.outputs.append(_OutputDescription(name, list(shape), is_loss))

    def add_type_to_input_description(self, index: int, dtype: Any) -> None:
        """Give an input its type, or another."""
        one = self._described(self.inputs, index)
        self.inputs[index] = _InputDescriptionTyped(one.name, one.shape, dtype)

    def add_type_to_output_description(self, index: int, dtype: Any, dtype_amp: Any = None) -> None:
        """Give an output its type, or another."""
        one = self._described(self.outputs, index)
        self.outputs[index] = _OutputDescriptionTyped(one.name, one.shape, one.is_loss, dtype, dtype_amp)

    def _described(self, described: list[Any], index: int) -> Any:
        fits = is_integer(index) and 0 <= index < len(described)
        expect(fits, f"index is {index!r}, expected one of {len(described)} descriptions, from 0")
        return described[index]

    def _options(self) -> dict[str, Any]:
        """For the library."""
        return {
            "inputs": [[one.name, one.shape] for one in self.inputs],
            "outputs": [[one.name, one.shape, one.is_loss] for one in self.outputs],
        }
