# SPDX-License-Identifier: Apache-2.0
"""Gradients of any value of a model, as a function and as an ONNX model."""

from __future__ import annotations

import os
from typing import Any, Mapping, Sequence

from onnxtrain import _arrays, _core
from onnxtrain._options import SessionOptions, did_you_mean, load_model, memory_bytes

_SEEDS = {"auto": 0, "input": 1, "ones": 2}  # ot_gradient_seed of the C headers
_NONSTANDARD = "onnxtrain.nonstandard_operators"


class Gradients:
    """A model's gradients. Made by :func:`gradients`; used by one thread at a time.

    Attributes:
        of: the value that is differentiated.
        wrt: the values that it is differentiated by.
        input_names: what a call takes: the model's inputs on which the value depends, in their order.
        takes_seed: whether a call needs a seed.
    """

    def __init__(self, core: _core.Gradients, of: str, wrt: list[str], forward_inputs: list[str]) -> None:
        self._core = core
        self.of = of
        self.wrt = wrt
        model = core.model()
        names = model.input_names()
        self._numbers = [model.value_info(name)[0] for name in names]
        self.takes_seed: bool = bool(names) and names[-1] not in forward_inputs
        self.input_names: list[str] = names[:-1] if self.takes_seed else names

    def _in_order(self, inputs: tuple[Any, ...]) -> list[Any]:
        if len(inputs) == 1 and isinstance(inputs[0], Mapping):
            given = inputs[0]
            unknown = next((name for name in given if name not in self.input_names), None)
            missing = next((name for name in self.input_names if name not in given), None)
            if unknown is not None:
                hint = did_you_mean(unknown, self.input_names)
                raise _core.InvalidArgument(f"'{self.of}' depends on no input '{unknown}'{hint}")
            if missing is not None:
                raise _core.InvalidArgument(f"input '{missing}' is missing")
            return [given[name] for name in self.input_names]
        if len(inputs) != len(self.input_names):
            names = ", ".join(self.input_names)
            raise _core.InvalidArgument(f"{len(inputs)} arrays are given, '{self.of}' depends on {names or 'no input'}")
        return list(inputs)

    def value_and_gradients(self, *inputs: Any, seed: Any = None) -> tuple[Any, Any]:
        """The value, and what a call gives."""
        arrays = self._in_order(inputs)
        if self.takes_seed and seed is None:
            raise _core.InvalidArgument(
                f"'{self.of}' has more than one element: a seed of its shape weights them, or seed='ones' sums them"
            )
        if seed is not None and not self.takes_seed:
            raise _core.InvalidArgument(f"the gradients of '{self.of}' take no seed; seed='input' makes one that does")
        if self.takes_seed:
            arrays.append(seed)
        make = _arrays.like(arrays) if arrays else _arrays.to_numpy
        whats = [f"input '{name}'" for name in self.input_names] + ["the seed"]
        tensors = [_arrays.to_tensor(*given) for given in zip(arrays, whats, self._numbers)]
        value, *gradients = [make(one) for one in self._core.run(tensors)]
        return value, gradients[0] if len(gradients) == 1 else tuple(gradients)

    def __call__(self, *inputs: Any, seed: Any = None) -> Any:
        """The gradients for these inputs.

        Args:
            *inputs: arrays in the order of `input_names`, or one dict of them by name.
            seed: weight of each element of the value: an array of its type and shape. The gradients are the product of
                this vector with the Jacobian.

        Returns:
            The gradients in the order of `wrt`, each of the shape of what it is a gradient by, and of the kind of the
            inputs: one is returned bare, several as a tuple.
        """
        return self.value_and_gradients(*inputs, seed=seed)[1]

    @property
    def model(self) -> _core.Model:
        """The model that computes them, for wherever a model is taken: :class:`InferenceSession`, :func:`gradients`.

        Its inputs are `input_names` and, behind them, the seed if there is one; its outputs the value, then
        "<name>_grad" for each of `wrt`.
        """
        return self._core.model()

    @property
    def nonstandard_operators(self) -> list[str]:
        """Operators of :attr:`model` that ONNX does not have; empty: every runtime for ONNX can run it."""
        names = self.model.metadata(_NONSTANDARD)
        return names.split(", ") if names else []

    def save(self, path: str | os.PathLike) -> None:
        """Write :attr:`model`: ONNX protobuf, or ONNX's textual syntax to a path that ends in ".onnxtxt"."""
        self.model.save(os.fspath(path))

    def __repr__(self) -> str:
        return f"Gradients(of='{self.of}', wrt={self.wrt}, input_names={self.input_names})"


def gradients(
    model: Any,
    wrt: str | Sequence[str],
    of: str | None = None,
    *,
    seed: str = "auto",
    keep_operators: bool = False,
    session_options: SessionOptions | None = None,
) -> Gradients:
    """Differentiate a value of a model, taken as it is: what :func:`prepare` puts right is left.

        slope = onnxtrain.gradients("model.onnx", wrt="image", of="loss")
        slope(image, labels)                    # an array like image
        slope.save("gradient.onnx")             # the same as a model

    The model counts as an inference model: BatchNormalization uses its stored statistics, Dropout drops nothing.

    Args:
        model: a path, the bytes of a file or an onnx.ModelProto.
        wrt: name or names of what to differentiate by: inputs, parameters or computed values.
        of: what to differentiate: an output or any other computed value; None: the first output.
        seed: gradient of the value itself. "auto": 1 for a value of one element, else as "input"; "input": an array
            that each call takes; "ones": the gradients of the sum of the value's elements.
        keep_operators: keep operators in :attr:`Gradients.model` that only training runtimes have.
        session_options: threads, reproducibility, memory limit.

    Raises:
        NotFound: the model has no value of that name.
        InvalidArgument: a value is not of float32 or float64, or no gradient reaches it.
        Unsupported: operators on the way have no gradient; they are named.
    """
    if seed not in _SEEDS:
        raise _core.InvalidArgument(f"seed '{seed}' is not one of {', '.join(_SEEDS)}; arrays are given to the call")
    forward = load_model(model)
    names = [wrt] if isinstance(wrt, str) else list(wrt)
    value = of if of is not None else forward.output_names()[0]
    options = session_options if session_options is not None else SessionOptions()
    core = _core.Gradients.create(
        forward,
        value,
        names,
        _SEEDS[seed],
        keep_operators,
        options.intra_op_num_threads,
        options.use_deterministic_compute,
        memory_bytes(options.memory_max),
    )
    return Gradients(core, value, names, forward.input_names())
