"""The short way: onnxtrain.train."""

import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path

import numpy as np
from network import TEXT

import onnxtrain
from onnxtrain import _core


def points(rows=200, seed=0):
    """Two classes that a line divides."""
    x = np.random.default_rng(seed).normal(size=(rows, 3)).astype(np.float32)
    return x, (x[:, 0] + x[:, 1] > 0).astype(np.int64)


def quiet(data, model=TEXT, **options):
    options.setdefault("learning_rate", 0.02)
    return onnxtrain.train(model, data, progress=False, **options)


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
            ((x, labels), {"loss": "hinge"}, ValueError, "loss 'hinge' is none of"),
            ((x, labels), {"optimizer": "lion"}, ValueError, "optimizer 'lion'"),
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
            ((x, labels), {"batch_size": 0}, ValueError, "batch size"),
            ((x, labels), {"accumulate": 0}, ValueError, ""),
            ({"x": x}, {}, ValueError, "nothing in the data is left for input 'labels'"),
            (5, {}, TypeError, "data is int"),
            ("/no/such.csv", {}, OSError, "no/such.csv"),
        ):
            with self.subTest(text), self.assertRaisesRegex(error, text):
                quiet(data, **options)


if __name__ == "__main__":
    unittest.main()
