# SPDX-License-Identifier: Apache-2.0
"""What a model's metadata say of its training, beside what the caller says."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator, Mapping, NamedTuple, Sequence

from onnxtrain import _core, _losses

_NONE, _CUSTOM = 0, 5  # ot_loss of the C headers


class Preparation(NamedTuple):
    """What is done with the features, and the names of the classes."""

    scale: float
    mean: Sequence[float] | None
    std: Sequence[float] | None
    classes: list[str] | None


@contextlib.contextmanager
def _remedy() -> Iterator[None]:
    try:
        yield
    except _core.InvalidArgument as error:
        raise _core.InvalidArgument(f"{error}; ignore_recorded=True takes what is given") from None


def _given_terms(recorded: list[tuple], given: Mapping[str, Any], outputs: list[str]) -> list[tuple] | None:
    names = given["loss_input"], given["target"]
    if given["loss"] is not None:
        terms, _ = _losses.parse(given["loss"], *names, None, None, None, None, outputs)
        return terms or [(_NONE, 1.0, None, None, 0)]
    if names == (None, None):
        return None
    if len(recorded) > 1:
        raise _core.InvalidArgument("loss_input and target are of a single loss; terms have their own")
    return [(*recorded[0][:2], *names, 0)]


def losses(
    record: _core.Record | None, given: Mapping[str, Any], outputs: list[str]
) -> tuple[list[tuple], list[str]]:
    """As :func:`onnxtrain._losses.parse` of what the caller says, and of what he does not say as it is recorded."""
    told = [given[name] for name in ("reduction", "class_weights", "ignore_index", "class_axis")]
    recorded = [] if record is None else record.losses()
    if record is None or not recorded:
        loss = "cross-entropy" if given["loss"] is None else given["loss"]
        return _losses.parse(loss, given["loss_input"], given["target"], *told, outputs)
    terms = _given_terms(recorded, given, outputs)
    how, weights = _losses.reduction_of(told[0]), _losses.weights_of(told[1])
    with _remedy():
        record.check(terms, None if told[0] is None else how, weights, *told[2:], None, None, None)
    taken = []
    for i, term in enumerate(recorded):
        custom = terms[i][7] if terms is not None and term[0] == _CUSTOM else None
        if term[0] == _CUSTOM and custom is None:
            raise _core.InvalidArgument("the model was trained with a loss of its own, which `loss` says")
        name = None if term[0] == _NONE and term[2] == outputs[0] else term[2]
        taken.append((*term[:2], name, *term[3:7], custom, term[8]))
    return _losses.with_outputs(taken, outputs)


def preparation(
    record: _core.Record | None, scale: float | None, mean: Sequence[float] | None, std: Sequence[float] | None
) -> Preparation:
    """What the caller says, and what he does not say as it is recorded."""
    usual = Preparation(1.0 if scale is None else scale, mean, std, None)
    if record is None:
        return usual
    with _remedy():
        record.check(None, None, None, None, None, scale, mean, std)
    recorded = record.data()
    return usual._replace(classes=recorded[3]) if recorded[0] is None else Preparation(*recorded)
