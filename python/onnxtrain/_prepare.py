# SPDX-License-Identifier: Apache-2.0
"""Models put right before training."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Any, Sequence

from onnxtrain import _core
from onnxtrain._options import ModelLike, load_model

if TYPE_CHECKING:
    import onnx

_LOG = logging.getLogger("onnxtrain")


def shared_names(shared: str | Sequence[str] | None) -> Sequence[str] | None:
    """The list of names; a name alone is a list of it."""
    return [shared] if isinstance(shared, str) else shared


def prepare(
    model: ModelLike, *, shared: str | Sequence[str] | None = None, output: str | os.PathLike | None = None
) -> onnx.ModelProto | None:
    """The model with its parameters as they were before the export.

    Exporters make one tensor of parameters whose values are equal, such as the ones and zeros of fresh layers, and two
    of one that they fold. :func:`onnxtrain.train` and :func:`onnxtrain.check` put that right by themselves;
    :mod:`onnxtrain.artifacts` and :mod:`onnxtrain.onnxblock` take a model as it is, as ONNX Runtime does, and log what
    this function would change:

        generate_artifacts(onnxtrain.prepare("model.onnx"), ...)

    What was changed and what was left is logged by the logger "onnxtrain".

    Args:
        model: a path, the bytes of a file or an onnx.ModelProto; it stays as it is.
        shared: names of tensors, with * and ?, that stay as the file shares them; "keep": all.
        output: a file to write the result to.

    Returns:
        The result, which needs the package onnx; None with `output`.

    Raises:
        NotFound: a name in `shared` is that of no tensor that would be separated or joined.
    """
    right, findings = load_model(model).prepare(shared_names(shared))
    for _, text in findings:
        _LOG.info("%s", text)
    if output is not None:
        right.save(os.fspath(output))
        return None
    return _proto(right, model)


def _proto(model: _core.Model, given: Any) -> onnx.ModelProto:
    """Of the class of what was given, where that is such an object."""
    kind = type(given)
    if not hasattr(given, "SerializeToString"):
        try:
            from onnx import ModelProto as kind
        except ImportError as error:
            raise ImportError("prepare() gives a ModelProto, which needs the package onnx; or name an output") from error
    return kind.FromString(model.to_bytes().to_bytes())
