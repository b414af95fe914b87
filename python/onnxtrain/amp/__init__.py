# SPDX-License-Identifier: Apache-2.0
"""Loss scales of :class:`onnxtrain.ORTTrainer`, as ``onnxruntime.training.amp``."""

from onnxtrain.amp import loss_scaler
from onnxtrain.amp.loss_scaler import DynamicLossScaler, LossScaler

__all__ = ["DynamicLossScaler", "LossScaler", "loss_scaler"]
