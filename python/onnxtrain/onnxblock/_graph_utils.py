# SPDX-License-Identifier: Apache-2.0
"""Looking things up in a ModelProto, and setting its outputs."""

from __future__ import annotations

from typing import Iterable, Sequence

import onnx

from onnxtrain import _core
from onnxtrain.onnxblock import _scope

__all__ = [
    "generate_graph_name",
    "get_input_from_input_name",
    "get_output_from_output_name",
    "node_arg_exists",
    "register_graph_outputs",
]

# Initializers of more bytes are of no use to the checker and to shape inference, which copy the model.
_SMALL = 4096


def generate_graph_name(token: str) -> str:
    """A name for a value or a node: ``onnx::<token>::<n>``, with n counted in the scope."""
    return _scope.generate_name(token)


def node_arg_exists(model: onnx.ModelProto, node_arg_name: str) -> bool:
    """Whether a node reads or makes a value of that name."""
    return any(node_arg_name in node.input or node_arg_name in node.output for node in model.graph.node)


def get_input_from_input_name(onnx_model: onnx.ModelProto, input_name: str) -> onnx.ValueInfoProto:
    """The graph's input of that name; LookupError when there is none."""
    return _named(onnx_model.graph.input, input_name, "input")


def get_output_from_output_name(onnx_model: onnx.ModelProto, output_name: str) -> onnx.ValueInfoProto:
    """The graph's output of that name; LookupError when there is none."""
    return _named(onnx_model.graph.output, output_name, "output")


def _named(values: Iterable[onnx.ValueInfoProto], name: str, what: str) -> onnx.ValueInfoProto:
    for value in values:
        if value.name == name:
            return value
    raise LookupError(f"The graph has no {what} {name!r}; it has {[value.name for value in values]}.")


# ---- types ----


def structure(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with its large initializers, and those in other files, as inputs: what it is made of without weights.
    The model itself where there are none."""

    def is_large(tensor: onnx.TensorProto) -> bool:
        return tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.ByteSize() > _SMALL

    graph = model.graph
    large = [tensor for tensor in graph.initializer if is_large(tensor)]
    if not large:
        return model
    outlined = onnx.ModelProto(ir_version=model.ir_version, domain=model.domain)
    outlined.opset_import.extend(model.opset_import)
    outlined.functions.extend(model.functions)
    outlined.graph.name = graph.name
    for field in ("node", "input", "output", "value_info", "sparse_initializer"):
        getattr(outlined.graph, field).extend(getattr(graph, field))
    outlined.graph.initializer.extend(tensor for tensor in graph.initializer if not is_large(tensor))
    present = {value.name for value in graph.input}
    outlined.graph.input.extend(
        onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
        for tensor in large
        if tensor.name not in present
    )
    return outlined


def _stated_type(model: onnx.ModelProto, name: str) -> onnx.TypeProto | None:
    graph = model.graph
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.name == name and value.type.WhichOneof("value") is not None:
            return value.type
    for tensor in graph.initializer:
        if tensor.name == name:
            return onnx.helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
    return None


def _library_type(model: onnx.ModelProto, name: str) -> onnx.TypeProto | None:
    """By the library's shape inference, which knows operators that the package onnx does not."""
    try:
        inferred = _core.Model.load_bytes(structure(model).SerializeToString())
        inferred.infer()
        is_sequence, number, shape = inferred.value_type(name)
    except _core.Error:
        return None
    if number == 0:
        return None
    tensor = onnx.helper.make_tensor_type_proto(number, shape)
    return onnx.helper.make_sequence_type_proto(tensor) if is_sequence else tensor


def infer(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of the model's structure with the types and shapes of all values that inference finds."""
    return onnx.shape_inference.infer_shapes(structure(model))


def find_type(model: onnx.ModelProto, name: str) -> onnx.TypeProto | None:
    """The type of a value, stated or inferred; None: there is no such value, or nothing tells."""
    found = _stated_type(model, name)
    if found is None and node_arg_exists(model, name):
        found = _stated_type(infer(model), name) or _library_type(model, name)
    return found


def element_type(model: onnx.ModelProto, name: str) -> int:
    """ONNX's number of a value's element type; f32 where nothing tells."""
    found = find_type(model, name)
    number = 0 if found is None else found.tensor_type.elem_type
    return number or onnx.TensorProto.FLOAT


def like(value_type: onnx.TypeProto, name: str) -> onnx.ValueInfoProto:
    value = onnx.ValueInfoProto(name=name)
    value.type.CopyFrom(value_type)
    return value


# ---- outputs ----


def take_inferred(model: onnx.ModelProto) -> None:
    """Put the inferred types and shapes into the model."""
    inferred = infer(model)
    del model.graph.value_info[:]
    model.graph.value_info.extend(inferred.graph.value_info)


def register_graph_outputs(model: onnx.ModelProto, output_names: Sequence[str] | str) -> None:
    """Make the values of these names, which have a type, the only outputs; LookupError names one without."""
    names = [output_names] if isinstance(output_names, str) else list(output_names)
    known = {value.name: value.type for value in (*model.graph.value_info, *model.graph.output)}
    outputs = []
    for name in names:
        value_type = known.get(name)
        if value_type is None or value_type.WhichOneof("value") is None:
            value_type = _library_type(model, name) if any(name in node.output for node in model.graph.node) else None
        if value_type is None:
            raise LookupError(
                f"The provided name {name!r} is not a graph value info or a graph output: no node makes it, or its "
                "type cannot be inferred and model.graph.value_info does not state it."
            )
        outputs.append(like(value_type, name))
    del model.graph.output[:]
    model.graph.output.extend(outputs)
