# SPDX-License-Identifier: Apache-2.0
"""Artifacts with the defaults of ONNX Runtime training."""

from __future__ import annotations

from onnxtrain import _core

_BATCH_STATISTICS = 1  # ot_batch_norm of the C headers


def build(
    forward: _core.Model,
    losses: list[tuple],
    requires_grad: list[str] | None,
    frozen_params: list[str] | None,
    additional_output_names: list[str] | None = None,
    optimizer: str | None = None,
    ort_format: bool = False,
    standard_ops: bool = False,
) -> _core.Artifacts:
    """Without losses the model's first output is the loss. Names that are frozen and that the model lacks do not
    matter; names that require a gradient may be those of inputs. Masks and what the file calls buffers train like other
    initializers, and the model is taken as it is: what there is to say of it goes to the log. Metadata say nothing of
    the loss or the data."""
    return _core.Artifacts.generate(
        forward,
        losses,
        (optimizer, [], 0.0),
        requires_grad,
        frozen_params,
        additional_output_names,
        _BATCH_STATISTICS,
        True,
        0,
        None,
        bool(ort_format),
        True,
        True,
        False,
        None,
        False,
        True,
        False,
        0,
        bool(standard_ops),
    )
