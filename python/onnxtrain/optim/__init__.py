# SPDX-License-Identifier: Apache-2.0
"""Optimizers and learning rates of :class:`onnxtrain.ORTTrainer`, as ``onnxruntime.training.optim``."""

from onnxtrain.optim import config, lr_scheduler
from onnxtrain.optim.config import AdamConfig, LambConfig, SGDConfig
from onnxtrain.optim.lr_scheduler import (
    ConstantWarmupLRScheduler,
    CosineWarmupLRScheduler,
    LinearWarmupLRScheduler,
    PolyWarmupLRScheduler,
)

__all__ = [
    "AdamConfig",
    "ConstantWarmupLRScheduler",
    "CosineWarmupLRScheduler",
    "LambConfig",
    "LinearWarmupLRScheduler",
    "PolyWarmupLRScheduler",
    "SGDConfig",
    "config",
    "lr_scheduler",
]
