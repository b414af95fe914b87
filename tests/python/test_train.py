# SPDX-License-Identifier: Apache-2.0
"""The short way: onnxtrain.train."""

import contextlib
import gzip
import io
import json
import os
import tempfile
import unittest
import warnings
from pathlib import Path

import numpy as np
from network import START, TEXT, cross_entropy

import onnxtrain
from onnxtrain import _core
from onnxtrain.artifacts import LossType, OptimType, generate_artifacts


def points(rows=200, seed=0):
    """Two classes that a line divides."""
    x = np.random.default_rng(seed).normal(size=(rows, 3)).astype(np.float32)
    return x, (x[:, 0] + x[:, 1] > 0).astype(np.int64)


def forward(row):
    """Scores of the network for one row."""
    return np.maximum(row @ START["w1"] + START["b1"], 0) @ START["w2"] + START["b2"]


def quiet(data, model=TEXT, **options):
    options.setdefault("learning_rate", 0.02)
    return onnxtrain.train(model, data, progress=False, **options)


HEADS = b"""<ir_version: 8, opset_import: ["" : 17]> net (float[N, 1] x) => (float[N, 1] near, float[N, 1] far)
<float[1, 1] v = {0.5}, float[1, 1] w = {2}> { near = MatMul(x, v) far = MatMul(x, w) }"""
SQUARES = b"""<ir_version: 8, opset_import: ["" : 17]> loss (float[N, 1] far, float[N, 1] aim) => (float value)
{ d = Sub(far, aim) q = Mul(d, d) value = ReduceMean<keepdims = 0>(q) }"""
TOKENS = b"""<ir_version: 8, opset_import: ["" : 17]> net (float[N, 3, 2] x) => (float[N, 3, 2] scores)
<float[2, 2] w = {1, 0, 0, 1}> { scores = MatMul(x, w) }"""
STEP = {"optimizer": "sgd", "learning_rate": 0.1, "epochs": 1, "batch_size": 100}


class LossesTest(unittest.TestCase):
    """One step of plain gradient descent: parameters by the formulas of the losses."""

    x = np.array([[1], [2], [-1], [0.5]], np.float32)
    near, far = np.array([[1], [0], [2], [1]], np.float32), np.array([[3], [1], [0], [-2]], np.float32)

    def step(self, loss, data, **options):
        return quiet({"x": self.x, **data}, HEADS, loss=loss, **STEP, **options)

    def assert_parameters(self, result, v, w):
        self.assertAlmostEqual(result.state.parameters["v"].data.item(), v, places=6)
        self.assertAlmostEqual(result.state.parameters["w"].data.item(), w, places=6)

    def test_lion_steps_by_the_sign_and_decays_what_it_may(self):
        gradients = [np.sum(2 * (self.x * start - target) * self.x) for start, target in ((0.5, self.near), (2, self.far))]
        terms = [{"input": "near", "loss": "mse", "target": "near_aim"}, {"input": "far", "loss": "mse", "target": "far_aim"}]
        data = {"x": self.x, "near_aim": self.near, "far_aim": self.far}
        options = {**STEP, "optimizer": "lion", "weight_decay": 0.5, "no_decay": ["v"]}
        result = quiet(data, HEADS, loss=terms, **options)
        v, w = (0.5 - 0.1 * np.sign(gradients[0]), 2 - 0.1 * (np.sign(gradients[1]) + 0.5 * 2))
        self.assert_parameters(result, v, w)

    def test_every_optimizer_of_the_library_trains(self):
        for name in ("adam", "lamb", "adagrad", "rmsprop", "lion"):
            with self.subTest(name):
                result = quiet(points(), optimizer=name, epochs=8, learning_rate=0.01)
                self.assertLess(result.metrics["loss"], result.history[0]["loss"])

    def test_targets_of_binary_cross_entropy_are_0_to_1(self):
        with self.assertRaisesRegex(onnxtrain.InvalidArgument, "row 3, element 1: 2 is outside 0..1"):
            self.step("bce-with-logits", {"target": self.near})

    def test_a_second_softmax_is_warned_of(self):
        text = TOKENS.replace(b"scores = MatMul(x, w)", b"m = MatMul(x, w) scores = Softmax(m)")
        data = np.ones((4, 3, 2), np.float32), np.zeros((4, 3), np.int64)
        with self.assertWarnsRegex(UserWarning, "cross-entropy takes 'scores', which comes after Softmax"):
            result = quiet(data, text, class_axis=-1, epochs=1)
        self.assertEqual(len(result.notes), 1)
        self.assertIn("take 'm' as loss input", result.notes[0])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertEqual(quiet(data, text, class_axis=-1, epochs=1, loss_input="m").notes, [])

    def squares(self, w=2.0):
        """Loss of `far` and its slope by w, by the mean of squares."""
        d = w * self.x - self.far
        return (d * d).mean(), 2 * (d * self.x).mean()

    def absolutes(self):
        d = 0.5 * self.x - self.near
        return np.abs(d).mean(), (np.sign(d) * self.x).mean()

    def test_terms_are_summed_with_their_weights(self):
        terms = [
            {"loss": "l1", "input": "near", "target": "a"},
            {"loss": "mse", "weight": 0.25, "input": "far", "target": "b"},
        ]
        result = self.step(terms, {"a": self.near, "b": self.far})
        (l1, l1_slope), (mse, mse_slope) = self.absolutes(), self.squares()
        self.assert_parameters(result, 0.5 - 0.1 * l1_slope, 2 - 0.1 * 0.25 * mse_slope)
        self.assertAlmostEqual(result.history[0]["loss"], l1 + 0.25 * mse, places=6)
        self.assertAlmostEqual(result.history[0]["mae"], l1, places=6)  # metrics are those of the first term

    def test_a_pair_is_a_loss_with_its_weight(self):
        twice = self.step([("l1", 2)], {"target": self.near}, frozen=["w"])
        self.assertAlmostEqual(twice.history[0]["loss"], 2 * self.absolutes()[0], places=6)

    def test_a_loss_may_be_a_model(self):
        result = self.step([(SQUARES, 0.5)], {"aim": self.far}, frozen=["v"])
        loss, slope = self.squares()
        self.assert_parameters(result, 0.5, 2 - 0.1 * 0.5 * slope)
        self.assertAlmostEqual(result.history[0]["loss"], 0.5 * loss, places=6)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "loss.onnxtxt"
            path.write_bytes(SQUARES)
            again = self.step(str(path), {"aim": self.far}, frozen=["v"])
        self.assertAlmostEqual(again.history[0]["loss"], loss, places=6)

    def test_a_reduction_sums_over_the_batch(self):
        result = self.step("mse", {"target": self.far}, loss_input="far", reduction="sum", frozen=["v"])
        self.assert_parameters(result, 0.5, 2 - 0.1 * 4 * self.squares()[1])

    def test_classes_have_weights_and_labels_may_not_count(self):
        x = np.array([[1, 0, 2], [0, 1, -1], [2, 1, 0], [1, 1, 1]], np.float32)
        labels, weights = np.array([0, 1, 7, 1]), [0.25, 2]
        result = quiet((x, labels), class_weights=weights, ignore_index=7, **STEP)
        scores = np.array([forward(row) for row in x], np.float64)
        log = np.log(np.exp(scores) / np.exp(scores).sum(1, keepdims=True))
        counted = [0, 1, 3]
        weight = np.array([weights[label] for label in labels[counted]])
        expected = -(weight * log[counted, labels[counted]]).sum() / weight.sum()
        self.assertAlmostEqual(result.history[0]["loss"], expected, places=6)

    def test_classes_may_be_on_the_last_axis(self):
        x = np.array([[[1, 0], [0, 1], [2, 1]], [[1, 1], [-1, 0], [0, 2]]], np.float32)
        labels = np.array([[0, 1, 0], [1, 1, 0]])
        result = quiet((x, labels), model=TOKENS, class_axis=-1, **STEP)
        log = np.log(np.exp(x.astype(float)) / np.exp(x.astype(float)).sum(-1, keepdims=True))
        self.assertAlmostEqual(result.history[0]["loss"], -np.take_along_axis(log, labels[..., None], -1).mean(), places=6)
        self.assertAlmostEqual(result.history[0]["accuracy"], (x.argmax(-1) == labels).mean(), places=6)

    def test_what_is_no_loss_is_told(self):
        for loss, options, text in (
            ([], {}, "the list is empty"),
            ([("mse", 1), "hinge"], {}, "loss 'hinge' is not one of"),
            ({"los": "mse"}, {}, "has 'los'"),
            ({"weight": 1}, {}, "lacks 'loss'"),
            (["mse", "l1"], {"target": "a"}, "of a single loss"),
            ("mse", {"ignore_index": 3}, "of cross-entropy, which no loss is"),
            ("mse", {"reduction": "max"}, "reduction 'max' is not one of"),
        ):
            with self.subTest(text), self.assertRaisesRegex(ValueError, text):
                self.step(loss, {"target": self.far}, **options)
        with self.assertRaisesRegex(ArithmeticError, "the loss is nan at batch 1 of epoch 1, before any update: constant '.*' has nan"):
            self.step([("mse", float("nan"))], {"target": self.far})


class OptionsTest(unittest.TestCase):
    """Options of train() that have a formula."""

    def test_features_are_scaled_then_centred(self):
        x, labels = points()
        expected = quiet(((x * 0.5 - [1, 2, 3]) / [4, 5, 6], labels), epochs=1)
        result = quiet((x, labels), epochs=1, scale=0.5, mean=[1, 2, 3], std=[4, 5, 6])
        self.assertAlmostEqual(result.history[0]["loss"], expected.history[0]["loss"], places=6)
        with self.assertRaisesRegex(ValueError, "mean has 2 numbers, std 3"):
            quiet((x, labels), mean=[1, 2], std=[1, 2, 3])

    def test_adamw_takes_its_numbers(self):
        x, labels = points(rows=8)
        result = quiet((x, labels), epochs=1, batch_size=8, beta1=0.5, beta2=0.25, epsilon=0.01, weight_decay=0.1, adam_mode=0)
        gradient = cross_entropy(START, x, labels)[1]["w1"]
        # after one step the corrected moments are the gradient and its square
        expected = START["w1"] * (1 - 0.02 * 0.1) - 0.02 * gradient / (np.abs(gradient) + 0.01)
        np.testing.assert_allclose(result.state.parameters["w1"].data, expected, atol=1e-6)

    def test_nesterov_looks_ahead(self):
        x, labels = points(rows=8)
        options = {"optimizer": "sgd-momentum", "momentum": 0.5, "batch_size": 8, "epochs": 1}
        result = quiet((x, labels), nesterov=True, **options)
        gradient = cross_entropy(START, x, labels)[1]["w1"]
        np.testing.assert_allclose(
            result.state.parameters["w1"].data, START["w1"] - 0.02 * 1.5 * gradient, atol=1e-6
        )

    def test_slices_are_averaged_by_their_rows(self):
        x, labels = points(rows=7)
        options = {"optimizer": "sgd", "batch_size": 7, "epochs": 1}
        whole = quiet((x, labels), **options)
        result = quiet((x, labels), slices=3, **options)
        gradient = cross_entropy(START, x, labels)[1]["w1"]
        np.testing.assert_allclose(result.state.parameters["w1"].data, START["w1"] - 0.02 * gradient, atol=1e-6)
        self.assertAlmostEqual(result.history[0]["loss"], whole.history[0]["loss"], 5)
        with self.assertRaisesRegex(ValueError, "slices: -1, expected 1 to 32768, or 0"):
            quiet((x, labels), slices=-1)

    def test_initial_values_may_be_drawn(self):
        result = quiet(points(), max_steps=1, learning_rate=1e-12, init={"w*": "zeros", "b1": "ones"})
        self.assertLess(np.abs(result.state.parameters["w1"].data).max(), 1e-6)
        np.testing.assert_allclose(result.state.parameters["b1"].data, 1, atol=1e-6)
        np.testing.assert_allclose(result.state.parameters["b2"].data, START["b2"], atol=1e-6)

    def test_a_schedule_may_end_elsewhere_than_the_run(self):
        rates = []
        callbacks = [lambda event: rates.append(event.learning_rate) if event.kind == "step" else None]
        quiet(points(), epochs=1, schedule="linear", schedule_steps=70, callbacks=callbacks)
        np.testing.assert_allclose(rates, [0.02 * (1 - step / 70) for step in range(1, 8)], rtol=1e-6)

    def test_a_header_may_be_denied(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.csv"
            path.write_text("1,2,3,yes\n4,5,6,no\n")
            self.assertEqual(quiet(path, epochs=1, header=False).classes, ["no", "yes"])
            self.assertEqual(quiet(path, epochs=1, header=True).classes, ["no"])

    def test_what_a_packed_file_may_become_is_limited(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.csv.gz"
            with gzip.open(path, "wb") as file:
                file.write(b"1,2,3,0\n4,5,6,1\n" + b"\n" * 70_000_000)
            with self.assertRaisesRegex(MemoryError, "unpacks to more than 1000 times its"):
                quiet(path, epochs=1)
            self.assertEqual(quiet(path, epochs=1, max_unpacked=1 << 27).steps, 1)
            with self.assertRaisesRegex(ValueError, "max_unpacked: -1"):
                quiet(path, epochs=1, max_unpacked=-1)

    def test_the_log_has_a_line_per_event(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "log.jsonl"
            result = quiet(points(), epochs=2, split=0.25, log=path, checkpoint_dir=folder)
            rows = [json.loads(line) for line in path.read_text().splitlines()]
        events = [row["event"] for row in rows]
        self.assertEqual((events.count("step"), events.count("epoch"), events.count("saved")), (10, 2, 2))
        last = [row for row in rows if row["event"] == "epoch"][-1]
        self.assertEqual((last["epoch"], last["step"], last["training"]["rows"]), (2, 10, 150))
        self.assertEqual(last["validation"], {"rows": 50, **result.metrics})
        self.assertEqual(rows[-1]["path"], str(Path(folder) / "checkpoint"))

    def test_the_log_begins_with_the_notes(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "log.jsonl"
            quiet(points(), epochs=1, checkpoint_dir=folder)
            result = quiet(points(), epochs=2, optimizer="sgd", checkpoint_dir=folder, resume=True, log=path)
            rows = [json.loads(line) for line in path.read_text().splitlines()]
        self.assertEqual(len(result.notes), 1)
        self.assertEqual(rows[0], {"event": "note", "text": result.notes[0]})
        self.assertEqual(rows[1]["event"], "step")

    def test_a_folder_may_have_any_name(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            saving, log = os.path.join(os.fsencode(folder), b"\xff"), Path(folder) / "log.jsonl"
            quiet(points(), epochs=1, checkpoint_dir=saving, log=log, callbacks=[lambda e: paths.append(e.path) and None])
            rows = [json.loads(line) for line in log.read_text().splitlines()]
        self.assertEqual(os.fsencode(paths[-1]), os.path.join(saving, b"checkpoint"))
        self.assertEqual(rows[-1]["path"], paths[-1])


class FolderTest(unittest.TestCase):
    """A directory of artifacts instead of a model."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        generate_artifacts(
            TEXT,
            loss=LossType.CrossEntropyLoss,
            optimizer=OptimType.AdamW,
            artifact_directory=folder.name,
            additional_output_names=["y"],
        )

    def test_artifacts_train_as_their_model_does(self):
        expected = quiet(points(), epochs=2, split=0.25)
        result = quiet(points(), self.folder, epochs=2, split=0.25)
        for row, other in zip(result.history, expected.history):
            for name in ("loss", "accuracy", "val_loss", "val_accuracy"):
                self.assertEqual(row[name], other[name])
        result.export(Path(self.folder) / "trained.onnx")
        self.assertEqual(_core.Model.load(self.folder + "/trained.onnx").output_names(), ["y"])
        self.assertEqual(result.evaluate(points(seed=1)), expected.evaluate(points(seed=1)))

    def test_without_a_record_outputs_and_target_types_tell_what_is_measured(self):
        x, labels = points()
        generate_artifacts(TEXT, loss=LossType.CrossEntropyLoss, optimizer=OptimType.AdamW, artifact_directory=self.folder)
        self.assertEqual(set(quiet((x, labels), self.folder, epochs=1).metrics), {"loss"})
        generate_artifacts(
            TEXT,
            loss=LossType.BCEWithLogitsLoss,
            optimizer=OptimType.AdamW,
            artifact_directory=self.folder,
            additional_output_names=["y"],
        )
        beyond = np.full((len(x), 2), 1.5, np.float32)
        self.assertEqual(set(quiet((x, beyond), self.folder, epochs=1).metrics), {"loss"})
        with self.assertRaisesRegex(ValueError, "1.5"):
            quiet((x, beyond), epochs=1, loss="bce-with-logits")

    def test_targets_of_other_names_are_taken_by_them(self):
        x, labels = points()
        generate_artifacts(
            TEXT,
            loss=LossType.CrossEntropyLoss,
            optimizer=OptimType.AdamW,
            artifact_directory=self.folder,
            loss_input_names=["y", "kind"],
        )
        expected = quiet((x, labels), epochs=1).history[0]["loss"]
        for data in ((x, labels), {"x": x, "kind": labels}):
            self.assertEqual(quiet(data, self.folder, epochs=1).history[0]["loss"], expected)

    def test_targets_that_are_said_are_not_scaled(self):
        x, _ = points()
        generate_artifacts(
            TEXT,
            loss=LossType.MSELoss,
            optimizer=OptimType.AdamW,
            artifact_directory=self.folder,
            loss_input_names=["y", "wanted"],
        )
        data = {"x": x, "wanted": 3 * x[:, :2]}
        square = [(forward(2 * row) - 3 * row[:2]) ** 2 for row in x]
        with self.assertRaisesRegex(onnxtrain.InvalidArgument, "which of 'x' and 'wanted' is the target"):
            quiet(data, self.folder, epochs=1, scale=2)
        result = quiet(data, self.folder, epochs=1, batch_size=len(x), scale=2, target="wanted")
        self.assertAlmostEqual(result.history[0]["loss"], np.mean(square), delta=1e-5)

    def test_what_they_have_built_in_cannot_be_said(self):
        for options in ({"loss": "mse"}, {"class_weights": np.ones(2)}, {"frozen": ["w1"]}, {"optimizer": "sgd"}):
            with self.subTest(options), self.assertRaisesRegex(ValueError, f"{next(iter(options))}: .* built in"):
                quiet(points(), self.folder, **options)


class CheckTest(unittest.TestCase):
    def test_parameters_have_roles_and_reasons(self):
        report = onnxtrain.check(TEXT, frozen=["w1"])
        self.assertTrue(report.can_train)
        self.assertEqual({one.name: one.role for one in report.parameters}["w1"], "frozen")
        one = next(one for one in report.parameters if one.name == "w2")
        self.assertEqual((one.role, one.type, one.shape, one.reason), ("trains", "tensor(float)", (4, 2), "reaches the loss"))
        self.assertIn("the model can be trained", str(report))

    def test_what_is_in_the_way_is_named(self):
        model = TEXT.replace(b"Relu", b"Unheard")
        report = onnxtrain.check(model)
        self.assertFalse(report.can_train)
        self.assertIn("Unheard", " ".join(report.problems))
        self.assertIn("cannot be trained", str(report))


class SkippedTest(unittest.TestCase):
    """Eight batches of one row, of which one has a square beyond f32."""

    LINE = b"""<ir_version: 8, opset_import: ["" : 17]> net (float[N, 1] x) => (float[N, 1] y)
<float[1, 1] v = {0.5}> { y = MatMul(x, v) }"""

    def setUp(self):
        x = np.linspace(1, 2, 8, dtype=np.float32)[:, None]
        x[5] = 1e30
        self.data = x, np.ones_like(x)
        self.how = {"loss": "mse", "batch_size": 1, "epochs": 1, "optimizer": "sgd", "seed": 3}

    def test_a_row_that_overflows_is_an_error(self):
        with self.assertRaises(_core.NotFinite):
            quiet(self.data, self.LINE, **self.how)

    def test_a_skipped_update_is_counted_and_changes_nothing(self):
        seen = []

        def look(event):
            if event.kind == "step":
                seen.append((event.step, event.n_skipped))

        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "log"
            result = quiet(self.data, self.LINE, callbacks=[look], skip_non_finite=True, log=log, **self.how)
            last = json.loads(log.read_text().splitlines()[-1])
        skipped = [n for _, n in seen]
        self.assertEqual((len(seen), skipped[-1], sorted(set(skipped))), (8, 1, [0, 1]))
        self.assertEqual([step + n for step, n in seen], list(range(1, 9)))
        self.assertEqual((result.steps, last["event"], last["skipped"]), (7, "epoch", 1))
        self.assertTrue(np.isfinite(result.metrics["loss"]))

    def test_progress_tells_of_it(self):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            onnxtrain.train(self.LINE, self.data, skip_non_finite=True, **self.how)
        self.assertIn("  1 skipped\n", out.getvalue())


class TrainTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_a_network_learns_to_divide_points(self):
        result = quiet(points(), epochs=20, validation=points(seed=1))
        self.assertGreater(result.metrics["accuracy"], 0.95)
        self.assertEqual(len(result.history), 20)
        self.assertEqual(result.history[-1]["epoch"], 20)
        self.assertEqual(result.history[-1]["val_accuracy"], result.metrics["accuracy"])
        self.assertLess(result.history[-1]["loss"], result.history[0]["loss"])
        self.assertEqual(result.steps, 20 * 7)
        self.assertIn("20 epochs", repr(result))
        self.assertEqual(result.evaluate(points(seed=1)), result.metrics)

    def test_data_may_be_named_or_in_files(self):
        x, labels = points()
        np.savez(self.folder / "data.npz", x=x, labels=labels)
        rows = [f"{a},{b},{c},{'yes' if label else 'no'}" for (a, b, c), label in zip(x.tolist(), labels)]
        (self.folder / "data.csv").write_text("\n".join(["a,b,c,kind", *rows]))
        expected = quiet((x, labels), epochs=2).history[-1]["loss"]
        for data in ({"x": x, "labels": labels}, self.folder / "data.npz", [str(self.folder / "data.npz")]):
            with self.subTest(type(data)):
                self.assertEqual(quiet(data, epochs=2).history[-1]["loss"], expected)
        result = quiet(self.folder / "data.csv", epochs=2)
        self.assertAlmostEqual(result.history[-1]["loss"], expected, places=6)
        self.assertEqual(result.classes, ["no", "yes"])

    def test_labels_may_be_texts_and_stay_in_the_trained_model(self):
        x, labels = points()
        texts = np.array(["red", "blue"])[labels]
        result = quiet((x, texts), epochs=1, split=0.25, output=self.folder / "out.onnx")
        self.assertEqual(result.classes, ["blue", "red"])
        model = _core.Model.load(str(self.folder / "out.onnx"))
        self.assertEqual(json.loads(model.metadata("onnxtrain.classes")), ["blue", "red"])
        self.assertEqual(model.output_names(), ["y"])
        self.assertIn("val_loss", result.history[0])

    def test_a_line_is_found_by_least_squares(self):
        line = b"""<ir_version: 8, opset_import: ["" : 17]> net (float[N, 1] x) => (float[N, 1] y)
<float[1, 1] w = {0}, float[1] b = {0}> { m = MatMul(x, w) y = Add(m, b) }"""
        x = np.linspace(-1, 1, 64).reshape(-1, 1)
        result = quiet((x, 3 * x - 1), line, loss="mse", optimizer="sgd", learning_rate=0.3, epochs=60, batch_size=16)
        self.assertAlmostEqual(result.state.parameters["w"].data.item(), 3, places=3)
        self.assertAlmostEqual(result.state.parameters["b"].data.item(), -1, places=3)
        self.assertGreater(result.metrics["r2"], 0.999)
        self.assertLess(result.metrics["mae"], 0.01)

    def test_callbacks_see_events_and_may_stop(self):
        events = []

        def watch(event):
            events.append(event)
            event.result.export(self.folder / "now.onnx")
            self.assertEqual(event.result.state.parameters["w1"].data.shape, (3, 4))
            return event.step == 9

        result = quiet(points(), epochs=5, callbacks=[watch], schedule="linear", warmup=4)
        self.assertTrue(result.stopped)
        self.assertEqual(events[-1].step, 9)
        self.assertEqual([e.kind for e in events], ["step"] * 7 + ["epoch"] + ["step"] * 2)
        self.assertEqual((events[0].epoch, events[0].epochs, events[0].batches), (1, 5, 7))
        self.assertAlmostEqual(events[0].learning_rate, 0.02 * 1 / 4)

    def test_what_a_callback_raises_comes_out(self):
        def fail(event):
            raise KeyError("mine")

        def step(event):
            event.result._run.session.optimizer_step()

        with self.assertRaisesRegex(KeyError, "mine"):
            quiet(points(), callbacks=[fail])
        calls = []
        with self.assertRaisesRegex(KeyError, "mine"):
            quiet(points(), callbacks=[calls.append, fail], checkpoint_dir=self.folder)
        self.assertEqual([event.kind for event in calls], ["step"])  # what is saved then is told nobody
        with self.assertRaisesRegex(RuntimeError, "under way"):
            quiet(points(), callbacks=[step])

    def test_going_on_is_bit_for_bit(self):
        options = {"schedule": "cosine", "checkpoint_dir": self.folder, "seed": 3}
        expected = quiet(points(), epochs=4, schedule="cosine", seed=3).state.parameters["w1"].data
        quiet(points(), epochs=4, callbacks=[lambda event: event.kind == "epoch" and event.epoch == 2], **options)
        result = quiet(points(), epochs=4, resume=True, **options)
        self.assertEqual([row["epoch"] for row in result.history], [3, 4])
        np.testing.assert_array_equal(result.state.parameters["w1"].data, expected)

    def test_plain_sgd_goes_on_from_another_run_and_says_so(self):
        options = {"checkpoint_dir": self.folder, "overwrite": True}
        quiet(points(), epochs=1, **options)
        self.assertEqual(quiet(points(), epochs=1, resume=True, **options).notes, [])
        result = quiet(points(), epochs=2, resume=True, optimizer="sgd", **options)
        text = "the run was made with AdamWOptimizer: sgd goes on from its parameters and drops its moments"
        self.assertEqual(result.notes, [text])
        self.assertEqual(quiet(points(), epochs=3, resume=True, optimizer="sgd", **options).notes, [])

    def test_moments_are_new_after_plain_sgd(self):
        options = {"checkpoint_dir": self.folder, "overwrite": True}
        quiet(points(), epochs=1, **options)
        with self.assertRaisesRegex(ValueError, "AdamWOptimizer, the optimizer model has SGDOptimizer"):
            quiet(points(), epochs=2, resume=True, optimizer="sgd-momentum", **options)
        quiet(points(), epochs=2, resume=True, optimizer="sgd", **options)
        result = quiet(points(), epochs=3, resume=True, **options)
        text = "the run was made with sgd: adamw goes on from its parameters with new moments, after step 0"
        self.assertEqual(result.notes, [text])
        self.assertEqual(quiet(points(), epochs=4, resume=True, **options).notes, [])

    def test_rows_that_no_batch_takes_are_noted(self):
        fixed = TEXT.replace(b"float[N, 2] y", b"float[4, 2] y").replace(b"float[N, 3] x", b"float[4, 3] x")
        fixed = fixed.replace(b"0.05, -0.05}>", b"0.05, -0.05}, float[4, 1] rows = {1, 2, 3, 4}>")
        fixed = fixed.replace(b"y = Add(n, b2)", b"s = Add(n, b2) y = Add(s, rows)")
        x, labels = points()
        with contextlib.redirect_stdout(io.StringIO()) as out:
            result = onnxtrain.train(fixed, (x[:10], labels[:10]), epochs=1)
        text = "2 of the 10 training rows are left over and not used: the model takes batches of 4 rows and no others"
        self.assertEqual(result.notes[-1], text)
        self.assertIn(f"note: {text}\n", out.getvalue())
        result = quiet((x[:8], labels[:8]), epochs=1, model=fixed)
        self.assertNotIn("left over", " ".join(result.notes))

    def test_a_folder_of_another_run_is_not_overwritten(self):
        quiet(points(), epochs=1, checkpoint_dir=self.folder)
        with self.assertRaisesRegex(RuntimeError, "checkpoint is of an earlier run: resume it, or overwrite it"):
            quiet(points(), epochs=1, checkpoint_dir=self.folder)
        self.assertEqual(quiet(points(), epochs=1, checkpoint_dir=self.folder, overwrite=True).steps, 7)

    def test_a_run_that_diverges_leaves_the_checkpoint_before_it(self):
        quiet(points(), epochs=3, checkpoint_dir=self.folder)
        before = (self.folder / "checkpoint").read_bytes()
        with self.assertRaisesRegex(ArithmeticError, "lower the learning rate"):
            quiet(points(), epochs=6, checkpoint_dir=self.folder, resume=True, learning_rate=1e30)
        self.assertEqual((self.folder / "checkpoint").read_bytes(), before)
        result = quiet(points(), epochs=6, checkpoint_dir=self.folder, resume=True)
        self.assertTrue(np.isfinite(result.metrics["loss"]))
        self.assertEqual(result.steps, 6 * 7)

    def test_a_model_is_made_from_the_folder_of_a_run(self):
        x, labels = points()
        quiet((x, np.array(["red", "blue"])[labels]), epochs=2, checkpoint_dir=self.folder)
        model = _core.Model.load(str(self.folder / "eval_model.onnx"))
        self.assertEqual(json.loads(model.metadata("onnxtrain.classes")), ["blue", "red"])
        self.assertEqual(model.metadata("onnxtrain.outputs"), "y")

    def test_what_breaks_a_run_off_does_not_lose_its_steps(self):
        def fail(event):
            if event.step == 5:
                raise error

        output = self.folder / "out.onnx"
        quiet(points(), epochs=1, max_steps=5, output=self.folder / "expected.onnx")
        for error, text in ((KeyError("mine"), "mine"), (KeyboardInterrupt(), "'.*out.onnx' has the parameters after step 5")):
            with self.subTest(text), self.assertRaisesRegex(type(error), text):
                quiet(points(), callbacks=[fail], output=output)
            self.assertEqual(output.read_bytes(), (self.folder / "expected.onnx").read_bytes())
            output.unlink()
        with self.assertRaises(ArithmeticError):
            quiet(points(), output=output, learning_rate=1e30)
        self.assertFalse(output.exists())

    def test_parameters_may_be_frozen(self):
        result = quiet(points(), epochs=1, frozen=["*1"])
        self.assertFalse(result.state.parameters["w1"].requires_grad)
        self.assertTrue(result.state.parameters["w2"].requires_grad)

    def test_progress_prints_a_line_an_epoch_where_nothing_can_be_drawn_over(self):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            onnxtrain.train(TEXT, points(), epochs=3)
        lines = out.getvalue().splitlines()
        self.assertEqual(len(lines), 3)
        self.assertRegex(lines[2], r"^epoch 3/3  loss 0\.\d+  accuracy \d+\.\d+ %$")

    def test_what_is_wrong_is_told(self):
        x, labels = points()
        for data, options, error, text in (
            ((x, labels), {"loss": "hinge"}, ValueError, "loss 'hinge' is not one of"),
            ((x, labels), {"optimizer": "tiger"}, ValueError, "optimizer 'tiger'"),
            ((x, labels), {"optimizer": "sgd", "no_decay": ["b"]}, ValueError, "no_decay: sgd has no weight decay"),
            ((x, labels), {"schedule": "none"}, ValueError, "schedule 'none'"),
            ((x,), {}, ValueError, "1 arrays are given, the model and its loss take 2: x, labels"),
            ((x, labels[:5]), {}, ValueError, "5 rows, others have 200"),
            ((x, labels + 1), {}, ValueError, "label 2 is outside 0..1"),
            ((x * np.nan, labels), {}, ValueError, "not a number"),
            ((x, labels), {"split": 1.5}, ValueError, "split"),
            ((x, labels), {"split": 0.1, "validation": (x, labels)}, ValueError, "exclude"),
            ((x, labels), {"bind": {"z": "x"}}, ValueError, "no input 'z'"),
            ((x, labels), {"label": "z"}, ValueError, "no field 'z'"),
            ((x, labels), {"resume": True}, ValueError, "checkpoint_dir"),
            ((x, labels), {"batch_size": 0}, ValueError, "batch_size: 0, expected at least 1"),
            ((x, labels), {"accumulate": 0}, ValueError, ""),
            ((x, labels), {"learning_rate": -1}, ValueError, "learning_rate is -1, expected a finite number of at least 0"),
            ((x, labels), {"learning_rate": np.nan}, ValueError, "learning_rate is nan, expected a finite number"),
            ((x, labels), {"gamma": -1}, ValueError, "gamma -1, power 1, end_factor 0, expected finite numbers of at"),
            ({"x": x}, {}, ValueError, "nothing in the data is left for input 'labels'"),
            (5, {}, TypeError, "data is int"),
            ("/no/such.csv", {}, OSError, "no/such.csv"),
        ):
            with self.subTest(text), self.assertRaisesRegex(error, text):
                quiet(data, **options)


if __name__ == "__main__":
    unittest.main()
