# SPDX-License-Identifier: Apache-2.0
"""ORTTrainerOptions: the whole tree of defaults, what is refused and how that is said."""

import ast
import copy
import unittest

from onnxtrain import InvalidArgument, ORTTrainerOptions, SessionOptions, amp, optim, orttrainer_options
from onnxtrain.orttrainer_options import PropagateCastOpsStrategy

DEFAULTS = {
    "batch": {"gradient_accumulation_steps": 1},
    "device": {"id": "cuda", "mem_limit": 0},
    "distributed": {
        "world_rank": 0,
        "world_size": 1,
        "local_rank": 0,
        "data_parallel_size": 1,
        "horizontal_parallel_size": 1,
        "pipeline_parallel": {
            "pipeline_parallel_size": 1,
            "num_pipeline_micro_batches": 1,
            "pipeline_cut_info_string": "",
            "sliced_schema": {},
            "sliced_axes": {},
            "sliced_tensor_names": [],
        },
        "allreduce_post_accumulation": False,
        "deepspeed_zero_optimization": {"stage": 0},
        "enable_adasum": False,
    },
    "lr_scheduler": None,
    "mixed_precision": {"enabled": False, "loss_scaler": None},
    "graph_transformer": {
        "attn_dropout_recompute": False,
        "gelu_recompute": False,
        "transformer_layer_recompute": False,
        "number_recompute_layers": 0,
        "propagate_cast_ops_config": {"strategy": PropagateCastOpsStrategy.FLOOD_FILL, "level": 1, "allow": []},
    },
    "utils": {
        "frozen_weights": [],
        "grad_norm_clip": True,
        "memory_efficient_gradient": False,
        "run_symbolic_shape_infer": False,
    },
    "debug": {
        "deterministic_compute": False,
        "check_model_export": False,
        "graph_save_paths": {
            "model_after_graph_transforms_path": "",
            "model_with_gradient_graph_path": "",
            "model_with_training_graph_path": "",
            "model_with_training_graph_after_optimization_path": "",
        },
    },
    "_internal_use": {
        "enable_internal_postprocess": True,
        "extra_postprocess": None,
        "onnx_opset_version": 14,
        "enable_onnx_contrib_ops": True,
    },
    "provider_options": {},
    "session_options": None,
}


class OptionsTest(unittest.TestCase):
    def refuse(self, options, payload):
        with self.assertRaises(ValueError) as caught:
            ORTTrainerOptions(options)
        title, _, found = str(caught.exception).partition(": ")
        self.assertEqual((title, ast.literal_eval(found)), ("Invalid options", payload))
        self.assertIsInstance(caught.exception, InvalidArgument)

    def test_all_defaults(self):
        self.assertEqual(ORTTrainerOptions({})._validated_opts, DEFAULTS)
        self.assertEqual(ORTTrainerOptions()._validated_opts, DEFAULTS)

    def test_what_is_given_is_among_the_defaults(self):
        given = {"batch": {"gradient_accumulation_steps": 7}, "utils": {"frozen_weights": ["a", "b"]}}
        before = copy.deepcopy(given)
        options = ORTTrainerOptions(given)
        expected = copy.deepcopy(DEFAULTS)
        expected["batch"]["gradient_accumulation_steps"] = 7
        expected["utils"]["frozen_weights"] = ["a", "b"]
        self.assertEqual(options._validated_opts, expected)
        self.assertEqual(given, before)
        self.assertEqual(options.batch.gradient_accumulation_steps, 7)
        self.assertEqual(options.utils.frozen_weights, ["a", "b"])
        self.assertIs(options.utils.grad_norm_clip, True)
        self.assertIn("'gradient_accumulation_steps': 7", repr(options))

    def test_objects_stay_what_they_are(self):
        schedule, scaler = optim.LinearWarmupLRScheduler(10), amp.DynamicLossScaler()
        session = SessionOptions()
        options = ORTTrainerOptions(
            {
                "lr_scheduler": schedule,
                "mixed_precision": {"enabled": True, "loss_scaler": scaler},
                "session_options": session,
                "_internal_use": {"extra_postprocess": len},
                "provider_options": {"CPUExecutionProvider": {"any": "thing"}},
            }
        )
        self.assertIs(options.lr_scheduler, schedule)
        self.assertIs(options.mixed_precision.loss_scaler, scaler)
        self.assertIs(options.session_options, session)
        self.assertIs(options._internal_use.extra_postprocess, len)
        self.assertEqual(options.provider_options, {"CPUExecutionProvider": {"any": "thing"}})

    def test_strategies_are_flags(self):
        for strategy in (
            PropagateCastOpsStrategy.NONE,
            PropagateCastOpsStrategy.INSERT_AND_REDUCE,
            PropagateCastOpsStrategy.INSERT_AND_REDUCE | PropagateCastOpsStrategy.FLOOD_FILL,
            None,
        ):
            given = {"graph_transformer": {"propagate_cast_ops_config": {"strategy": strategy}}}
            found = ORTTrainerOptions(given).graph_transformer.propagate_cast_ops_config.strategy
            self.assertEqual(found, strategy)
        self.assertIs(orttrainer_options.PropagateCastOpsStrategy, PropagateCastOpsStrategy)

    def test_one_that_is_wrong(self):
        self.refuse(
            {"mixed_precision": {"enabled": 1}},
            {"mixed_precision": [{"enabled": ["must be of boolean type"]}]},
        )

    def test_all_that_is_wrong_at_once(self):
        self.refuse(
            {
                "batch": {"gradient_accumulation_steps": 0},
                "device": {"id": 3},
                "distributed": {"pipeline_parallel": {"num_pipeline_micro_batches": "2"}},
                "utils": {"grad_norm_clip": None},
            },
            {
                "batch": [{"gradient_accumulation_steps": ["min value is 1"]}],
                "device": [{"id": ["must be of string type"]}],
                "distributed": [
                    {"pipeline_parallel": [{"num_pipeline_micro_batches": ["must be of integer type"]}]}
                ],
                "utils": [{"grad_norm_clip": ["null value not allowed"]}],
            },
        )

    def test_types_are_strict(self):
        for value in (True, 1.0, "1", None, object(), [1]):
            with self.subTest(value=value), self.assertRaisesRegex(ValueError, "gradient_accumulation_steps"):
                ORTTrainerOptions({"batch": {"gradient_accumulation_steps": value}})
        for value in (1, 0, "True", None):
            with self.subTest(value=value), self.assertRaisesRegex(ValueError, "deterministic_compute"):
                ORTTrainerOptions({"debug": {"deterministic_compute": value}})
        for value in (1, None, object(), ["x"]):
            with self.subTest(value=value), self.assertRaisesRegex(ValueError, "pipeline_cut_info_string"):
                ORTTrainerOptions({"distributed": {"pipeline_parallel": {"pipeline_cut_info_string": value}}})

    def test_objects_of_another_kind(self):
        for options, name in (
            ({"lr_scheduler": 3}, "lr_scheduler"),
            ({"mixed_precision": {"loss_scaler": "dynamic"}}, "loss_scaler"),
            ({"session_options": object()}, "session_options"),
        ):
            with self.subTest(name), self.assertRaisesRegex(ValueError, f"Invalid options: .*{name}"):
                ORTTrainerOptions(options)
        with self.assertRaisesRegex(ValueError, "callable or None"):
            ORTTrainerOptions({"_internal_use": {"extra_postprocess": 3}})

    def test_unknown_names(self):
        self.refuse({"batc": {}}, {"batc": ["unknown field"]})
        for options, nearest in (({"batc": {}}, "'batch'"), ({"utils": {"frozen_weight": []}}, "'frozen_weights'")):
            with self.subTest(nearest), self.assertRaises(ValueError) as caught:
                ORTTrainerOptions(options)
            self.assertIn(f"did you mean {nearest}?", str(caught.exception.__cause__))

    def test_limits(self):
        for path, good, bad in (
            (("distributed", "deepspeed_zero_optimization", "stage"), 3, 4),
            (("_internal_use", "onnx_opset_version"), 12, 15),
            (("graph_transformer", "propagate_cast_ops_config", "level"), -1, -2),
            (("device", "mem_limit"), 2**40, -1),
            (("distributed", "world_rank"), 0, -1),
        ):
            with self.subTest(path=path):
                for value in (good, bad):
                    tree = value
                    for name in reversed(path):
                        tree = {name: tree}
                    if value == good:
                        ORTTrainerOptions(tree)
                    else:
                        with self.assertRaisesRegex(ValueError, f"{path[-1]}.*(min|max) value"):
                            ORTTrainerOptions(tree)

    def test_our_own_options_are_a_section(self):
        options = ORTTrainerOptions({"onnxtrain": {"threads": 2}})
        self.assertEqual(options.onnxtrain.threads, 2)
        self.assertIs(options.onnxtrain.skip_non_finite, False)
        with self.assertRaisesRegex(AttributeError, "onnxtrain"):
            ORTTrainerOptions().onnxtrain

    def test_what_is_no_dict(self):
        with self.assertRaisesRegex(ValueError, "Invalid options"):
            ORTTrainerOptions([1])


if __name__ == "__main__":
    unittest.main()
