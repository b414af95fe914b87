# SPDX-License-Identifier: Apache-2.0
"""Parameters to a checkpoint file, and back into a model."""

from __future__ import annotations

import os

import onnx

from onnxtrain import _core
from onnxtrain.onnxblock import _scope

__all__ = ["load_checkpoint_to_model", "save_checkpoint"]


def _elements(tensor: onnx.TensorProto, folder: str | None) -> _core.Tensor:
    """The library reads every form that elements may have in a TensorProto."""
    graph = onnx.helper.make_graph([], "parameters", [], [], [tensor])
    model = onnx.helper.make_model(graph, ir_version=8, opset_imports=[onnx.helper.make_opsetid("", 17)])
    data = model.SerializeToString()
    return _core.Model.load_bytes(data, *([folder] if folder else [])).initializer(tensor.name)


def save_checkpoint(
    parameters: tuple[list[onnx.TensorProto], list[onnx.TensorProto]],
    path_to_checkpoint: str | os.PathLike,
    nominal_checkpoint: bool = False,
) -> None:
    """Write the checkpoint that training begins from.

    Args:
        parameters: trained and frozen ones, as :meth:`TrainingBlock.parameters` gives them.
        path_to_checkpoint: the file.
        nominal_checkpoint: names and element types only, no values.
    """
    if parameters is None:
        raise RuntimeError("No checkpoint parameters provided.")
    trained, frozen = parameters
    scope = _scope.present()
    folder = scope.folder if scope is not None else None
    checkpoint = _core.Checkpoint.create()
    for tensors, trainable in ((trained, True), (frozen, False)):
        for tensor in tensors:
            checkpoint.add_parameter(tensor.name, _elements(tensor, folder), trainable)
    path = os.fspath(path_to_checkpoint)
    if nominal_checkpoint:
        checkpoint.save_nominal(path)
    else:
        checkpoint.save(path, False)


def load_checkpoint_to_model(path_to_checkpoint: str | os.PathLike, model: onnx.ModelProto) -> None:
    """Put the values of a checkpoint into the initializers of the same names, in place.

    Other initializers stay, and parameters that the model lacks do not matter.

    Raises:
        RuntimeError: the file cannot be read, or it is a nominal checkpoint.
    """
    checkpoint = _core.Checkpoint.load(os.fspath(path_to_checkpoint), False)
    names = checkpoint.parameter_names()
    if names:
        checkpoint.get_parameter(names[0])  # a nominal one has no values, whatever the model has
    known = set(names)
    for tensor in model.graph.initializer:
        if tensor.name not in known:
            continue
        value = checkpoint.get_parameter(tensor.name)
        tensor.CopyFrom(
            onnx.TensorProto(
                name=tensor.name,
                doc_string=tensor.doc_string,
                data_type=value.dtype,
                dims=value.shape,
                raw_data=value.to_bytes(),
            )
        )
