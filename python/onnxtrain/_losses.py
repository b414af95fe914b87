# SPDX-License-Identifier: Apache-2.0
"""Losses as they are given to train() and check(), and as the library takes them."""

from __future__ import annotations

import os
from typing import Any, Mapping, NamedTuple, Sequence

import numpy as np

from onnxtrain import _arrays, _core
from onnxtrain._options import choose, load_model

# ot_loss and ot_reduction of the C headers
_KINDS = {"none": 0, "cross-entropy": 1, "mse": 2, "l1": 3, "bce-with-logits": 4}
_CROSS_ENTROPY, _CUSTOM = 1, 5
_REDUCTIONS = {"mean": 0, "sum": 1, "none": 2}
_NONE = (0, 1.0, None, None)


def _is_model(loss: Any) -> bool:
    if isinstance(loss, str):
        return loss.endswith((".onnx", ".onnxtxt"))
    return isinstance(loss, (os.PathLike, bytes, bytearray, memoryview)) or hasattr(loss, "SerializeToString")


class _Term(NamedTuple):
    kind: int
    weight: float
    input: str | None
    target: str | None
    custom: _core.Model | None


def _term(given: Any) -> _Term:
    """A loss, (loss, weight), or a dict with loss and perhaps weight, input and target."""
    if isinstance(given, tuple) and len(given) == 2:
        given = {"loss": given[0], "weight": given[1]}
    if not isinstance(given, Mapping):
        given = {"loss": given}
    unknown = sorted(set(given) - {"loss", "weight", "input", "target"})
    if unknown or "loss" not in given:
        what = f"has '{unknown[0]}'" if unknown else "lacks 'loss'"
        raise _core.InvalidArgument(f"a term of the loss {what}, expected loss and perhaps weight, input and target")
    loss = given["loss"]
    custom = load_model(loss) if _is_model(loss) else None
    kind = _CUSTOM if custom is not None else choose("loss", loss, _KINDS)
    return _Term(kind, float(given.get("weight", 1.0)), given.get("input"), given.get("target"), custom)


def _terms(loss: Any, loss_input: str | None, target: str | None) -> list[_Term]:
    terms = [_term(one) for one in loss] if isinstance(loss, list) else [_term(loss)]
    if not terms:
        raise _core.InvalidArgument("loss: the list is empty")
    if loss_input is not None or target is not None:
        if len(terms) > 1 or terms[0].input is not None or terms[0].target is not None:
            raise _core.InvalidArgument("loss_input and target are of a single loss; terms have their own")
        terms[0] = terms[0]._replace(input=loss_input, target=target)
    return terms


def reduction_of(name: str | None) -> int:
    return _REDUCTIONS["mean"] if name is None else choose("reduction", name, _REDUCTIONS)


def weights_of(class_weights: Sequence[float] | None) -> _core.Tensor | None:
    return None if class_weights is None else _arrays.to_tensor(np.asarray(class_weights, np.float32))


def with_outputs(rows: list[tuple], outputs: list[str]) -> tuple[list[tuple], list[str]]:
    """The terms, none when the first output is the loss, and the values that models give beside it."""
    if len(rows) == 1 and rows[0][:4] == _NONE:
        return [], []
    scores = rows[0][2] or outputs[0]
    return rows, [scores, *(name for name in outputs if name != scores)]


def parse(
    loss: Any,
    loss_input: str | None,
    target: str | None,
    reduction: str | None,
    class_weights: Sequence[float] | None,
    ignore_index: int | None,
    class_axis: int | None,
    outputs: list[str],
) -> tuple[list[tuple], list[str]]:
    """What :func:`onnxtrain.train` is told of its loss.

    Returns:
        The terms, none when the model's first output is the loss; and the values that training and eval model give
        beside it: what the first term takes, by which metrics go, and the `outputs` of the forward model, which the
        trained one would lack else.
    """
    terms = _terms(loss, loss_input, target)
    how, weights = reduction_of(reduction), weights_of(class_weights)
    class_axis = 1 if class_axis is None else class_axis
    if class_axis not in (1, -1):
        raise _core.InvalidArgument(f"class_axis {class_axis}, expected 1, or -1: the last")
    is_told = weights is not None or ignore_index is not None or class_axis != 1
    if is_told and all(one.kind != _CROSS_ENTROPY for one in terms):
        raise _core.InvalidArgument("class_weights, ignore_index and class_axis are of cross-entropy, which no loss is")
    rows = []
    for one in terms:
        classes = (weights, ignore_index) if one.kind == _CROSS_ENTROPY else (None, None)
        rows.append((one.kind, one.weight, one.input, one.target, how, *classes, one.custom, class_axis))
    return with_outputs(rows, outputs)
