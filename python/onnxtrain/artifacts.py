# SPDX-License-Identifier: Apache-2.0
"""From a forward model to the files that training takes, as ``onnxruntime.training.artifacts``.

    generate_artifacts(
        "model.onnx",
        requires_grad=["fc1.weight", "fc1.bias"],
        loss=LossType.CrossEntropyLoss,
        optimizer=OptimType.AdamW,
        artifact_directory="artifacts",
    )

The files are those of ONNX Runtime training 1.19.2, and readable by it.
"""

from __future__ import annotations

import os
import sys
import warnings
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeGuard

from onnxtrain import _build, _core
from onnxtrain._options import load_model

if TYPE_CHECKING:
    from onnxtrain.onnxblock import Block

__all__ = ["LossType", "OptimType", "generate_artifacts"]


class LossType(Enum):
    """Losses for :func:`generate_artifacts`."""

    MSELoss = 1
    CrossEntropyLoss = 2
    BCEWithLogitsLoss = 3
    L1Loss = 4


class OptimType(Enum):
    """Optimizers for :func:`generate_artifacts`."""

    AdamW = 1
    SGD = 2


# What the library calls them: ot_loss of the C headers, and the operators.
_LOSSES = {
    LossType.CrossEntropyLoss: 1,
    LossType.MSELoss: 2,
    LossType.L1Loss: 3,
    LossType.BCEWithLogitsLoss: 4,
}
_PASS_THROUGH = 0
_OPTIMIZERS = {OptimType.AdamW: "AdamWOptimizer", OptimType.SGD: "SGDOptimizerV2"}


def _check_model(model: Any) -> None:
    if not isinstance(model, (str, os.PathLike, bytes, bytearray, memoryview)) and not hasattr(
        model, "SerializeToString"
    ):
        raise RuntimeError(
            f"Please pass in either a path, bytes or an ONNX ModelProto for the model, got {type(model)}."
        )


def _is_block(candidate: Any) -> TypeGuard[Block]:
    package = sys.modules.get("onnxtrain.onnxblock")  # whoever has a block has imported it
    return package is not None and isinstance(candidate, package.Block)


def _loss_term(loss: Any, loss_input_names: list[str] | None) -> list[tuple]:
    if loss is None:
        return [(_PASS_THROUGH, 1.0, loss_input_names[0], None, 0, None, None, None)] if loss_input_names else []
    if not isinstance(loss, LossType):
        raise RuntimeError(f"Unknown loss provided {type(loss)}. Expected LossType, an onnxblock.Block or None.")
    names = [*(loss_input_names or []), None, None]
    if len(names) > 4:
        raise TypeError(f"{loss.name} takes a value and a target, loss_input_names has {len(names) - 2} names")
    return [(_LOSSES[loss], 1.0, names[0], names[1], 0, None, None, None)]


def _check_lists(
    requires_grad: list[str] | None, frozen_params: list[str] | None, additional_output_names: list[str] | None
) -> None:
    both = set(requires_grad or ()) & set(frozen_params or ())
    if both:
        raise RuntimeError(
            f"A parameter cannot be frozen and require gradient at the same time. Overlap: {sorted(both)}"
        )
    if additional_output_names and not isinstance(additional_output_names, list):
        raise RuntimeError(f"Unknown type provided for additional output names {type(additional_output_names)}.")


def generate_artifacts(
    model: Any,
    requires_grad: list[str] | None = None,
    frozen_params: list[str] | None = None,
    loss: LossType | Block | None = None,
    optimizer: OptimType | Block | None = None,
    artifact_directory: str | bytes | os.PathLike | None = None,
    prefix: str = "",
    ort_format: bool = False,
    custom_op_library: str | bytes | os.PathLike | None = None,
    additional_output_names: list[str] | None = None,
    nominal_checkpoint: bool = False,
    loss_input_names: list[str] | None = None,
    standard_ops: bool = False,
) -> None:
    """Write training_model.onnx, eval_model.onnx, checkpoint and, with an optimizer, optimizer_model.onnx.

    Args:
        model: the forward model: a path, the bytes of a file or an onnx.ModelProto.
        requires_grad: initializers that are trained. None: every one of the model that can be and is not frozen; what a
            loss brings along trains only when it is named. A float input, targets included, may be named, too: its
            gradient is summed beside those of the parameters, see :meth:`onnxtrain.api.Module.get_input_gradient`.
            Where nothing is trained, the artifacts are made all the same, with a warning.
        frozen_params: initializers that are parameters without gradient; names that the model lacks do not matter.
            Initializers in neither list stay constants of the models. Running statistics of BatchNormalization are
            frozen parameters in any case, and training uses the statistics of the batch.
        loss: of the value that `loss_input_names` names, or of the model's first output. A block of
            :mod:`onnxtrain.onnxblock` is called with `loss_input_names`, or with all outputs of the model, and gives
            the loss, or the loss and further outputs. None: the outputs are taken as they are, and the first is the
            loss.
        optimizer: a block is called with the trained and the frozen parameters, as ``onnxblock.optim.AdamW(...)``.
            None: there is no optimizer model.
        artifact_directory: where to; made when it is missing. None: the current directory.
        prefix: put before every file name.
        ort_format: write the models as training_model.ort, eval_model.ort and optimizer_model.ort too.
        custom_op_library: need not be given, but must exist if it is. Nodes of operators that are not known stay as
            they are, for a runtime that has the library; no gradient may have to pass them.
        additional_output_names: values that training and eval model give after the loss.
        nominal_checkpoint: write nominal_checkpoint too, which has no values.
        loss_input_names: the value that the loss takes and, after it, the target's name; the arguments of a block.
            Without a loss: the values that are taken as they are.
        standard_ops: write the training model, gradients included, in ONNX's own operators where they can say it. The
            log says which others it has; accumulators are always among them.

    Raises:
        RuntimeError: lists overlap, or an argument is not what it should be.
        Unsupported: an operator on the way to the loss has no gradient; all of them are named.
        InvalidArgument: a parameter does not reach the loss.
        NotFound: there is no initializer or value of that name.
    """
    _check_lists(requires_grad, frozen_params, additional_output_names)
    if optimizer is not None and not isinstance(optimizer, OptimType) and not _is_block(optimizer):
        raise TypeError(
            f"Unknown optimizer provided {type(optimizer)}. Expected OptimType, an onnxblock.Block or None."
        )
    if custom_op_library is not None and not os.path.exists(custom_op_library):
        raise RuntimeError(f"Custom op library {os.fspath(custom_op_library)!r} does not exist.")
    terms = [] if _is_block(loss) else _loss_term(loss, loss_input_names)
    _check_model(model)
    passed_on = (loss_input_names or [])[1:] if loss is None else []
    outputs = [*passed_on, *(additional_output_names or [])] or None
    if _is_block(loss):
        from onnxtrain.onnxblock import _artifacts

        forward = _artifacts.with_loss(model, loss, loss_input_names, outputs, requires_grad)
        outputs = None
    else:
        forward = load_model(model)
    kind = _OPTIMIZERS[optimizer] if isinstance(optimizer, OptimType) else None
    built = _build.build(forward, terms, requires_grad, frozen_params, outputs, kind, ort_format, standard_ops)
    if not requires_grad and not built.trains():
        warnings.warn("nothing trains: no parameter requires a gradient, so the training model has none", stacklevel=2)
    if _is_block(optimizer):
        from onnxtrain.onnxblock import _artifacts

        built.set_optimizer(_artifacts.optimizer_model(model, built, optimizer))
    folder = os.fsdecode(artifact_directory) if artifact_directory is not None else os.curdir
    folder, prefix = os.path.split(os.path.join(folder, prefix))
    built.save(folder or os.curdir, prefix)
    if nominal_checkpoint:
        built.save_nominal(folder or os.curdir, prefix)
