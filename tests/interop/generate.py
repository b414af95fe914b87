"""Make the artifacts of a model by ONNX Runtime's generate_artifacts, as .ort files only.

usage: generate.py MODEL FOLDER LOSS OPTIMIZER
"""
import contextlib
import io
import logging
import pathlib
import sys

from compare import stand_in_for_torch

stand_in_for_torch()

import onnx  # noqa: E402
from onnxruntime.training import artifacts  # noqa: E402

LOSSES = {"cross-entropy": artifacts.LossType.CrossEntropyLoss, "mse": artifacts.LossType.MSELoss,
          "l1": artifacts.LossType.L1Loss, "bce": artifacts.LossType.BCEWithLogitsLoss}
OPTIMIZERS = {"adamw": artifacts.OptimType.AdamW, "sgd": artifacts.OptimType.SGD}


def main():
    path, folder, loss, optimizer = sys.argv[1:5]
    model = onnx.load(path)
    batch_statistics = {name for node in model.graph.node if node.op_type == "BatchNormalization" for name in node.input[3:5]}
    trained = [t.name for t in model.graph.initializer
               if t.data_type == onnx.TensorProto.FLOAT and t.dims and t.name not in batch_statistics]
    logging.disable(logging.INFO)
    with contextlib.redirect_stdout(io.StringIO()):
        artifacts.generate_artifacts(model, requires_grad=trained, loss=LOSSES[loss], optimizer=OPTIMIZERS[optimizer],
                                     artifact_directory=folder, ort_format=True)
    for file in pathlib.Path(folder).glob("*_model.onnx"):
        file.unlink()


if __name__ == "__main__":
    main()
