# SPDX-License-Identifier: Apache-2.0
"""A script as people write them for ONNX Runtime training: artifacts, a loop with evaluation, parameters as one vector,
checkpoints, export. test_dropin.py runs it with its imports changed; record_signatures.py runs it as it is.

Takes model.onnx in the current folder; leaves its numbers in `results`.
"""

import numpy as np
import onnxruntime
from onnxruntime import GraphOptimizationLevel, InferenceSession, OrtValue, SessionOptions
from onnxruntime.training import artifacts
from onnxruntime.training.api import CheckpointState, LinearLRScheduler, Module, Optimizer

results = {}


def draw(seed, rows):
    """Images of 8 x 8 pixels, each with a bright stripe at a place that tells its class."""
    random = np.random.RandomState(seed)
    labels = random.randint(0, 4, rows).astype(np.int64)
    images = random.uniform(0, 0.5, (rows, 8, 8)).astype(np.float32)
    images[np.arange(rows), labels * 2] += np.float32(0.25)
    return images.reshape(rows, 64), labels


def batches(images, labels, size=16):
    for start in range(0, len(images), size):
        yield images[start : start + size], labels[start : start + size]


def summary(array):
    """Enough of a long array to tell it from others."""
    values = np.asarray(array, np.float64).ravel()
    return [values.sum(), np.abs(values).sum(), *values[:: max(1, len(values) // 8)]]


# ---- offline: the artifacts ----

onnxruntime.set_default_logger_severity(3)
onnxruntime.set_seed(7)
artifacts.generate_artifacts(
    "model.onnx",
    requires_grad=["fc1_weight", "fc1_bias", "fc2_weight"],
    frozen_params=["fc2_bias"],
    loss=artifacts.LossType.CrossEntropyLoss,
    optimizer=artifacts.OptimType.AdamW,
    artifact_directory=".",
    prefix="digits_",
    additional_output_names=["output"],
    nominal_checkpoint=True,
)

# ---- on the device: training with evaluation ----

options = SessionOptions()
options.intra_op_num_threads = 1
options.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
options.add_session_config_entry("session.disable_prepacking", "1")
state = CheckpointState.load_checkpoint("digits_checkpoint")
module = Module("digits_training_model.onnx", state, "digits_eval_model.onnx", device="cpu", session_options=options)
optimizer = Optimizer("digits_optimizer_model.onnx", module)
results["first_learning_rate"] = optimizer.get_learning_rate()
optimizer.set_learning_rate(0.01)

train_images, train_labels = draw(0, 128)
test_images, test_labels = draw(1, 50)


def train_epoch():
    module.train()
    losses = []
    for images, labels in batches(train_images, train_labels):
        loss, scores = module(images, labels)
        optimizer.step()
        module.lazy_reset_grad()
        losses.append(float(loss))
        assert scores.shape == (len(images), 4) and scores.dtype == np.float32
    return losses


def test_epoch():
    module.eval()
    losses, right = [], 0
    for images, labels in batches(test_images, test_labels):
        loss, scores = module(images, labels)
        losses.append(float(loss))
        right += int((scores.argmax(axis=1) == labels).sum())
    return losses, right / len(test_images)


results["losses"], results["test_losses"], results["accuracies"] = [], [], []
for epoch in range(3):
    results["losses"] += train_epoch()
    losses, accuracy = test_epoch()
    results["test_losses"] += losses
    results["accuracies"].append(accuracy)
    state.properties["epoch"] = epoch
    state.properties["accuracy"] = accuracy
state.properties["name"] = "digits"

# ---- gradients that add up, values, and a schedule ----

module.train()
results["names"] = [module.input_names(), module.output_names()[1:], module.eval().input_names()]
module.train()
for images, labels in list(batches(train_images, train_labels))[:2]:
    module(images, labels)
results["gradient"] = state.parameters["fc2_weight"].grad.ravel().tolist()
optimizer.step()
module.lazy_reset_grad()

scheduler = LinearLRScheduler(optimizer, 40, 40, 0.05)  # rises: in 1.19.2 the two counts are interchanged
results["rates"], results["scheduled_losses"] = [optimizer.get_learning_rate()], []
for images, labels in list(batches(train_images, train_labels))[:4]:
    loss = module(OrtValue.ortvalue_from_numpy(images), OrtValue.ortvalue_from_numpy(labels))[0]
    results["scheduled_losses"].append(float(loss.numpy()))
    assert loss.is_tensor() and loss.shape() == [] and loss.data_type() == "tensor(float)"
    optimizer.step()
    scheduler.step()
    module.lazy_reset_grad()
    results["rates"].append(optimizer.get_learning_rate())

results["parameters"] = {}
for name, parameter in state.parameters:
    results["parameters"][name] = [parameter.requires_grad, parameter.grad is None, *summary(parameter.data)]
assert "fc1_bias" in state.parameters and "fc9_bias" not in state.parameters and len(state.parameters) == 4

# ---- the parameters as one vector, as in federated learning ----

results["sizes"] = [module.get_parameters_size(), module.get_parameters_size(False)]
before = module.get_contiguous_parameters(trainable_only=True).numpy().copy()
train_epoch()
after = module.get_contiguous_parameters(trainable_only=True).numpy()
results["vector"] = summary(after - before)
mean = (before + after) / 2
module.copy_buffer_to_parameters(OrtValue.ortvalue_from_numpy(mean)._ortvalue, trainable_only=True)
results["losses_of_the_mean"] = test_epoch()[0]
state.parameters["fc2_bias"] = np.array([0.5, 0, 0, -0.5], np.float32)
state.parameters["fc1_bias"].data = np.zeros(16, np.float32)
results["losses_of_other_biases"] = test_epoch()[0]

# ---- checkpoints ----

CheckpointState.save_checkpoint(state, "saved", include_optimizer_state=True)
all_parameters = module.get_contiguous_parameters()
del optimizer, module
state = CheckpointState.load_checkpoint("saved")
results["properties"] = [[name, value] for name, value in state.properties]
module = Module("digits_training_model.onnx", state, "digits_eval_model.onnx")
optimizer = Optimizer("digits_optimizer_model.onnx", module)
optimizer.set_learning_rate(0.01)
results["losses_after_loading"] = train_epoch()

state = CheckpointState.load_checkpoint("digits_nominal_checkpoint")
module = Module("digits_training_model.onnx", state, "digits_eval_model.onnx")
optimizer = Optimizer("digits_optimizer_model.onnx", module)
module.copy_buffer_to_parameters(all_parameters, trainable_only=False)
results["losses_of_a_nominal_checkpoint"] = test_epoch()[0] + train_epoch()

# ---- the trained model ----

module.export_model_for_inferencing("trained.onnx", ["output"])
session = InferenceSession("trained.onnx", providers=["CPUExecutionProvider"])
results["inputs"] = [[one.name, one.type, list(one.shape[1:])] for one in session.get_inputs()]
results["outputs"] = [one.name for one in session.get_outputs()]
results["scores"] = session.run(None, {"input": test_images[:3]})[0].ravel().tolist()
results["scores_of_lists"] = session.run(["output"], {"input": test_images[:1].tolist()})[0].ravel().tolist()
