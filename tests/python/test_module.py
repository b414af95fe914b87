# SPDX-License-Identifier: Apache-2.0
"""train(..., module=): exactly the parameters of a framework's module train."""

import tempfile
import unittest
from pathlib import Path

import numpy as np
from network import START, TEXT

import onnxtrain
from onnxtrain import _arrays, _core
from onnxtrain.api import CheckpointState
from onnxtrain.artifacts import LossType, generate_artifacts

BUFFERS = Path(__file__).resolve().parent.parent / "exporters" / "buffers"
STEP = {"optimizer": "sgd", "learning_rate": 0.1, "progress": False}


class Parameter:
    """An array that says whether it requires a gradient; nothing of torch."""

    def __init__(self, array, requires_grad=True):
        self.array, self.requires_grad = np.asarray(array), requires_grad
        self.shape = self.array.shape

    def __array__(self, *arguments, **named):
        return self.array


class Module:
    def __init__(self, parameters, buffers=None):
        self.parameters, self.buffers = parameters, buffers or {}

    def named_parameters(self, remove_duplicate=True):
        seen = set()
        for name, parameter in self.parameters.items():
            if not remove_duplicate or id(parameter) not in seen:
                seen.add(id(parameter))
                yield name, parameter

    def named_buffers(self):
        yield from self.buffers.items()


def words():
    """The module of tests/exporters/record_buffers.py, by the file that holds it as it was."""
    model = _core.Model.load(str(BUFFERS / "words_infinite_plain.onnx"))
    arrays = {name: _arrays.to_numpy(model.initializer(name)) for name in model.initializer_names()}
    buffers = ("positions", "attention.mask", "attention.gain")
    parameters = {name: Parameter(a) for name, a in arrays.items() if name not in buffers}
    return Module(parameters, {name: Parameter(arrays[name], False) for name in buffers})


def train_words(file, module, **options):
    data = np.load(BUFFERS / "x.npy"), np.load(BUFFERS / "labels.npy")
    return onnxtrain.train(BUFFERS / file, data, module=module, batch_size=4, epochs=5, **STEP, **options)


def trained(result):
    return sorted(name for name, p in result.state.parameters if p.requires_grad)


class WordsTest(unittest.TestCase):
    def test_losses_are_pytorchs_whatever_the_file_says_of_buffers(self):
        expected = np.load(BUFFERS / "words_infinite_losses.npy")
        for file in ("words_infinite_training.onnx", "words_infinite_plain.onnx"):
            module = words()
            result = train_words(file, module)
            losses = [row["loss"] for row in result.history]
            np.testing.assert_allclose(losses, expected, rtol=2e-6)
            self.assertEqual(trained(result), sorted(module.parameters))
            self.assertEqual(result.notes, [])

    def test_what_requires_no_gradient_stays(self):
        module = words()
        for name in ("token", "attention.norm.weight", "attention.norm.bias"):
            module.parameters[name].requires_grad = False
        result = train_words("words_infinite_training.onnx", module)
        self.assertEqual(trained(result), sorted(n for n, p in module.parameters.items() if p.requires_grad))
        token = result.state.parameters["token"].data
        np.testing.assert_array_equal(token, module.parameters["token"].array)

    def test_a_parameter_that_was_computed_away_is_an_error(self):
        with self.assertRaisesRegex(onnxtrain.InvalidArgument, "no 'token' of the module, but 'onnx::Add_126', which"):
            train_words("words_infinite_classic.onnx", words())


class NamedTest(unittest.TestCase):
    """generate_artifacts(requires_grad=[name for name, _ in model.named_parameters()]), as for ONNX Runtime."""

    def trained(self, file, names):
        with tempfile.TemporaryDirectory() as folder:
            generate_artifacts(
                BUFFERS / file, requires_grad=names, loss=LossType.CrossEntropyLoss, artifact_directory=folder
            )
            state = CheckpointState.load_checkpoint(Path(folder) / "checkpoint")
            return sorted(name for name, p in state.parameters if p.requires_grad)

    def test_exactly_what_is_named_trains(self):
        names = sorted(words().parameters)
        self.assertEqual(self.trained("words_infinite_training.onnx", names), names)
        self.assertEqual(self.trained("words_infinite_plain.onnx", names), names)

    def test_a_name_that_the_exporter_gave_to_a_copy_is_a_parameter(self):
        names = ["attention.norm.weight", "head.weight"]  # the first is Identity(attention.gain)
        self.assertEqual(self.trained("words_infinite_classic.onnx", names), names)

    def test_nothing_is_frozen_without_being_named(self):
        names = ["attention.gain", "attention.mask"]
        self.assertEqual(self.trained("words_infinite_plain.onnx", names), names)
        module = words()
        everything = sorted([*module.parameters, *module.buffers])
        self.assertEqual(self.trained("words_infinite_plain.onnx", None), everything)


class NamesTest(unittest.TestCase):
    x = np.random.default_rng(1).normal(size=(8, 3)).astype(np.float32)
    labels = (x[:, 0] > 0).astype(np.int64)

    def train(self, module, model=TEXT, **options):
        return onnxtrain.train(model, (self.x, self.labels), module=module, epochs=1, **STEP, **options)

    def test_check_says_what_of_a_module_trains(self):
        parameters = {name: Parameter(array, name != "b1") for name, array in START.items()}
        report = onnxtrain.check(TEXT, module=Module(parameters))
        self.assertEqual(
            {one.name: one.role for one in report.parameters},
            {"w1": "trains", "b1": "frozen", "w2": "trains", "b2": "trains"},
        )

    def test_a_folded_weight_is_known_by_its_elements(self):
        text = TEXT.replace(b"w1", b'"onnx::MatMul_7"')
        parameters = {name: Parameter(array) for name, array in START.items() if name != "w1"}
        module = Module({**parameters, "layer.weight": Parameter(START["w1"].T)})
        self.assertEqual(trained(self.train(module, text)), sorted([*parameters, "onnx::MatMul_7"]))
        module.parameters["layer.weight"].array = START["w1"].T + 1
        with self.assertRaisesRegex(onnxtrain.InvalidArgument, "no 'layer.weight' of the module"):
            self.train(module, text)
        module.parameters["layer.weight"].requires_grad = False
        self.assertEqual(trained(self.train(module, text)), sorted(parameters))

    def test_a_parameter_that_the_model_does_not_use_does_not_matter(self):
        parameters = {name: Parameter(array) for name, array in START.items()}
        module = Module({**parameters, "pooler.weight": Parameter(np.eye(2, dtype=np.float32))})
        self.assertEqual(trained(self.train(module)), sorted(parameters))

    def test_one_parameter_may_have_several_names(self):
        shared = Parameter(START["w1"])
        rest = {name: Parameter(array) for name, array in START.items() if name != "w1"}
        self.assertEqual(trained(self.train(Module({"embedding": shared, "w1": shared, **rest}))), sorted(START))

    def test_other_words_on_what_trains_are_refused(self):
        module = Module({name: Parameter(array) for name, array in START.items()})
        with self.assertRaisesRegex(onnxtrain.InvalidArgument, "module says what trains"):
            self.train(module, trainable=["w1"])
        with self.assertRaisesRegex(onnxtrain.InvalidType, "module is dict, expected a torch.nn.Module"):
            self.train({})


if __name__ == "__main__":
    unittest.main()
