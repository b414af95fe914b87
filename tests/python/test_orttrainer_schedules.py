# SPDX-License-Identifier: Apache-2.0
"""Schedules of ORTTrainer give the learning rates that are published for them, to 1e-12."""

import inspect
import math
import unittest

from onnxtrain import TrainStepInfo, optim
from onnxtrain.optim.lr_scheduler import (
    ConstantWarmupLRScheduler,
    CosineWarmupLRScheduler,
    LinearWarmupLRScheduler,
    PolyWarmupLRScheduler,
    _LRScheduler,
)

STEPS = 10
RISING = [0, 0.2, 0.4, 0.6, 0.8]
KINDS = (ConstantWarmupLRScheduler, CosineWarmupLRScheduler, LinearWarmupLRScheduler, PolyWarmupLRScheduler)


def rates(schedule, lr=1.0):
    """Those of the steps of a training in which each step is an update."""
    found = []
    for step in range(STEPS):
        schedule._step(TrainStepInfo(optim.SGDConfig(lr=lr), optimization_step=step))
        found += schedule.get_last_lr()
    return found


class ScheduleTest(unittest.TestCase):
    def check(self, schedule, expected, lr=1.0):
        found = rates(schedule, lr)
        self.assertEqual(len(found), len(expected))
        for step, (one, other) in enumerate(zip(found, expected)):
            self.assertAlmostEqual(one, other, delta=1e-12, msg=f"step {step}")

    def test_warm_up_over_half_the_steps(self):
        cosine = [1, 0.9045084971874737, 0.6545084971874737, 0.34549150281252633, 0.09549150281252633]
        poly = [1, 0.80000002, 0.60000004, 0.40000006, 0.20000008]
        self.check(ConstantWarmupLRScheduler(STEPS, 0.5), RISING + [1] * 5)
        self.check(CosineWarmupLRScheduler(STEPS, warmup=0.5), RISING + cosine)
        self.check(LinearWarmupLRScheduler(STEPS, warmup=0.5), RISING + [1, 0.8, 0.6, 0.4, 0.2])
        self.check(PolyWarmupLRScheduler(STEPS, warmup=0.5), RISING + poly)

    def test_cosine_with_less_than_a_step_of_warm_up(self):
        expected = [
            0,
            0.9763960957919413,
            0.9059835861602854,
            0.7956724530494887,
            0.6563036824392345,
            0.5015739416158049,
            0.34668951940611276,
            0.2068719061737831,
            0.09586187986225325,
            0.0245691111902418,
        ]
        self.check(CosineWarmupLRScheduler(STEPS), expected)

    def test_cosine_with_half_a_step_of_warm_up(self):
        expected = [
            0,
            0.9931806517013612,
            0.9397368756032445,
            0.8386407858128706,
            0.7008477123264848,
            0.5412896727361662,
            0.37725725642960045,
            0.22652592093878665,
            0.10542974530180327,
            0.02709137914968268,
        ]
        self.check(CosineWarmupLRScheduler(STEPS, warmup=0.05), expected)

    def test_linear_with_half_a_step_of_warm_up(self):
        self.check(LinearWarmupLRScheduler(STEPS, 0.05), [0] + [(10 - t) / 9.5 for t in range(1, 10)])

    def test_poly_down_to_half(self):
        found = rates(PolyWarmupLRScheduler(STEPS, lr_end=0.5))
        for step, expected in ((0, 0), (1, 0.9509018036072144), (2, 0.9008016032064128), (3, 0.8507014028056112)):
            self.assertAlmostEqual(found[step], expected, delta=1e-12)
        self.assertAlmostEqual(found[9], 0.5501002004008015, delta=1e-12)

    def test_poly_with_a_power_and_another_learning_rate(self):
        expected = [(0.5 - 0.1) * (1 - t / 10) ** 2 + 0.1 for t in range(10)]
        self.check(PolyWarmupLRScheduler(STEPS, lr_end=0.1, power=2.0, warmup=0.0), expected, lr=0.5)

    def test_after_the_last_step(self):
        info = TrainStepInfo(optim.SGDConfig(lr=0.5), optimization_step=15)
        self.assertEqual(LinearWarmupLRScheduler(STEPS).get_lr(info), [0.0])
        self.assertAlmostEqual(PolyWarmupLRScheduler(STEPS, lr_end=0.1).get_lr(info)[0], 0.1, delta=1e-15)
        rising = 0.25 * (1 + math.cos(math.pi * (15 - 0.02) / (10 - 0.02)))
        self.assertAlmostEqual(CosineWarmupLRScheduler(STEPS).get_lr(info)[0], rising, delta=1e-12)

    def test_positional_order_and_defaults(self):
        def parameters(kind):
            return [(p.name, p.default) for p in inspect.signature(kind).parameters.values()]

        steps, warmup = ("total_steps", inspect.Parameter.empty), ("warmup", 0.002)
        self.assertEqual(parameters(ConstantWarmupLRScheduler), [steps, warmup])
        self.assertEqual(parameters(LinearWarmupLRScheduler), [steps, warmup])
        self.assertEqual(parameters(CosineWarmupLRScheduler), [steps, ("cycles", 0.5), warmup])
        self.assertEqual(parameters(PolyWarmupLRScheduler), [steps, ("lr_end", 1e-7), ("power", 1.0), warmup])

    def test_what_is_refused(self):
        for kind in KINDS:
            for total in (0, -1, 10.0, True, "10"):
                with self.subTest(kind.__name__, total=total), self.assertRaises(AssertionError):
                    kind(total)
            for warmup in (-0.1, 1.0, 2, None, math.nan):
                with self.subTest(kind.__name__, warmup=warmup), self.assertRaises(AssertionError):
                    kind(STEPS, warmup=warmup)
        for given in ({"cycles": 0.0}, {"cycles": 1}, {"cycles": -0.5}):
            with self.subTest(**given), self.assertRaises(AssertionError):
                CosineWarmupLRScheduler(STEPS, **given)
        for given in ({"lr_end": -1e-7}, {"lr_end": 0}, {"power": -1.0}, {"power": 1}):
            with self.subTest(**given), self.assertRaises(AssertionError):
                PolyWarmupLRScheduler(STEPS, **given)

    def test_poly_ends_below_the_learning_rate(self):
        with self.assertRaisesRegex(AssertionError, "lr_end is 0.5.*0.25"):
            PolyWarmupLRScheduler(STEPS, lr_end=0.5).get_lr(TrainStepInfo(optim.SGDConfig(lr=0.25)))

    def test_no_rate_before_the_first_step(self):
        for kind in KINDS:
            self.assertEqual(kind(STEPS).get_last_lr(), [])

    def test_one_of_ones_own(self):
        class Halving(_LRScheduler):
            def get_lr(self, train_step_info):
                return [train_step_info.optimizer_config.lr * 0.5**train_step_info.optimization_step]

        schedule = Halving()
        self.assertEqual(schedule.get_last_lr(), [])
        schedule._step(TrainStepInfo(optim.SGDConfig(lr=0.5), optimization_step=2))
        self.assertEqual(schedule.get_last_lr(), [0.125])
        self.assertEqual(Halving().get_last_lr(), [])
        with self.assertRaises(NotImplementedError):
            _LRScheduler().get_lr(TrainStepInfo(optim.SGDConfig()))


class TrainStepInfoTest(unittest.TestCase):
    def test_fields_order_and_defaults(self):
        config = optim.LambConfig()
        info = TrainStepInfo(config)
        self.assertIs(info.optimizer_config, config)
        self.assertEqual((info.all_finite, info.fetches, info.optimization_step, info.step), (True, [], 0, 0))
        info = TrainStepInfo(config, False, ["loss"], 2, 3)
        self.assertEqual((info.all_finite, info.fetches, info.optimization_step, info.step), (False, ["loss"], 2, 3))
        info.fetches.append("scores")
        self.assertEqual(TrainStepInfo(config).fetches, [])

    def test_what_is_refused(self):
        config = optim.AdamConfig()
        for given in (
            (0,),
            (None,),
            (config, 1),
            (config, "True"),
            (config, True, "loss"),
            (config, True, [1]),
            (config, True, [], -1),
            (config, True, [], 1.0),
            (config, True, [], 0, -1),
            (config, True, [], 0, "1"),
        ):
            with self.subTest(given=given), self.assertRaises(AssertionError):
                TrainStepInfo(*given)


if __name__ == "__main__":
    unittest.main()
