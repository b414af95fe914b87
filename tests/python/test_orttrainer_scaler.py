# SPDX-License-Identifier: Apache-2.0
"""Loss scalers of ORTTrainer, state by state."""

import inspect
import unittest

from onnxtrain import TrainStepInfo, amp, optim
from onnxtrain.amp.loss_scaler import DynamicLossScaler, LossScaler

CONFIG = optim.LambConfig()
FINITE = TrainStepInfo(CONFIG, all_finite=True)
NOT_FINITE = TrainStepInfo(CONFIG, all_finite=False)


class DynamicTest(unittest.TestCase):
    def assert_state(self, scaler, loss_scale, n_stable):
        self.assertEqual((scaler.loss_scale, scaler._stable_steps_count), (loss_scale, n_stable))

    def test_defaults_and_order(self):
        scaler = amp.DynamicLossScaler()
        self.assertEqual((scaler.automatic_update, scaler.up_scale_window), (True, 2000))
        self.assertEqual((scaler.min_loss_scale, scaler.max_loss_scale), (1.0, float(1 << 24)))
        self.assert_state(scaler, float(1 << 16), 0)
        self.assertIsNone(scaler.input_name)
        order = ["automatic_update", "loss_scale", "up_scale_window", "min_loss_scale", "max_loss_scale"]
        self.assertEqual(list(inspect.signature(DynamicLossScaler).parameters), order)

    def test_up_to_the_greatest_and_down_to_the_least(self):
        scaler = DynamicLossScaler()
        expected = 65536.0
        for _ in range(9):  # 2^16 becomes 2^24 after 8 windows, and stays
            for step in range(1, 2000):
                self.assertEqual(scaler.update(FINITE), expected)
                self.assert_state(scaler, expected, step)
            expected = min(expected * 2, 2.0**24)
            self.assertEqual(scaler.update(FINITE), expected)
            self.assert_state(scaler, expected, 0)
        self.assertEqual(expected, 2.0**24)
        scaler.update(FINITE)
        for _ in range(25):
            expected = max(expected / 2, 1.0)
            self.assertEqual(scaler.update(NOT_FINITE), expected)
            self.assert_state(scaler, expected, 0)
        self.assertEqual(expected, 1.0)

    def test_other_values(self):
        scaler = DynamicLossScaler(True, 64, 2, 16.0, 256.0)
        found = []
        for info in (FINITE, FINITE, FINITE, NOT_FINITE, FINITE, FINITE, FINITE, FINITE, FINITE, FINITE):
            found.append(scaler.update(info))
        self.assertEqual(found, [64, 128, 128, 64, 64, 128, 128, 256, 256, 256])
        for expected in (128, 64, 32, 16, 16):
            self.assertEqual(scaler.update(NOT_FINITE), expected)
        scaler.update(FINITE)
        scaler.reset()
        self.assert_state(scaler, 64.0, 0)

    def test_without_automatic_update_the_scale_stays(self):
        scaler = DynamicLossScaler(automatic_update=False, loss_scale=8.0, up_scale_window=1)
        for info in (FINITE, NOT_FINITE, FINITE):
            self.assertEqual(scaler.update(info), 8.0)
        self.assertIs(scaler.automatic_update, False)

    def test_attributes_may_be_set(self):
        scaler = DynamicLossScaler()
        scaler.loss_scale = 4
        scaler.up_scale_window = 1
        scaler.max_loss_scale = 8.0
        self.assertIsInstance(scaler.loss_scale, float)
        self.assertEqual([scaler.update(FINITE) for _ in range(2)], [8.0, 8.0])
        scaler.min_loss_scale = 6.0
        self.assertEqual(scaler.update(NOT_FINITE), 6.0)
        scaler.automatic_update = False
        self.assertEqual(scaler.update(FINITE), 6.0)

    def test_what_is_refused(self):
        for loss_scale in (0, -1.0, None, "2", True):
            with self.subTest(loss_scale=loss_scale), self.assertRaises(AssertionError):
                DynamicLossScaler(loss_scale=loss_scale)
            with self.subTest(loss_scale=loss_scale), self.assertRaises(AssertionError):
                DynamicLossScaler().loss_scale = loss_scale


class OwnTest(unittest.TestCase):
    def test_a_rule_of_ones_own(self):
        class Falling(LossScaler):
            def update(self, train_step_info):
                self.loss_scale *= 0.5 if train_step_info.all_finite else 0.25
                return self.loss_scale

        scaler = Falling(64)
        self.assertEqual([scaler.update(FINITE), scaler.update(NOT_FINITE)], [32.0, 8.0])
        scaler.input_name = "loss_scale"
        self.assertEqual(scaler.input_name, "loss_scale")
        scaler.reset()
        self.assertEqual(scaler.loss_scale, 64.0)
        with self.assertRaises(NotImplementedError):
            LossScaler(1.0).update(FINITE)


if __name__ == "__main__":
    unittest.main()
