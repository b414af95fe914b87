# SPDX-License-Identifier: Apache-2.0
"""ORTTrainer over PyTorch modules, compared with PyTorch's own training."""

import copy
import importlib.util
import tempfile
import unittest
import warnings
from unittest import mock

import numpy as np

from onnxtrain import ORTTrainer, ORTTrainerOptions, optim

MISSING = [name for name in ("torch", "onnx") if importlib.util.find_spec(name) is None]
if not MISSING:
    import torch

    class Net(torch.nn.Module):
        """Has all that is exported in its own way: shared weights, statistics, a mask, a learned scalar, Dropout."""

        def __init__(self, dropout=0.0):
            super().__init__()
            self.model = torch.nn.Linear(4, 8)  # has the name of the prefix
            self.norm = torch.nn.BatchNorm1d(8)
            self.dropout = torch.nn.Dropout(dropout)
            self.out = torch.nn.Linear(8, 3)
            self.scale = torch.nn.Parameter(torch.tensor(1.5))
            self.fixed = torch.nn.Parameter(torch.full((8,), 2.0), requires_grad=False)
            self.register_buffer("mask", torch.tensor([1.0, 0, 1, 1, 0, 1, 1, 1]))

        def forward(self, x):
            hidden = torch.tanh(self.norm(self.model(x))) * self.mask * self.fixed
            return self.out(self.dropout(hidden)) * self.scale

    class WithLoss(torch.nn.Module):
        def __init__(self, net):
            super().__init__()
            self.net = net

        def forward(self, x, label, weight=1.0):
            scores = self.net(x)
            return torch.nn.functional.cross_entropy(scores, label) * weight, scores


DESCRIPTION = {
    "inputs": [("x", ["N", 4]), ("label", ["N"])],
    "outputs": [("loss", [], True), ("scores", ["N", 3])],
}


def loss_fn(scores, label):
    return torch.nn.functional.cross_entropy(scores, label)


def batch(number=0, rows=6):
    draw = torch.Generator().manual_seed(number)
    return torch.randn(rows, 4, generator=draw), torch.randint(0, 3, (rows,), generator=draw)


def net(**options):
    torch.manual_seed(7)
    return Net(**options)


def make(module, config=None, options=None, loss=True, description=DESCRIPTION):
    options = None if options is None else ORTTrainerOptions(options)
    return ORTTrainer(module, description, config or optim.SGDConfig(lr=0.1), loss_fn if loss else None, options)


def torch_losses(module, data, lr, accumulation=1):
    module = copy.deepcopy(module).train()
    trained = [one for one in module.parameters() if one.requires_grad]
    optimizer, losses = torch.optim.SGD(trained, lr=lr), []
    for i, (x, label) in enumerate(data):
        loss = loss_fn(module(x), label)
        (loss / accumulation).backward()
        losses.append(loss.item())
        if (i + 1) % accumulation == 0:
            optimizer.step()
            optimizer.zero_grad()
    return losses, module


@unittest.skipIf(MISSING, f"{', '.join(MISSING)} not installed")
class ModuleTest(unittest.TestCase):
    def setUp(self):
        self.enterContext(warnings.catch_warnings())
        warnings.simplefilter("ignore")

    def test_losses_are_those_of_pytorch(self):
        for accumulation in (1, 3):
            with self.subTest(accumulation=accumulation):
                module, data = net(), [batch(i) for i in range(12)]
                trainer = make(module, options={"batch": {"gradient_accumulation_steps": accumulation}})
                found = [trainer.train_step(x, label)[0] for x, label in data]
                expected, _ = torch_losses(module, data, 0.1, accumulation)
                self.assertTrue(all(isinstance(one, torch.Tensor) for one in found))
                np.testing.assert_allclose([one.item() for one in found], expected, rtol=1e-4)

    @unittest.skipIf(importlib.util.find_spec("onnxscript") is None, "onnxscript is not installed")
    def test_what_the_classic_exporter_lacks_the_newer_one_exports(self):
        class Differences(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.out = torch.nn.Linear(3, 3)

            def forward(self, x):
                return self.out(torch.diff(x))

        module = Differences()
        theirs = copy.deepcopy(module)
        optimizer = torch.optim.SGD(theirs.parameters(), lr=0.1)
        trainer = ORTTrainer(module, DESCRIPTION, optim.SGDConfig(lr=0.1), loss_fn)
        for number in range(3):
            x, label = batch(number)
            optimizer.zero_grad()
            wanted = loss_fn(theirs(x), label)
            wanted.backward()
            optimizer.step()
            if number == 0:
                with self.assertLogs("onnxtrain", "INFO") as log:
                    found, _ = trainer.train_step(x, label)
                self.assertIn("'aten::diff'", "".join(log.output))
                self.assertIn("the newer exporter", "".join(log.output))
            else:
                found, _ = trainer.train_step(x, label)
            self.assertAlmostEqual(float(found), float(wanted), 5)

    @unittest.skipIf(importlib.util.find_spec("onnxscript") is None, "onnxscript not installed")
    def test_where_torch_has_no_classic_exporter(self):
        export, asked = torch.onnx.export, []

        def newer(*arguments, dynamo=True, **options):
            asked.append(dynamo)
            if not dynamo:
                raise TypeError("export() got an unexpected keyword argument 'dynamo'")
            return export(*arguments, dynamo=True, **options)

        module, data = net(), [batch(i, rows=6 + i) for i in range(8)]
        trainer = make(module)
        with mock.patch("torch.onnx.export", newer):
            found = [trainer.train_step(x, label)[0].item() for x, label in data]
        self.assertEqual(asked, [False, True])
        expected, trained = torch_losses(module, data, 0.1)
        np.testing.assert_allclose(found, expected, rtol=1e-4)
        state = trainer.state_dict(pytorch_format=True)
        for name, value in trained.state_dict().items():
            if value.is_floating_point() and name != "norm.running_var":  # see below
                torch.testing.assert_close(torch.as_tensor(state[name]), value, rtol=1e-3, atol=1e-5, msg=name)

    def test_errors_of_the_module_are_not_taken_for_a_missing_exporter(self):
        class Wrong(torch.nn.Module):
            def forward(self, x):
                raise TypeError("of the module")

        with self.assertRaisesRegex(TypeError, "of the module"):
            make(Wrong()).train_step(*batch())

    def test_a_module_with_its_own_loss(self):
        module, data = net(), [batch(i) for i in range(5)]
        trainer = make(WithLoss(module), loss=False)
        found = [trainer.train_step(x, label=label)[0].item() for x, label in data]
        np.testing.assert_allclose(found, torch_losses(module, data, 0.1)[0], rtol=1e-4)

    def test_evaluation_is_that_of_a_module_in_eval_mode(self):
        module, data = net(dropout=0.5), [batch(i) for i in range(5)]
        trainer = make(module)
        loss, scores = trainer.eval_step(*data[0])
        with torch.no_grad():
            expected = copy.deepcopy(module).eval()(data[0][0])
        torch.testing.assert_close(scores, expected, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(loss, loss_fn(expected, data[0][1]), rtol=1e-4, atol=1e-5)
        self.assertEqual(trainer._train_step_info.step, 0)

    def test_dropout_drops_in_training(self):
        trainer = make(net(dropout=0.9))
        x, label = batch(rows=64)
        scores = [trainer.train_step(x, label)[1] for _ in range(2)]
        self.assertFalse(torch.allclose(scores[0], scores[1], rtol=0.1))

    def test_the_module_stays_as_it_was(self):
        module = net().eval()
        before = copy.deepcopy(module.state_dict())
        torch.manual_seed(3)
        expected = torch.rand(1)
        torch.manual_seed(3)
        make(module).train_step(*batch())
        self.assertEqual(torch.rand(1), expected)
        self.assertFalse(module.training)
        for name, value in module.state_dict().items():
            torch.testing.assert_close(value, before[name], rtol=0, atol=0)

    def test_buffers_are_frozen_weights(self):
        trainer = make(net(), options={"utils": {"frozen_weights": ["out.bias"]}})
        trainer.train_step(*batch())
        self.assertEqual(
            sorted(trainer.options.utils.frozen_weights), ["mask", "norm.running_mean", "norm.running_var", "out.bias"]
        )

    def test_the_model_that_is_exported_is_the_modules(self):
        for module in (net(), net(dropout=0.3)):
            trainer = make(module, options={"debug": {"check_model_export": True}})
            with self.assertNoLogs("onnxtrain", "WARNING"):
                trainer.train_step(*batch())

    def test_a_model_that_is_another_is_an_error(self):
        class Counting(torch.nn.Module):
            """Traced with the first number that it counts."""

            def __init__(self):
                super().__init__()
                self.linear, self.n = torch.nn.Linear(4, 3), 0

            def forward(self, x):
                self.n += 1
                return self.linear(x) * self.n

            def __deepcopy__(self, memo):
                return self

        trainer = make(Counting(), options={"debug": {"check_model_export": True}})
        with self.assertRaisesRegex(AssertionError, "exported model differs"):
            trainer.train_step(*batch())

    def test_inputs_go_by_the_names_of_forward(self):
        class Swapped(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = torch.nn.Linear(4, 3)

            def forward(self, offset, x):
                return self.linear(x) + offset

        description = {
            "inputs": [("x", ["N", 4]), ("offset", ["N", 3]), ("label", ["N"])],
            "outputs": [("loss", [], True), ("scores", ["N", 3])],
        }
        module = Swapped()
        x, label = batch()
        offset = torch.randn(6, 3)
        scores = make(module, description=description).train_step(x, offset, label)[1]
        torch.testing.assert_close(scores, module(offset, x).detach(), rtol=1e-4, atol=1e-5)

    def test_inputs_that_nothing_reads(self):
        class Half(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = torch.nn.Linear(4, 3)

            def forward(self, x, unused):
                return self.linear(x)

        description = {**DESCRIPTION, "inputs": [("x", ["N", 4]), ("unused", ["K"]), ("label", ["N"])]}
        module = Half()
        x, label = batch()
        trainer = make(module, description=description)
        loss, scores = trainer.train_step(x, torch.zeros(3), label)
        torch.testing.assert_close(scores, module.linear(x).detach(), rtol=1e-4, atol=1e-5)
        with self.assertRaises(AssertionError):
            trainer.train_step(x, label)

    def test_shapes_may_change(self):
        trainer = make(net())
        for rows in (6, 3, 17):
            self.assertEqual(trainer.train_step(*batch(rows, rows))[1].shape, (rows, 3))

    def test_types_are_torchs(self):
        trainer = make(net())
        trainer.train_step(*batch())
        self.assertEqual([one.dtype for one in trainer.model_desc.inputs], [torch.float32, torch.int64])
        self.assertEqual([one.dtype for one in trainer.model_desc.outputs], [torch.float32, torch.float32])

    def test_a_module_that_cannot_be_copied(self):
        class Stubborn(Net):
            def __deepcopy__(self, memo):
                raise RuntimeError("cannot be copied")

        torch.manual_seed(7)
        module, x = Stubborn(), batch()
        before = {name: value.clone() for name, value in module.state_dict().items()}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            loss = make(module).train_step(*x)[0].item()
        self.assertTrue(any("cannot be copied" in str(one.message) for one in caught))
        np.testing.assert_allclose(loss, torch_losses(net(), [x], 0.1)[0][0], rtol=1e-4)
        for name, value in module.state_dict().items():
            torch.testing.assert_close(value, before[name], rtol=0, atol=0)

    def test_numpy_in_numpy_out(self):
        x, label = (one.numpy() for one in batch())
        for one in make(net()).train_step(x, label):
            self.assertIsInstance(one, np.ndarray)

    def test_a_name_that_a_parameter_and_an_input_have(self):
        class Named(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = torch.nn.Linear(4, 3)
                self.shift = torch.nn.Parameter(torch.zeros(3))

            def forward(self, x):
                return self.linear(x) + self.shift

        description = {**DESCRIPTION, "inputs": [("shift", ["N", 4]), ("label", ["N"])]}
        with self.assertRaisesRegex(ValueError, "shift"):
            make(Named(), description=description).train_step(*batch())

    def test_the_state_has_the_modules_names(self):
        module, data = net(), [batch(i) for i in range(4)]
        trainer = make(module)
        for one in data:
            trainer.train_step(*one)
        found = trainer.state_dict(pytorch_format=True)
        expected = torch_losses(module, data, 0.1)[1].state_dict()
        self.assertEqual(set(found), {name for name in expected if name != "norm.num_batches_tracked"})
        for name, value in found.items():
            if name != "norm.running_var":  # ONNX's is that of the batch, PyTorch's that of the population
                torch.testing.assert_close(value, expected[name], rtol=1e-3, atol=1e-5)
        module.load_state_dict(found, strict=False)
        expected = copy.deepcopy(module).eval()(data[0][0])
        torch.testing.assert_close(trainer.eval_step(*data[0])[1], expected.detach(), rtol=1e-4, atol=1e-5)

    def test_before_the_first_step_there_is_no_state(self):
        trainer = make(net())
        with self.assertWarns(UserWarning):
            self.assertEqual(trainer.state_dict(), {})
        with self.assertWarns(UserWarning):
            trainer.save_as_onnx("never.onnx")
        with self.assertRaises(RuntimeError):
            trainer.save_checkpoint("never")
        self.assertIsNone(trainer._onnx_model)
        self.assertIsNone(trainer._training_session)

    def test_a_state_that_is_loaded_before_the_first_step(self):
        module, data = net(), [batch(i) for i in range(6)]
        first = make(module, optim.AdamConfig(lr=0.01))
        for one in data[:3]:
            first.train_step(*one)
        with tempfile.TemporaryDirectory() as folder:
            first.save_checkpoint(folder + "/checkpoint", {"epoch": 1})
            state = first.state_dict()
            expected = [first.train_step(*one)[0].item() for one in data[3:]]
            for from_file in (False, True):
                with self.subTest(from_file=from_file):
                    trainer = make(module, optim.AdamConfig(lr=0.01))
                    if from_file:
                        self.assertEqual(trainer.load_checkpoint(folder + "/checkpoint"), {"epoch": 1})
                    else:
                        trainer.load_state_dict(state)
                        self.assertIs(trainer.state_dict(), state)
                    found = [trainer.train_step(*one)[0].item() for one in data[3:]]
                    self.assertEqual(found, expected)
                    self.assertEqual(trainer._train_step_info.step, 6)

    def test_a_state_of_another_module_is_refused_at_the_first_step(self):
        other = make(torch.nn.Linear(4, 3))
        other.train_step(*batch())
        trainer = make(net())
        trainer.load_state_dict(other.state_dict())
        with self.assertRaisesRegex(RuntimeError, "(?i)missing keys"):
            trainer.train_step(*batch())

    def test_schedules(self):
        module, data = net(), [batch(i) for i in range(6)]
        for schedule in (
            optim.ConstantWarmupLRScheduler(6, warmup=0.5),
            optim.CosineWarmupLRScheduler(6, warmup=0.5),
            optim.LinearWarmupLRScheduler(6, warmup=0.5),
            optim.PolyWarmupLRScheduler(6, warmup=0.5),
        ):
            with self.subTest(type(schedule).__name__):
                trainer = make(module, options={"lr_scheduler": schedule})
                own = copy.deepcopy(module).train()
                optimizer = torch.optim.SGD([one for one in own.parameters() if one.requires_grad], lr=0.1)
                for x, label in data:
                    found = trainer.train_step(x, label)[0].item()
                    loss = loss_fn(own(x), label)
                    self.assertAlmostEqual(found, loss.item(), delta=1e-4 * abs(loss.item()))
                    loss.backward()
                    optimizer.param_groups[0]["lr"] = schedule.get_last_lr()[0]
                    optimizer.step()
                    optimizer.zero_grad()


if __name__ == "__main__":
    unittest.main()
