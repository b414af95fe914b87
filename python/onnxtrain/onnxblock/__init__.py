# SPDX-License-Identifier: Apache-2.0
"""Building blocks of losses, optimizers and whole models, as ``onnxruntime.training.onnxblock``.

A block edits an ONNX ``ModelProto``: its :meth:`Block.build` takes names of values, appends nodes to ``self.base`` and
returns names. Blocks are called inside a scope that says which model:

    class TwoLosses(onnxblock.Block):
        def __init__(self):
            super().__init__()
            self.mse, self.l1 = onnxblock.loss.MSELoss(), onnxblock.loss.L1Loss()
            self.add = onnxblock.blocks.Add()

        def build(self, first, second):
            return self.add(self.mse(first, target_name="target1"), self.l1(second, target_name="target2"))

    artifacts.generate_artifacts("model.onnx", requires_grad=["w"], loss=TwoLosses())

or by hand:

    class Training(onnxblock.TrainingBlock):
        def build(self, output):
            return TwoLosses()(output, output)

    block = Training()
    block.requires_grad("w")
    with onnxblock.base(onnx.load("model.onnx")):
        block("y")
    training_model, eval_model = block.to_model_proto()
    onnxblock.save_checkpoint(block.parameters(), "checkpoint")

==============================================  ========================================================
:class:`Block`                                  appends nodes; the base class of all
:class:`ForwardBlock`                           sets the model's outputs; has a model as its result
:class:`TrainingBlock`                          makes training and eval model; its first output is the loss
:mod:`~onnxtrain.onnxblock.blocks`              Add, Pow, Linear and so on
:mod:`~onnxtrain.onnxblock.loss`                MSELoss, L1Loss, CrossEntropyLoss, BCEWithLogitsLoss
:mod:`~onnxtrain.onnxblock.optim`               AdamW, SGD, ClipGradNorm
:func:`base`, :func:`empty_base`                the scopes
:func:`save_checkpoint`                         parameters to a file
:func:`load_checkpoint_to_model`                and back into a model
==============================================  ========================================================

Needs the package ``onnx``. Gradients, accumulators and the eval model are made by the library.
"""

try:
    import onnx.numpy_helper as _numpy_helper  # noqa: F401  (older releases do not load it by themselves)
except ImportError as error:
    raise ImportError("onnxtrain.onnxblock works on ModelProto objects and needs the package onnx") from error

from onnxtrain.onnxblock import blocks, loss, optim
from onnxtrain.onnxblock._checkpoint import load_checkpoint_to_model, save_checkpoint
from onnxtrain.onnxblock._models import ForwardBlock, TrainingBlock
from onnxtrain.onnxblock._scope import base, custom_op_library, empty_base
from onnxtrain.onnxblock.blocks import Block

__all__ = [
    "Block",
    "ForwardBlock",
    "TrainingBlock",
    "base",
    "blocks",
    "custom_op_library",
    "empty_base",
    "load_checkpoint_to_model",
    "loss",
    "optim",
    "save_checkpoint",
]
