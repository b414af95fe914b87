# SPDX-License-Identifier: Apache-2.0
"""States of modules and optimizers by names, as ``torch.distributed.checkpoint.state_dict``.

model, optim = get_state_dict(module, optimizer)
set_state_dict(module, optimizer, model_state_dict=model, optim_state_dict=optim)

A model is an :class:`onnxtrain.api.Module`, an :class:`onnxtrain.orttrainer.ORTTrainer` that has made a step, or a list of
pairs of a name and one of these; the names then begin with that name and a dot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterable, NamedTuple

import numpy as np

from onnxtrain import _arrays, _core
from onnxtrain.api import Module, Optimizer
from onnxtrain.distributed import Comm, LocalShard, ShardedTensor, _comm
from onnxtrain.orttrainer import ORTTrainer

__all__ = [
    "StateDictOptions",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]

# OT_STATE_*, OT_GATHER_*, OT_SCATTER_*, OT_STRICTNESS_*, OT_REPORT_* of the C headers
_MODEL, _OPTIMIZER = 1, 2
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
    if options.broadcast_from_rank0 and not options.full_state_dict:
        raise _core.InvalidArgument("full_state_dict must be True when broadcast_from_rank0 is True")
    if options.dsd_fqn_modifiers != StateDictOptions.dsd_fqn_modifiers:
        raise _core.InvalidArgument("dsd_fqn_modifiers: models here have no modules that could rename parameters")
    return options


def _include(submodules: Iterable[str] | None) -> list[str] | None:
    if submodules is None:
        return None
    if isinstance(submodules, str) or not all(isinstance(one, str) for one in submodules):
        raise TypeError("submodules: expected beginnings of names or patterns, as a list or a set of str")
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


def _owner(model: Any) -> Any:
    """The library's object that has the state."""
    if isinstance(model, (Module, Optimizer)):
        return model._session
    if isinstance(model, ORTTrainer):
        if model._trainer is None:
            raise _core.StateError("the ORTTrainer has no state before its first step")
        return model._trainer
    raise TypeError(f"the model is {type(model).__name__}, expected a Module, an ORTTrainer or a list of pairs with one")


def _owners(model: Any) -> list[tuple[str, Any]]:
    """Pairs of what names begin with and an owner."""
    if isinstance(model, (list, tuple)):
        return [(f"{name}.", _owner(one)) for name, one in model]
    return [("", _owner(model))]


def _check_optimizers(owners: list[tuple[str, Any]], optimizers: Any) -> None:
    given = [optimizers] if isinstance(optimizers, (Optimizer, ORTTrainer)) else list(optimizers)
    if not given:
        raise _core.InvalidArgument("optimizers are not passed in but optim_only is set to True")
    known = [owner for _, owner in owners]
    for one in given:
        if _owner(one) not in known:
            raise _core.InvalidArgument("an optimizer is none of the model's")


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


def _from_dtensor(value: Any, place: str) -> Any:
    """The part of a ``torch.distributed.tensor.DTensor`` that is here, by its placements."""
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

    local = value.to_local()
    _, offsets = compute_local_shape_and_global_offset(value.shape, value.device_mesh, value.placements)
    part = _arrays.to_tensor(local.detach(), place)
    parts = [(tuple(offsets), part)] if local.numel() > 0 else []
    return (_arrays.number_of(_arrays.to_numpy(part).dtype), tuple(value.shape), parts)


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
    if hasattr(value, "placements") and hasattr(value, "to_local"):
        return _from_dtensor(value, place)
    return _arrays.to_tensor(value, place)


# ---- names of several models ----


def _joined(prefix: str, section: dict[str, Any], is_optimizer: bool) -> dict[str, Any]:
    if not prefix:
        return section
    if not is_optimizer:
        return {prefix + name: value for name, value in section.items()}
    if "state" not in section:
        heads = ("state.", "param_groups.")
        return {next(h + prefix + key[len(h) :] for h in heads if key.startswith(h)): v for key, v in section.items()}
    groups = [{**group, "params": [prefix + name for name in group["params"]]} for group in section["param_groups"]]
    return {"state": {prefix + name: value for name, value in section["state"].items()}, "param_groups": groups}


def _own(names: Iterable[str], prefix: str) -> dict[str, str]:
    """Which of the names are those of a model, and how it calls them."""
    return {name: name[len(prefix) :] for name in names if name.startswith(prefix)}


def _strangers(section: dict[str, Any], prefixes: list[str]) -> list[str]:
    """Names of an optimizer's state that are none of the models'."""
    heads = ("",) if "state" in section else ("state.", "param_groups.")
    names = section.get("state", section)
    return [name for name in names if not any(name.startswith(head + one) for head in heads for one in prefixes)]


def _part(section: dict[str, Any], prefix: str, is_optimizer: bool) -> dict[str, Any]:
    """What a model of several is given."""
    if not prefix or not section:
        return section
    if not is_optimizer:
        own = _own(section, prefix)
        return {own[name]: value for name, value in section.items() if name in own}
    if "state" not in section:
        found = {}
        for head in ("state.", "param_groups."):
            of = {key[len(head) :]: value for key, value in section.items() if key.startswith(head)}
            own = _own(of, prefix)
            found |= {head + own[name]: value for name, value in of.items() if name in own}
        return found
    own = _own(section["state"], prefix)
    groups = []
    for group in section["param_groups"]:
        names = _own(group["params"], prefix)
        if names or not group["params"]:
            groups.append({**group, "params": [names[name] for name in group["params"] if name in names]})
    return {"state": {own[n]: v for n, v in section["state"].items() if n in own}, "param_groups": groups}


def _get(model: Any, sections: int, submodules: Any, options: StateDictOptions | None) -> tuple[dict, dict]:
    call = _call(sections, _checked(options), submodules, gathers=True)
    models: dict[str, Any] = {}
    optims: dict[str, Any] = {}
    for prefix, owner in _owners(model):
        state = _from_library(owner.get_shards(call))
        models |= _joined(prefix, state.get("model", {}), is_optimizer=False)
        optim = _joined(prefix, state.get("optim", {}), is_optimizer=True)
        if "state" in optim and optims:
            optims["state"] |= optim["state"]
            optims["param_groups"] += optim["param_groups"]
        else:
            optims |= optim
    return models, optims


def _ranks(model: Any) -> Comm | None:
    """Those that a model is trained by; None: this process alone."""
    first = model[0][1] if isinstance(model, (list, tuple)) and model else model
    comm = getattr(first, "_comm", None)
    return comm if comm is not None and comm.world_size > 1 else None


def _set_together(
    owners: list[tuple[str, Any]],
    sections: int,
    options: StateDictOptions,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
) -> tuple[list[str], list[str]]:
    call = _call(sections, options)
    prefixes = [prefix for prefix, _ in owners]
    missing: list[str] = []
    unexpected = [name for name in model_state_dict if not any(name.startswith(one) for one in prefixes)]
    strangers = unexpected + (_strangers(optim_state_dict, prefixes) if sections & _OPTIMIZER else [])
    if strangers and options.strict:
        raise _core.InvalidArgument(f"the state does not fit: unexpected: {', '.join(map(repr, strangers))}")
    states = []
    for prefix, owner in owners:
        state = {}
        if sections & _MODEL:
            state["model"] = _part(model_state_dict, prefix, is_optimizer=False)
        if sections & _OPTIMIZER:
            state["optim"] = _part(optim_state_dict, prefix, is_optimizer=True)
        states.append((prefix, owner, _to_library(state, "the state")))
    if len(states) > 1:  # all of them, or none
        for _, owner, state in states:
            owner.set_shards(call, state, True)
    for prefix, owner, state in states:
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
    sections: int,
    options: StateDictOptions | None,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
) -> _IncompatibleKeys:
    comm = _ranks(model)
    with _comm.together(comm):  # what is found here is told by all ranks, as what the library finds
        checked = _checked(options)
        if sections == _MODEL | _OPTIMIZER and not _is_given(model_state_dict, checked, comm):
            sections = _OPTIMIZER
        missing, unexpected = _set_together(_owners(model), sections, checked, model_state_dict, optim_state_dict)
    return _IncompatibleKeys(missing, unexpected)


# ---- public ----


def get_model_state_dict(
    model: Any, *, submodules: Iterable[str] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """The parameters by name."""
    return _get(model, _MODEL, submodules, options)[0]


def get_optimizer_state_dict(
    model: Any, optimizers: Any, *, submodules: Iterable[str] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """What the optimizers keep of each parameter, and the groups of parameters."""
    _check_optimizers(_owners(model), optimizers)
    return _get(model, _OPTIMIZER, submodules, options)[1]


def get_state_dict(
    model: Any, optimizers: Any, *, submodules: Iterable[str] | None = None, options: StateDictOptions | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both."""
    _check_optimizers(_owners(model), optimizers)
    return _get(model, _MODEL | _OPTIMIZER, submodules, options)


def set_model_state_dict(
    model: Any, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> _IncompatibleKeys:
    """Take parameters over; the keys that were missing and unexpected, where ``strict`` lets them be."""
    return _set(model, _MODEL, options, model_state_dict, {})


def set_optimizer_state_dict(
    model: Any, optimizers: Any, optim_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> None:
    """Take the state of the optimizers over."""
    _check_optimizers(_owners(model), optimizers)
    _set(model, _OPTIMIZER, options, {}, optim_state_dict)


def set_state_dict(
    model: Any,
    optimizers: Any,
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> _IncompatibleKeys:
    """Both: all of it or, where something does not fit, nothing. Without parameters, the optimizers' alone."""
    _check_optimizers(_owners(model), optimizers)
    return _set(model, _MODEL | _OPTIMIZER, options, model_state_dict, optim_state_dict)
