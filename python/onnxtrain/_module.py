# SPDX-License-Identifier: Apache-2.0
"""What of a framework's module trains, by the names and the elements that a model has of it."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from onnxtrain import _arrays, _core


def _named(module: Any, what: str) -> list[tuple[str, Any]]:
    """Parameters or buffers; one that the module has under several names under each of them."""
    listed = getattr(module, what, None)
    if not callable(listed):
        raise _core.InvalidType(f"module is {type(module).__name__}, expected a torch.nn.Module: it has no {what}()")
    try:
        return list(listed(remove_duplicate=False))
    except TypeError:
        return list(listed())


def _elements(parameter: Any) -> np.ndarray:
    """Of a parameter on any device."""
    own = parameter.detach().cpu() if hasattr(parameter, "detach") else parameter
    return _arrays.to_numpy(_arrays.to_tensor(own))


def _is_same(stored: np.ndarray, wanted: np.ndarray) -> bool:
    """An exporter that folds constants stores what it multiplies by as it is, or transposed."""
    return any(stored.shape == w.shape and np.array_equal(stored, w) for w in (wanted, wanted.T))


def _stand_ins(forward: _core.Model, missing: dict[str, Any], known: set[str]) -> dict[str, str]:
    """By parameters that are missing: the only initializer with another name that has its elements."""
    rest = [name for name in forward.initializer_names() if name not in known]
    stored = {name: forward.initializer(name) for name in rest if len(forward.value_info(name)[1] or ()) == 2}
    found: dict[str, str] = {}
    for missing_name, parameter in missing.items():
        if len(getattr(parameter, "shape", ())) != 2:
            continue
        wanted = _elements(parameter)
        same = [name for name, tensor in stored.items() if _is_same(_arrays.to_numpy(tensor), wanted)]
        if len(same) == 1 and np.ptp(wanted) > 0:
            found[missing_name] = same[0]
    return found


def _names_of(forward: _core.Model, module: Any) -> tuple[list[str], list[str]]:
    """What of a module trains and what does not. What is missing comes first, since a message names it."""
    parameters, buffers = _named(module, "named_parameters"), _named(module, "named_buffers")
    stored = set(forward.initializer_names())
    aliases: dict[int, list[str]] = {}
    for name, parameter in parameters:
        aliases.setdefault(id(parameter), []).append(name)
    present, missing = [], {}
    for name, parameter in parameters:
        names = aliases[id(parameter)]
        others = [other for other in names if other in stored]
        if not parameter.requires_grad or name not in (others or names[:1]):
            continue
        if others:
            present.append(name)
        else:
            missing[name] = parameter
    known = {name for name, _ in [*parameters, *buffers]}
    frozen = [name for name, p in parameters if not p.requires_grad] + [name for name, _ in buffers]
    found = _stand_ins(forward, missing, known) if missing else {}
    lost = [name for name in missing if name not in found]
    return [*lost, *found, *found.values(), *present], frozen


def choose(
    forward: _core.Model, trainable: Sequence[str] | None, frozen: Sequence[str] | None, module: Any
) -> tuple[Sequence[str] | None, Sequence[str] | None]:
    """What is named as `trainable` and `frozen`, or what `module` says instead: it has named_parameters() and
    named_buffers(), as a torch.nn.Module."""
    if module is None:
        return trainable, frozen
    if trainable is not None or frozen is not None:
        raise _core.InvalidArgument("module says what trains: trainable and frozen exclude it")
    return _names_of(forward, module)
