# SPDX-License-Identifier: Apache-2.0
"""What a run tells before it begins: pairs of whether it is a warning, and the text."""

from __future__ import annotations

import warnings
from typing import Any, Mapping

from onnxtrain import _core


def tell(notes: list[tuple[bool, str]], is_shown: bool) -> None:
    """To the caller of the function that calls this."""
    for is_warning, text in notes:
        if is_warning:
            warnings.warn(text, stacklevel=3)
        elif is_shown:
            print(f"note: {text}")


def left_over(batches: _core.Batches | None, kind: str) -> list[tuple[bool, str]]:
    """Rows that no batch has, because the model takes one number of rows and no other."""
    if batches is None or batches.left_over == 0:
        return []
    size = (batches.rows - batches.left_over) // batches.count
    text = (
        f"{batches.left_over} of the {batches.rows} {kind} rows are left over and not used: "
        f"the model takes batches of {size} rows and no others"
    )
    return [(False, text)]


def moments(properties: Mapping[str, Any], optimizer: str, steps: int) -> list[tuple[bool, str]]:
    """Plain SGD goes on from any state; every other rule refuses the moments of another, and finds none after plain
    SGD. `properties` are those of the checkpoint that the run goes on from; one of another maker does not say."""
    owner = properties.get("onnxtrain.optimizer")
    if (optimizer == "sgd") == (owner is None) or "onnxtrain.epoch" not in properties:
        return []
    if owner is not None:
        return [(False, f"the run was made with {owner}: sgd goes on from its parameters and drops its moments")]
    text = f"the run was made with sgd: {optimizer} goes on from its parameters with new moments, after step {steps}"
    return [(False, text)]
