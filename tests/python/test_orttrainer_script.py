# SPDX-License-Identifier: Apache-2.0
"""A program for ONNX Runtime's ORTTrainer, with its imports changed: mixed precision, checkpoints, and the files of two
processes, whose optimizer is divided by ZeRO."""

import os
import tempfile
import unittest

import numpy as np
from orttrainer_network import DESCRIPTION, WITH_LOSS, batches

import onnxtrain
from onnxtrain import checkpoint

PROGRAM = '''
import os

import numpy as np
from onnxruntime.training import ORTTrainer, ORTTrainerOptions, _checkpoint_storage, amp, checkpoint, optim


def make_trainer():
    scaler = amp.DynamicLossScaler(loss_scale=float(1 << 12), up_scale_window=3)
    options = ORTTrainerOptions({
        "batch": {"gradient_accumulation_steps": 2},
        "device": {"id": "cpu"},
        "lr_scheduler": optim.LinearWarmupLRScheduler(total_steps=20, warmup=0.25),
        "mixed_precision": {"enabled": True, "loss_scaler": scaler},
        "utils": {"grad_norm_clip": True},
    })
    groups = [{"params": ["b1", "b2"], "lambda_coef": 0.0}]
    adam = optim.AdamConfig(groups, lr=0.01, alpha=0.9, beta=0.999, lambda_coef=0.01)
    return ORTTrainer(model, description, adam, options=options), scaler


def losses_of(trainer, steps):
    return [float(trainer.train_step(*data[step])[0]) for step in steps]


def moments_of(state, name):
    return {key: value for key, value in state["optimizer"][name].items()}


def shares(state):
    """What two processes have: the weights in the order of their names, as one vector, cut in the middle."""
    weights = state["model"]["full_precision"]
    total = sum(weights[name].size for name in sorted(state["optimizer"]))
    share, at, ranks = (total + 1) // 2, 0, []
    for rank in range(2):
        own = {
            "model": {"full_precision": {}},
            "optimizer": {},
            "partition_info": {},
            "train_step_info": state["train_step_info"],
            "trainer_options": {
                **state["trainer_options"], "zero_stage": 1, "world_rank": rank, "world_size": 2,
                "data_parallel_size": 2, "horizontal_parallel_size": 1,
            },
        }
        at = 0
        for name in sorted(state["optimizer"]):
            size, first, last = weights[name].size, max(0, rank * share - at), min(weights[name].size, (rank + 1) * share - at)
            at += size
            if first >= last:
                continue
            whole = (first, last) == (0, size)
            cut = (lambda x: x) if whole else (lambda x: x.reshape(-1)[first:last])
            own["model"]["full_precision"][name] = cut(weights[name])
            own["optimizer"][name] = {
                key: cut(value) if key.startswith("Moment") else value for key, value in moments_of(state, name).items()
            }
            if not whole:
                own["partition_info"][name] = {
                    "original_dim": np.array(weights[name].shape), "megatron_row_partition": np.array([-1])
                }
        ranks.append(own)
    return ranks


trainer, scaler = make_trainer()
before = losses_of(trainer, range(8))
path = os.path.join(folder, "checkpoint.ortcp")
trainer.save_checkpoint(path, user_dict={"epoch": 2, "best": 0.5})
expected = losses_of(trainer, range(8, 14))

resumed, resumed_scaler = make_trainer()
user_dict = resumed.load_checkpoint(path)
found = losses_of(resumed, range(8, 14))

state = _checkpoint_storage.load(path)
paths = []
for rank, own in enumerate(shares(state)):
    paths.append(os.path.join(folder, f"checkpoint{rank}.ortcp"))
    _checkpoint_storage.save(own, paths[-1])
weights = checkpoint.aggregate_checkpoints(paths)
whole = checkpoint.aggregate_checkpoints(paths, pytorch_format=False)
joined, _ = make_trainer()
joined.load_checkpoint(*paths)
joined_losses = losses_of(joined, range(8, 14))
'''


def has_hdf5():
    try:
        checkpoint.aggregate_checkpoints([])
    except onnxtrain.Unsupported:
        return False
    except ValueError:
        return True
    return True


@unittest.skipUnless(has_hdf5(), "the library was built without HDF5")
class ScriptTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.names = {"model": WITH_LOSS, "description": DESCRIPTION, "data": batches(14), "folder": folder.name}
        exec(PROGRAM.replace("onnxruntime.training", "onnxtrain"), self.names)  # noqa: S102

    def test_it_learns(self):
        self.assertTrue(np.isfinite(self.names["before"]).all())
        self.assertGreater(self.names["scaler"].loss_scale, 1 << 12)  # seven finite updates, doubled after every third
        self.assertEqual(self.names["scaler"].loss_scale, self.names["resumed_scaler"].loss_scale)

    def test_it_goes_on_bit_for_bit(self):
        self.assertEqual(self.names["user_dict"], {"epoch": 2, "best": 0.5})
        self.assertEqual(self.names["found"], self.names["expected"])

    def test_the_files_of_two_processes_are_the_whole_state(self):
        state, whole = self.names["state"], self.names["whole"]
        for name, value in state["model"]["full_precision"].items():
            np.testing.assert_array_equal(np.asarray(self.names["weights"][name]), value)
            np.testing.assert_array_equal(whole["model"]["full_precision"][name], value)
            for key, moment in state["optimizer"][name].items():
                np.testing.assert_array_equal(whole["optimizer"][name][key], moment)
        self.assertEqual(len(os.listdir(self.names["folder"])), 3)

    def test_a_trainer_goes_on_from_them(self):
        """Their scale is not in the files, so that gradients are rounded at other places."""
        np.testing.assert_allclose(self.names["joined_losses"], self.names["expected"], rtol=2**-9)


if __name__ == "__main__":
    unittest.main()
