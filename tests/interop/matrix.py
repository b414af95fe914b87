# SPDX-License-Identifier: Apache-2.0
"""One row of the interchange matrix, every loss with every optimizer: matrix.py KIND FOLDER

FOLDER receives the artifacts, KIND.json with the results and, under exports/, models for exported.py. Each case trains
ten steps over artifacts of ONNX Runtime 1.19.2 and over ours, each in both runtimes, and handed over twice on the way,
as checkpoints with and without optimizer state, in either direction.

Expected is the same training by our library in f64. Allowed is FACTOR times the rounding of f32: the largest error of
our own runs in f32 that differ only in the order of the rows of each batch and in the last bit of the parameters before
each step, and at least half a unit in the last place. Every quantity has its own: each loss, each gradient of the last
step, each parameter after it.

matrix.py --refused KIND ARTIFACTS FOLDER does what 1.19.2 is expected to refuse and says what it said.
"""
import contextlib
import io
import json
import logging
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import onnx

import cases
import onnxtrain
import onnxtrain.api
import onnxtrain.artifacts
import onnxtrain.onnxblock
import theirs
from external import write_checkpoint
from session import Session

FACTOR = 8
NOISE_RUNS = 16
HALF_UNIT = 2.0 ** -24
RUNTIMES = {"ours": onnxtrain, "theirs": theirs}
PRIVATE, PRIVATE_REFUSED = "onnxtrain.onnxruntime", r"ai\.onnxtrain:\w+\(-1\) is not a registered function/op"
EXPORTED = "y of the exported model"
HAND_OVER = (3, 4, 3)  # steps before, between and after


def block_loss(onnxblock):
    class SquaresAndDistances(onnxblock.Block):
        def __init__(self):
            super().__init__()
            self.mse, self.l1, self.add = onnxblock.loss.MSELoss("sum"), onnxblock.loss.L1Loss(), onnxblock.blocks.Add()

        def build(self, y):
            return self.add(self.mse(y), self.l1(y))

    return SquaresAndDistances()


def block_optimizer(onnxblock, optimizer):
    clip = onnxblock.optim.ClipGradNorm(0.5)
    return onnxblock.optim.AdamW(clip_grad=clip) if optimizer == "adamw" else onnxblock.optim.SGD(clip_grad=clip)


def generate(case, runtime, folder, model):
    """The artifacts of `model` by one of the two packages."""
    make = RUNTIMES[runtime].artifacts
    losses = {"cross-entropy": make.LossType.CrossEntropyLoss, "mse": make.LossType.MSELoss,
              "l1": make.LossType.L1Loss, "bce": make.LossType.BCEWithLogitsLoss, "custom": None}
    optimizers = {"adamw": make.OptimType.AdamW, "sgd": make.OptimType.SGD}
    loss, optimizer = losses[case.loss], optimizers[case.optimizer]
    if case.kind.blocks:
        onnxblock = RUNTIMES[runtime].onnxblock
        loss, optimizer = block_loss(onnxblock), block_optimizer(onnxblock, case.optimizer)
    os.makedirs(folder)
    if case.kind.external:
        copy = onnx.ModelProto()  # saving moves the values out
        copy.CopyFrom(model)
        onnx.save(copy, f"{folder}/model.onnx", save_as_external_data=True, size_threshold=0, location="model.data")
        model = f"{folder}/model.onnx"
    with contextlib.redirect_stdout(io.StringIO()):
        make.generate_artifacts(
            model, requires_grad=case.trained, frozen_params=case.frozen, loss=loss, optimizer=optimizer,
            artifact_directory=folder, ort_format=case.kind.ort, additional_output_names=list(case.kind.additional) or None, nominal_checkpoint=case.kind.nominal,
            loss_input_names=case.loss_inputs)
    if case.kind.external:
        write_checkpoint(f"{folder}/in_two_files", case.tensors(case.trained), case.tensors(case.frozen))


def prepare(case, step, dtype, order):
    return [(a[order].astype(dtype) if a.dtype == np.float32 else a[order]) for a in cases.make_data(case, step)]


def quantities(case, prefix, outputs, order):
    """Rows of outputs go back to where they were."""
    names = ["loss", *case.kind.additional]
    return {f"{name} of {prefix}": (np.asarray(v, np.float64)[np.argsort(order)] if np.ndim(v) else np.float64(v))
            for name, v in zip(names, outputs)}


def change_last_bits(state, random):
    for _, parameter in state.parameters:
        value = np.asarray(parameter.data)
        if parameter.requires_grad:
            parameter.data = np.nextafter(value, random.choice([-np.inf, np.inf], value.shape).astype(np.float32))


def check_vector(case, session):
    """The parameters as one vector stand in the order of the forward model's initializers."""
    values = session.parameters()
    expected = np.concatenate([values[t.name].ravel() for t in case.model.graph.initializer if t.name in values])
    np.testing.assert_array_equal(session.module.get_contiguous_parameters(False).numpy(), expected)


def train(case, folder, segments, keep=True, dtype=np.float32, seed=None, export=None):
    """What ten steps give: (runtime, steps) of each segment; between them goes a checkpoint. With a seed: rounded otherwise."""
    random = np.random.default_rng(seed)
    order = np.arange(cases.ROWS)
    in_two_files = case.kind.external and len(segments) > 1
    found, done, checkpoint = {}, 0, f"{folder}/in_two_files" if in_two_files and dtype == np.float32 else None
    for number, (runtime, steps) in enumerate(segments):
        session = Session(RUNTIMES[runtime], folder, cases.RATE, checkpoint, case.kind.ending, case.kind.nominal)
        for step in range(done, done + steps):
            if seed is not None:
                order = random.permutation(cases.ROWS)
                change_last_bits(session.state, random)
            batches = [prepare(case, step + part * cases.STEPS, dtype, order) for part in range(case.kind.batches)]
            found.update(quantities(case, f"step {step}", session.step(*batches), order))
        done += steps
        checkpoint = f"{folder}/checkpoint-{number}"
        if number + 1 < len(segments):
            session.save(checkpoint, keep)
    order = np.arange(cases.ROWS)
    inputs = prepare(case, 0, dtype, order)
    found.update(quantities(case, "evaluation", session.evaluate(inputs), order))
    found.update({f"gradient {name}": value for name, value in session.gradients().items()})
    found.update({f"parameter {name}": value for name, value in session.parameters().items()})
    if dtype == np.float32:
        check_vector(case, session)
    if export and case.kind.ort and runtime == "theirs":
        try:
            session.export(export)
        except RuntimeError as error:
            assert "Protobuf parsing failed" in str(error), error
        else:
            raise AssertionError("1.19.2 exports from an .ort file, which it is not expected to")
    elif export:
        session.export(export)
        if runtime == "ours":
            found[EXPORTED] = onnxtrain.InferenceSession(str(export)).run(["y"], {"x": inputs[0]})[0].astype(np.float64)
    return found


def hand_over(first, second):
    return [(runtime, steps) for runtime, steps in zip((first, second, first), HAND_OVER)]


class Reference:
    """What to expect and how much of an error: for training in one go, and without optimizer state on the way."""

    def __init__(self, case, folder):
        generate(case, "ours", f"{folder}/f64", cases.in_double(case.model))
        generate(case, "ours", f"{folder}/f32", case.model)
        self.expected, self.allowed = {}, {}
        for keep in (True, False):
            segments = hand_over("ours", "ours")
            exact = train(case, f"{folder}/f64", segments, keep, np.float64, export=f"{folder}/f64/exported.onnx")
            noise = dict.fromkeys(exact, 0.0)
            for run in range(NOISE_RUNS):
                rounded = train(case, f"{folder}/f32", segments, keep, seed=run, export=f"{folder}/f32/exported.onnx")
                for name, value in exact.items():
                    noise[name] = max(noise[name], np.linalg.norm(rounded[name] - value))
            self.expected[keep] = exact
            self.allowed[keep] = {name: FACTOR * max(noise[name], HALF_UNIT * np.linalg.norm(value))
                                  for name, value in exact.items()}

    def save_exported(self, case, path):
        np.savez(path, x=cases.make_data(case, 0)[0], y=self.expected[True][EXPORTED], allowed=self.allowed[True][EXPORTED])

    def compare(self, found, keep):
        """The largest share of what is allowed, and what exceeds it."""
        worst, wrong = 0.0, []
        expected, allowed = self.expected[keep], self.allowed[keep]
        missing = (expected.keys() ^ found.keys()) - {EXPORTED}
        if missing:
            wrong.append(f"found on one side only: {sorted(missing)}")
        for name in found.keys() & expected.keys():
            if found[name].shape != expected[name].shape:
                wrong.append(f"{name}: shape {found[name].shape}, expected {expected[name].shape}")
                continue
            distance = np.abs(found[name] - expected[name])
            share = float(np.linalg.norm(distance) / allowed[name])
            worst = max(worst, share)
            if not share <= 1:  # not >: NaN must fail
                at = np.unravel_index(np.argmax(distance), distance.shape)
                wrong.append(f"{name}{list(map(int, at))}: found {found[name][at]:.9g}, expected {expected[name][at]:.9g}, "
                             f"{share:.3g} times what is allowed")
        return worst, wrong


def says_private(folder):
    """Whether the training model says that ONNX Runtime cannot load it."""
    return any(entry.key == PRIVATE for entry in onnx.load(f"{folder}/training_model.onnx").metadata_props)


class Row:
    """Runs the cases of a kind and keeps the results."""

    def __init__(self, name, folder):
        self.name, self.kind, self.folder, self.results = name, cases.KINDS[name], folder, []

    def routes(self, case, artifacts, folder, exports):
        """(name, function that gives what was found, whether optimizer state is kept)."""
        for runtime in RUNTIMES:
            yield (f"{artifacts} artifacts in {runtime}", lambda r=runtime: train(
                case, folder, [(r, cases.STEPS)], export=f"{exports}/{artifacts} artifacts in {r}.onnx"), True)
        for keep in (True, False):
            for first, second in (("ours", "theirs"), ("theirs", "ours")):
                yield (f"{artifacts} artifacts from {first} to {second} and back, with{'' if keep else 'out'} optimizer state",
                       lambda f=first, s=second, k=keep: train(case, folder, hand_over(f, s), k), keep)

    def refusal(self, artifacts):
        """What is wrong with how 1.19.2 refuses; nothing if it does as expected."""
        expected = PRIVATE_REFUSED if artifacts == "ours" else self.kind.refused
        command = [sys.executable, os.path.abspath(__file__), "--refused", self.name, artifacts, f"{self.folder}/{self.name}"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        said = done.stdout if done.returncode >= 0 else f"ended by signal {-done.returncode}"
        if re.search(expected, said):
            return []
        return [f"{artifacts} artifacts: 1.19.2 is expected to say '{expected}', it said: {said}"]

    def run(self, loss, optimizer):
        case = cases.build(self.kind, loss, optimizer)
        folder = f"{self.folder}/{self.name}/{loss}-{optimizer}"
        label = f"{self.name} {loss} {optimizer}"
        exports = f"{self.folder}/exports/{label}"
        os.makedirs(exports)
        reference = Reference(case, folder)
        reference.save_exported(case, f"{exports}/expected.npz")
        shares, problems = {}, []
        for artifacts in RUNTIMES:
            is_refused = artifacts == "theirs" and self.kind.refused
            if not is_refused:
                generate(case, artifacts, f"{folder}/{artifacts}", case.model)
            if is_refused or self.kind.refused and says_private(f"{folder}/{artifacts}"):
                problems += self.refusal(artifacts)
                continue
            for route, go, keep in self.routes(case, artifacts, f"{folder}/{artifacts}", exports):
                try:
                    shares[route], wrong = reference.compare(go(), keep)
                except Exception as error:  # whatever either runtime raises is this route's failure
                    wrong = [f"{type(error).__name__}: {error}"]
                problems += [f"{route}: {line}" for line in wrong]
        worst = f", at most {max(shares.values()):.2f} of what is allowed" if shares else ", refused as expected"
        print(f"{label}: {'FAILED' if problems else 'ok'}, {len(shares)} ways{worst}", flush=True)
        for line in problems:
            print(f"    {label}: {line}", flush=True)
        self.results.append({"loss": loss, "optimizer": optimizer, "shares": shares, "problems": problems})


def say_refusal(name, artifacts, folder):
    case = cases.build(cases.KINDS[name], "cross-entropy", "adamw")
    folder = f"{folder}/refused-{artifacts}"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        generate(case, artifacts, folder, case.model)
        train(case, folder, [("theirs", 1)])
    except Exception as error:
        print(error)


def main():
    logging.disable(logging.INFO)
    if sys.argv[1] == "--refused":
        say_refusal(*sys.argv[2:])
        return 0
    row = Row(sys.argv[1], os.path.abspath(sys.argv[2]))
    os.makedirs(f"{row.folder}/{row.name}", exist_ok=True)
    os.chdir(f"{row.folder}/{row.name}")  # here go temporary files of 1.19.2
    for loss in row.kind.losses:
        for optimizer in row.kind.optimizers:
            row.run(loss, optimizer)
    pathlib.Path(row.folder, f"{row.name}.json").write_text(json.dumps(row.results))
    return 1 if any(result["problems"] for result in row.results) else 0


if __name__ == "__main__":
    sys.exit(main())
