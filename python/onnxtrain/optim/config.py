# SPDX-License-Identifier: Apache-2.0
"""Which optimizer trains, and its hyper-parameters, as ``onnxruntime.training.optim.config``.

    AdamConfig(params=[{"params": ["fc1.weight"], "lambda_coef": 0.0}], lr=0.001, lambda_coef=0.01)

A group names weights and what differs for them; later groups override earlier ones, and weights in no group have the
optimizer's own values. Whole numbers become floats where a float is meant.
"""

from __future__ import annotations

from enum import IntEnum, unique
from typing import Any, Mapping, Sequence

from onnxtrain import _core
from onnxtrain._asserts import expect, expect_non_negative, is_number

__all__ = ["AdamConfig", "LambConfig", "SGDConfig"]

_NAMES = ("AdamOptimizer", "LambOptimizer", "SGDOptimizer")
_ADAM, _LAMB = (_core.optimizers()[name] for name in _NAMES[:2])  # defaults by name
_COEF = "_coef"  # what a hyper-parameter is written with whose own name is a keyword of Python


def _stored_name(key: str, defaults: Mapping[str, Any]) -> str | None:
    """The name in `defaults` that a group's key means."""
    if key in defaults:
        return key
    short = key[: -len(_COEF)] if key.endswith(_COEF) else ""
    return short if short in defaults else None


def _value(name: str, value: Any, usual: Any) -> Any:
    """A group's value; a float where the optimizer's own is one."""
    if isinstance(value, (bool, IntEnum)):
        return value
    if not is_number(value):
        raise ValueError(f"hyper-parameter '{name}' is {value!r}, expected a number or a bool")
    return float(value) if isinstance(usual, float) else value


def _completed(index: int, group: Any, optimizer: str, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The group with every hyper-parameter, by the names of `defaults`."""
    where = f"params[{index}]"
    expect(isinstance(group, dict), f"{where} is {type(group).__name__}, expected a dict")
    expect("params" in group, f"{where} has no key 'params', the names of its weights")
    names = group["params"]
    are_names = isinstance(names, list) and all(isinstance(name, str) for name in names)
    expect(are_names, f"{where}['params'] is {names!r}, expected a list of names")
    expect(len(group) > 1, f"{where} has no hyper-parameter besides 'params'")
    full = {"params": list(names), **defaults}
    given = set()
    for key, value in group.items():
        if key == "params":
            continue
        name = _stored_name(key, defaults) if isinstance(key, str) else None
        known = ", ".join(defaults)
        expect(name is not None, f"{where}: {key!r} is no hyper-parameter of {optimizer} (known: {known})")
        expect(name not in given, f"{where} has both '{name}' and '{name}{_COEF}'")
        given.add(name)
        full[name] = _value(f"{where}[{key!r}]", value, defaults[name])
    return full


class _OptimizerConfig:
    """An optimizer.

    Args:
        name: "AdamOptimizer", "LambOptimizer" or "SGDOptimizer".
        params: groups of weights: dicts with "params", a list of names, and the hyper-parameters that differ.
        defaults: hyper-parameters by name, "lr" among them.

    Attributes:
        name: as given.
        lr: the learning rate.
        defaults: hyper-parameters of all weights in no group.
        params: the groups, each with all hyper-parameters.
    """

    def __init__(self, name: str, params: Sequence[dict[str, Any]], defaults: dict[str, Any]) -> None:
        expect(isinstance(name, str), f"name is {name!r}, expected a str")
        expect(name in _NAMES, f"name is {name!r}, expected one of {', '.join(_NAMES)}")
        expect(isinstance(defaults, dict), f"defaults is {type(defaults).__name__}, expected a dict")
        expect("lr" in defaults, "defaults has no key 'lr', the learning rate")
        expect(isinstance(params, list), f"params is {type(params).__name__}, expected a list of dicts")
        self.name = name
        self.lr: float = expect_non_negative("lr", defaults["lr"])
        self.defaults: dict[str, Any] = {**defaults, "lr": self.lr}
        self.params: list[dict[str, Any]] = [
            _completed(i, group, name, self.defaults) for i, group in enumerate(params)
        ]


def _without_lr(params: Any) -> Any:
    """Groups that may be given to Adam and LAMB."""
    for i, group in enumerate(params if isinstance(params, list) else ()):
        has_lr = isinstance(group, dict) and "lr" in group
        expect(not has_lr, f"params[{i}] has 'lr', which is the same for all weights")
    return params


def _max_norm_clip(value: Any) -> float:
    expect(is_number(value) and value != 0, f"max_norm_clip is {value!r}, expected a number other than 0")
    return float(value)


def _do_bias_correction(value: Any) -> bool:
    expect(isinstance(value, bool), f"do_bias_correction is {value!r}, expected a bool")
    return value


class SGDConfig(_OptimizerConfig):
    """Stochastic gradient descent.

    Args:
        params: must stay empty: all weights have the same learning rate.
        lr: the learning rate, at least 0.
    """

    def __init__(self, params: list[dict[str, Any]] = [], lr: float = 0.001) -> None:  # noqa: B006
        expect(isinstance(params, list) and not params, "params must stay empty for SGD")
        super().__init__("SGDOptimizer", params, {"lr": expect_non_negative("lr", lr)})


class AdamConfig(_OptimizerConfig):
    """Adam.

    Args:
        params: groups of weights, none with "lr".
        lr: the learning rate, at least 0.
        alpha, beta: decay of the first and of the second moment, at least 0.
        lambda_coef: decay of the weights, at least 0.
        epsilon: added to the root of the second moment, at least 0.
        max_norm_clip: bound of the global norm of the gradients, not 0.
        do_bias_correction: whether moments are corrected for having begun at zero.
        weight_decay_mode: whether weights decay before or after the update.
    """

    @unique
    class DecayMode(IntEnum):
        """When weights decay."""

        BEFORE_WEIGHT_UPDATE = 0
        AFTER_WEIGHT_UPDATE = 1

    def __init__(
        self,
        params: list[dict[str, Any]] = [],  # noqa: B006
        lr: float = 0.001,
        alpha: float = _ADAM["alpha"],
        beta: float = _ADAM["beta"],
        lambda_coef: float = _ADAM["lambda"],
        epsilon: float = _ADAM["epsilon"],
        max_norm_clip: float = _ADAM["max_norm_clip"],
        do_bias_correction: bool = bool(_ADAM["do_bias_correction"]),
        weight_decay_mode: DecayMode = DecayMode.BEFORE_WEIGHT_UPDATE,
    ) -> None:
        is_mode = isinstance(weight_decay_mode, AdamConfig.DecayMode)
        expect(is_mode, f"weight_decay_mode is {weight_decay_mode!r}, expected an AdamConfig.DecayMode")
        self.alpha = expect_non_negative("alpha", alpha)
        self.beta = expect_non_negative("beta", beta)
        self.lambda_coef = expect_non_negative("lambda_coef", lambda_coef)
        self.epsilon = expect_non_negative("epsilon", epsilon)
        self.max_norm_clip = _max_norm_clip(max_norm_clip)
        self.do_bias_correction = _do_bias_correction(do_bias_correction)
        self.weight_decay_mode = weight_decay_mode
        defaults = {
            "lr": expect_non_negative("lr", lr),
            "alpha": self.alpha,
            "beta": self.beta,
            "lambda": self.lambda_coef,
            "epsilon": self.epsilon,
            "max_norm_clip": self.max_norm_clip,
            "do_bias_correction": self.do_bias_correction,
            "weight_decay_mode": self.weight_decay_mode,
        }
        super().__init__("AdamOptimizer", _without_lr(params), defaults)


class LambConfig(_OptimizerConfig):
    """LAMB.

    Args:
        params: groups of weights, none with "lr".
        lr: the learning rate, at least 0.
        alpha, beta: decay of the first and of the second moment, at least 0.
        lambda_coef: decay of the weights, at least 0.
        ratio_min, ratio_max: bounds of the ratio of the norms of weight and update; the same for all weights.
        epsilon: added to the root of the second moment, at least 0.
        max_norm_clip: bound of the global norm of the gradients, not 0.
        do_bias_correction: whether moments are corrected for having begun at zero; the same for all weights.
    """

    def __init__(
        self,
        params: list[dict[str, Any]] = [],  # noqa: B006
        lr: float = 0.001,
        alpha: float = _LAMB["alpha"],
        beta: float = _LAMB["beta"],
        lambda_coef: float = _LAMB["lambda"],
        ratio_min: float = _LAMB["ratio_min"],
        ratio_max: float = _LAMB["ratio_max"],
        epsilon: float = _LAMB["epsilon"],
        max_norm_clip: float = _LAMB["max_norm_clip"],
        do_bias_correction: bool = bool(_LAMB["do_bias_correction"]),
    ) -> None:
        expect(is_number(ratio_min), f"ratio_min is {ratio_min!r}, expected a number")
        expect(is_number(ratio_max), f"ratio_max is {ratio_max!r}, expected a number")
        self.alpha = expect_non_negative("alpha", alpha)
        self.beta = expect_non_negative("beta", beta)
        self.lambda_coef = expect_non_negative("lambda_coef", lambda_coef)
        self.ratio_min, self.ratio_max = float(ratio_min), float(ratio_max)
        self.epsilon = expect_non_negative("epsilon", epsilon)
        self.max_norm_clip = _max_norm_clip(max_norm_clip)
        self.do_bias_correction = _do_bias_correction(do_bias_correction)
        defaults = {
            "lr": expect_non_negative("lr", lr),
            "alpha": self.alpha,
            "beta": self.beta,
            "lambda": self.lambda_coef,
            "ratio_min": self.ratio_min,
            "ratio_max": self.ratio_max,
            "epsilon": self.epsilon,
            "max_norm_clip": self.max_norm_clip,
            "do_bias_correction": self.do_bias_correction,
        }
        super().__init__("LambOptimizer", _without_lr(params), defaults)
