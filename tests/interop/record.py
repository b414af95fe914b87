# SPDX-License-Identifier: Apache-2.0
"""Record small cases for test_recorded.py: ./dev record-interop

Needs what matrix.py needs, and writes data/ anew. A zip for each case has the forward model, the artifacts that ONNX
Runtime 1.19.2 makes of it and ours, a checkpoint of each after half of the steps, and what 1.19.2 got: the losses of ten
steps and the parameters after them, with how far another runtime may be off (matrix.py tells how that is measured).

Nothing is recorded unless 1.19.2 trained with our files as with its own.
"""
import json
import logging
import os
import pathlib
import shutil
import tempfile
import zipfile

import numpy as np
import onnx

import cases
import matrix
from session import Session

DATA = pathlib.Path(__file__).resolve().parent / "data"
HALF = cases.STEPS // 2
RECORDED = (("mlp", "l1", "sgd"), ("cnn", "bce", "adamw"), ("transformer", "cross-entropy", "adamw"), ("lstm", "mse", "adamw"),
            ("gru", "cross-entropy", "sgd"), ("frozen", "custom", "adamw"), ("loss-inputs", "mse", "adamw"),
            ("nominal", "l1", "sgd"), ("ort", "mse", "adamw"))


def arguments(case):
    """Of generate_artifacts, for our package; loss and optimizer by the names of their types."""
    losses = {"cross-entropy": "CrossEntropyLoss", "mse": "MSELoss", "l1": "L1Loss", "bce": "BCEWithLogitsLoss", "custom": None}
    optimizers = {"adamw": "AdamW", "sgd": "SGD"}
    return {"loss": losses[case.loss], "optimizer": optimizers[case.optimizer], "requires_grad": case.trained,
            "frozen_params": case.frozen, "additional_output_names": list(case.kind.additional), "ort_format": case.kind.ort,
            "nominal_checkpoint": case.kind.nominal, "loss_input_names": case.loss_inputs}


def save_values(path, case, reference, found):
    names = [name for name in found if name.startswith(("loss of step", "parameter"))]
    inputs = [cases.make_data(case, step) for step in range(cases.STEPS)]
    np.savez_compressed(path, x=np.stack([x for x, _ in inputs]), target=np.stack([target for _, target in inputs]),
                        names=names, allowed=[reference.allowed[True][name] for name in names],
                        **{f"value {i}": found[name] for i, name in enumerate(names)})


def record(kind, loss, optimizer, work):
    name = f"{kind}-{loss}-{optimizer}"
    case = cases.build(cases.KINDS[kind], loss, optimizer)
    reference = matrix.Reference(case, f"{work}/{name}")
    ending = case.kind.ending
    target = pathlib.Path(work, "records", name)
    target.mkdir(parents=True)
    (target / "arguments.json").write_text(json.dumps(arguments(case), indent=1) + "\n")
    (target / "model.onnx").write_bytes(case.model.SerializeToString())
    for runtime, package in matrix.RUNTIMES.items():
        folder = f"{work}/{name}/{runtime}"
        matrix.generate(case, runtime, folder, case.model)
        session = Session(package, folder, cases.RATE, None, ending, case.kind.nominal)
        for step in range(HALF):
            session.step(cases.make_data(case, step))
        session.save(f"{folder}/checkpoint-half", True)
        found = matrix.train(case, folder, [("theirs", cases.STEPS)])
        continued = Session(matrix.theirs, folder, cases.RATE, f"{folder}/checkpoint-half", ending)
        for step in range(HALF, cases.STEPS):
            continued.step(cases.make_data(case, step))
        halves = {f"parameter {parameter}": value for parameter, value in continued.parameters().items()}
        for values in (found, {**found, **halves}):
            _, wrong = reference.compare(values, True)
            assert not wrong, (name, runtime, wrong)
        if runtime == "theirs":
            save_values(target / "values.npz", case, reference, found)
        (target / runtime).mkdir()
        for file in pathlib.Path(folder).iterdir():
            if "checkpoint" in file.name or file.name.endswith(f"_model{ending}"):
                shutil.copy(file, target / runtime)
    pack(target, DATA / f"{name}.zip")


def pack(folder, path):
    """Without times, so that the same files give the same bytes."""
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.writestr(zipfile.ZipInfo(str(file.relative_to(folder))), file.read_bytes(), zipfile.ZIP_DEFLATED)


def main():
    logging.disable(logging.INFO)
    shutil.rmtree(DATA, ignore_errors=True)
    DATA.mkdir()
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        for case in RECORDED:
            record(*case, work)
            print(*case, flush=True)


if __name__ == "__main__":
    main()
