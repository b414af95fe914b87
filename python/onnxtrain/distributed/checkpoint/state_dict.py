# SPDX-License-Identifier: Apache-2.0
"""States of modules and optimizers by names, as ``torch.distributed.checkpoint.state_dict``.

model, optim = get_state_dict(module, optimizer)
set_state_dict(module, optimizer, model_state_dict=model, optim_state_dict=optim)

A model is an :class:`onnxtrain.api.Module`, an :class:`onnxtrain.orttrainer.ORTTrainer` that has made a step, or a list of
pairs of a name and one of these; the names then begin with that name and a dot.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Iterator, NamedTuple

import numpy as np

from onnxtrain import _arrays, _core
from onnxtrain.distributed import Comm, LocalShard, ShardedTensor, _comm
from onnxtrain.distributed.checkpoint import _models
from onnxtrain.distributed.checkpoint._models import Member

__all__ = [
    "StateDictOptions",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]

_MODEL, _OPTIMIZER = _models.MODEL, _models.OPTIMIZER
# OT_GATHER_*, OT_SCATTER_*, OT_STRICTNESS_*, OT_REPORT_* of the C headers
_GATHER_NONE, _GATHER_ROOT, _GATHER_ALL = 0, 1, 2
_SCATTER_SHARDED, _SCATTER_EACH, _SCATTER_ROOT = 0, 1, 2
_STRICT, _SUBSET = 0, 1
_MISSING, _UNEXPECTED = 0, 1


@dataclass
class StateDictOptions:
    """What a state dict has, and how it is set."""

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


class _IncompatibleKeys(NamedTuple):
    missing_keys: list[str]
    unexpected_keys: list[str]


# ---- what is given ----


def _checked(options: StateDictOptions | None) -> StateDictOptions:
    options = options if options is not None else StateDictOptions()
    if not hasattr(options, "full_state_dict"):
        raise _core.InvalidType(f"options is {type(options).__name__}, expected StateDictOptions")
    if options.broadcast_from_rank0 and not options.full_state_dict:
        raise _core.InvalidArgument("full_state_dict must be True when broadcast_from_rank0 is True")
    if options.dsd_fqn_modifiers != StateDictOptions.dsd_fqn_modifiers:
        raise _core.InvalidArgument("dsd_fqn_modifiers: models here have no modules that could rename parameters")
    return options


def _include(submodules: Iterable[str] | None) -> list[str] | None:
    if submodules is None:
        return None
    is_list = isinstance(submodules, Iterable) and not isinstance(submodules, str)
    if not is_list or not all(isinstance(one, str) for one in submodules):
        raise _core.InvalidType("submodules: expected beginnings of names or patterns, as a list or a set of str")
    return sorted(one if one.endswith(".") or "*" in one or "?" in one else f"{one}." for one in submodules)


def _call(
    sections: int, options: StateDictOptions, submodules: Iterable[str] | None = None, gathers: bool = False
) -> tuple[Any, ...]:
    gather, scatter = _GATHER_NONE, _SCATTER_SHARDED
    if options.full_state_dict:
        gather = _GATHER_ROOT if options.cpu_offload else _GATHER_ALL
        scatter = _SCATTER_ROOT if options.broadcast_from_rank0 else _SCATTER_EACH
    return (
        sections,
        gather if gathers else _GATHER_NONE,
        _SCATTER_SHARDED if gathers else scatter,
        options.ignore_frozen_params,
        options.flatten_optimizer_state_dict,
        _STRICT if options.strict else _SUBSET,
        _include(submodules),
        submodules is not None and not options.keep_submodule_prefixes,
    )


# ---- values ----


def _from_library(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _from_library(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_from_library(one) for one in value]
    if isinstance(value, tuple):
        number, size, parts = value
        shards = [LocalShard(at, _arrays.to_numpy(tensor)) for at, tensor in parts]
        return ShardedTensor(_arrays.numpy_dtype(number), size, shards)
    return _arrays.to_numpy(value) if isinstance(value, _core.Tensor) else value


def _is_dtensor(value: Any) -> bool:
    return hasattr(value, "placements") and hasattr(value, "to_local")


def _from_dtensor(value: Any, place: str, to_tensor: Callable[[Any, str], _core.Tensor]) -> Any:
    """What of a ``torch.distributed.tensor.DTensor`` is here, by its placements: the whole, or a part."""
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

    for placement in value.placements:
        if placement.is_partial():
            raise _core.InvalidArgument(
                f"{place} is a DTensor placed as {placement}, whose elements are not summed over the ranks yet, expected "
                "Shard and Replicate: redistribute() it first"
            )
    part = to_tensor(value.to_local().detach(), place)
    is_here = value.device_mesh.get_coordinate() is not None
    if is_here and all(placement.is_replicate() for placement in value.placements):
        return part
    _, offsets = compute_local_shape_and_global_offset(value.shape, value.device_mesh, value.placements)
    return (part.dtype, tuple(value.shape), [(tuple(offsets), part)] if is_here and 0 not in part.shape else [])


def _to_library(value: Any, place: str) -> Any:
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return value
    if isinstance(value, dict):
        return {key: _to_library(one, f"{place}[{key!r}]") for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_library(one, f"{place}[{i}]") for i, one in enumerate(value)]
    if isinstance(value, ShardedTensor):
        parts = [(at, _arrays.to_tensor(array, place)) for at, array in value.local_shards]
        return (_arrays.number_of(value.dtype), value.size(), parts)
    if isinstance(value, np.generic):
        return value.item()
    if _is_dtensor(value):
        return _from_dtensor(value, place, _arrays.to_tensor)
    return _arrays.to_tensor(value, place)


# ---- calls ----


def _get(
    model: Any, optimizers: Any, sections: int, submodules: Any, options: StateDictOptions | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    gathers = options is not None and getattr(options, "full_state_dict", True)  # else there are no messages
    with _comm.together(_models.ranks(model, optimizers) if gathers else None):
        checked = _checked(options)
        members = _models.members(model, optimizers, sections)
        states = []
        for prefix, owner, own in members:
            call = _call(own, checked, submodules, gathers=True)
            states.append((prefix, _from_library(owner.get_shards(call)) if own else {}))
    models, optims = _joined(states)
    has_optimizers = any(own & _OPTIMIZER for _, _, own in members)
    if sections & _OPTIMIZER and not has_optimizers and not checked.flatten_optimizer_state_dict:
        optims = {"state": {}, "param_groups": []}
    return models, optims


def _joined(states: list[tuple[str, dict[str, Any]]]) -> tuple[dict[str, Any], dict[str, Any]]:
    models: dict[str, Any] = {}
    optims: dict[str, Any] = {}
    for prefix, state in states:
        models |= _models.joined(prefix, state.get("model", {}), is_optimizer=False)
        optim = _models.joined(prefix, state.get("optim", {}), is_optimizer=True)
        if "state" in optim and optims:
            optims["state"] |= optim["state"]
            optims["param_groups"] += optim["param_groups"]
        else:
            optims |= optim
    return models, optims


def _of_all_ranks(names: list[str], comm: Comm | None) -> list[str]:
    if comm is None:
        return names
    told = [json.loads(one) for one in comm.all_gather(json.dumps(names).encode())]
    return list(dict.fromkeys(name for own in told for name in own))


@contextlib.contextmanager
def _told_of(prefix: str) -> Iterator[None]:
    """What fails meanwhile says which of several models it is about."""
    try:
        yield
    except _core.Error as error:
        if not prefix:
            raise
        raise type(error)(f"model {prefix[:-1]!r}: {error}") from None


def _set_together(
    members: list[Member],
    options: StateDictOptions,
    comm: Comm | None,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
) -> tuple[list[str], list[str]]:
    models = _models.Split(members, model_state_dict, is_optimizer=False)
    optims = _models.Split(members, optim_state_dict, is_optimizer=True)
    missing: list[str] = []
    unexpected = list(models.strangers)
    if len(members) > 1:
        unexpected = _of_all_ranks(models.strangers, comm)
        strangers = unexpected + _of_all_ranks(optims.strangers, comm)
        if strangers and options.strict:
            raise _core.InvalidArgument(f"the state does not fit: unexpected: {', '.join(map(repr, strangers))}")
    calls = []
    for prefix, owner, sections in members:
        state = {}
        if sections & _MODEL:
            state["model"] = models.parts[prefix]
        if sections & _OPTIMIZER:
            state["optim"] = optims.parts[prefix]
        if sections:
            calls.append((prefix, owner, _call(sections, options), _to_library(state, "the state")))
    if len(calls) > 1:  # all of them, or none
        for prefix, owner, call, state in calls:
            with _told_of(prefix):
                owner.set_shards(call, state, True)
    for prefix, owner, call, state in calls:
        with _told_of(prefix):
            report = owner.set_shards(call, state, False)
        missing += [prefix + name for section, name, _ in report[_MISSING] if section == _MODEL]
        unexpected += [prefix + name for section, name, _ in report[_UNEXPECTED] if section == _MODEL]
    return missing, unexpected


def _is_given(section: dict[str, Any], options: StateDictOptions, comm: Comm | None) -> bool:
    """Whether there is anything in it, of the rank that gives it."""
    if comm is None or not options.broadcast_from_rank0:
        return bool(section)
    return comm.broadcast(b"yes" if section else b"no") == b"yes"


def _set(
    model: Any,
    optimizers: Any,
    sections: int,
    options: StateDictOptions | None,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
) -> _IncompatibleKeys:
    comm = _models.ranks(model, optimizers)
    with _comm.together(comm):  # what is found here is told by all ranks, as what the library finds
        checked = _checked(options)
        if checked.broadcast_from_rank0 and comm is not None and comm.rank > 0:
            model_state_dict, optim_state_dict = {}, {}  # what is given there is not looked at
        if sections & _MODEL:
            _models.check_model(model_state_dict)
        if sections & _OPTIMIZER:
            _models.check_optimizer(optim_state_dict)
        if sections == _MODEL | _OPTIMIZER and not _is_given(model_state_dict, checked, comm):
            sections = _OPTIMIZER
        members = _models.members(model, optimizers, sections)
        missing, unexpected = _set_together(members, checked, comm, model_state_dict, optim_state_dict)
    return _IncompatibleKeys(missing, unexpected)


# ---- public ----


def get_model_state_dict(
    model: Any, *, submodules: Iterable[str] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """The parameters by name."""
    return _get(model, (), _MODEL, submodules, options)[0]


def get_optimizer_state_dict(
    model: Any, optimizers: Any, *, submodules: Iterable[str] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """What the optimizers keep of each parameter, and the groups of parameters."""
    return _get(model, optimizers, _OPTIMIZER, submodules, options)[1]


def get_state_dict(
    model: Any, optimizers: Any, *, submodules: Iterable[str] | None = None, options: StateDictOptions | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both."""
    return _get(model, optimizers, _MODEL | _OPTIMIZER, submodules, options)


def set_model_state_dict(
    model: Any, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> _IncompatibleKeys:
    """Take parameters over; the keys that were missing and unexpected, where ``strict`` lets them be."""
    return _set(model, (), _MODEL, options, model_state_dict, {})


def set_optimizer_state_dict(
    model: Any, optimizers: Any, optim_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> None:
    """Take the state of the optimizers over."""
    _set(model, optimizers, _OPTIMIZER, options, {}, optim_state_dict)


def set_state_dict(
    model: Any,
    optimizers: Any,
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> _IncompatibleKeys:
    """Both: all of it or, where something does not fit, nothing. Without parameters, the optimizers' alone."""
    return _set(model, optimizers, _MODEL | _OPTIMIZER, options, model_state_dict, optim_state_dict)
