# SPDX-License-Identifier: Apache-2.0
"""Blocks as losses and optimizers of :func:`onnxtrain.artifacts.generate_artifacts`."""

from __future__ import annotations

import os
from typing import Any

import onnx

from onnxtrain import _core
from onnxtrain.onnxblock import _models, _scope, blocks

_OTHER_FORMATS = (".onnxtxt", ".ort")


def _proto(model: Any) -> tuple[onnx.ModelProto, str | None]:
    """The model and its path; data in other files stays there."""
    if isinstance(model, onnx.ModelProto):
        return model, None
    if hasattr(model, "SerializeToString"):
        return onnx.ModelProto.FromString(model.SerializeToString()), None
    if isinstance(model, (str, os.PathLike)):
        path = os.fspath(model)
        if path.endswith(_OTHER_FORMATS):
            return onnx.ModelProto.FromString(_core.Model.load(path).to_bytes().to_bytes()), None
        return onnx.load(path, load_external_data=False), path
    return onnx.ModelProto.FromString(_core.Model.load_bytes(bytes(model)).to_bytes().to_bytes()), None


def _keep_constant(graph: onnx.GraphProto, parameters: set[str]) -> None:
    """Make Constant nodes, which never train, of the initializers that are not among these names."""
    for position in reversed(range(len(graph.initializer))):
        tensor = graph.initializer[position]
        if tensor.name not in parameters:
            graph.node.insert(0, onnx.helper.make_node("Constant", [], [tensor.name], value=tensor))
            del graph.initializer[position]


def with_loss(
    model: Any,
    loss: blocks.Block,
    loss_input_names: list[str] | None,
    additional_output_names: list[str] | None,
    requires_grad: list[str] | None,
) -> _core.Model:
    """The model behind which the block has put the loss; its outputs are what the block returned and the others.

    Where nobody says what trains, it is of the model and not of the loss.
    """
    proto, path = _proto(model)
    arguments = loss_input_names or [value.name for value in proto.graph.output]
    with _scope.base(proto, path) as accessor:
        made = loss(*arguments)
        outputs = [made] if isinstance(made, str) else [*made]
        if requires_grad is None:
            _keep_constant(accessor.model.graph, {tensor.name for tensor in proto.graph.initializer})
        return _models.finish(accessor, [*outputs, *(additional_output_names or [])])


def optimizer_model(model: Any, built: _core.Artifacts, optimizer: blocks.Block) -> _core.Model:
    """What the block builds for the parameters of the artifacts, at the opset of the model."""
    proto, _ = _proto(model)
    opsets = [imported.version for imported in proto.opset_import if imported.domain in ("", "ai.onnx")]
    parameters = _models.parameters_of(built, [tensor.name for tensor in proto.graph.initializer])
    with _scope.empty_base(opsets[0] if opsets else None) as accessor:
        optimizer(parameters)
        return _core.Model.load_bytes(accessor.model.SerializeToString())
