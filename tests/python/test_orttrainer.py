# SPDX-License-Identifier: Apache-2.0
"""ORTTrainer over ONNX models: steps by the formulas in f64, and what is refused."""

import importlib.util
import subprocess
import sys
import unittest

import numpy as np
from network import START, batch, cross_entropy
from orttrainer_network import (
    DESCRIPTION,
    WITH_LOSS,
    TrainerTest,
    batches,
    descent,
    make,
    start,
    train_by_formula,
)

import onnxtrain
from onnxtrain import ORTTrainer, ORTTrainerOptions, TrainStepInfo, amp, optim
from onnxtrain.optim.lr_scheduler import _LRScheduler


class NamesTest(unittest.TestCase):
    def test_what_is_loaded_when_it_is_first_used(self):
        later = "amp model_desc_validation optim orttrainer orttrainer_options _torch_export torch onnx".split()
        code = (
            "import sys, onnxtrain\n"
            f"early = [name for name in {later} if name in sys.modules or 'onnxtrain.' + name in sys.modules]\n"
            "assert not early, early\n"
            "from onnxtrain import ORTTrainer, ORTTrainerOptions, TrainStepInfo, amp, model_desc_validation, optim\n"
            "from onnxtrain import orttrainer, orttrainer_options\n"
            "assert orttrainer.ORTTrainer is ORTTrainer and orttrainer.TrainStepInfo is TrainStepInfo\n"
            "assert orttrainer_options.ORTTrainerOptions is ORTTrainerOptions\n"
            "assert optim.lr_scheduler.ConstantWarmupLRScheduler is optim.ConstantWarmupLRScheduler\n"
            "assert amp.loss_scaler.LossScaler is amp.LossScaler and optim.config.SGDConfig is optim.SGDConfig\n"
        )
        subprocess.run([sys.executable, "-c", code], check=True)

    def test_every_name_is_there(self):
        for name in onnxtrain.__all__:
            self.assertTrue(hasattr(onnxtrain, name), name)
        self.assertTrue({"ORTTrainer", "optim", "TrainStepInfo"} <= set(dir(onnxtrain)))
        with self.assertRaisesRegex(AttributeError, "ORTTrainr"):
            onnxtrain.ORTTrainr


class CreationTest(TrainerTest):
    def test_the_order_of_arguments(self):
        options = ORTTrainerOptions()
        config = optim.AdamConfig()
        trainer = ORTTrainer(WITH_LOSS, DESCRIPTION, config, None, options)
        self.assertIs(trainer.optim_config, config)
        self.assertIs(trainer.options, options)
        self.assertIsNone(trainer.loss_fn)

    def test_types_are_those_of_the_model(self):
        description = make().model_desc
        self.assertEqual([one.name for one in description.inputs], ["x", "label"])
        self.assertEqual([str(one.dtype).split(".")[-1] for one in description.inputs], ["float32", "int64"])
        self.assertEqual([str(one.dtype).split(".")[-1] for one in description.outputs], ["float32", "float32"])
        self.assertEqual([one.is_loss for one in description.outputs], [True, False])

    def test_the_first_step_info(self):
        info = make()._train_step_info
        self.assertIsInstance(info, TrainStepInfo)
        self.assertEqual((info.step, info.optimization_step, info.all_finite, info.fetches), (0, 0, True, []))

    def test_asserts(self):
        config = optim.SGDConfig()
        for arguments in (
            (None, DESCRIPTION, config),
            (WITH_LOSS, [], config),
            (WITH_LOSS, DESCRIPTION, "SGDOptimizer"),
            (WITH_LOSS, DESCRIPTION, config, "loss"),
            (WITH_LOSS, DESCRIPTION, config, lambda one: one),
            (WITH_LOSS, DESCRIPTION, config, None, {"batch": {}}),
            (WITH_LOSS, DESCRIPTION, config, lambda one, other: one),
        ):
            with self.subTest(arguments=arguments[1:]), self.assertRaises(AssertionError):
                ORTTrainer(*arguments)
        with self.assertRaises(ValueError):
            ORTTrainer(3, DESCRIPTION, config)

    def test_descriptions_that_the_model_contradicts(self):
        x, label, loss = ("x", ["N", 3]), ("label", ["N"]), ("loss", [], True)
        for description, text in (
            ({"inputs": [x, ("lable", ["N"])], "outputs": [loss]}, "lable"),
            ({"inputs": [x, label], "outputs": [loss, ("z", ["N", 2])]}, "z"),
            ({"inputs": [x, label], "outputs": [("loss", [])]}, "0 outputs"),
        ):
            with self.subTest(text), self.assertRaisesRegex(AssertionError, text):
                make(description=description)

    def test_frozen_weights_that_are_not_there(self):
        with self.assertRaisesRegex(RuntimeError, "no1.*no2"):
            make(options={"utils": {"frozen_weights": ["no1", "w1", "no2"]}})

    def test_options_that_are_refused_are_named(self):
        for options, text in (
            ({"device": {"id": "cuda"}}, "device.id"),
            ({"distributed": {"world_size": 2, "horizontal_parallel_size": 2}}, "horizontal_parallel_size"),
        ):
            with self.subTest(text), self.assertRaisesRegex(onnxtrain.Unsupported, text):
                make(options=options)

    def test_replicas_need_processes(self):
        for distributed, text in (
            ({"world_size": 2, "allreduce_post_accumulation": True}, "world_size is 2, found 1 process: mpirun has not"),
            ({"world_size": 2}, "allreduce_post_accumulation.*must be true for 2 replicas"),
            ({"world_rank": 1}, "world_rank is 1, expected 0"),
            ({"local_rank": 1}, "local_rank is 1, expected 0"),
        ):
            with self.subTest(text), self.assertRaisesRegex(ValueError, text):
                make(options={"distributed": distributed})

    def test_options_without_effect_change_nothing(self):
        options = {
            "device": {"id": "cpu", "mem_limit": 1},
            "distributed": {
                "enable_adasum": True,
                "allreduce_post_accumulation": True,
                "deepspeed_zero_optimization": {"stage": 1},
            },
            "utils": {"run_symbolic_shape_infer": True, "memory_efficient_gradient": True},
            "_internal_use": {"enable_internal_postprocess": False, "enable_onnx_contrib_ops": False},
            "provider_options": {"CUDAExecutionProvider": {"device_id": "0"}},
            "session_options": onnxtrain.SessionOptions(),
        }
        data = batches(3)
        plain, other = make(), make(options=options)
        for one in data:
            np.testing.assert_array_equal(plain.train_step(*one)[1], other.train_step(*one)[1])

    def test_a_loss_scaler_needs_mixed_precision(self):
        with self.assertRaisesRegex(ValueError, "loss_scaler"):
            make(options={"mixed_precision": {"loss_scaler": amp.DynamicLossScaler()}})

    @unittest.skipUnless(importlib.util.find_spec("onnx"), "onnx is not installed")
    def test_a_function_may_change_the_model_first(self):
        seen = []

        def rename(model):
            seen.append(type(model).__name__)
            model.graph.output[1].name = model.graph.node[4].output[0] = model.graph.node[5].input[0] = "scores"
            return model

        model = onnxtrain._core.Model.load_bytes(WITH_LOSS).to_bytes().to_bytes()
        description = {**DESCRIPTION, "outputs": [("loss", [], True), ("scores", ["N", 2])]}
        trainer = make(options={"_internal_use": {"extra_postprocess": rename}}, description=description, model=model)
        self.assertEqual(seen, ["ModelProto"])
        self.assertEqual(trainer.train_step(*batch())[1].shape, (5, 2))
        with self.assertRaises(AssertionError):
            make(options={"_internal_use": {"extra_postprocess": lambda model: None}}, model=model)


class StepTest(TrainerTest):
    def test_losses_and_scores(self):
        x, labels = batch()
        loss, scores = make().train_step(x, labels)
        expected, _ = cross_entropy(start(), x, labels)
        self.assertIsInstance(loss, np.ndarray)
        self.assert_losses([loss.item()], [expected])
        hidden = np.maximum(x @ START["w1"] + START["b1"], 0)
        np.testing.assert_allclose(scores, hidden @ START["w2"] + START["b2"], rtol=1e-5, atol=1e-6)

    def test_descent(self):
        data = batches(5)
        trainer = make(optim.SGDConfig(lr=0.2))
        found = [trainer.train_step(x, labels)[0].item() for x, labels in data]
        self.assert_losses(found, train_by_formula(descent(0.2), data)[1])

    def test_gradients_are_averaged_over_the_accumulated(self):
        for accumulation in (1, 3, 7):
            with self.subTest(accumulation):
                data = batches(2 * accumulation + 1)
                trainer = make(options={"batch": {"gradient_accumulation_steps": accumulation}})
                found, counts = [], []
                for x, labels in data:
                    found.append(trainer.train_step(x, labels)[0].item())
                    info = trainer._train_step_info
                    counts.append((info.step, info.optimization_step))
                self.assert_losses(found, train_by_formula(descent(0.1), data, accumulation)[1])
                self.assertEqual(counts, [(i, i // accumulation) for i in range(1, len(data) + 1)])

    def test_schedules(self):
        for make_schedule in (
            optim.ConstantWarmupLRScheduler,
            optim.CosineWarmupLRScheduler,
            optim.LinearWarmupLRScheduler,
            optim.PolyWarmupLRScheduler,
        ):
            with self.subTest(make_schedule.__name__):
                schedule, data = make_schedule(10, warmup=0.25), batches(8)
                config = optim.SGDConfig(lr=0.2)
                trainer = make(config, {"lr_scheduler": schedule})
                self.assertEqual(schedule.get_last_lr(), [])
                found, rates = [], []
                for x, labels in data:
                    found.append(trainer.train_step(x, labels)[0].item())
                    rates += schedule.get_last_lr()
                expected = [schedule.get_lr(TrainStepInfo(config, optimization_step=t))[0] for t in range(8)]
                np.testing.assert_allclose(rates, expected, rtol=1e-12)
                self.assertEqual(rates[0], 0)
                self.assert_losses(found, train_by_formula(descent(expected.__getitem__), data)[1])

    def test_a_schedule_of_ones_own(self):
        class Halving(_LRScheduler):
            def __init__(self):
                self.seen = []

            def get_lr(self, train_step_info):
                self.seen.append((train_step_info.step, train_step_info.optimization_step))
                return [train_step_info.optimizer_config.lr * 0.5**train_step_info.optimization_step]

        schedule, data = Halving(), batches(6)
        options = {"lr_scheduler": schedule, "batch": {"gradient_accumulation_steps": 2}}
        trainer = make(optim.SGDConfig(lr=0.4), options)
        found = [trainer.train_step(x, labels)[0].item() for x, labels in data]
        self.assertEqual(schedule.seen, [(i + 1, i // 2) for i in range(6)])
        self.assertEqual(schedule.get_last_lr(), [0.1])
        self.assert_losses(found, train_by_formula(descent(lambda update: 0.4 * 0.5**update), data, 2)[1])
        trainer.eval_step(*data[0])
        self.assertEqual(len(schedule.seen), 6)

    def test_a_subclass_of_a_schedule_is_one_of_ones_own(self):
        class Twice(optim.LinearWarmupLRScheduler):
            def get_lr(self, train_step_info):
                return [2 * super().get_lr(train_step_info)[0]]

        schedule = Twice(10, warmup=0.2)
        trainer = make(options={"lr_scheduler": schedule})
        rates = []
        for one in batches(4):
            trainer.train_step(*one)
            rates += schedule.get_last_lr()
        np.testing.assert_allclose(rates, [0, 0.1, 0.2, 0.175], rtol=1e-12)
        with self.assertRaises(NotImplementedError):
            make(options={"lr_scheduler": _LRScheduler()}).train_step(*batch())

    def test_a_schedule_that_fails(self):
        class Failing(_LRScheduler):
            answer = [0.1]

            def get_lr(self, train_step_info):
                if isinstance(self.answer, Exception):
                    raise self.answer
                return self.answer

        schedule, data = Failing(), batches(3)
        trainer = make(options={"lr_scheduler": schedule})
        found = [trainer.train_step(*data[0])[0].item()]
        wrong = ((KeyError("no rate"), KeyError), ([0.1, 0.2], ValueError), (3, TypeError), (["x"], TypeError))
        for answer, error in wrong:
            schedule.answer = answer
            with self.subTest(answer=answer), self.assertRaises(error):
                trainer.train_step(*data[1])
            self.assertEqual(trainer._train_step_info.step, 1)
        schedule.answer = [0.1]
        found += [trainer.train_step(*one)[0].item() for one in data[1:]]
        self.assert_losses(found, train_by_formula(descent(0.1), data)[1])

    def test_inputs_by_position_name_and_as_a_list(self):
        x, labels = batch()
        for arguments, named in (
            ((x, labels), {}),
            (([x, labels],), {}),  # a list
            ((x,), {"label": labels}),
            ((), {"label": labels, "x": x}),
            ((x.tolist(), labels.tolist()), {}),
        ):
            trainer = make()
            loss, _ = trainer.train_step(*arguments, **named)
            self.assert_losses([loss], [cross_entropy(start(), x, labels)[0]])
            self.assertEqual(len(trainer.eval_step(*arguments, **named)), 2)

    def test_inputs_that_are_refused(self):
        x, labels = batch()
        trainer = make()
        for arguments, named, text in (
            ((x,), {}, "1 inputs.*x, label"),
            ((x, labels, x), {}, "3 inputs"),
            ((x,), {"labels": labels}, "labels.*x, label"),
            ((x, labels[:4]), {}, "label.*4.*5|label.*5.*4"),
            ((x[:, :2], labels), {}, "x.*2.*3|x.*3.*2"),
            ((x[0], labels), {}, "x"),
        ):
            for step in (trainer.train_step, trainer.eval_step):
                with self.subTest(text), self.assertRaisesRegex(AssertionError, text):
                    step(*arguments, **named)
        self.assertEqual(trainer._train_step_info.step, 0)

    def test_one_output_is_given_by_itself(self):
        trainer = make(description={**DESCRIPTION, "outputs": [("loss", [], True)]})
        self.assertEqual(trainer.train_step(*batch()).shape, ())
        self.assertEqual(trainer.eval_step(*batch()).shape, ())

    def test_fetches_restrict_what_is_returned(self):
        data = batches(4)
        plain, fetching = make(), make()
        for i, one in enumerate(data):
            loss, scores = plain.train_step(*one)
            fetching._train_step_info.fetches = ["y", "loss"] if i % 2 == 0 else ["y"]
            found = fetching.train_step(*one)
            if i % 2 == 0:
                np.testing.assert_array_equal(found[0], scores)
                np.testing.assert_array_equal(found[1], loss)
                loss, scores = fetching.eval_step(*one)
                self.assertEqual((loss.shape, scores.shape), ((), (5, 2)))
            else:
                np.testing.assert_array_equal(found, scores)
        self.assertEqual(fetching._train_step_info.optimization_step, 4)
        fetching._train_step_info.fetches = []
        self.assertEqual(len(fetching.train_step(*data[0])), 2)
        fetching._train_step_info.fetches = ["y", "no1", "no2"]
        for step in (fetching.train_step, fetching.eval_step):
            with self.assertRaisesRegex(RuntimeError, "no1.*no2"):
                step(*data[0])

    def test_evaluation_changes_nothing(self):
        data = batches(6)
        options = {"batch": {"gradient_accumulation_steps": 2}, "lr_scheduler": optim.LinearWarmupLRScheduler(10)}
        plain = make(options=options)
        between = make(options={**options, "lr_scheduler": optim.LinearWarmupLRScheduler(10)})
        for one in data:
            expected = plain.train_step(*one)
            before = between.eval_step(*data[0])
            found = between.train_step(*one)
            np.testing.assert_array_equal(found[0], expected[0])
            np.testing.assert_array_equal(found[1], expected[1])
            self.assertEqual(len(before), 2)
        info = between._train_step_info
        self.assertEqual((info.step, info.optimization_step), (6, 3))

    def test_symbols_may_have_another_size_in_every_step(self):
        trainer = make()
        for rows in (1, 3, 7, 64):
            loss, scores = trainer.train_step(*batch(rows, rows))
            self.assertEqual((loss.shape, scores.shape), ((), (rows, 2)))

    def test_an_input_that_nothing_reads(self):
        model = WITH_LOSS.replace(b"int64[N] label)", b"int64[N] label, float[K] unused)")
        description = {**DESCRIPTION, "inputs": [*DESCRIPTION["inputs"], ("unused", ["K"])]}
        trainer = make(description=description, model=model)
        x, labels = batch()
        loss, _ = trainer.train_step(x, labels, np.zeros(9, np.float32))
        self.assert_losses([loss], [cross_entropy(start(), x, labels)[0]])

    def test_the_same_twice(self):
        found = []
        for _ in range(2):
            trainer = make(optim.AdamConfig(lr=0.01), {"debug": {"deterministic_compute": True}})
            found.append([trainer.train_step(*one)[0].item() for one in batches(10)])
        self.assertEqual(found[0], found[1])


if __name__ == "__main__":
    unittest.main()
