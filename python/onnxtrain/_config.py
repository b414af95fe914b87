# SPDX-License-Identifier: Apache-2.0
"""Options and descriptions on their way to the library, which checks them: JSON there, what is wrong with them back."""

from __future__ import annotations

import json
import math
from typing import Any, Mapping

from onnxtrain import _core


def _with_indices(payload: Any) -> Any:
    """Names of what is wrong; elements of lists by their numbers."""
    if isinstance(payload, list):
        return [_with_indices(item) for item in payload]
    if not isinstance(payload, dict):
        return payload
    return {int(key) if key.isdigit() else key: _with_indices(value) for key, value in payload.items()}


def encodable(value: Any) -> Any:
    """The value as JSON has it; what JSON has no word for becomes something that no option takes."""
    if isinstance(value, Mapping):
        return {str(key): encodable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encodable(item) for item in value]
    is_plain = value is None or isinstance(value, (bool, int, str))
    is_finite = isinstance(value, float) and math.isfinite(value)
    return value if is_plain or is_finite else [[repr(value)]]


def check(section: str, tree: Any) -> dict[str, Any]:
    """A section of a configuration with all that it leaves out.

    Args:
        section: "options" or "model_desc".
        tree: what :func:`encodable` gave.

    Raises:
        InvalidArgument: names all that is wrong, nested as the section is.
    """
    wrong, text = _core.config_check(json.dumps({section: tree}))
    if wrong is not None:
        payload = json.loads(wrong)[section]
        of_section = payload[0] if isinstance(payload[0], dict) else payload
        reason = _core.InvalidArgument(text)  # in words, and what was probably meant
        raise _core.InvalidArgument(f"Invalid {section}: {_with_indices(of_section)}") from reason
    return json.loads(text)[section]
