# SPDX-License-Identifier: Apache-2.0
"""What a run tells before it begins: pairs of whether it is a warning, and the text."""

from __future__ import annotations

import warnings

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


def moments(state: _core.Checkpoint) -> list[tuple[bool, str]]:
    """Plain SGD goes on from any state; every other rule refuses the moments of another."""
    if "onnxtrain.optimizer" not in state.property_names():
        return []
    owner = state.get_property("onnxtrain.optimizer")
    text = f"the run was made with {owner}: sgd goes on from its parameters and does not use its moments"
    return [(False, text)]
