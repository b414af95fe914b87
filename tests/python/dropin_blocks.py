# SPDX-License-Identifier: Apache-2.0
"""A script as people write them with onnxblock of ONNX Runtime training: a loss over two outputs with a target each, a
block that edits the model by hand, models made without generate_artifacts, checkpoints. test_dropin.py runs it with its
imports changed; record_signatures.py runs it as it is.

Works in the current folder; leaves its numbers in `results`.
"""

import numpy as np
import onnx.numpy_helper
import onnx.parser
from dropin_model import two_outputs
from onnxruntime.training import artifacts, onnxblock
from onnxruntime.training.api import CheckpointState, Module, Optimizer

results = {}


class WeightedAverageLoss(onnxblock.Block):
    def __init__(self):
        super().__init__()
        self._loss1 = onnxblock.loss.MSELoss()
        self._loss2 = onnxblock.loss.CrossEntropyLoss()
        self._w1 = onnxblock.blocks.Constant(0.4)
        self._w2 = onnxblock.blocks.Constant(0.6)
        self._add = onnxblock.blocks.Add()
        self._mul = onnxblock.blocks.Mul()

    def build(self, loss_input_name1, loss_input_name2):
        loss1 = self._mul(self._w1(), self._loss1(loss_input_name1, target_name="target1"))
        loss2 = self._mul(self._w2(), self._loss2(loss_input_name2, labels_name="labels2"))
        return self._add(loss1, loss2)


class PseudoHuber(onnxblock.Block):
    """mean(sqrt(1 + d^2) - 1), its nodes written by hand."""

    def __init__(self):
        super().__init__()
        self._like = onnxblock.blocks.InputLike("position")
        self._mean = onnxblock.blocks.ReduceMean(keepdims=False)

    def build(self, output_name):
        target = self._like("wanted")
        graph = self.base.graph
        graph.initializer.append(onnx.helper.make_tensor("one", onnx.TensorProto.FLOAT, [1], [1.0]))
        graph.node.extend(
            [
                onnx.helper.make_node("Sub", [output_name, target], ["difference"], "subtract"),
                onnx.helper.make_node("Mul", ["difference", "difference"], ["square"], "square_it"),
                onnx.helper.make_node("Add", ["square", "one"], ["above"], "add_one"),
                onnx.helper.make_node("Sqrt", ["above"], ["root"], "root_of_it"),
                onnx.helper.make_node("Sub", ["root", "one"], ["each"], "subtract_one"),
            ]
        )
        return self._mean("each")


class TrainPosition(onnxblock.TrainingBlock):
    def __init__(self):
        super().__init__()
        self._loss = PseudoHuber()

    def build(self, output_name):
        return self._loss(output_name), output_name


class Head(onnxblock.ForwardBlock):
    """A model from nothing."""

    def __init__(self):
        super().__init__()
        self._linear = onnxblock.blocks.Linear(3, 2)
        self._clip = onnxblock.blocks.Clip(-1.0, 1.0)

    def build(self, input_name):
        self.base.graph.input.append(
            onnx.helper.make_tensor_value_info(input_name, onnx.TensorProto.FLOAT, ["batch", 3])
        )
        return self._clip(self._linear(input_name))


def draw(seed, rows=16):
    random = np.random.RandomState(seed)
    x = random.uniform(-1, 1, (rows, 6)).astype(np.float32)
    target = np.stack([x[:, :3].sum(1), x[:, 3:].prod(1)], 1).astype(np.float32)
    return x, target, (x[:, 0] > 0).astype(np.int64) + (x[:, 1] > 0)


def train(prefix, steps, arguments):
    state = CheckpointState.load_checkpoint(prefix + "checkpoint")
    module = Module(prefix + "training_model.onnx", state, prefix + "eval_model.onnx")
    optimizer = Optimizer(prefix + "optimizer_model.onnx", module)
    optimizer.set_learning_rate(0.02)
    losses = []
    for step in range(steps):
        given = module(*arguments(step))
        losses.append(float(np.ravel(given[0] if isinstance(given, (list, tuple)) else given)[0]))
        optimizer.step()
        module.lazy_reset_grad()
    module.eval()
    given = module(*arguments(steps))
    losses.append(float(np.ravel(given[0] if isinstance(given, (list, tuple)) else given)[0]))
    parameters = {name: np.asarray(one.data, np.float64).ravel().tolist() for name, one in state.parameters}
    results[prefix + "losses"] = losses
    results[prefix + "inputs"] = list(module.input_names())
    results[prefix + "parameters"] = {name: parameters[name][:6] for name in sorted(parameters)}


# ---- a block as loss and one as optimizer ----

model = two_outputs(onnx)
onnx.save(model, "model.onnx")
clip = onnxblock.optim.ClipGradNorm(0.2)
artifacts.generate_artifacts(
    "model.onnx",
    requires_grad=["w1", "w2", "w3"],
    frozen_params=["b1"],
    loss=WeightedAverageLoss(),
    optimizer=onnxblock.optim.AdamW(betas=(0.8, 0.99), eps=1e-7, weight_decay=0.05, clip_grad=clip),
    artifact_directory=".",
    prefix="sum_",
)
train("sum_", 12, draw)

# ---- everything by hand ----

training = TrainPosition()
training.requires_grad("w1")
training.requires_grad("w2")
training.requires_grad("b1", False)
with onnxblock.base(model):
    training("position")
    training_model, eval_model = training.to_model_proto()
trainable, frozen = training.parameters()
results["kinds"] = [[tensor.name for tensor in trainable], [tensor.name for tensor in frozen]]
with onnxblock.empty_base():
    optimizer = onnxblock.optim.SGD()
    optimizer(training.parameters())
    onnx.save(optimizer.to_model_proto(), "hand_optimizer_model.onnx")
onnx.save(training_model, "hand_training_model.onnx")
onnx.save(eval_model, "hand_eval_model.onnx")
onnxblock.save_checkpoint(training.parameters(), "hand_checkpoint")
train("hand_", 6, lambda step: draw(step)[:2])

# ---- parameters back into the forward model ----

state = CheckpointState.load_checkpoint("hand_checkpoint")
loaded = onnx.ModelProto()
loaded.CopyFrom(model)
for tensor in loaded.graph.initializer:
    tensor.CopyFrom(onnx.numpy_helper.from_array(np.zeros((1,), np.float32), tensor.name))
onnxblock.load_checkpoint_to_model("hand_checkpoint", loaded)
results["loaded"] = [list(tensor.dims) for tensor in loaded.graph.initializer]

# ---- a model from nothing ----

with onnxblock.empty_base(17):
    head = Head()
    head("features")
    built = head.to_model_proto()
results["built"] = [node.op_type for node in built.graph.node]
results["built_inputs"] = [value.name for value in built.graph.input]
results["built_shapes"] = [list(tensor.dims) for tensor in built.graph.initializer][:2]
results["errors"] = []
for call in (
    training.parameters,
    lambda: TrainPosition().parameters(),
    lambda: Head().to_model_proto(),
    lambda: onnxblock.loss.MSELoss(reduction="median"),
    lambda: onnxblock.base(None).__enter__(),
    lambda: onnxblock.custom_op_library("/no/such/library.so").__enter__(),
    lambda: onnxblock.save_checkpoint(None, "nothing"),
):
    try:
        call()
        results["errors"].append("none")
    except (LookupError, TypeError, RuntimeError) as error:
        kinds = [kind for kind in (LookupError, TypeError, RuntimeError) if isinstance(error, kind)]
        results["errors"].append(kinds[0].__name__)
