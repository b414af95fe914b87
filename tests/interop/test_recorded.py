# SPDX-License-Identifier: Apache-2.0
"""What record.py recorded of ONNX Runtime training 1.19.2, again with onnxtrain alone."""
import json
import pathlib
import shutil
import tempfile
import unittest

import numpy as np
from session import Session

import onnxtrain
import onnxtrain.api
from onnxtrain import artifacts

DATA = pathlib.Path(__file__).resolve().parent / "data"
RATE, STEPS, HALF = 0.01, 10, 5


class RecordedTest(unittest.TestCase):
    def setUp(self):
        self.work = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.work)

    def for_each(self, check):
        records = sorted(DATA.iterdir())
        self.assertTrue(records)
        for record in records:
            with self.subTest(record.stem):
                case = self.work / record.stem
                shutil.unpack_archive(record, case)
                check(case, json.loads((case / "arguments.json").read_text()))

    def train(self, case, arguments, checkpoint, first_step):
        values = np.load(case / "values.npz")
        for maker in ("theirs", "ours"):
            session = Session(onnxtrain, case / maker, RATE, checkpoint and case / maker / checkpoint,
                              ".ort" if arguments["ort_format"] else ".onnx", arguments["nominal_checkpoint"])
            found = {f"loss of step {step}": session.step([values["x"][step], values["target"][step]])[0]
                     for step in range(first_step, STEPS)}
            found.update({f"parameter {name}": value for name, value in session.parameters().items()})
            expected = {name: (values[f"value {i}"], values["allowed"][i]) for i, name in enumerate(values["names"])
                        if not (name.startswith("loss") and int(name.split()[-1]) < first_step)}
            self.assertEqual(found.keys(), expected.keys())
            for name, (value, allowed) in expected.items():
                what = f"{maker} artifacts from step {first_step}: {name}"
                self.assertLessEqual(np.linalg.norm(found[name] - value), allowed, what)

    def test_artifacts_of_either_train_as_they_did_there(self):
        self.for_each(lambda case, arguments: self.train(case, arguments, None, 0))

    def test_checkpoints_of_either_go_on_as_they_did_there(self):
        self.for_each(lambda case, arguments: self.train(case, arguments, "checkpoint-half", HALF))

    def test_artifacts_that_were_accepted_there_are_made_again_byte_by_byte(self):
        def check(case, arguments):
            loss, optimizer = arguments.pop("loss"), arguments.pop("optimizer")
            folder = case / "made"
            artifacts.generate_artifacts(case / "model.onnx", artifact_directory=folder,
                                         loss=artifacts.LossType[loss] if loss else None,
                                         optimizer=artifacts.OptimType[optimizer], **arguments)
            for accepted in sorted((case / "ours").iterdir()):
                if accepted.name != "checkpoint-half":
                    self.assertEqual((folder / accepted.name).read_bytes(), accepted.read_bytes(),
                                     f"{accepted.name} is another; when that is meant: ./dev record-interop")

        self.for_each(check)

    def test_checkpoints_that_were_accepted_there_are_written_again_byte_by_byte(self):
        def check(case, _):
            state = onnxtrain.api.CheckpointState.load_checkpoint(case / "ours" / "checkpoint-half")
            onnxtrain.api.CheckpointState.save_checkpoint(state, self.work / "again", True)
            self.assertEqual((self.work / "again").read_bytes(), (case / "ours" / "checkpoint-half").read_bytes())

        self.for_each(check)


if __name__ == "__main__":
    unittest.main()
