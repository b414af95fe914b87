# SPDX-License-Identifier: Apache-2.0
"""What docs/interop.md says beside the matrix, each tried: details.py FOLDER COMMAND

Exit 1 when either runtime does otherwise than the page says.
"""
import contextlib
import io
import logging
import os
import pathlib
import re
import subprocess
import sys

import cases
import matrix
import numpy as np
import onnx
import onnxtrain
import onnxtrain.api
import theirs
from session import Session



def refuses(message, call):
    try:
        call()
    except Exception as error:
        assert re.search(message, str(error)), f"'{error}', expected '{message}'"
    else:
        raise AssertionError(f"it works, expected '{message}'")


def artifacts_of(runtime, kind, loss, optimizer, folder):
    case = cases.build(cases.KINDS[kind], loss, optimizer)
    matrix.generate(case, runtime, folder, case.model)
    return case


def momentum(folder):
    case = cases.build(cases.KINDS["mlp"], "mse", "sgd")
    onnx.save(case.model, folder / "model.onnx")
    options = ["--out", folder, "--loss", "mse", "--optimizer", "sgd-momentum"]
    subprocess.run([sys.argv[2], "artifacts", folder / "model.onnx", *options], check=True, stdout=subprocess.DEVNULL)
    metadata = {entry.key for entry in onnx.load(folder / "optimizer_model.onnx").metadata_props}
    assert "onnxtrain.onnxruntime" in metadata, metadata
    Session(onnxtrain, folder, cases.RATE).step(cases.make_data(case, 0))
    refuses("SGDOptimizer", lambda: Session(theirs, folder, cases.RATE))


def state_of_another_optimizer(folder):
    artifacts_of("ours", "mlp", "mse", "adamw", f"{folder}/adamw")
    for runtime, package in matrix.RUNTIMES.items():
        case = artifacts_of(runtime, "mlp", "mse", "sgd", f"{folder}/{runtime}")
        session = Session(package, f"{folder}/{runtime}", cases.RATE)
        session.step(cases.make_data(case, 0))
        session.save(f"{folder}/{runtime}/saved", True)
        saved = f"{folder}/{runtime}/saved"
        Session(onnxtrain, f"{folder}/adamw", cases.RATE, saved).step(cases.make_data(case, 1))
        refuses("raw_hash_map", lambda path=saved: Session(theirs, f"{folder}/adamw", cases.RATE, path))


def exports_from_ort(folder):
    case = artifacts_of("ours", "ort", "mse", "sgd", f"{folder}/ours")
    refuses("Protobuf parsing failed", lambda: Session(theirs, f"{folder}/ours", cases.RATE, None, ".ort").export(
        f"{folder}/there.onnx"))
    Session(onnxtrain, f"{folder}/ours", cases.RATE, None, ".ort").export(f"{folder}/here.onnx")
    assert case.kind.additional == ("y",)


def values_fused_away(folder):
    case = cases.build(cases.Kind(cases.MLP, "", ort=True), "bce", "sgd")
    matrix.generate(case, "theirs", f"{folder}/theirs", case.model)
    refuses("'y'", lambda: Session(onnxtrain, f"{folder}/theirs", cases.RATE, None, ".ort").export(f"{folder}/y.onnx"))


def learning_rates(folder):
    case = artifacts_of("ours", "mlp", "mse", "adamw", f"{folder}/ours")
    session = Session(onnxtrain, f"{folder}/ours", 0.25)
    session.step(cases.make_data(case, 0))
    session.save(f"{folder}/first", True)
    state = theirs.api.CheckpointState.load_checkpoint(f"{folder}/first")
    module = theirs.api.Module(f"{folder}/ours/training_model.onnx", state)
    rate = theirs.api.Optimizer(f"{folder}/ours/optimizer_model.onnx", module).get_learning_rate()
    assert abs(rate - 0.001) < 1e-9, rate
    theirs.api.CheckpointState.save_checkpoint(state, f"{folder}/second", True)
    state = onnxtrain.api.CheckpointState.load_checkpoint(f"{folder}/second")
    module = onnxtrain.api.Module(f"{folder}/ours/training_model.onnx", state)
    rate = onnxtrain.api.Optimizer(f"{folder}/ours/optimizer_model.onnx", module).get_learning_rate()
    assert rate == 0.25, rate


def properties(folder):
    """Of every type, through either runtime and back."""
    artifacts_of("ours", "mlp", "mse", "sgd", f"{folder}/ours")
    given = {"epoch": -(2 ** 62), "best": 0.1, "name": "größer", "none": ""}
    for first, second in ((onnxtrain, theirs), (theirs, onnxtrain)):
        path = f"{folder}/ours/checkpoint"
        for package, name in ((first, "first"), (second, "second"), (first, "third")):
            state = package.api.CheckpointState.load_checkpoint(path)
            if name == "first":
                for key, value in given.items():
                    state.properties[key] = value
            found = dict(iter(state.properties))
            assert found == {**given, "best": float(np.float32(0.1))}, found
            path = f"{folder}/{name}"
            package.api.CheckpointState.save_checkpoint(state, path, True)


def checkpoints_into_models(folder):
    """load_checkpoint_to_model of either package takes the checkpoint of the other's save_checkpoint."""
    case = cases.build(cases.KINDS["mlp"], "mse", "sgd")
    for writer, reader in ((onnxtrain, theirs), (theirs, onnxtrain)):
        tensors = [onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(t) + 1, t.name) for t in case.tensors(case.trained)]
        path = f"{folder}/{writer.__name__}"
        writer.onnxblock.save_checkpoint((tensors, []), path)
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        reader.onnxblock.load_checkpoint_to_model(path, model)
        for found, expected in zip(model.graph.initializer, tensors):
            np.testing.assert_array_equal(onnx.numpy_helper.to_array(found), onnx.numpy_helper.to_array(expected))


def accumulations(folder):
    """A checkpoint with the group "onnxtrain", through the other package, has the same in it."""
    given = pathlib.Path(__file__).resolve().parents[1] / "fuzz" / "corpus" / "ckpt" / "accumulating"
    theirs.api.CheckpointState.save_checkpoint(theirs.api.CheckpointState.load_checkpoint(given), folder / "theirs", True)
    saved = []
    for path in (given, folder / "theirs"):
        state = onnxtrain.api.CheckpointState.load_checkpoint(path)
        saved.append(folder / f"{path.name}_again")
        onnxtrain.api.CheckpointState.save_checkpoint(state, saved[-1], True)
    contents = [path.read_bytes() for path in saved]
    assert contents[0] == contents[1]
    assert all(word in contents[0] for word in (b"onnxtrain\0", b"average", b"gradient", b"updates"))


DETAILS = (momentum, state_of_another_optimizer, exports_from_ort, values_fused_away, learning_rates, properties,
           checkpoints_into_models, accumulations)


def main():
    logging.disable(logging.INFO)
    n_failed = 0
    for detail in DETAILS:
        folder = pathlib.Path(os.path.abspath(sys.argv[1]), "details", detail.__name__)
        folder.mkdir(parents=True)
        title, problem = detail.__name__.replace("_", " "), ""
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                detail(folder)
        except Exception as error:
            problem = f", {type(error).__name__}: {error}"
            n_failed += 1
        print(f"{title}: {'FAILED' if problem else 'ok'}{problem}", flush=True)
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
