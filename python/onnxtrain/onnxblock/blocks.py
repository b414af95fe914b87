# SPDX-License-Identifier: Apache-2.0
"""The blocks: one node each, unless stated."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import onnx

from onnxtrain.onnxblock import _graph_utils, _scope

__all__ = [
    "Abs",
    "Add",
    "Block",
    "Cast",
    "Clip",
    "Constant",
    "Div",
    "InputLike",
    "LabelEncoder",
    "Linear",
    "Log",
    "Mul",
    "Neg",
    "PassThrough",
    "Pow",
    "ReduceAllL2",
    "ReduceMean",
    "ReduceSum",
    "SequenceConstruct",
    "Sigmoid",
    "Sub",
]


_FLOATS = (
    onnx.TensorProto.FLOAT,
    onnx.TensorProto.DOUBLE,
    onnx.TensorProto.FLOAT16,
    onnx.TensorProto.BFLOAT16,
)


class Block(ABC):
    """Appends nodes to the model of the scope it is called in.

    Subclasses implement :meth:`build`, which edits ``self.base``, a ``ModelProto``, and returns the name of the
    value it made, or a tuple of names. After each call the whole model is checked by the package onnx, so what is
    wrong is told by the block that did it.

    Args:
        temp_file_name: a relative path, kept for scripts that give one; no file is written.
    """

    base: onnx.ModelProto | None = None

    def __init__(self, temp_file_name: str = "temp.onnx") -> None:
        if os.path.isabs(temp_file_name):
            raise RuntimeError("Please pass in a relative path for the temp_file_name.")
        self.temp_onnx_file_path = os.path.join(os.getcwd(), temp_file_name)

    @abstractmethod
    def build(self, *args: Any, **kwargs: Any) -> Any:
        """Edit ``self.base`` and return name(s) of values."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.base = _scope.accessor().model
        output = self.build(*args, **kwargs)
        onnx.checker.check_model(_graph_utils.structure(self.base), full_check=True)
        return output

    def infer_shapes_on_base(self) -> onnx.ModelProto:
        """The model with the types and shapes that inference finds."""
        if self.base is None:
            self.base = _scope.accessor().model
        _graph_utils.take_inferred(self.base)
        return self.base

    # ---- what blocks are made of ----

    def _append(self, op_type: str, inputs: list[str], token: str, domain: str = "", **attributes: Any) -> str:
        """A node with one output, which is returned; `token` is of the output's name."""
        assert self.base is not None
        output = _graph_utils.generate_graph_name(token)
        name = _graph_utils.generate_graph_name(op_type)
        self.base.graph.node.append(onnx.helper.make_node(op_type, inputs, [output], name, domain=domain, **attributes))
        return output

    def _tensor(self, name: str, values: Any, data_type: int) -> str:
        """An initializer."""
        assert self.base is not None
        array = np.asarray(values)
        self.base.graph.initializer.append(
            onnx.helper.make_tensor(name, data_type, array.shape, array.ravel().tolist())
        )
        return name

    def _number(self, token: str, number: float, like: str) -> str:
        """An initializer of shape [1], in the element type of the value `like` if that is a float type."""
        assert self.base is not None
        data_type = _graph_utils.element_type(self.base, like)
        if data_type not in _FLOATS:
            data_type = onnx.TensorProto.FLOAT
        return self._tensor(_graph_utils.generate_graph_name(token), [number], data_type)

    def _import(self, domain: str, version: int) -> None:
        assert self.base is not None
        if all(imported.domain != domain for imported in self.base.opset_import):
            self.base.opset_import.append(onnx.helper.make_opsetid(domain, version))


class _BinaryOp(Block):
    def __init__(self, op_name: str) -> None:
        super().__init__()
        self._op_name = op_name

    def build(self, input_name1: str, input_name2: str) -> str:
        return self._append(self._op_name, [input_name1, input_name2], f"{self._op_name.lower()}_output")


class Add(_BinaryOp):
    """a + b; these four broadcast."""

    def __init__(self) -> None:
        super().__init__("Add")


class Sub(_BinaryOp):
    """a - b."""

    def __init__(self) -> None:
        super().__init__("Sub")


class Mul(_BinaryOp):
    """a * b."""

    def __init__(self) -> None:
        super().__init__("Mul")


class Div(_BinaryOp):
    """a / b."""

    def __init__(self) -> None:
        super().__init__("Div")


class _UnaryOp(Block):
    def __init__(self, op_name: str, **attributes: Any) -> None:
        super().__init__()
        self._op_name = op_name
        self._attributes = attributes

    def build(self, input_name: str) -> str:
        return self._append(self._op_name, [input_name], f"{self._op_name.lower()}_output", **self._attributes)


class ReduceMean(_UnaryOp):
    """The mean of all elements; with `keepdims` it has the axes of the argument, of size 1."""

    def __init__(self, keepdims: bool = True) -> None:
        super().__init__("ReduceMean", keepdims=int(keepdims))


class ReduceSum(_UnaryOp):
    """The sum of all elements; with `keepdims` it has the axes of the argument, of size 1."""

    def __init__(self, keepdims: bool = True) -> None:
        super().__init__("ReduceSum", keepdims=int(keepdims))


class Sigmoid(_UnaryOp):
    """1 / (1 + exp(-x))."""

    def __init__(self) -> None:
        super().__init__("Sigmoid")


class Log(_UnaryOp):
    """The natural logarithm."""

    def __init__(self) -> None:
        super().__init__("Log")


class Neg(_UnaryOp):
    """-x."""

    def __init__(self) -> None:
        super().__init__("Neg")


class Abs(_UnaryOp):
    """abs(x), with the gradient 0 at 0."""

    def __init__(self) -> None:
        super().__init__("Abs")


class Pow(Block):
    """x ** exponent, with a constant exponent."""

    def __init__(self, exponent: float) -> None:
        super().__init__()
        self._exponent = exponent

    def build(self, pow_input_name: str) -> str:
        exponent = self._number("pow_exponent", self._exponent, pow_input_name)
        return self._append("Pow", [pow_input_name, exponent], "pow_output")


class Constant(Block):
    """An initializer f32 [1]; takes nothing, makes no node, returns its name."""

    def __init__(self, value_float: float) -> None:
        super().__init__()
        self._value_float = value_float

    def build(self) -> str:
        name = _graph_utils.generate_graph_name("initializer")
        return self._tensor(name, [self._value_float], onnx.TensorProto.FLOAT)


class SequenceConstruct(Block):
    """A sequence of the tensors."""

    def build(self, *sequence_input_names: str) -> str:
        return self._append("SequenceConstruct", list(sequence_input_names), "sequenceconstruct_output")


class ReduceAllL2(Block):
    """The square root of the sum of the squares of all elements of all tensors."""

    def build(self, *reduce_node_input_names: str) -> str:
        assert self.base is not None
        output = self._append("ReduceAllL2", list(reduce_node_input_names), "reducealll2_output", "com.microsoft")
        self._import("com.microsoft", 1)
        self.base.graph.value_info.append(onnx.helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, None))
        return output


class Clip(Block):
    """min(max(x, clip_min), clip_max); None: no bound."""

    def __init__(self, clip_min: float | None = None, clip_max: float | None = None) -> None:
        super().__init__()
        self._bounds = {"clip_min": clip_min, "clip_max": clip_max}

    def build(self, clip_input_name: str) -> str:
        assert self.base is not None
        inputs = [clip_input_name]
        data_type = _graph_utils.element_type(self.base, clip_input_name)
        for token, bound in self._bounds.items():
            # A scalar, as ONNX wants bounds.
            name = "" if bound is None else self._tensor(_graph_utils.generate_graph_name(token), bound, data_type)
            inputs.append(name)
        return self._append("Clip", inputs, "clip_output")


class PassThrough(Block):
    """Appends nothing; returns the names as a tuple."""

    def build(self, *input_names: str) -> tuple[str, ...]:
        return input_names


class InputLike(Block):
    """A new input of the graph with type and shape of another value.

    Args:
        like: an input or output of the graph, or another value whose type is known. LookupError: there is none.
    """

    def __init__(self, like: str) -> None:
        super().__init__()
        self._like = like

    def build(self, input_name: str | None = None) -> str:
        assert self.base is not None
        value_type = _graph_utils.find_type(self.base, self._like)
        if value_type is None:
            raise LookupError(f"Could not find input or output with name {self._like!r}, nor another value of it.")
        name = input_name or _graph_utils.generate_graph_name("input")
        self.base.graph.input.append(_graph_utils.like(value_type, name))
        return name


class LabelEncoder(Block):
    """ai.onnx.ml LabelEncoder: maps keys to values, and all else to a default."""

    def __init__(
        self,
        default_float: float = 0.0,
        default_int64: int = -1,
        default_string: str = "_Unused",
        keys_floats: list[float] | None = None,
        keys_int64s: list[int] | None = None,
        keys_strings: list[str] | None = None,
        values_floats: list[float] | None = None,
        values_int64s: list[int] | None = None,
        values_strings: list[str] | None = None,
    ) -> None:
        super().__init__()
        attributes = {
            "default_float": default_float,
            "default_int64": default_int64,
            "default_string": default_string,
            "keys_floats": keys_floats,
            "keys_int64s": keys_int64s,
            "keys_strings": keys_strings,
            "values_floats": values_floats,
            "values_int64s": values_int64s,
            "values_strings": values_strings,
        }
        self._attributes = {name: value for name, value in attributes.items() if value is not None}

    def build(self, label_encoder_input_name: str) -> str:
        self._import("ai.onnx.ml", 2)  # the first with keys and values of these types
        return self._append(
            "LabelEncoder", [label_encoder_input_name], "label_encoder.output", "ai.onnx.ml", **self._attributes
        )


class Cast(Block):
    """To an element type, as ``onnx.TensorProto.FLOAT``."""

    def __init__(self, to: int) -> None:
        super().__init__()
        self._to = to

    def build(self, cast_input_name: str) -> str:
        return self._append("Cast", [cast_input_name], "cast.output", to=self._to)


class Linear(Block):
    """alpha * x * W + beta * B, with new initializers W [in, out] and B [out], both drawn by numpy from a standard
    normal distribution (``numpy.random.seed`` repeats them)."""

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, alpha: float = 1.0, beta: float = 1.0
    ) -> None:
        super().__init__()
        self._in_features, self._out_features = in_features, out_features
        self._bias, self._alpha, self._beta = bias, alpha, beta

    def build(self, linear_input_name: str) -> str:
        assert self.base is not None
        inputs = [linear_input_name]
        shapes = {"linear.weight": (self._in_features, self._out_features), "linear.bias": (self._out_features,)}
        for token, shape in list(shapes.items())[: 1 + bool(self._bias)]:
            name = _graph_utils.generate_graph_name(token)
            drawn = np.random.randn(*shape).astype(np.float32)
            self.base.graph.initializer.append(onnx.numpy_helper.from_array(drawn, name))
            inputs.append(name)
        output = _graph_utils.generate_graph_name("linear.output")
        name = _graph_utils.generate_graph_name("linear")
        self.base.graph.node.append(
            onnx.helper.make_node("Gemm", inputs, [output], name, alpha=self._alpha, beta=self._beta)
        )
        return output
