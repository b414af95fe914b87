# SPDX-License-Identifier: Apache-2.0
"""Adversarial digits: a small step of every pixel against the slope of the right score misleads the model.

usage: adversarial.py MODEL DIGITS
"""

import sys

import numpy as np

import onnxtrain

data = np.loadtxt(sys.argv[2], np.float32, delimiter=",")[-200:]
images, labels = data[:, :64].reshape(-1, 1, 8, 8) / 16, data[:, 64].astype(int)
right_score = np.eye(10, dtype=np.float32)[labels]  # 1 for the digit's own score, 0 for the others
slope = onnxtrain.gradients(sys.argv[1], wrt="image", of="scores")
misleading = np.clip(images - 0.2 * np.sign(slope(images, seed=right_score)), 0, 1)
model = onnxtrain.InferenceSession(sys.argv[1])
for name, x in ("as they are", images), ("misleading", misleading):
    scores = model.run(None, {"image": x})[0]
    print(f"{name}: {(scores.argmax(1) == labels).mean():.0%} recognised")
