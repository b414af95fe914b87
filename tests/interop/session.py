# SPDX-License-Identifier: Apache-2.0
"""Training over a directory of artifacts, by onnxtrain or by ONNX Runtime training: both have this interface."""
import numpy as np


class Session:
    """Module, optimizer and state.

    `package` has `api` and `SessionOptions`. Without a `checkpoint` it is the artifacts' own, with `is_nominal` the
    nominal one, which then gets the values of the other.
    """

    def __init__(self, package, folder, rate, checkpoint=None, ending=".onnx", is_nominal=False):
        self.api, self.folder, self.ending = package.api, folder, ending
        self.options = package.SessionOptions()
        self.options.intra_op_num_threads = 1
        if checkpoint or not is_nominal:
            self.state, self.module = self.open_module(checkpoint or f"{folder}/checkpoint")
        else:
            self.state, self.module = self.open_module(f"{folder}/nominal_checkpoint")
            _, complete = self.open_module(f"{folder}/checkpoint")
            self.module.copy_buffer_to_parameters(complete.get_contiguous_parameters(False), False)
        self.optimizer = self.api.Optimizer(f"{folder}/optimizer_model{ending}", self.module)
        self.optimizer.set_learning_rate(rate)

    def open_module(self, checkpoint):
        state = self.api.CheckpointState.load_checkpoint(checkpoint)
        paths = [f"{self.folder}/{name}_model{self.ending}" for name in ("training", "eval")]
        return state, self.api.Module(paths[0], state, paths[1], session_options=self.options)

    def run(self, inputs):
        outputs = self.module(*inputs)
        return list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]

    def step(self, *batches):
        """The outputs of the last of the batches, whose gradients add up to one step."""
        self.module.train()
        self.module.lazy_reset_grad()
        for inputs in batches:
            outputs = self.run(inputs)
        self.optimizer.step()
        return outputs

    def evaluate(self, inputs):
        self.module.eval()
        return self.run(inputs)

    def save(self, path, with_optimizer_state):
        self.api.CheckpointState.save_checkpoint(self.state, path, with_optimizer_state)

    def parameters(self):
        return {name: np.asarray(parameter.data, np.float64) for name, parameter in self.state.parameters}

    def gradients(self):
        return {name: np.asarray(parameter.grad, np.float64) for name, parameter in self.state.parameters
                if parameter.requires_grad}

    def export(self, path):
        self.module.export_model_for_inferencing(str(path), ["y"])
