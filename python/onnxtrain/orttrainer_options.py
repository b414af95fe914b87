# SPDX-License-Identifier: Apache-2.0
"""Options of :class:`onnxtrain.ORTTrainer`, as ``onnxruntime.training.orttrainer_options``.

    options = ORTTrainerOptions({"batch": {"gradient_accumulation_steps": 4}})
    options.batch.gradient_accumulation_steps    # 4

docs/options.md lists all of them, with what they may be and what they do. Below "onnxtrain" are those of our own.
"""

from __future__ import annotations

import functools
from enum import IntFlag
from typing import Any, Callable

from onnxtrain import _config
from onnxtrain._options import SessionOptions
from onnxtrain.amp.loss_scaler import LossScaler
from onnxtrain.optim.lr_scheduler import _LRScheduler

__all__ = ["ORTTrainerOptions", "PropagateCastOpsStrategy"]


class PropagateCastOpsStrategy(IntFlag):
    """How casts move under mixed precision; may be combined."""

    NONE = 0
    INSERT_AND_REDUCE = 1
    FLOOD_FILL = 2

    def _text(self) -> str:
        return "|".join(one.name or "" for one in type(self) if one and one in self) or "NONE"


_STRATEGY = ("graph_transformer", "propagate_cast_ops_config", "strategy")
# Options that are objects, and which ones.
_OBJECTS: dict[tuple[str, ...], Callable[[Any], bool]] = {
    ("lr_scheduler",): lambda value: isinstance(value, _LRScheduler),
    ("mixed_precision", "loss_scaler"): lambda value: isinstance(value, LossScaler),
    ("_internal_use", "extra_postprocess"): callable,
    ("session_options",): lambda value: isinstance(value, SessionOptions),
}
_OURS = "onnxtrain"  # the section that onnxruntime.training has not


def _plain(value: Any, path: tuple[str, ...] = ()) -> Any:
    """A tree of options without its objects."""
    if path in _OBJECTS and _OBJECTS[path](value):
        return None
    if isinstance(value, PropagateCastOpsStrategy):
        return value._text()
    if isinstance(value, dict):
        return {str(key): _plain(item, (*path, str(key))) for key, item in value.items()}
    return _config.encodable(value)


def _with_objects(filled: Any, given: Any, path: tuple[str, ...] = ()) -> Any:
    """The checked tree with the objects that were given."""
    if path in _OBJECTS and _OBJECTS[path](given):
        return given
    if path == _STRATEGY and isinstance(filled, str):
        return PropagateCastOpsStrategy(sum(PropagateCastOpsStrategy[name] for name in filled.split("|")))
    if not isinstance(filled, dict):
        return filled
    below = given if isinstance(given, dict) else {}
    return {key: _with_objects(item, below.get(key), (*path, key)) for key, item in filled.items()}


@functools.cache
def _defaults() -> dict[str, Any]:
    """What an option is that nobody sets."""
    return _with_objects(_config.check("options", {}), None)


class _Section:
    """Options below a name, each an attribute."""

    __slots__ = ("__dict__",)

    def __init__(self, values: dict[str, Any], defaults: dict[str, Any]) -> None:
        for key, value in values.items():
            below = defaults.get(key)
            is_section = isinstance(value, dict) and (key == _OURS or (isinstance(below, dict) and below))
            setattr(self, key, _Section(value, below or {}) if is_section else value)

    def __repr__(self) -> str:
        return repr(_tree(self))


def _tree(section: _Section) -> dict[str, Any]:
    return {key: _tree(value) if isinstance(value, _Section) else value for key, value in vars(section).items()}


def _set(now: dict[str, Any], given: Any, defaults: Any) -> dict[str, Any]:
    """What of a tree was given, or is not what it is by default."""
    found = {}
    for key, value in now.items():
        of_given = given.get(key) if isinstance(given, dict) else None
        usual = defaults.get(key) if isinstance(defaults, dict) else None
        if isinstance(value, dict) and usual:
            below = _set(value, of_given, usual)
            if below:
                found[key] = below
        elif value != usual or (isinstance(given, dict) and key in given):
            found[key] = value
    return found


class ORTTrainerOptions(_Section):
    """Options of a trainer: a tree of attributes, which may be set until there is a trainer.

    Args:
        options: a dict of dicts; what is left out has its default.

    Raises:
        InvalidArgument: a ``ValueError`` that names everything that is wrong: ``Invalid options: {...}``.
    """

    __slots__ = ("_original_opts", "_validated_opts")  # the tree alone is in __dict__

    def __init__(self, options: dict[str, Any] = {}) -> None:  # noqa: B006
        self._validated_opts = _with_objects(_config.check("options", _plain(options)), options)
        self._original_opts = dict(options)
        super().__init__(self._validated_opts, _defaults())

    def _set_options(self) -> dict[str, Any]:
        """The tree of what was given or set, for the library."""
        return _plain(_set(_tree(self), self._original_opts, _defaults()))
