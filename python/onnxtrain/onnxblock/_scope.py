# SPDX-License-Identifier: Apache-2.0
"""The model that blocks edit: one at a time in each thread."""

from __future__ import annotations

import os
import re
import threading
from contextlib import contextmanager
from typing import Iterator

import onnx

_COUNTED = re.compile(r"onnx::.*::(\d+)$")


class ModelAccessor:
    """What :func:`base` and :func:`empty_base` give: the model that is being edited."""

    def __init__(self, model: onnx.ModelProto, model_path: str | None = None) -> None:
        self._model = model
        self._path = model_path
        self._counter: int | None = None

    @property
    def model(self) -> onnx.ModelProto:
        """The edited model; after a :class:`TrainingBlock` has been called, the training model."""
        return self._model

    @property
    def path(self) -> str:
        """The file the model came from; RuntimeError when none was given."""
        if self._path is None:
            raise RuntimeError("The path of the onnx model is not known: onnxblock.base(model, model_path) sets it.")
        return self._path

    @property
    def has_path(self) -> bool:
        return self._path is not None

    @property
    def folder(self) -> str | None:
        """Where external data of the model lies."""
        return None if self._path is None else os.path.dirname(os.path.abspath(self._path))

    def next_number(self) -> int:
        """For a generated name. Counted per scope, so that the same program makes the same bytes whatever was built
        before in the process; from what blocks have put into the model earlier on, so that names stay unique."""
        if self._counter is None:
            graph = self._model.graph
            names = [value.name for value in (*graph.input, *graph.initializer)]
            for node in graph.node:
                names += [node.name, *node.output]
            found = (_COUNTED.match(name) for name in names)
            self._counter = max((int(match[1]) for match in found if match), default=0)
        self._counter += 1
        return self._counter


class _Present(threading.local):
    accessor: ModelAccessor | None = None
    custom_op_library: str | None = None
    outside = 0  # names generated outside any scope


_present = _Present()


def accessor() -> ModelAccessor:
    if _present.accessor is None:
        raise RuntimeError(
            "There is no model to edit: call blocks inside `with onnxblock.base(model):` or `onnxblock.empty_base():`."
        )
    return _present.accessor


def present() -> ModelAccessor | None:
    return _present.accessor


def generate_name(token: str) -> str:
    if _present.accessor is not None:
        return f"onnx::{token}::{_present.accessor.next_number()}"
    _present.outside += 1
    return f"onnx::{token}::0.{_present.outside}"  # no scope's counter makes such a one


@contextmanager
def _scope(made: ModelAccessor) -> Iterator[ModelAccessor]:
    _present.accessor = made
    try:
        yield made
    finally:
        _present.accessor = None


def _refuse_second() -> None:
    if _present.accessor is not None:
        raise RuntimeError("A base onnx model already exists: leave the first scope before a second one is entered.")


@contextmanager
def base(model: onnx.ModelProto, model_path: str | None = None) -> Iterator[ModelAccessor]:
    """A scope in which blocks edit a copy of `model`.

    Args:
        model: stays as it is.
        model_path: where it was loaded from; external data is looked for beside it.

    Raises:
        RuntimeError: there is no model, or another scope is open in this thread.
    """
    _refuse_second()
    if model is None:
        raise RuntimeError("The base onnx model cannot be None; onnxblock.empty_base() begins from nothing.")
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    with _scope(ModelAccessor(copy, None if model_path is None else os.fspath(model_path))) as made:
        yield made


@contextmanager
def empty_base(opset_version: int | None = None) -> Iterator[ModelAccessor]:
    """A scope in which blocks build a model from nothing.

    Args:
        opset_version: of ONNX's own operators; None: the newest that the package onnx knows.
    """
    _refuse_second()
    imports = [
        onnx.helper.make_opsetid("com.microsoft", 1),
        onnx.helper.make_opsetid("", opset_version or onnx.defs.onnx_opset_version()),
    ]
    graph = onnx.helper.make_graph([], "graph", [], [])
    model = onnx.helper.make_model(graph, opset_imports=imports, producer_name="orttraining")
    # The version that came with the opset: what reads the one reads the other.
    model.ir_version = max(onnx.helper.find_min_ir_version_for([imports[1]]), 7)
    with _scope(ModelAccessor(model)) as made:
        yield made


@contextmanager
def custom_op_library(custom_op_library_path: str | os.PathLike) -> Iterator[str]:
    """A scope for models with operators of a library.

    The library is not opened: nodes of operators that are not known stay as they are, and no gradient may have to
    pass them.

    Raises:
        RuntimeError: there is no such file, or another library's scope is open in this thread.
    """
    if _present.custom_op_library is not None:
        raise RuntimeError("A custom op library is set already: leave its scope before another one is entered.")
    if not os.path.exists(custom_op_library_path):
        raise RuntimeError(f"Custom op library path {os.fspath(custom_op_library_path)!r} does not exist.")
    _present.custom_op_library = os.fspath(custom_op_library_path)
    try:
        yield _present.custom_op_library
    finally:
        _present.custom_op_library = None
