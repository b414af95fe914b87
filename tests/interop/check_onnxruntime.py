#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that the command has trained, in ONNX Runtime (the ordinary one, for inference), on request.

usage: check_onnxruntime.py ONNXTRAIN LIBRARY

ONNXTRAIN is the command, LIBRARY libonnxtrain.so. Needs onnxruntime, onnx, numpy; with torch also what PyTorch exports
(with onnxscript by both of its exporters). Checked are, after some epochs of training,

  golden   the models of tests/golden: the trained file passes ONNX's checker, keeps the names of the model's inputs and
           outputs, and ONNX Runtime gives the scores that ot_model_run() gives; as an .ort file it gives the same
  export   models of models.py: ONNX Runtime gives the scores of PyTorch's module, trained by PyTorch on the same data

Exit 1 when anything differs by more than f32 rounding carries through the steps.
"""
import contextlib
import copy
import ctypes
import io
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

HERE = pathlib.Path(__file__).parent
GOLDEN = HERE.parent / "golden" / "data"
SAME_FILE_AGREES = 2e-6  # of the largest score: one forward pass in f32 by two runtimes
TRAINING_AGREES = 1e-5  # the same after steps in f32 by two programs
ROWS, STEPS, RATE = 24, 6, 0.05
ELEMENT_TYPES = {np.dtype(np.float32): 1, np.dtype(np.int64): 7}


class Shape(ctypes.Structure):
    _fields_ = [("ndim", ctypes.c_int), ("dim", ctypes.c_int64 * 16)]


class Library:
    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.lib.ot_error_message.restype = ctypes.c_char_p
        self.lib.ot_tensor_data_const.restype = ctypes.c_void_p
        self.lib.ot_tensor_bytes.restype = ctypes.c_size_t

    def need(self, status):
        if status != 0:
            raise RuntimeError(self.lib.ot_error_message().decode())

    def save(self, path, target):
        model = ctypes.c_void_p()
        self.need(self.lib.ot_model_load(str(path).encode(), None, ctypes.byref(model)))
        self.need(self.lib.ot_model_save(model, str(target).encode(), None))
        self.lib.ot_model_destroy(model)

    def run(self, path, x):
        """The first output of a model of one input."""
        model, tensor, output = (ctypes.c_void_p() for _ in range(3))
        shape = Shape(x.ndim, (ctypes.c_int64 * 16)(*x.shape))
        self.need(self.lib.ot_model_load(str(path).encode(), None, ctypes.byref(model)))
        self.need(self.lib.ot_tensor_wrap(ELEMENT_TYPES[x.dtype], ctypes.byref(shape), x.ctypes.data_as(ctypes.c_void_p),
                                          ctypes.c_size_t(x.nbytes), ctypes.byref(tensor)))
        self.need(self.lib.ot_model_run(model, None, ctypes.byref(tensor), 1, ctypes.byref(output), 1))
        y = np.frombuffer(ctypes.string_at(self.lib.ot_tensor_data_const(output), self.lib.ot_tensor_bytes(output)),
                          dtype=np.float32).copy()
        for t in (tensor, output):
            self.lib.ot_tensor_destroy(t)
        self.lib.ot_model_destroy(model)
        return y.reshape(len(x), -1)


def run_onnxruntime(path, x):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options)
    return session.run(None, {session.get_inputs()[0].name: x})[0].reshape(len(x), -1)


def make_data(model, classes, below, path):
    """The arrays, and an .npz that binds to the model's only input."""
    random = np.random.default_rng(1)
    dims = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim][1:]
    is_real = model.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    x = (random.standard_normal((ROWS, *dims)).astype(np.float32) if is_real
         else random.integers(0, below, (ROWS, *dims)))
    labels = random.integers(0, classes, ROWS)
    np.savez(path, **{model.graph.input[0].name: x, "labels": labels})
    return x, labels


def train(command, model_path, data_path, out_path, *options):
    subprocess.run([command, "train", model_path, "--data", data_path, "--out", out_path, "--epochs", str(STEPS),
                    "--quiet", *options], check=True)
    trained = onnx.load(out_path)
    onnx.checker.check_model(trained, full_check=True)
    return trained


def distance(a, b):
    return float(np.abs(a - b).max() / np.abs(b).max())


def report(what, value, allowed):
    is_fine = value <= allowed
    print(f"{what}: differs by {value:.1e}{'' if is_fine else f', allowed are {allowed:.0e}'}")
    return is_fine


def check_golden(command, library, name, work):
    source = GOLDEN / f"{name}.onnxtxt"
    model = onnx.parser.parse_model(source.read_text())
    header = dict(line.split() for line in (GOLDEN / f"{name}.txt").read_text().splitlines()[:3])
    data, out = work / f"{name}.npz", work / f"{name}.trained.onnx"
    x, _ = make_data(model, int(header["classes"]), max(int(header["words"]), 1), data)
    trained = train(command, source, data, out, "--batch-size", "7", "--lr", "0.01")
    for kind in ("input", "output"):
        names = [v.name for v in getattr(model.graph, kind)]
        if [v.name for v in getattr(trained.graph, kind)] != names:
            print(f"{name}: the {kind}s are not {names}")
            return False
    scores = run_onnxruntime(out, x)
    library.save(out, work / f"{name}.ort")
    return (report(f"golden {name}", distance(library.run(out, x), scores), SAME_FILE_AGREES)
            & report(f"golden {name} as .ort", distance(run_onnxruntime(work / f"{name}.ort", x), scores), SAME_FILE_AGREES))


# ---- exports of PyTorch ----


def biased_statistics(torch, module):
    """ONNX moves running variances by the biased variance of the batch; PyTorch by the unbiased one."""

    def hook(norm, inputs):
        if not norm.training:
            return
        with torch.no_grad():
            x = inputs[0]
            var, mean = torch.var_mean(x, dim=[i for i in range(x.dim()) if i != 1], unbiased=False)
            norm.running_mean.lerp_(mean, 0.1)
            norm.running_var.lerp_(var, 0.1)

    for norm in module.modules():
        if isinstance(norm, torch.nn.modules.batchnorm._BatchNorm):
            norm.momentum = 0.0
            norm.register_forward_pre_hook(hook)


def train_in_torch(torch, module, exported, x, labels):
    """What the module gives in inference after training from the values in the exported file."""
    module = copy.deepcopy(module).train()
    state = module.state_dict()
    stored = {t.name: onnx.numpy_helper.to_array(t) for t in exported.graph.initializer}
    module.load_state_dict({n: torch.tensor(stored[n]) if n in stored and stored[n].shape == v.shape else v
                            for n, v in state.items()})
    biased_statistics(torch, module)
    optimizer = torch.optim.SGD(module.parameters(), lr=RATE)
    for _ in range(STEPS):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(module(torch.tensor(x)), torch.tensor(labels)).backward()
        optimizer.step()
    with torch.no_grad():
        return module.eval()(torch.tensor(x)).numpy()


def export(torch, module, example, path, kind):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        if kind == "dynamo":
            torch.onnx.export(module, (example,), path, dynamo=True, optimize=False, external_data=False,
                              input_names=["x"], output_names=["y"], dynamic_shapes=({0: torch.export.Dim("batch")},))
        else:
            torch.onnx.export(module, (example,), path, dynamo=False, opset_version=int(kind), input_names=["x"],
                              output_names=["y"], dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}},
                              do_constant_folding=False, training=torch.onnx.TrainingMode.TRAINING)


def check_exports(command, work):
    import torch

    import models

    kinds = ["13", "17"]
    with contextlib.suppress(ImportError):
        import onnxscript  # noqa: F401
        kinds.append("dynamo")
    is_fine = True
    torch.manual_seed(0)
    for name, module, example, loss, classes in models.models():
        if loss != "cross-entropy":
            continue
        for kind in kinds:
            path, data, out = (str(work / f"{name}-{kind}{end}") for end in (".onnx", ".npz", ".trained.onnx"))
            module.train()
            export(torch, module, example, path, kind)
            exported = onnx.load(path)
            x, labels = make_data(exported, classes, 50, data)
            train(command, path, data, out, "--batch-size", str(ROWS), "--optimizer", "sgd", "--lr", str(RATE))
            expected = train_in_torch(torch, module, exported, x, labels)
            is_fine &= report(f"export {name} ({kind})", distance(run_onnxruntime(out, x), expected), TRAINING_AGREES)
    return is_fine


def main():
    command, library = sys.argv[1], Library(sys.argv[2])
    onnxruntime.set_default_logger_severity(3)
    is_fine = True
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        for name in ("mlp", "lenet", "resnet", "transformer"):
            is_fine &= check_golden(command, library, name, work)
        try:
            import torch  # noqa: F401
        except ImportError:
            print("exports: not checked, there is no torch")
        else:
            is_fine &= check_exports(command, work)
    return 0 if is_fine else 1


if __name__ == "__main__":
    sys.exit(main())
