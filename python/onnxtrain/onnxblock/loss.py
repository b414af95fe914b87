# SPDX-License-Identifier: Apache-2.0
"""The losses: blocks that take the name of a value and compare it with an input of the graph, the target.

The target input is made, unless the graph has a value of that name: it may have been put there before, and several
losses may share one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from onnxtrain.onnxblock import _graph_utils, blocks

__all__ = ["BCEWithLogitsLoss", "CrossEntropyLoss", "L1Loss", "MSELoss"]

_REDUCTIONS = ("mean", "sum", "none")


class _Loss(blocks.Block):
    def __init__(self, reduction: str) -> None:
        super().__init__()
        if reduction not in _REDUCTIONS:
            raise RuntimeError(f"Reduction {reduction} not supported, expected one of {', '.join(_REDUCTIONS)}.")
        self._reduction = reduction

    def _reduce(self, name: str) -> str:
        if self._reduction == "none":
            return name
        reduce = blocks.ReduceMean if self._reduction == "mean" else blocks.ReduceSum
        return reduce(keepdims=False)(name)

    def _has_value(self, name: str) -> bool:
        assert self.base is not None
        graph = self.base.graph
        values = {value.name for value in (*graph.input, *graph.initializer)}
        return name in values or _graph_utils.node_arg_exists(self.base, name)

    def _target_like(self, loss_input_name: str, target_name: str) -> str:
        if not self._has_value(target_name):
            blocks.InputLike(loss_input_name)(target_name)
        return target_name

    def _weights(self, name: str, weights: Any, like: str) -> str:
        """An initializer in the element type of the value `like`."""
        assert self.base is not None
        return self._tensor(name, np.asarray(weights), _graph_utils.element_type(self.base, like))


class MSELoss(_Loss):
    """reduce((x - target) ** 2).

    Args:
        reduction: "mean" or "sum" over all elements, or "none": one loss an element.
    """

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction)

    def build(self, loss_input_name: str, target_name: str = "target") -> str:
        target = self._target_like(loss_input_name, target_name)
        return self._reduce(blocks.Pow(2.0)(blocks.Sub()(loss_input_name, target)))


class L1Loss(_Loss):
    """reduce(abs(x - target)).

    Args:
        reduction: "mean" or "sum" over all elements, or "none": one loss an element.
    """

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction)

    def build(self, loss_input_name: str, target_name: str | None = "target") -> str:
        target = self._target_like(loss_input_name, target_name or "target")
        return self._reduce(blocks.Abs()(blocks.Sub()(loss_input_name, target)))


class CrossEntropyLoss(_Loss):
    """Softmax cross entropy of scores [N, C, ...] and labels, integers [N, ...].

    Args:
        weight: one per class, any array.
        reduction: "mean": sum of the weighted losses over the sum of the weights; "sum"; "none": one loss a label.
        ignore_index: this label does not count.
    """

    def __init__(self, weight: Any = None, reduction: str = "mean", ignore_index: int | None = None) -> None:
        super().__init__(reduction)
        self._weight = weight
        self._ignore_index = ignore_index

    def _add_labels(self, scores: str, labels: str) -> None:
        assert self.base is not None
        scores_type = _graph_utils.find_type(self.base, scores)
        if scores_type is None:
            raise LookupError(f"The provided output name {scores!r} is not a graph output, nor another value.")
        value = _graph_utils.like(scores_type, labels)
        value.type.tensor_type.elem_type = onnx.TensorProto.INT64
        if len(value.type.tensor_type.shape.dim) > 1:
            del value.type.tensor_type.shape.dim[1]  # the classes
        self.base.graph.input.append(value)

    def build(self, scores_input_name: str, labels_name: str = "labels") -> str:
        assert self.base is not None
        tokens = ("celoss.weight", "loss", "log_prob", "SoftmaxCrossEntropyLoss")
        weight, loss, log_prob, node = (_graph_utils.generate_graph_name(token) for token in tokens)
        if not self._has_value(labels_name):
            self._add_labels(scores_input_name, labels_name)
        inputs = [scores_input_name, labels_name]
        if self._weight is not None:
            inputs.append(self._weights(weight, self._weight, scores_input_name))
        attributes: dict[str, Any] = {"reduction": self._reduction}
        if self._ignore_index is not None:
            attributes["ignore_index"] = self._ignore_index
        self.base.graph.node.append(
            onnx.helper.make_node("SoftmaxCrossEntropyLoss", inputs, [loss, log_prob], node, **attributes)
        )
        return loss


class BCEWithLogitsLoss(_Loss):
    """Binary cross entropy: reduce(-weight * (pos_weight * t * log(s) + (1 - t) * log(1 - s))), s = sigmoid(x).

    Computed as weight * ((1 - t) * x + (1 + (pos_weight - 1) * t) * softplus(-x)), which is finite for every x.

    Args:
        weight: of the losses, any array that broadcasts.
        reduction: "mean" or "sum" over all elements, or "none": one loss an element.
        pos_weight: of positive targets, any array that broadcasts.
    """

    def __init__(self, weight: Any = None, reduction: str = "mean", pos_weight: Any = None) -> None:
        super().__init__(reduction)
        self._weight = weight
        self._pos_weight = pos_weight

    def build(self, loss_input_name: str, target_name: str = "target") -> str:
        x = loss_input_name
        add, sub, mul = blocks.Add(), blocks.Sub(), blocks.Mul()
        positive, weight = (
            _graph_utils.generate_graph_name(token) for token in ("bceloss.pos_weight", "bceloss.weight")
        )
        one = self._number("bceloss.sub_ones", 1.0, x)
        target = self._target_like(x, target_name)
        soft = self._append("Softplus", [blocks.Neg()(x)], "softplus_output")
        rest = mul(sub(one, target), x)
        if self._pos_weight is not None:
            extra = sub(self._weights(positive, self._pos_weight, x), one)
            soft = mul(add(mul(extra, target), one), soft)
        loss = add(rest, soft)
        if self._weight is not None:
            loss = mul(self._weights(weight, self._weight, x), loss)
        return self._reduce(loss)
