# SPDX-License-Identifier: Apache-2.0
"""Blocks whose result is a model: forward, or training and eval."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Sequence

import onnx

from onnxtrain import _build, _core
from onnxtrain.onnxblock import _graph_utils, _scope, blocks

__all__ = ["ForwardBlock", "TrainingBlock"]

_TRAINING, _EVAL = 0, 1  # models of an Artifacts object, as the library numbers them

Parameters = tuple[list[onnx.TensorProto], list[onnx.TensorProto]]


def register_outputs(model: onnx.ModelProto, outputs: str | Sequence[str]) -> None:
    _graph_utils.take_inferred(model)
    _graph_utils.register_graph_outputs(model, outputs)


def finish(accessor: _scope.ModelAccessor, outputs: str | Sequence[str]) -> _core.Model:
    """The scope's model with these outputs, in the library."""
    register_outputs(accessor.model, outputs)
    data = accessor.model.SerializeToString()
    return _core.Model.load_bytes(data, *([accessor.folder] if accessor.folder else []))


class ForwardBlock(blocks.Block):
    """A block whose outputs are those of the model: what :meth:`build` returns becomes the only outputs.

    Each name must be one whose type can be inferred, or that ``self.base.graph.value_info`` states; else calling is a
    LookupError.
    """

    _model: onnx.ModelProto | None = None

    def __init__(self) -> None:
        super().__init__()

    @abstractmethod
    def build(self, *args: Any, **kwargs: Any) -> Any:
        """Edit ``self.base`` and return the name(s) of the outputs."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        accessor = _scope.accessor()
        self.base = accessor.model
        output = self.build(*args, **kwargs)
        register_outputs(self.base, output)
        self._model = onnx.ModelProto()
        self._model.CopyFrom(self.base)
        return output

    def to_model_proto(self) -> onnx.ModelProto:
        """The model; RuntimeError before the block was called."""
        if self._model is None:
            raise RuntimeError("Please build the forward models first before trying to retrieve it.")
        return self._model


class TrainingBlock(blocks.Block):
    """A block that makes a training model: the first output is the loss, of which the gradients are.

    Nothing trains until :meth:`requires_grad` says so. Calling the block, inside :func:`onnxtrain.onnxblock.base`,
    adds gradients and their accumulation behind what :meth:`build` appends; the scope's model becomes the training
    model.
    """

    def __init__(self) -> None:
        super().__init__()
        self._trains: dict[str, bool] = {}
        self._artifacts: _core.Artifacts | None = None
        self._order: list[str] = []

    @abstractmethod
    def build(self, *args: Any, **kwargs: Any) -> Any:
        """Edit ``self.base`` and return the loss's name, or a tuple that begins with it."""

    def requires_grad(self, argument_name: str, value: bool = True) -> None:
        """Let an initializer train (True), or keep it as a parameter without gradient (False).

        Initializers that were never named stay constants of the models.
        """
        self._trains[argument_name] = value

    def parameters(self) -> Parameters:
        """Trained and frozen parameters, in the order of the initializers; RuntimeError before the block was called."""
        if self._artifacts is None:
            raise RuntimeError("Please build the training model first before trying to retrieve the parameters.")
        return parameters_of(self._artifacts, self._order)

    def to_model_proto(self) -> tuple[onnx.ModelProto, onnx.ModelProto]:
        """Training and eval model; RuntimeError before the block was called."""
        if self._artifacts is None:
            raise RuntimeError("Please build the training and eval models first before trying to retrieve them.")
        return model_of(self._artifacts, _TRAINING), model_of(self._artifacts, _EVAL)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        accessor = _scope.accessor()
        self.base = accessor.model
        output = self.build(*args, **kwargs)
        forward = finish(accessor, output)
        self._order = [tensor.name for tensor in self.base.graph.initializer]
        trained = [name for name, value in self._trains.items() if value]
        frozen = [name for name, value in self._trains.items() if not value]
        self._artifacts = _build.build(forward, [], trained, frozen)
        self.base.CopyFrom(model_of(self._artifacts, _TRAINING))
        return output


def model_of(artifacts: _core.Artifacts, which: int) -> onnx.ModelProto:
    tensor = artifacts.model(which)
    assert tensor is not None
    return onnx.ModelProto.FromString(tensor.to_bytes())


def parameters_of(artifacts: _core.Artifacts, order: list[str]) -> Parameters:
    """Trained and frozen parameters; those that `order` lacks come last."""
    place = {name: position for position, name in enumerate(order)}
    trained: list[onnx.TensorProto] = []
    frozen: list[onnx.TensorProto] = []
    for name, trains, value in sorted(artifacts.parameters(), key=lambda row: place.get(row[0], len(place))):
        tensor = onnx.TensorProto(name=name, data_type=value.dtype, dims=value.shape, raw_data=value.to_bytes())
        (trained if trains else frozen).append(tensor)
    return trained, frozen
