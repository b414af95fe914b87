# SPDX-License-Identifier: Apache-2.0
"""The optimizers: models of their own, built in :func:`onnxtrain.onnxblock.empty_base` from a training block's
parameters.

    with onnxblock.empty_base():
        optimizer = onnxblock.optim.AdamW(weight_decay=0.01, clip_grad=onnxblock.optim.ClipGradNorm(1.0))
        optimizer(training_block.parameters())
        optimizer_model = optimizer.to_model_proto()
"""

from __future__ import annotations

from abc import abstractmethod

import onnx

from onnxtrain.onnxblock import _graph_utils, blocks
from onnxtrain.onnxblock._models import ForwardBlock, Parameters

__all__ = ["SGD", "AdamW", "AdamWOptimizer", "ClipGradNorm", "SGDOptimizer"]


class AdamWOptimizer(blocks.Block):
    """The node com.microsoft AdamWOptimizer; returns the name of its flag, bool [1]."""

    def __init__(
        self,
        bias_correction: bool = True,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__()
        self._attributes = {
            "alpha": float(betas[0]),
            "beta": float(betas[1]),
            "epsilon": float(eps),
            "weight_decay": float(weight_decay),
            "correct_bias": int(bool(bias_correction)),
            "adam_mode": 1,
        }

    def build(
        self,
        learning_rate_name: str,
        step_name: str,
        parameter_sequence_name: str,
        gradient_sequence_name: str,
        first_order_moment_sequence_name: str,
        second_order_moment_sequence_name: str,
    ) -> str:
        inputs = [
            learning_rate_name,
            step_name,
            parameter_sequence_name,
            gradient_sequence_name,
            first_order_moment_sequence_name,
            second_order_moment_sequence_name,
        ]
        self._import("com.microsoft", 1)
        return self._append("AdamWOptimizer", inputs, "adamw.updated_flag", "com.microsoft", **self._attributes)


class SGDOptimizer(blocks.Block):
    """The node com.microsoft SGDOptimizerV2 with these three inputs in this order; returns the name of its flag."""

    def build(self, learning_rate_name: str, parameter_sequence_name: str, gradient_sequence_name: str) -> str:
        inputs = [learning_rate_name, parameter_sequence_name, gradient_sequence_name]
        self._import("com.microsoft", 1)
        return self._append("SGDOptimizerV2", inputs, "update_completed", "com.microsoft")


class ClipGradNorm(blocks.Block):
    """Scales all gradients together, in place, to a norm of `max_norm` at most."""

    def __init__(self, max_norm: float) -> None:
        super().__init__()
        self._max_norm = max_norm

    def build(self, gradients_name: str) -> str:
        assert self.base is not None
        self._import("com.microsoft", 1)
        output = self._append(
            "InplaceClipGradNorm",
            [gradients_name],
            "clip_grad_norm_output",
            "com.microsoft",
            max_norm=float(self._max_norm),
        )
        stated = _graph_utils.find_type(self.base, gradients_name)
        self.base.graph.value_info.append(
            _sequence(output, onnx.TensorProto.FLOAT) if stated is None else _graph_utils.like(stated, output)
        )
        return output


def _sequence(name: str, element_type: int) -> onnx.ValueInfoProto:
    tensors = onnx.helper.make_tensor_type_proto(element_type, None)
    return onnx.helper.make_value_info(name, onnx.helper.make_sequence_type_proto(tensors))


class _Optimizer(ForwardBlock):
    """Inputs, clipping and node of an optimizer model."""

    # A fixed shape of the flag, where the operator's own inference gives it too.
    _flag_shape: list[int] | None = None

    def __init__(self, clip_grad: blocks.Block | None = None) -> None:
        super().__init__()
        self._clip_grad = clip_grad

    def build(self, parameters: Parameters) -> str:
        assert self.base is not None
        element_type = parameters[0][0].data_type
        graph = self.base.graph
        graph.input.extend(
            [
                onnx.helper.make_tensor_value_info("learning_rate", onnx.TensorProto.FLOAT, [1]),
                onnx.helper.make_tensor_value_info("step", onnx.TensorProto.INT64, [1]),
                *(_sequence(name, element_type) for name in ("params", "gradients", "first_order_moments")),
            ]
        )
        gradients = "gradients" if self._clip_grad is None else self._clip_grad("gradients")
        flag = self._optimizer_specific_logic("learning_rate", "params", gradients, parameters)
        graph.output.append(onnx.helper.make_tensor_value_info(flag, onnx.TensorProto.BOOL, self._flag_shape))
        return flag

    @abstractmethod
    def _optimizer_specific_logic(
        self, learning_rate_name: str, params_name: str, gradients_name: str, trainable_parameters: Parameters
    ) -> str: ...


class AdamW(_Optimizer):
    """An optimizer model with AdamW, called with a training block's ``parameters()``.

    Args:
        bias_correction: of the moments, as in the first steps.
        betas: how fast the moments forget.
        eps: added to the root of the second moment.
        weight_decay: per step, times the learning rate; applied after the update.
        clip_grad: a block that takes the gradients' name, as :class:`ClipGradNorm`.
    """

    _flag_shape = [1]

    def __init__(
        self,
        bias_correction: bool = True,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        clip_grad: blocks.Block | None = None,
    ) -> None:
        super().__init__(clip_grad)
        self._adamw = AdamWOptimizer(bias_correction, betas, eps, weight_decay)

    def _optimizer_specific_logic(
        self, learning_rate_name: str, params_name: str, gradients_name: str, trainable_parameters: Parameters
    ) -> str:
        assert self.base is not None
        moments = "second_order_moments"
        self.base.graph.input.append(_sequence(moments, trainable_parameters[0][0].data_type))
        return self._adamw(learning_rate_name, "step", params_name, gradients_name, "first_order_moments", moments)


class SGD(_Optimizer):
    """An optimizer model with plain gradient descent, called with a training block's ``parameters()``.

    Args:
        clip_grad: a block that takes the gradients' name, as :class:`ClipGradNorm`.
    """

    def __init__(self, clip_grad: blocks.Block | None = None) -> None:
        super().__init__(clip_grad)
        self._sgd = SGDOptimizer()

    def _optimizer_specific_logic(
        self, learning_rate_name: str, params_name: str, gradients_name: str, trainable_parameters: Parameters
    ) -> str:
        return self._sgd(learning_rate_name, params_name, gradients_name)
