# SPDX-License-Identifier: Apache-2.0
"""Whether a model can be trained, and what is in the way."""

from __future__ import annotations

import dataclasses
from typing import Any, Sequence

from onnxtrain import _core, _module, _record
from onnxtrain._options import BATCH_NORMS, choose, load_model
from onnxtrain._ort_value import type_text
from onnxtrain._prepare import shared_names

_NO_OPTIMIZER: tuple = (None, [], 0.0)


@dataclasses.dataclass(frozen=True)
class ParameterReport:
    """Why an initializer trains or does not.

    Attributes:
        name, type, shape: of the initializer; the type as ONNX writes it, extents that are not known are -1.
        role: "trains", "frozen": kept in the checkpoint without gradient; "constant": of the models; "blocked": would
            train, but for an operator in the way.
        is_initializer: False: the value of a Constant node, which never trains.
        is_folded: by its name, an exporter computed it from parameters that are gone.
        reason: why.
    """

    name: str
    type: str
    shape: tuple[int, ...] | None
    role: str
    is_initializer: bool
    is_folded: bool
    reason: str


@dataclasses.dataclass(frozen=True)
class Report:
    """What :func:`check` returns; as a text it is what the command prints.

    Attributes:
        can_train: whether the model can be trained as it is.
        parameters: every initializer.
        problems: what is in the way.
        notes: what looks wrong, but trains.
    """

    can_train: bool
    parameters: list[ParameterReport]
    problems: list[str]
    notes: list[str]

    def __str__(self) -> str:
        lines = [
            f"{one.role:<8} {one.name} {one.type}{list(one.shape or ())}: {one.reason}"
            + (", folded by an exporter" if one.is_folded else "")
            for one in self.parameters
        ]
        lines += [f"note     {text}" for text in self.notes] + [f"problem  {text}" for text in self.problems]
        lines.append("the model can be trained" if self.can_train else "the model cannot be trained as it is")
        return "\n".join(lines)


def _parameter(row: tuple) -> ParameterReport:
    name, (dtype, shape), trains, is_frozen, is_blocked, is_initializer, is_folded, reason = row
    role = "trains" if trains else "blocked" if is_blocked else "frozen" if is_frozen else "constant"
    return ParameterReport(name, type_text(dtype), shape, role, bool(is_initializer), bool(is_folded), reason)


def check(
    model: Any,
    *,
    loss: Any = None,
    loss_input: str | None = None,
    target: str | None = None,
    trainable: Sequence[str] | None = None,
    frozen: Sequence[str] | None = None,
    module: Any = None,
    batch_norm: str = "auto",
    shared: str | Sequence[str] | None = None,
    ignore_recorded: bool = False,
) -> Report:
    """Say whether a model can be trained, what trains, what does not and why, without building it.

        print(onnxtrain.check("model.onnx"))

    Args:
        model: the forward model: a path, the bytes of a file or an onnx.ModelProto.
        loss, loss_input, target, trainable, frozen, module, batch_norm, shared, ignore_recorded: as of
            :func:`onnxtrain.train`.
    """
    forward = load_model(model)
    record = None if ignore_recorded else _core.Record.read(forward)
    given = dict.fromkeys(("reduction", "class_weights", "ignore_index", "class_axis"))
    given.update(loss=loss, loss_input=loss_input, target=target)
    losses, additional = _record.losses(record, given, forward.output_names())
    statistics = choose("batch_norm", batch_norm, BATCH_NORMS)
    names = _module.choose(forward, trainable, frozen, module)
    can_train, parameters, problems, notes = _core.report(
        forward,
        losses,
        _NO_OPTIMIZER,
        *names,
        additional,
        statistics,
        False,
        0,
        None,
        False,
        False,
        False,
        module is not None,
        shared_names(shared),
    )
    return Report(bool(can_train), [_parameter(row) for row in parameters], problems, notes)
