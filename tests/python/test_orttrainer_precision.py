# SPDX-License-Identifier: Apache-2.0
"""ORTTrainer in few bits: loss scales, skipped updates, types of outputs, states."""

import os
import tempfile
import unittest

import numpy as np
from orttrainer_network import TrainerTest, batches, make

from onnxtrain import ORTTrainerOptions, amp, optim

F16 = {"mixed_precision": {"enabled": True}}


def scaled(scaler, **options):
    return {"mixed_precision": {"enabled": True, "loss_scaler": scaler}, **options}


def overflowing(batch):
    """The same with an infinite value: the gradients are not finite."""
    x, labels = batch
    x = x.copy()
    x[0, 0] = np.inf
    return x, labels


def bits(trainer):
    state = trainer.state_dict()
    weights = {name: value.tobytes() for name, value in state["model"]["full_precision"].items()}
    moments = {
        (name, key): value.tobytes() for name, of in state.get("optimizer", {}).items() for key, value in of.items()
    }
    return weights, moments


class Falling(amp.LossScaler):
    """A rule of one's own, which notes what it was told."""

    def __init__(self, loss_scale):
        super().__init__(loss_scale)
        self.seen = []

    def update(self, train_step_info):
        self.seen.append((train_step_info.step, train_step_info.optimization_step, train_step_info.all_finite))
        self.loss_scale *= 0.5 if train_step_info.all_finite else 0.25
        return self.loss_scale


class OptionsTest(unittest.TestCase):
    def test_the_two_places_of_the_precision_must_agree(self):
        for enabled, precision in ((True, "f32"), (False, "f16"), (False, "bf16")):
            with self.subTest(enabled=enabled, precision=precision):
                with self.assertRaisesRegex(ValueError, f"enabled.*onnxtrain.precision is {precision}"):
                    ORTTrainerOptions(
                        {"mixed_precision": {"enabled": enabled}, "onnxtrain": {"precision": precision}}
                    )
        for enabled, precision in ((False, "f32"), (True, "f16"), (True, "bf16")):
            ORTTrainerOptions({"mixed_precision": {"enabled": enabled}, "onnxtrain": {"precision": precision}})

    def test_without_a_scaler_a_dynamic_one_is_put_into_the_options(self):
        options = ORTTrainerOptions(F16)
        trainer = make(options=F16)
        scaler = trainer.options.mixed_precision.loss_scaler
        self.assertIsInstance(scaler, amp.DynamicLossScaler)
        self.assertEqual((scaler.loss_scale, scaler.up_scale_window), (float(1 << 16), 2000))
        self.assertIsNone(options.mixed_precision.loss_scaler)  # of no trainer
        self.assertIsNone(make(options={"onnxtrain": {"precision": "bf16"}}).options.mixed_precision.loss_scaler)
        f16 = make(options={"onnxtrain": {"precision": "f16"}})
        self.assertIsInstance(f16.options.mixed_precision.loss_scaler, amp.DynamicLossScaler)

    def test_the_description_has_what_training_adds(self):
        trainer = make(options=F16)
        self.assertEqual(trainer.model_desc.loss_scale_input.name, trainer.options.mixed_precision.loss_scaler.input_name)
        self.assertEqual(trainer.model_desc.all_finite.shape, [1])
        self.assertIsNone(make().model_desc.loss_scale_input)


class ScalerTest(TrainerTest):
    def test_the_dynamic_rule_follows_the_updates(self):
        scaler = amp.DynamicLossScaler(loss_scale=64.0, up_scale_window=2, min_loss_scale=16.0, max_loss_scale=128.0)
        trainer = make(options=scaled(scaler))
        found = []
        for i, batch in enumerate(batches(9)):
            trainer.train_step(*(overflowing(batch) if i in (3, 4, 5, 6) else batch))
            info = trainer._train_step_info
            found.append((scaler.loss_scale, scaler._stable_steps_count, info.all_finite, info.optimization_step))
        expected = [
            (64.0, 1, True, 1),
            (128.0, 0, True, 2),
            (128.0, 1, True, 3),
            (64.0, 0, False, 3),
            (32.0, 0, False, 3),
            (16.0, 0, False, 3),
            (16.0, 0, False, 3),
            (16.0, 1, True, 4),
            (32.0, 0, True, 5),
        ]
        self.assertEqual(found, expected)

    def test_a_skipped_update_leaves_every_bit(self):
        for options in (F16, {"onnxtrain": {"precision": "bf16"}}):
            trainer = make(optim.AdamConfig(lr=0.1), options)
            first, second = batches(2)
            trainer.train_step(*first)
            before = bits(trainer)
            trainer.train_step(*overflowing(second))
            self.assertFalse(trainer._train_step_info.all_finite)
            self.assertEqual(bits(trainer), before)
            trainer.train_step(*second)
            self.assertNotEqual(bits(trainer), before)

    def test_a_static_scale_stays(self):
        scaler = amp.DynamicLossScaler(automatic_update=False, loss_scale=8.0)
        trainer = make(options=scaled(scaler))
        for i, batch in enumerate(batches(4)):
            trainer.train_step(*(overflowing(batch) if i == 2 else batch))
            self.assertEqual(scaler.loss_scale, 8.0)

    def test_two_trainers_share_the_scaler_of_their_options(self):
        scaler = amp.DynamicLossScaler(loss_scale=64.0)
        one, other = make(options=scaled(scaler)), make(options=scaled(scaler))
        one.train_step(*overflowing(batches(1)[0]))
        self.assertEqual(scaler.loss_scale, 32.0)
        other.train_step(*overflowing(batches(1)[0]))
        self.assertEqual(scaler.loss_scale, 16.0)

    def test_a_rule_of_ones_own_is_asked_once_an_update(self):
        scaler = Falling(1024.0)
        trainer = make(options=scaled(scaler, batch={"gradient_accumulation_steps": 2}))
        for i, batch in enumerate(batches(6)):
            trainer.train_step(*(overflowing(batch) if i == 2 else batch))
        self.assertEqual(scaler.seen, [(2, 0, True), (4, 1, False), (6, 1, True)])
        self.assertEqual(scaler.loss_scale, 1024.0 * 0.5 * 0.25 * 0.5)

    def test_the_scale_does_not_change_what_is_learned(self):
        expected = make(options=F16)
        found = make(options=scaled(Falling(256.0)))
        for batch in batches(3):
            np.testing.assert_allclose(found.train_step(*batch)[0], expected.train_step(*batch)[0], rtol=2e-3)

    def test_a_rule_that_fails_or_gives_nonsense_changes_nothing(self):
        class Failing(amp.LossScaler):
            def update(self, train_step_info):
                raise KeyError("of mine")

        class Odd(amp.LossScaler):
            answer = None

            def update(self, train_step_info):
                self._loss_scale = self.answer
                return self.answer

        for scaler, answers, error in (
            (Failing(8.0), [None], KeyError),
            (Odd(8.0), [0.0, -1.0, float("nan"), float("inf")], ValueError),
            (Odd(8.0), ["text", None], TypeError),
        ):
            trainer = make(optim.AdamConfig(lr=0.1), scaled(scaler))
            for answer in answers:
                scaler.answer = answer
                before = bits(trainer)
                with self.subTest(scaler=scaler, answer=answer), self.assertRaises(error):
                    trainer.train_step(*batches(1)[0])
                self.assertEqual(bits(trainer), before)
                info = trainer._train_step_info
                self.assertEqual((info.step, info.optimization_step, info.all_finite), (0, 0, True))
                scaler._loss_scale = 8.0


class OutputsTest(TrainerTest):
    def test_outputs_have_the_types_that_are_declared(self):
        for options in (F16, {"onnxtrain": {"precision": "bf16"}}):
            trainer = make(options=options)
            batch = batches(1)[0]
            for loss, scores in (trainer.train_step(*batch), trainer.eval_step(*batch)):
                self.assertEqual((loss.dtype, scores.dtype), (np.float32, np.float32))

    def test_the_description_says_what_computed_an_output(self):
        for options, name in ((F16, "float16"), ({"onnxtrain": {"precision": "bf16"}}, "bfloat16"), (None, None)):
            trainer = make(options=options)
            self.assertEqual([one.dtype_amp for one in trainer.model_desc.outputs], [None, None])
            trainer.train_step(*batches(1)[0])
            loss, scores = trainer.model_desc.outputs
            self.assertEqual((loss.dtype, scores.dtype, loss.dtype_amp), (np.float32, np.float32, None))
            self.assertEqual(None if scores.dtype_amp is None else str(scores.dtype_amp), name)

    def test_fetches_change_nothing_but_what_is_returned(self):
        scalers = [amp.DynamicLossScaler(loss_scale=64.0, up_scale_window=2) for _ in range(2)]
        plain, fetching = (make(optim.AdamConfig(lr=0.1), scaled(scaler)) for scaler in scalers)
        fetching._train_step_info.fetches = ["y"]
        for i, batch in enumerate(batches(5)):
            given = overflowing(batch) if i == 3 else batch
            loss, scores = plain.train_step(*given)
            np.testing.assert_array_equal(fetching.train_step(*given), scores)
        self.assertEqual(bits(plain), bits(fetching))
        self.assertEqual(scalers[0].loss_scale, scalers[1].loss_scale)
        self.assertEqual(plain._train_step_info.optimization_step, fetching._train_step_info.optimization_step)

    def test_the_same_step_gives_the_same_bits(self):
        for options in (F16, {"onnxtrain": {"precision": "bf16"}}):
            one, other = make(options=options), make(options=options)
            for batch in batches(3):
                np.testing.assert_array_equal(one.train_step(*batch)[1], other.train_step(*batch)[1])
            self.assertEqual(bits(one), bits(other))


class StateTest(TrainerTest):
    def test_states_are_f32_and_say_that_precision_is_mixed(self):
        state = make(optim.AdamConfig(lr=0.1), F16).state_dict()
        self.assertIs(state["trainer_options"]["mixed_precision"], True)
        self.assertEqual({str(value.dtype) for value in state["model"]["full_precision"].values()}, {"float32"})

    def test_a_checkpoint_goes_on_with_scale_and_count(self):
        def options():
            return scaled(amp.DynamicLossScaler(loss_scale=64.0, up_scale_window=3))

        whole, first, second = (make(optim.AdamConfig(lr=0.1), options()) for _ in range(3))
        for batch in batches(7):
            whole.train_step(*batch)
        for batch in batches(7)[:4]:
            first.train_step(*batch)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "checkpoint")
            first.save_checkpoint(path)
            second.load_checkpoint(path)
        scalers = [trainer.options.mixed_precision.loss_scaler for trainer in (first, second, whole)]
        self.assertEqual((scalers[1].loss_scale, scalers[1]._stable_steps_count), (128.0, 1))
        for batch in batches(7)[4:]:
            second.train_step(*batch)
        self.assertEqual(bits(second), bits(whole))
        self.assertEqual(scalers[1].loss_scale, scalers[2].loss_scale)

    def test_a_rule_of_ones_own_gets_its_scale_back(self):
        first, second = (make(optim.AdamConfig(lr=0.1), scaled(Falling(1024.0))) for _ in range(2))
        for batch in batches(2):
            first.train_step(*batch)
        second.load_state_dict(first.state_dict())
        self.assertEqual(second.options.mixed_precision.loss_scaler.loss_scale, 256.0)


if __name__ == "__main__":
    unittest.main()
