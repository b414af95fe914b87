# SPDX-License-Identifier: Apache-2.0
"""The models and optimizers of a call on their state, and which names of a state are whose."""

from __future__ import annotations

from typing import Any, Iterable, NamedTuple, Sequence

from onnxtrain import _core
from onnxtrain.api import Module, Optimizer
from onnxtrain.distributed import Comm, _comm
from onnxtrain.orttrainer import ORTTrainer

MODEL, OPTIMIZER = 1, 2  # OT_STATE_* of the C headers
_LOCAL = (0, 0, False, False, 0, None, False)  # a get without messages; the sections come first
_HEADS = ("state.", "param_groups.")  # of keys of a flat form
_KINDS = (Module, Optimizer, ORTTrainer)


class Member(NamedTuple):
    """A model of a call."""

    prefix: str  # what its names begin with
    owner: Any  # the library's object that has the state
    sections: int  # what of it the call is about


# ---- what is given ----


def ranks(model: Any, optimizers: Any) -> Comm | None:
    """Those that train what is given, whatever is wrong with it; None: this process alone."""
    given = [one[-1] if isinstance(one, (list, tuple)) and one else one for one in _listed(model)]
    known = [one for one in given + _listed(optimizers) if isinstance(one, _KINDS)]
    found = [one._comm for one in known if one._comm is not None and one._comm.world_size > 1]
    if known:
        return found[0] if found else None
    return _comm.job()


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (list, tuple)) else [given]


def _owner(one: Any, what: str, expected: str) -> Any:
    if isinstance(one, (Module, Optimizer)):
        return one._session
    if isinstance(one, ORTTrainer):
        if one._trainer is None:
            raise _core.StateError("the ORTTrainer has no state before its first step")
        return one._trainer
    raise _core.InvalidType(f"{what} is {type(one).__name__}, expected {expected}")


def _named(model: Any) -> list[tuple[str, Any]]:
    """Pairs of what names begin with and an owner."""
    expected = "a Module, an ORTTrainer or a list of pairs with one"
    if not isinstance(model, (list, tuple)):
        return [("", _owner(model, "the model", expected))]
    for pair in model:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not isinstance(pair[0], str):
            raise _core.InvalidType("models: expected a list of pairs (name, model)")
    names = [name for name, _ in model]
    for name in names:
        if names.count(name) > 1:
            raise _core.InvalidArgument(f"models: {names.count(name)} of them have the name {name!r}, expected a name for each")
    if not names:
        raise _core.InvalidArgument("models: the list is empty, expected pairs (name, model)")
    return [(f"{name}.", _owner(one, f"the model {name!r}", expected)) for name, one in model]


def _refuse_names_of_two(named: list[tuple[str, Any]]) -> None:
    """Where a model's name continues another's, a name goes to the longer one: so the other must not have such names."""
    for prefix, owner in named:
        inner = [one[len(prefix) :] for one, _ in named if one != prefix and one.startswith(prefix)]
        for name in owner.get_shards((MODEL, *_LOCAL)).get("model", {}) if inner else ():
            for rest in inner:
                if name.startswith(rest):
                    raise _core.InvalidArgument(
                        f"models: {prefix + name!r} is a name of {prefix[:-1]!r} and of {(prefix + rest)[:-1]!r}, "
                        "expected names that do not continue each other"
                    )


def members(model: Any, optimizers: Any, sections: int) -> list[Member]:
    """The models; the optimizer's section of those alone whose optimizer is given."""
    named = _named(model)
    _refuse_names_of_two(named)
    given: list[Any] = []
    if sections & OPTIMIZER:
        is_one = isinstance(optimizers, _KINDS) or not isinstance(optimizers, Iterable)
        given = [
            _owner(one, "an optimizer", "an Optimizer or an ORTTrainer") for one in ([optimizers] if is_one else optimizers)
        ]
        if not given and sections == OPTIMIZER:
            raise _core.InvalidArgument("optimizers are not passed in but optim_only is set to True")
    if any(one not in [owner for _, owner in named] for one in given):
        raise _core.InvalidArgument("an optimizer is none of the model's")
    return [Member(prefix, owner, sections & MODEL | (OPTIMIZER if owner in given else 0)) for prefix, owner in named]


def check_model(section: Any) -> None:
    """That it has names."""
    _expect_names(section, "model_state_dict")


def check_optimizer(section: Any) -> None:
    """That it has names, in either form."""
    _expect_names(section, "optim_state_dict")
    if "state" not in section:
        return
    _expect_names(section["state"], "optim_state_dict['state']")
    groups = section.get("param_groups", [])
    if not isinstance(groups, (list, tuple)):
        raise _core.InvalidType(f"optim_state_dict['param_groups'] is {type(groups).__name__}, expected a list")
    for i, group in enumerate(groups):
        place = f"optim_state_dict['param_groups'][{i}]"
        _expect_names(group, place)
        _refuse_positions(group.get("params", ()), f"{place}['params']")


def _expect_names(section: Any, place: str) -> None:
    if not isinstance(section, dict):
        raise _core.InvalidType(f"{place} is {type(section).__name__}, expected a dict")
    _refuse_positions(section, place)


def _refuse_positions(names: Iterable[Any], place: str) -> None:
    for name in names:
        if not isinstance(name, str):
            raise _core.InvalidType(
                f"{place} has {name!r}, expected names: a state by positions, such as state_dict() of an optimizer of "
                "PyTorch, needs the names of its parameters first (torch.distributed.checkpoint.state_dict gives it so)"
            )


# ---- names of several models ----


def joined(prefix: str, section: dict[str, Any], is_optimizer: bool) -> dict[str, Any]:
    """What a model has given, as part of a state of several."""
    if not prefix or not section:
        return section
    if not is_optimizer:
        return {prefix + name: value for name, value in section.items()}
    if "state" not in section:
        return {next(h + prefix + key[len(h) :] for h in _HEADS if key.startswith(h)): v for key, v in section.items()}
    groups = [{**group, "params": [prefix + name for name in group["params"]]} for group in section["param_groups"]]
    return {"state": {prefix + name: value for name, value in section["state"].items()}, "param_groups": groups}


class Split:
    """A state of several models, taken apart.

    Attributes:
        parts: what each model is given, by its prefix.
        strangers: names that are none of the models'.
    """

    def __init__(self, models: Sequence[Member], section: dict[str, Any], is_optimizer: bool) -> None:
        self._members = models
        self._prefixes = sorted((one.prefix for one in models), key=len, reverse=True)
        self.parts: dict[str, dict[str, Any]] = {prefix: {} for prefix in self._prefixes}
        self.strangers: list[str] = []
        if self._prefixes == [""]:
            self.parts[""] = section
        elif not is_optimizer:
            self._share(section, "", self.parts)
        elif "state" in section:
            self._share_nested(section)
        else:
            self._share_flat(section)

    def _prefix(self, name: str) -> str | None:
        return next((one for one in self._prefixes if name.startswith(one)), None)

    def _share(self, values: dict[str, Any], head: str, parts: dict[str, dict[str, Any]]) -> None:
        for name, value in values.items():
            prefix = self._prefix(name)
            if prefix is None:
                self.strangers.append(head + name)
            else:
                parts[prefix][head + name[len(prefix) :]] = value

    def _share_flat(self, section: dict[str, Any]) -> None:
        for head in _HEADS:
            self._share({key[len(head) :]: v for key, v in section.items() if key.startswith(head)}, head, self.parts)
        self.strangers += [key for key in section if not key.startswith(_HEADS)]

    def _share_nested(self, section: dict[str, Any]) -> None:
        self.strangers += [key for key in section if key not in ("state", "param_groups")]
        states: dict[str, dict[str, Any]] = {prefix: {} for prefix in self._prefixes}
        self._share(section["state"], "", states)
        for prefix, state in states.items():
            self.parts[prefix]["state"] = state
        if "param_groups" in section:
            self._share_groups(section["param_groups"])

    def _share_groups(self, groups: Sequence[dict[str, Any]]) -> None:
        shares = [self._share_of_group(group) for group in groups]
        if not all(shares):
            self._place_empty_groups(groups, shares)
        for prefix in self._prefixes:
            own = [{**group, "params": share[prefix]} for group, share in zip(groups, shares) if prefix in share]
            self.parts[prefix]["param_groups"] = own

    def _share_of_group(self, group: dict[str, Any]) -> dict[str, list[str]]:
        """The members of each model."""
        found: dict[str, list[str]] = {}
        for name in group.get("params", ()):
            prefix = self._prefix(name)
            if prefix is not None:
                found.setdefault(prefix, []).append(name[len(prefix) :])
            elif name not in self.strangers:
                self.strangers.append(name)
        return found

    def _place_empty_groups(self, groups: Sequence[dict[str, Any]], shares: list[dict[str, list[str]]]) -> None:
        """A group without members is of the model of the group before it, or after it where that one has all of its own."""
        room = {one.prefix: _n_groups(one) for one in self._members if one.sections & OPTIMIZER}
        for share in shares:
            for prefix in share:
                room[prefix] = room.get(prefix, 0) - 1
        for i, group in enumerate(groups):
            if group.get("params"):
                continue
            before = next((one for share in reversed(shares[:i]) for one in share), None)
            after = next((one for share in shares[i + 1 :] for one in share), None)
            near = [one for one in (before, after) if one is not None]
            place = next((one for one in near if room[one] > 0), near[0] if near else self._members[0].prefix)
            shares[i][place] = []
            room[place] = room.get(place, 0) - 1


def _n_groups(member: Member) -> int:
    return len(member.owner.get_shards((OPTIMIZER, *_LOCAL)).get("optim", {}).get("param_groups", []))
