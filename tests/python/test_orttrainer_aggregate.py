# SPDX-License-Identifier: Apache-2.0
"""States that several processes have saved, joined to one."""

import unittest
from pathlib import Path

import numpy as np

import onnxtrain
from onnxtrain import ORTTrainer, checkpoint, optim

FOLDER = Path(__file__).parent.parent / "hdf5" / "shards"  # by h5py: generate_shards.py
KERNEL = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
BIAS = np.array([0.5, -0.5, 0.25], np.float32)
TEXT = b"""<ir_version: 8, opset_import: ["" : 17]>
net (float[N,3] x, int64[N] label) => (float loss, float[N,4] y)
<float[3,4] "layer/kernel" = {0,0,0,0,0,0,0,0,0,0,0,0}, float[3] "layer/bias" = {0,0,0}>
{ a = Add(x, "layer/bias") y = MatMul(a, "layer/kernel") loss = SoftmaxCrossEntropyLoss(y, label) }"""
DESCRIPTION = {"inputs": [("x", ["N", 3]), ("label", ["N"])], "outputs": [("loss", [], True), ("y", ["N", 4])]}


def files(kind):
    return [FOLDER / f"{kind}{rank}.ortcp" for rank in range(2)]


def has_hdf5():
    try:
        checkpoint.aggregate_checkpoints(files("mixed"))
    except onnxtrain.Unsupported:
        return False
    return True


@unittest.skipUnless(has_hdf5(), "built without HDF5")
class AggregateTest(unittest.TestCase):
    def test_weights_alone(self):
        for kind in ("mixed", "columns"):
            found = checkpoint.aggregate_checkpoints(files(kind)[::-1])
            self.assertEqual(sorted(found), ["layer/bias", "layer/kernel"])
            np.testing.assert_array_equal(np.asarray(found["layer/kernel"]), KERNEL)
            np.testing.assert_array_equal(np.asarray(found["layer/bias"]), BIAS)

    def test_the_whole_state(self):
        state = checkpoint.aggregate_checkpoints(files("mixed"), pytorch_format=False)
        np.testing.assert_array_equal(state["model"]["full_precision"]["layer/kernel"], KERNEL)
        np.testing.assert_array_equal(state["optimizer"]["layer/kernel"]["Moment_2"], 100 * KERNEL)
        np.testing.assert_array_equal(state["optimizer"]["layer/bias"]["Update_Count"], [4])
        self.assertEqual(state["train_step_info"], {"optimization_step": 3, "step": 6})
        options = {
            "mixed_precision": True,
            "zero_stage": 0,
            "world_rank": 0,
            "world_size": 1,
            "optimizer_name": "AdamOptimizer",
            "data_parallel_size": 1,
            "horizontal_parallel_size": 1,
        }
        self.assertEqual(state["trainer_options"], options)

    def test_a_trainer_goes_on_from_the_list(self):
        for kind in ("mixed", "columns"):
            trainer = ORTTrainer(TEXT, DESCRIPTION, optim.AdamConfig())
            self.assertEqual(trainer.load_checkpoint(*files(kind)), {})
            state = trainer.state_dict()
            np.testing.assert_array_equal(state["model"]["full_precision"]["layer/kernel"], KERNEL)
            np.testing.assert_array_equal(state["optimizer"]["layer/kernel"]["Moment_1"], 10 * KERNEL)
            info = trainer._train_step_info
            self.assertEqual((info.step, info.optimization_step), (6, 3))

    def test_what_does_not_fit_is_refused_with_the_file(self):
        mixed, columns = files("mixed"), files("columns")
        for paths, text in (
            ([mixed[0]], "1 file, expected 2: there is none of rank 1"),
            ([mixed[0], mixed[0]], "both of rank 0"),
            ([mixed[0], columns[1]], "columns1.ortcp: zero_stage is 0, expected 1 as in"),
            ([], "0 files"),
        ):
            with self.subTest(text), self.assertRaisesRegex(ValueError, text):
                checkpoint.aggregate_checkpoints(paths)
        with self.assertRaises(AssertionError):
            checkpoint.load_checkpoint(ORTTrainer(TEXT, DESCRIPTION, optim.AdamConfig()))


if __name__ == "__main__":
    unittest.main()
