# SPDX-License-Identifier: Apache-2.0
"""Models that carry texts: what onnxruntime gives for them, written down by record_texts.py, and who owns the characters."""
import json
import pathlib
import tempfile
import unittest

import numpy as np
from onnxtrain import InferenceSession, OrtValue
from onnxtrain.api import CheckpointState, Module
from onnxtrain.artifacts import LossType, generate_artifacts

try:
    import torch
except ImportError:
    torch = None

CASES = json.loads(pathlib.Path(__file__).with_name("onnxruntime_texts.json").read_text(encoding="ascii"))
HEAD = b'<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml": 2]> '
IDENTITY = HEAD + b"net (string[N] s) => (string[N] t) { t = Identity(s) }"


def array_of(dtype, shape, values):
    return np.array(values, object if dtype == "string" else dtype).reshape(shape)


class RecordedTest(unittest.TestCase):
    def test_texts_are_carried_as_onnxruntime_does(self):
        for case in CASES:
            feeds = {name: array_of(*value) for name, value in case["feeds"].items()}
            with self.subTest(case["name"]):
                if case["out"] is None:
                    with self.assertRaises((RuntimeError, NotImplementedError)):
                        InferenceSession(case["model"].encode()).run(None, feeds)
                    continue
                session = InferenceSession(case["model"].encode())
                for _ in range(2):  # the second time with the plan of the first
                    found = session.run(None, feeds)
                    self.assertEqual(len(found), len(case["out"]))
                    for one, expected in zip(found, case["out"]):
                        expected = array_of(*expected)
                        self.assertEqual((one.dtype, one.shape), (expected.dtype, expected.shape))
                        np.testing.assert_array_equal(one, expected)


class RefusedTest(unittest.TestCase):
    def refused(self, graph, feeds, message, error=RuntimeError):
        with self.subTest(message), self.assertRaisesRegex(error, message):
            InferenceSession(HEAD + graph).run(None, feeds)

    def test_what_does_not_take_texts_says_so(self):
        s = np.array([["a", "b"]])
        for graph, message in (
            (b"n (string[A,B] s) => (string[A,B] t) { t = Trilu(s) }", "^Trilu .*: input 0 .* is string, supported: f32"),
            (b"n (string[A,B] s) => (string[C,D] t) <int64[4] p = {0,0,0,1}> { t = Pad(s, p) }", "^Pad .*: input 0 .* is string"),
            (b"n (string[A,B] s) => (string[A,B] t) { t = Neg(s) }", "^Neg .*: input 0 .* is string"),
        ):
            self.refused(graph, {"s": s}, message, NotImplementedError)
        scatter = b'n (string[N] s, int64[M,K] i, string[M] u) => (string[N] t) { t = ScatterND<reduction="add">(s, i, u) }'
        with self.assertRaisesRegex(NotImplementedError, "reduction 'add' of elements of type string"):
            InferenceSession(HEAD.replace(b": 17", b": 18") + scatter).run(
                None, {"s": np.array(["a"]), "i": np.array([[0]]), "u": np.array(["b"])}
            )

    def test_values_that_do_not_fit_are_named(self):
        self.refused(
            b"n (string[N] s, int64[M] i) => (string[M] t) { t = Gather(s, i) }",
            {"s": np.array(["a", "b"]), "i": np.array([0, 2])},
            "index 2 at position 1 is outside an axis of size 2",
        )
        self.refused(
            b"n (string[N] s) => (float[N] t) { t = Cast<to = 1>(s) }",
            {"s": np.array(["1", "o\nne"])},
            r"string 'o.*ne' at element 1 is not a number, expected f32",
        )
        self.refused(b"n (string[N] s) => (float[N] t) { t = Cast<to = 1>(s) }", {"s": np.array(["1" * 300])}, "is not a number")
        self.refused(
            b"n (string s, int64[K] h) => (string[N,M] t) { t = Expand(s, h) }",
            {"s": np.array("a"), "h": np.array([2**31, 2**31])},
            "",
            (RuntimeError, NotImplementedError, MemoryError),
        )

    def test_texts_that_are_no_utf8_are_told(self):
        with self.assertRaises(UnicodeDecodeError):
            InferenceSession(IDENTITY).run(None, {"s": np.array([b"\xff"])})


class OwnerTest(unittest.TestCase):
    def test_results_outlive_what_was_fed(self):
        session = InferenceSession(IDENTITY)
        first = session.run_with_ort_values(None, {"s": np.array(["first" * 40])})[0]
        second = session.run_with_ort_values(None, {"s": np.array(["other" * 40])})[0]
        del session
        self.assertEqual(first.numpy().tolist(), ["first" * 40])
        self.assertEqual(second.numpy().tolist(), ["other" * 40])
        self.assertEqual(first.data_type(), "tensor(string)")

    def test_values_and_bindings_take_texts(self):
        model = HEAD + b"net (string[A,B] s) => (string[A,B] t) { t = Identity(s) }"
        value = InferenceSession(model).run_with_ort_values(None, {"s": np.array([["a", "b"]])})[0]
        self.assertIsInstance(value, OrtValue)
        self.assertEqual((value.shape(), value.element_type(), value.numpy().dtype), ([1, 2], 8, np.dtype(object)))
        value.update_inplace(np.array([["c", ""]], object))
        self.assertEqual(np.asarray(value).tolist(), [["c", ""]])
        with self.assertRaisesRegex(RuntimeError, r"object\[1, 2\], the array object\[1\]"):
            value.update_inplace(np.array(["c"]))
        session = InferenceSession(IDENTITY)
        binding = session.io_binding()
        binding.bind_cpu_input("s", np.array(["x", "y"]))
        binding.bind_output("t")
        session.run_with_iobinding(binding)
        self.assertEqual(binding.copy_outputs_to_cpu()[0].tolist(), ["x", "y"])

    @unittest.skipIf(torch is None, "torch is not installed")
    def test_texts_beside_torch_tensors_are_arrays(self):
        graph = b"n (string[N] s, int64[M] i) => (string[M] t, int64[M] j) { t = Gather(s, i) j = Neg(i) }"
        t, j = InferenceSession(HEAD + graph).run(None, {"s": ["a", "b"], "i": torch.tensor([1, 1, 0])})
        self.assertEqual(t.tolist(), ["b", "b", "a"])
        self.assertIsInstance(j, torch.Tensor)


class TrainedTest(unittest.TestCase):
    MODEL = (
        HEAD
        + b"""net (string[N] x) => (float[N, 2] y, string[N, 1] names, string[N] words) <float[3, 2] w = {0, 1, 2, 3, 4, 5},
        int64[1] one = {1}> { i = ai.onnx.ml.LabelEncoder<keys_strings=["a", "b"], values_int64s=[1, 2], default_int64=0>(x)
        y = Gather(w, i) names = Unsqueeze(x, one)
        words = ai.onnx.ml.LabelEncoder<keys_int64s=[1, 2], values_strings=["A", "B"]>(i) }"""
    )

    def test_a_module_gives_texts(self):
        """Texts do not touch loss and gradient, which are those of the model without them (test_api.py)."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            options = {"loss_input_names": ["y"], "additional_output_names": ["names", "words"]}
            generate_artifacts(self.MODEL, loss=LossType.MSELoss, artifact_directory=folder, **options)
            state = CheckpointState.load_checkpoint(folder / "checkpoint")
            module = Module(folder / "training_model.onnx", state, folder / "eval_model.onnx")
            x, target = np.array(["a", "b", "q\0"], object), np.zeros((3, 2), np.float32)
            for mode in (module.train, module.eval):
                loss, *more = mode()(x, target)
                self.assertAlmostEqual(float(loss), 9.166667, places=5)
                texts = [one.tolist() for one in more]
                self.assertEqual(texts, [[["a"], ["b"], ["q\0"]], ["A", "B", "_Unused"]])
            np.testing.assert_allclose(state.parameters["w"].grad, np.arange(6).reshape(3, 2) / 3, atol=1e-6)
            module.export_model_for_inferencing(folder / "out.onnx", ["y", "names", "words"])
            y, names, words = InferenceSession(folder / "out.onnx").run(None, {"x": x})
            self.assertEqual((y.shape, names.tolist(), words.tolist()), ((3, 2), texts[0], texts[1]))


if __name__ == "__main__":
    unittest.main()
