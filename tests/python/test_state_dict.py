# SPDX-License-Identifier: Apache-2.0
"""State dicts by the names of torch.distributed.checkpoint.state_dict."""

import inspect
import itertools
import json
import unittest
from dataclasses import fields
from pathlib import Path

import numpy as np
from network import NAMES, START, TEXT, batch
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

TIED = b"""<ir_version: 8, opset_import: ["" : 17]>
net (float[N, 3] x) => (float[N, 3] y) <float[3, 3] w = {0.1, -0.2, 0.3, 0.4, -0.5, 0.6, 0.7, -0.8, 0.9}>
{ h = MatMul(x, w) y = MatMul(h, w) }"""
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

    def assert_same_dict(self, found, wanted):
        self.assertEqual(set(found), set(wanted))
        for key, value in wanted.items():
            if isinstance(value, dict):
                self.assert_same_dict(found[key], value)
            else:
                np.testing.assert_array_equal(found[key], value)

    def test_any_form_goes_into_any_other_module(self):
        """Given in one form, got in the same or the other, set by ranks with their parts or with the whole."""
        for saved, got, full in itertools.product((False, True), repeat=3):
            with self.subTest(saved=saved, got=got, full=full):
                first, module, optimizer = self.open(3)
                second, other, other_optimizer = self.open(1)
                options = StateDictOptions(flatten_optimizer_state_dict=saved)
                model, optims = get_state_dict(module, optimizer, options=options)
                result = set_state_dict(
                    other,
                    [other_optimizer],
                    model_state_dict=model,
                    optim_state_dict=optims,
                    options=StateDictOptions(full_state_dict=full),
                )
                self.assertEqual(result, ([], []))
                self.assertEqual((result.missing_keys, result.unexpected_keys), ([], []))
                self.assert_same(first, second)
                options = StateDictOptions(flatten_optimizer_state_dict=got)
                wanted = get_optimizer_state_dict(module, optimizer, options=options)
                found = get_optimizer_state_dict(other, other_optimizer, options=options)
                self.assertEqual("state" in found, not got)
                self.assert_same_dict(found, wanted)
                self.step(module, optimizer, 9)
                self.step(other, other_optimizer, 9)
                self.assert_same(first, second)

    def test_frozen_parameters_may_be_left_out(self):
        self.generate(TEXT, requires_grad=["w1", "w2", "b2"], frozen_params=["b1"])
        state, module, optimizer = self.open(1)
        leaves_out = StateDictOptions(ignore_frozen_params=True)
        model = get_model_state_dict(module, options=leaves_out)
        self.assertEqual(set(model), {"w1", "w2", "b2"})
        self.assertEqual(set(get_model_state_dict(module)), set(NAMES))
        self.assertEqual(set(get_optimizer_state_dict(module, optimizer)["state"]), set(model))
        given = {name: value + 1 for name, value in model.items()}
        with self.assertRaisesRegex(LookupError, "missing: 'b1'"):
            set_model_state_dict(module, given)
        self.assertEqual(set_model_state_dict(module, given, options=leaves_out), ([], []))
        np.testing.assert_array_equal(state.parameters["w1"].data, given["w1"])
        np.testing.assert_array_equal(state.parameters["b1"].data, START["b1"])
        del given["b2"]
        with self.assertRaisesRegex(LookupError, "missing: 'b2'"):
            set_model_state_dict(module, given, options=leaves_out)

    def test_one_process_keeps_what_only_rank_0_would(self):
        _, module, optimizer = self.open(2)
        wanted = get_state_dict(module, optimizer)
        for full in (False, True):
            options = StateDictOptions(full_state_dict=full, cpu_offload=True)
            for found, own in zip(get_state_dict(module, optimizer, options=options), wanted):
                self.assert_same_dict(found, own)

    def test_one_process_gives_what_rank_0_would(self):
        first, module, optimizer = self.open(2)
        second, other, other_optimizer = self.open(5)
        gives = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
        model, optims = get_state_dict(module, optimizer)
        result = set_state_dict(other, other_optimizer, model_state_dict=model, optim_state_dict=optims, options=gives)
        self.assertEqual(result, ([], []))
        self.step(module, optimizer, 9)
        self.step(other, other_optimizer, 9)
        self.assert_same(first, second)
        with self.assertRaisesRegex(LookupError, "missing: 'w1'"):
            set_model_state_dict(other, {name: value for name, value in model.items() if name != "w1"}, options=gives)

    def test_a_tied_parameter_has_the_name_that_it_has_in_the_model(self):
        """PyTorch gives it under each of its names."""
        self.generate(TIED)
        state, module, optimizer = self.open(1)
        model, optims = get_state_dict(module, optimizer)
        self.assertEqual((set(model), set(optims["state"])), ({"w"}, {"w"}))
        given = {"w": model["w"] + 1, "head": model["w"] + 1}
        with self.assertRaisesRegex(ValueError, "unexpected: 'head'"):
            set_model_state_dict(module, given)
        loose = StateDictOptions(strict=False)
        self.assertEqual(set_model_state_dict(module, given, options=loose), ([], ["head"]))
        np.testing.assert_array_equal(state.parameters["w"].data, given["w"])

    def test_a_group_without_members_is_set_by_its_place(self):
        _, module, optimizer = self.open(1, "[0, 0, 0, 0]")
        given = get_optimizer_state_dict(module, optimizer)
        self.assertEqual([group["params"] for group in given["param_groups"]], [["w1", "b1", "w2", "b2"], []])
        self.assertEqual([group["weight_decay"] for group in given["param_groups"]], [0.25, 0.5])
        given["param_groups"][1]["weight_decay"] = 0.125
        set_optimizer_state_dict(module, optimizer, given)
        flat = StateDictOptions(flatten_optimizer_state_dict=True)  # which has nothing of it
        set_optimizer_state_dict(module, optimizer, get_optimizer_state_dict(module, optimizer, options=flat))
        found = get_optimizer_state_dict(module, optimizer)["param_groups"]
        self.assertEqual([group["weight_decay"] for group in found], [0.25, 0.125])

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
