# SPDX-License-Identifier: Apache-2.0
"""The small network with its loss, and what the tests of ORTTrainer have in common."""

import unittest

import numpy as np
from network import NAMES, START, TEXT, batch, cross_entropy

from onnxtrain import ORTTrainer, ORTTrainerOptions, optim



def with_loss(text):
    """The network with labels as a second input and the loss as first output."""
    text = text.replace(b"x) => (", b"x, int64[N] label) => (float loss, ")
    return text.replace(b") }", b") loss = SoftmaxCrossEntropyLoss(y, label) }")


WITH_LOSS = with_loss(TEXT)
DESCRIPTION = {
    "inputs": [("x", ["N", 3]), ("label", ["N"])],
    "outputs": [("loss", [], True), ("y", ["N", 2])],
}


def make(config=None, options=None, description=DESCRIPTION, model=WITH_LOSS):
    config = config or optim.SGDConfig(lr=0.1)
    return ORTTrainer(model, description, config, None, None if options is None else ORTTrainerOptions(options))


def start():
    return {name: value.astype(np.float64) for name, value in START.items()}


def train_by_formula(rule, batches, accumulation=1):
    """Parameters and losses of a training by `rule(parameters, mean gradients, update)`, in f64."""
    parameters, losses, sums = start(), [], None
    for i, (x, labels) in enumerate(batches):
        loss, gradients = cross_entropy(parameters, x, labels)
        losses.append(loss)
        sums = gradients if sums is None else {name: sums[name] + gradients[name] for name in NAMES}
        if (i + 1) % accumulation == 0:
            rule(parameters, {name: value / accumulation for name, value in sums.items()}, i // accumulation)
            sums = None
    return parameters, losses


def descent(lr):
    """Plain gradient descent; lr is a number or a function of the update."""

    def rule(parameters, gradients, update):
        for name in NAMES:
            parameters[name] -= (lr(update) if callable(lr) else lr) * gradients[name]

    return rule


def batches(n, rows=5):
    return [batch(number, rows) for number in range(n)]


class TrainerTest(unittest.TestCase):
    def assert_losses(self, found, expected):
        np.testing.assert_allclose(np.array(found, np.float64), expected, rtol=1e-5)
