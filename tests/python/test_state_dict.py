# SPDX-License-Identifier: Apache-2.0
"""State dicts by the names of torch.distributed.checkpoint.state_dict."""

import inspect
import json
import unittest
from dataclasses import fields
from pathlib import Path

import numpy as np
from network import NAMES, batch
from orttrainer_network import make
from state_dict_modules import ModulesTest

from onnxtrain import optim
from onnxtrain.distributed import LocalShard, ShardedTensor
from onnxtrain.distributed import checkpoint
from onnxtrain.distributed.checkpoint import state_dict
from onnxtrain.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
    set_state_dict,
)

try:
    import torch
except ImportError:
    torch = None

RECORDED = Path(__file__).with_name("torch_state_dict_signatures.json")


DIRECTORY = ("save", "load", "async_save")


def signatures(module, directory):
    """Parameters of the functions, and the options: what RECORDED has of PyTorch 2.11."""
    found = {}
    places = {**dict.fromkeys(state_dict.__all__[1:], module), **dict.fromkeys(DIRECTORY, directory)}
    for name, place in places.items():
        parameters = inspect.signature(getattr(place, name)).parameters.values()
        found[name] = [
            [p.name, p.kind.name, None if p.default is p.empty else repr(p.default)] for p in parameters
        ]
    found["StateDictOptions"] = [[f.name, "FIELD", repr(f.default)] for f in fields(module.StateDictOptions)]
    return found


class SignatureTest(unittest.TestCase):
    def test_names_parameters_and_defaults_are_those_of_pytorch(self):
        self.assertEqual(signatures(state_dict, checkpoint), json.loads(RECORDED.read_text()))

    @unittest.skipIf(torch is None, "needs torch")
    def test_recorded_ones_are_those_of_the_torch_here(self):
        import torch.distributed.checkpoint as directory
        import torch.distributed.checkpoint.state_dict as theirs

        self.assertEqual(signatures(theirs, directory), json.loads(RECORDED.read_text()))


class StateDictTest(ModulesTest):
    def test_the_model_is_arrays_by_name(self):
        state, module, _ = self.open(2)
        found = get_model_state_dict(module)
        self.assertEqual(set(found), set(NAMES))
        for name in NAMES:
            np.testing.assert_array_equal(found[name], state.parameters[name].data)

    def test_the_optimizer_is_named_as_torch_names_adamw(self):
        _, module, optimizer = self.open(3)
        found = get_optimizer_state_dict(module, optimizer)
        self.assertEqual(set(found["state"]), set(NAMES))
        self.assertEqual(set(found["state"]["w1"]), {"step", "exp_avg", "exp_avg_sq"})
        self.assertEqual(found["state"]["w1"]["step"], 3)
        self.assertEqual(found["state"]["w1"]["exp_avg"].shape, (3, 4))
        (group,) = found["param_groups"]
        self.assertEqual(set(group["params"]), set(NAMES))
        self.assertEqual(group["betas"], [0.9, 0.999])
        self.assertEqual(group["lr"], 0.001)

    def test_any_form_goes_into_any_other_module(self):
        for saved in (False, True):
            for loaded in (False, True):
                first, module, optimizer = self.open(3)
                model, optims = get_state_dict(
                    module, optimizer, options=StateDictOptions(flatten_optimizer_state_dict=saved)
                )
                second, other, other_optimizer = self.open(1)
                result = set_state_dict(
                    other,
                    [other_optimizer],
                    model_state_dict=model,
                    optim_state_dict=optims,
                    options=StateDictOptions(full_state_dict=True, flatten_optimizer_state_dict=loaded),
                )
                self.assertEqual(result, ([], []))
                self.assertEqual((result.missing_keys, result.unexpected_keys), ([], []))
                self.assert_same(first, second)
                self.step(module, optimizer, 9)
                self.step(other, other_optimizer, 9)
                self.assert_same(first, second)

    def test_keys_that_do_not_fit_are_errors_or_told(self):
        _, module, _ = self.open(1)
        given = get_model_state_dict(module)
        given["extra"] = given["b1"]
        with self.assertRaisesRegex(Exception, "unexpected: 'extra'"):
            set_model_state_dict(module, given)
        del given["b1"]
        with self.assertRaisesRegex(Exception, "missing: 'b1'; unexpected: 'extra'"):
            set_model_state_dict(module, given)
        before = set(given)
        self.assertEqual(
            set_model_state_dict(module, given, options=StateDictOptions(strict=False)), (["b1"], ["extra"])
        )
        self.assertEqual(set(given), before)  # is not changed
        given["w1"] = given["w1"].T
        with self.assertRaisesRegex(Exception, r"'w1' is f32\[4,3\], expected f32\[3,4\]"):
            set_model_state_dict(module, given, options=StateDictOptions(strict=False))

    def test_nothing_changes_where_the_optimizer_does_not_fit(self):
        first, module, optimizer = self.open(2)
        same, _, _ = self.open(2)
        _, other, other_optimizer = self.open(5)
        model, optims = get_state_dict(other, other_optimizer)
        del optims["state"]["w2"]
        with self.assertRaisesRegex(Exception, "'state.w2.exp_avg'"):
            set_state_dict(module, optimizer, model_state_dict=model, optim_state_dict=optims)
        self.assert_same(first, same)

    def test_submodules_are_beginnings_of_names(self):
        _, module, optimizer = self.open(1)
        self.assertEqual(set(get_model_state_dict(module, submodules=["w*"])), {"w1", "w2"})
        self.assertEqual(get_model_state_dict(module, submodules={"w"}), {})
        with self.assertRaises(TypeError):
            get_optimizer_state_dict(module, optimizer, submodules={module})

    def test_what_a_scheduler_keeps_goes_into_a_fresh_optimizer(self):
        _, module, optimizer = self.open(1)
        found = get_optimizer_state_dict(module, optimizer)
        found["param_groups"][0]["initial_lr"] = 0.125
        found["param_groups"][0]["foreach"] = None
        _, other, other_optimizer = self.open(0)
        set_optimizer_state_dict(other, other_optimizer, found)
        (group,) = get_optimizer_state_dict(other, other_optimizer)["param_groups"]
        self.assertEqual(group["initial_lr"], 0.125)
        self.assertIsNone(group["foreach"])

    def test_options_that_contradict_each_other_are_refused(self):
        _, module, optimizer = self.open(0)
        with self.assertRaisesRegex(ValueError, "full_state_dict must be True"):
            get_model_state_dict(module, options=StateDictOptions(broadcast_from_rank0=True))
        with self.assertRaisesRegex(ValueError, "optimizers are not passed"):
            get_optimizer_state_dict(module, [])
        with self.assertRaisesRegex(TypeError, "expected a Module"):
            get_model_state_dict({})
        _, _, stranger = self.open(0)
        with self.assertRaisesRegex(ValueError, "none of the model's"):
            get_optimizer_state_dict(module, stranger)
        self.assertIsNotNone(optimizer)

    def test_values_of_no_kind_are_refused(self):
        _, module, optimizer = self.open(0)
        model, optims = get_state_dict(module, optimizer)
        with self.assertRaisesRegex(TypeError, "'w1'"):
            set_model_state_dict(module, model | {"w1": object()})
        optims["state"]["w1"]["exp_avg"] = object()
        with self.assertRaisesRegex(TypeError, "'exp_avg'"):
            set_optimizer_state_dict(module, optimizer, optims)

    def test_parts_of_tensors_are_taken(self):
        state, module, _ = self.open(1)
        given = get_model_state_dict(module)
        new = np.arange(12, dtype=np.float32).reshape(3, 4)
        given["w1"] = ShardedTensor(
            np.float32, (3, 4), [LocalShard((0, 0), new[:2]), LocalShard((2, 0), new[2:])]
        )
        np.testing.assert_array_equal(given["w1"].full(), new)
        set_model_state_dict(module, given)
        np.testing.assert_array_equal(state.parameters["w1"].data, new)
        given["w1"] = ShardedTensor(np.float32, (3, 4), [LocalShard((0, 0), new[:2])])
        with self.assertRaises(ValueError):
            given["w1"].full()
        with self.assertRaisesRegex(Exception, "8 of the 12 elements"):
            set_model_state_dict(module, given)


class TrainerTest(unittest.TestCase):
    def test_a_trainer_goes_on_where_another_was(self):
        one, other = (make(optim.AdamConfig(lr=0.01)) for _ in range(2))
        self.assertEqual(set(get_model_state_dict(one)), set(NAMES))
        for number in range(3):
            one.train_step(*batch(number))
        other.train_step(*batch(7))
        model, optims = get_state_dict(one, one)
        set_state_dict(other, other, model_state_dict=model, optim_state_dict=optims)
        for number in (4, 5):
            one.train_step(*batch(number))
            other.train_step(*batch(number))
        expected, found = get_state_dict(one, one), get_state_dict(other, other)
        for name in NAMES:
            np.testing.assert_array_equal(found[0][name], expected[0][name])
            np.testing.assert_array_equal(
                found[1]["state"][name]["exp_avg"], expected[1]["state"][name]["exp_avg"]
            )


if __name__ == "__main__":
    unittest.main()
