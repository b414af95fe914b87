# SPDX-License-Identifier: Apache-2.0
"""Optimizers of ORTTrainer: names, defaults, groups of weights and what is refused."""

import math
import unittest

from onnxtrain import optim
from onnxtrain.optim.config import _OptimizerConfig

LAYER = ["layer1.weight"]


class AnyOptimizerTest(unittest.TestCase):
    def test_groups_are_completed_with_the_defaults(self):
        for name, lr, alpha, group in (
            ("AdamOptimizer", 0.1, 0.2, {"alpha": 0.2}),
            ("LambOptimizer", 0.2, 0.3, {"alpha": 0.3}),
            ("SGDOptimizer", 0.3, 0.4, {"alpha": 0.5}),
        ):
            with self.subTest(name):
                names = ["fc1.weight", "fc2.weight"]
                config = _OptimizerConfig(name, [{"params": names, **group}], {"lr": lr, "alpha": alpha})
                self.assertEqual((config.name, config.lr), (name, lr))
                self.assertEqual(config.params, [{"params": names, "lr": lr, **group}])
                self.assertEqual(config.defaults, {"lr": lr, "alpha": alpha})

    def test_what_is_refused(self):
        for name, defaults, params in (
            ("AdamOptimizer", {"lr": -1}, []),
            ("FooOptimizer", {"lr": 0.001}, []),
            ("SGDOptimizer", [], []),
            (optim.AdamConfig, {"lr": 0.003}, []),
            ("AdamOptimizer", {"lr": None}, []),
            ("AdamOptimizer", {"lr": True}, []),
            ("AdamOptimizer", {"lr": math.nan}, []),
            ("AdamOptimizer", {"alpha": 0.9}, []),
            ("AdamOptimizer", {"lr": 0.1}, {}),
            ("AdamOptimizer", {"lr": 0.1}, ["layer1.weight"]),
            ("AdamOptimizer", {"lr": 0.1, "alpha": 1.0}, [{"alpha": 0.1}]),
            ("AdamOptimizer", {"lr": 0.1, "alpha": 1.0}, [{"params": LAYER}]),
            ("AdamOptimizer", {"lr": 0.1, "alpha": 1.0}, [{"params": "layer1.weight", "alpha": 0.1}]),
            ("AdamOptimizer", {"lr": 0.1, "alpha": 1.0}, [{"params": [1], "alpha": 0.1}]),
            ("AdamOptimizer", {"lr": 0.1, "alpha": 1.0}, [{"params": LAYER, "beta": 0.1}]),
            ("AdamOptimizer", {"lr": 0.1, "lambda": 1.0}, [{"params": LAYER, "lambda_coef": 0.1, "lambda": 0.1}]),
        ):
            with self.subTest(name=name, defaults=defaults, params=params), self.assertRaises(AssertionError):
                _OptimizerConfig(name=name, params=params, defaults=defaults)

    def test_a_group_names_its_unknown_key_and_those_that_are_known(self):
        with self.assertRaisesRegex(AssertionError, r"params\[1\].*'gamma'.*alpha, beta, lambda, epsilon"):
            optim.AdamConfig([{"params": LAYER, "alpha": 0.1}, {"params": LAYER, "gamma": 0.1}])

    def test_a_value_that_is_no_number_is_a_value_error(self):
        with self.assertRaisesRegex(ValueError, r"params\[0\]\['alpha'\].*'0.1'"):
            optim.AdamConfig([{"params": LAYER, "alpha": "0.1"}])

    def test_what_was_given_is_left_as_it_was(self):
        group, defaults = {"params": ["a"], "alpha": 1}, {"lr": 1, "alpha": 0.5}
        config = _OptimizerConfig("AdamOptimizer", [group], defaults)
        group["params"].append("b")
        self.assertEqual(config.params[0]["params"], ["a"])
        self.assertEqual((set(group), set(defaults)), ({"params", "alpha"}, {"lr", "alpha"}))


class SGDTest(unittest.TestCase):
    def test_defaults_and_order(self):
        config = optim.SGDConfig()
        self.assertEqual((config.name, config.lr, config.params), ("SGDOptimizer", 0.001, []))
        self.assertEqual(config.defaults, {"lr": 0.001})
        self.assertEqual(optim.SGDConfig([], 0.002).lr, 0.002)

    def test_groups_are_refused(self):
        with self.assertRaises(AssertionError):
            optim.SGDConfig([{"params": LAYER, "lr": 0.1}])


class AdamTest(unittest.TestCase):
    def test_defaults_and_order(self):
        config = optim.AdamConfig()
        self.assertEqual((config.name, config.lr, config.params), ("AdamOptimizer", 0.001, []))
        self.assertEqual((config.alpha, config.beta, config.lambda_coef), (0.9, 0.999, 0.0))
        self.assertEqual((config.epsilon, config.max_norm_clip), (1e-8, 1.0))
        self.assertIs(config.do_bias_correction, True)
        self.assertIs(config.weight_decay_mode, optim.AdamConfig.DecayMode.BEFORE_WEIGHT_UPDATE)
        after = optim.AdamConfig.DecayMode.AFTER_WEIGHT_UPDATE
        self.assertEqual((config.weight_decay_mode, after), (0, 1))
        config = optim.AdamConfig([], 1, 2, 3, 4, 5, 6, False, after)
        expected = {"lr": 1.0, "alpha": 2.0, "beta": 3.0, "lambda": 4.0, "epsilon": 5.0, "max_norm_clip": 6.0}
        self.assertEqual(config.defaults, {**expected, "do_bias_correction": False, "weight_decay_mode": after})


class LambTest(unittest.TestCase):
    def test_defaults_and_order(self):
        config = optim.LambConfig()
        self.assertEqual((config.name, config.lr, config.params), ("LambOptimizer", 0.001, []))
        self.assertEqual((config.alpha, config.beta, config.lambda_coef), (0.9, 0.999, 0.0))
        self.assertEqual((config.ratio_min, config.ratio_max), (-math.inf, math.inf))
        self.assertEqual((config.epsilon, config.max_norm_clip), (1e-6, 1.0))
        self.assertIs(config.do_bias_correction, False)
        config = optim.LambConfig([], 1, 2, 3, 4, 5, 6, 7, 8, True)
        expected = {"lr": 1.0, "alpha": 2.0, "beta": 3.0, "lambda": 4.0, "ratio_min": 5.0, "ratio_max": 6.0}
        expected |= {"epsilon": 7.0, "max_norm_clip": 8.0, "do_bias_correction": True}
        self.assertEqual(config.defaults, expected)


class MomentsTest(unittest.TestCase):
    """Of Adam and LAMB."""

    def each(self):
        for make in (optim.AdamConfig, optim.LambConfig):
            with self.subTest(make.__name__):
                yield make

    def test_a_group_overrides(self):
        for make in self.each():
            config = make([{"params": LAYER, "alpha": 0.1}], alpha=0.2)
            self.assertEqual((config.defaults["alpha"], config.params[0]["alpha"]), (0.2, 0.1))
            self.assertEqual(config.params[0]["beta"], 0.999)

    def test_lambda_coef_of_a_group_is_its_lambda(self):
        for make in self.each():
            config = make([{"params": LAYER, "lambda_coef": 0.25}], lambda_coef=0.5)
            self.assertEqual((config.params[0]["lambda"], config.defaults["lambda"]), (0.25, 0.5))
            self.assertNotIn("lambda_coef", config.params[0])

    def test_whole_numbers_of_a_group_become_floats(self):
        for make in self.each():
            group = make([{"params": LAYER, "alpha": 1, "lambda_coef": 0}]).params[0]
            self.assertEqual([type(group[key]) for key in ("alpha", "lambda")], [float, float])

    def test_a_group_has_no_learning_rate(self):
        for make in self.each():
            with self.assertRaisesRegex(AssertionError, r"params\[0\].*lr"):
                make([{"params": LAYER, "lr": 0.1}])

    def test_what_is_refused(self):
        for make in self.each():
            for given in (
                {"lr": -0.1},
                {"alpha": -0.1},
                {"beta": -1},
                {"lambda_coef": -1.0},
                {"epsilon": -1e-8},
                {"alpha": "0.9"},
                {"max_norm_clip": 0},
                {"max_norm_clip": None},
                {"do_bias_correction": 1},
            ):
                with self.subTest(**given), self.assertRaises(AssertionError):
                    make(**given)
        with self.assertRaises(AssertionError):
            optim.AdamConfig(weight_decay_mode=1)
        with self.assertRaises(AssertionError):
            optim.LambConfig(ratio_min=None)


if __name__ == "__main__":
    unittest.main()
