# SPDX-License-Identifier: Apache-2.0
"""State dicts of several models in one call."""

import unittest

import numpy as np
from network import NAMES, TEXT
from state_dict_modules import ModulesTest

from onnxtrain import prepare
from onnxtrain.api import CheckpointState, Module
from onnxtrain.artifacts import generate_artifacts
from onnxtrain.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
    set_state_dict,
)


class SeveralModelsTest(ModulesTest):
    def test_they_are_one_state(self):
        one, module, optimizer = self.open(1)
        two, other, other_optimizer = self.open(2)
        models = [("gen", module), ("disc", other)]
        for flat in (False, True):
            options = StateDictOptions(flatten_optimizer_state_dict=flat)
            model, optims = get_state_dict(models, [optimizer, other_optimizer], options=options)
            self.assertEqual(set(model), {f"{m}.{name}" for m in ("gen", "disc") for name in NAMES})
            swapped = [("disc", module), ("gen", other)]
            set_state_dict(swapped, [optimizer, other_optimizer], model_state_dict=model, optim_state_dict=optims)
            np.testing.assert_array_equal(one.parameters["w1"].data, model["disc.w1"])
            np.testing.assert_array_equal(two.parameters["w1"].data, model["gen.w1"])
        model["w1"] = model["gen.w1"]
        with self.assertRaisesRegex(ValueError, "unexpected: 'w1'"):
            set_model_state_dict(models, model)
        result = set_model_state_dict(models, model, options=StateDictOptions(strict=False))
        self.assertEqual(result, ([], ["w1"]))
        del model["disc.b1"]
        with self.assertRaisesRegex(LookupError, "^model 'disc': .*missing: 'b1'"):
            del model["w1"]
            set_model_state_dict(models, model | {"gen.w1": model["gen.w1"] + 1})
        np.testing.assert_array_equal(one.parameters["w1"].data, model["gen.w1"])  # all, or none

    def test_names_of_no_model_are_refused_or_told(self):
        _, module, optimizer = self.open(1)
        _, other, other_optimizer = self.open(2)
        models, optimizers = [("a", module), ("b", other)], [optimizer, other_optimizer]
        loose = StateDictOptions(strict=False)
        optims = get_optimizer_state_dict(models, optimizers)
        groups = [{**group, "params": [*group["params"], "c.w"]} for group in optims["param_groups"]]
        rows = [
            ({**optims, "param_groups": groups}, "'c.w'"),
            ({**optims, "state": {**optims["state"], "c.w": {"step": 1}}}, "'c.w'"),
            ({**optims, "more": 1}, "'more'"),
        ]
        flat = get_optimizer_state_dict(models, optimizers, options=StateDictOptions(flatten_optimizer_state_dict=True))
        rows += [({**flat, key: 1}, repr(key)) for key in ("state.c.w.step", "param_groups.c.w.lr", "more")]
        for given, name in rows:
            with self.subTest(name):
                with self.assertRaisesRegex(ValueError, f"does not fit: unexpected: {name}$"):
                    set_optimizer_state_dict(models, optimizers, given)
                set_optimizer_state_dict(models, optimizers, given, options=loose)

    def test_an_optimizer_that_is_not_given_has_no_part(self):
        _, module, optimizer = self.open(1)
        _, other, other_optimizer = self.open(2)
        models, optimizers = [("a", module), ("b", other)], [optimizer, other_optimizer]
        for flat in (False, True):
            options = StateDictOptions(flatten_optimizer_state_dict=flat)
            whole = get_optimizer_state_dict(models, optimizers, options=options)
            model, optims = get_state_dict(models, [optimizer], options=options)
            alone = get_optimizer_state_dict(models, optimizer, options=options)
            self.assertEqual(len(model), 2 * len(NAMES))
            for found in (optims, alone):
                keys = found if flat else found["state"]
                self.assertEqual({key.removeprefix("state.").removeprefix("param_groups.")[:2] for key in keys}, {"a."})
            self.assertEqual(len(alone) if flat else len(alone["param_groups"]), len(whole) // 2 if flat else 1)
            self.step(module, optimizer, 5)
            self.step(other, other_optimizer, 5)
            changed = get_optimizer_state_dict(models, optimizers)
            set_optimizer_state_dict(models, optimizer, whole)
            found = get_optimizer_state_dict(models, optimizers)
            self.assertEqual(found["state"]["a.w1"]["step"] + 1, changed["state"]["a.w1"]["step"])
            self.assertEqual(found["state"]["b.w1"]["step"], changed["state"]["b.w1"]["step"])

    def test_a_model_may_have_no_optimizer(self):
        one, module, optimizer = self.open(1)
        state = CheckpointState.load_checkpoint(self.folder / "checkpoint")
        plain = Module(self.folder / "training_model.onnx", state, self.folder / "eval_model.onnx")
        models = [("a", module), ("b", plain)]
        optims = get_optimizer_state_dict(models, optimizer)
        self.assertEqual(set(optims["state"]), {f"a.{name}" for name in NAMES})
        set_optimizer_state_dict(models, optimizer, optims)
        model, optims = get_state_dict(models, optimizer)
        set_state_dict(models, optimizer, model_state_dict=model | {"b.b2": np.ones(2, np.float32)}, optim_state_dict=optims)
        np.testing.assert_array_equal(state.parameters["b2"].data, [1, 1])
        self.assertEqual(get_state_dict(plain, [])[1], {"state": {}, "param_groups": []})
        set_state_dict(plain, [], model_state_dict=get_model_state_dict(module), optim_state_dict={})
        self.assert_same(state, one)

    def test_what_one_model_would_be_refused_several_are(self):
        _, module, optimizer = self.open(1)
        _, other, other_optimizer = self.open(2)
        models, optimizers = [("a", module), ("b", other)], [optimizer, other_optimizer]
        optims = get_optimizer_state_dict(models, optimizers)
        with self.assertRaisesRegex(LookupError, "param_groups"):
            set_optimizer_state_dict(models, optimizers, {"state": optims["state"]})
        numbers = dict(enumerate(optims["state"].values()))
        positions = [{**optims["param_groups"][0], "params": [0, 1]}]
        rows = (
            ({"state": numbers, "param_groups": []}, r"optim_state_dict\['state'\] has 0, expected names"),
            ({"state": {}, "param_groups": positions}, r"\['param_groups'\]\[0\]\['params'\] has 0, expected names"),
            ({"state": {}, "param_groups": {}}, r"\['param_groups'\] is dict, expected a list"),
            ({"state": {}, "param_groups": [3]}, r"\['param_groups'\]\[0\] is int, expected a dict"),
            ({"state": None, "param_groups": []}, r"\['state'\] is NoneType, expected a dict"),
            ([], "optim_state_dict is list, expected a dict"),
            ({0: 1}, "optim_state_dict has 0, expected names"),
        )
        for given, text in rows:
            for model, of in ((models, optimizers), (module, optimizer)):
                with self.subTest(text), self.assertRaisesRegex(TypeError, text):
                    set_optimizer_state_dict(model, of, given)
        with self.assertRaisesRegex(TypeError, "model_state_dict has 0, expected names"):
            set_model_state_dict(models, {0: 1})
        odd = ([module], r"expected a list of pairs \(name, model\)"), ([(1, module)], "pairs"), ([("a", 1)], "the model 'a' is int")
        for given, text in odd:
            with self.subTest(text), self.assertRaisesRegex(TypeError, text):
                get_model_state_dict(given)
        with self.assertRaisesRegex(ValueError, "the list is empty"):
            get_model_state_dict([])
        with self.assertRaisesRegex(TypeError, "an optimizer is int, expected an Optimizer"):
            get_optimizer_state_dict(module, 3)

    def test_names_of_models_differ(self):
        _, module, _ = self.open(1)
        _, other, _ = self.open(2)
        for call in (get_model_state_dict, lambda models: set_model_state_dict(models, {})):
            with self.assertRaisesRegex(ValueError, "^models: 2 of them have the name 'a', expected a name for each$"):
                call([("a", module), ("a", other)])

    def test_a_name_may_continue_another(self):
        one, module, optimizer = self.open(1)
        two, other, other_optimizer = self.open(2)
        models, optimizers = [("a", module), ("a.b", other)], [optimizer, other_optimizer]
        wanted = {prefix + name: state.parameters[name].data for prefix, state in (("a.", one), ("a.b.", two)) for name in NAMES}
        for flat in (False, True):
            model, optims = get_state_dict(models, optimizers, options=StateDictOptions(flatten_optimizer_state_dict=flat))
            self.step(module, optimizer, 3)
            self.step(other, other_optimizer, 4)
            set_state_dict(models, optimizers, model_state_dict=model, optim_state_dict=optims)
            found = get_model_state_dict(models)
            self.assertEqual(set(found), set(wanted))
            for name, value in wanted.items():
                np.testing.assert_array_equal(found[name], value)
            steps = {name: slots["step"] for name, slots in get_optimizer_state_dict(models, optimizers)["state"].items()}
            self.assertEqual(steps, {name: 2 if name.startswith("a.b.") else 1 for name in wanted})

    def test_names_that_could_be_of_two_models_are_refused(self):
        _, module, _ = self.open(1)
        folder = self.folder / "dotted"
        prepare(TEXT.replace(b"w1", b"b_w1"), output=self.folder / "dotted.onnx")  # text has no dots in names
        binary = (self.folder / "dotted.onnx").read_bytes().replace(b"b_w1", b"b.w1")
        generate_artifacts(binary, artifact_directory=folder, **self.options)
        dotted = Module(folder / "training_model.onnx", CheckpointState.load_checkpoint(folder / "checkpoint"))
        for call in (get_model_state_dict, lambda models: set_model_state_dict(models, {})):
            with self.assertRaisesRegex(ValueError, "^models: 'a.b.w1' is a name of 'a' and of 'a.b', expected names that"):
                call([("a", dotted), ("a.b", module)])
        self.assertIn("a.b.w1", get_model_state_dict([("a", dotted), ("b", module)]))

    def test_groups_without_members_go_back_to_their_model(self):
        last_is_empty, first_is_empty, none_is = "[0, 0, 0, 0]", "[1, 1, 1, 1]", "[0, 1, 0, 1]"
        for first, second in ((last_is_empty, first_is_empty), (none_is, first_is_empty), (first_is_empty, last_is_empty)):
            with self.subTest(first):
                _, module, optimizer = self.open(1, first)
                _, other, other_optimizer = self.open(1, second)
                models, optimizers = [("a", module), ("b", other)], [optimizer, other_optimizer]
                given = get_optimizer_state_dict(models, optimizers)
                self.assertEqual(len(given["param_groups"]), 4)
                for i, group in enumerate(given["param_groups"]):
                    group["weight_decay"] = 0.125 * i
                set_optimizer_state_dict(models, optimizers, given)
                found = get_optimizer_state_dict(models, optimizers)["param_groups"]
                self.assertEqual([group["weight_decay"] for group in found], [0, 0.125, 0.25, 0.375])


if __name__ == "__main__":
    unittest.main()
