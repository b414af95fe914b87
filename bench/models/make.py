#!/usr/bin/env python3
"""Write the benchmark's models as ONNX files: mlp, lenet, resnet18 (as torchvision's).

usage: make.py NAME FILE [BATCH [SIZE]]      needs numpy and onnx
"""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Builder:
    def __init__(self):
        self.nodes, self.initializers, self.random = [], [], np.random.default_rng(0)

    def weight(self, name, shape, fan_in):
        values = self.random.normal(0.0, np.sqrt(2.0 / fan_in), shape).astype(np.float32)
        self.initializers.append(numpy_helper.from_array(values, name))
        return name

    def filled(self, name, shape, value):
        self.initializers.append(numpy_helper.from_array(np.full(shape, value, np.float32), name))
        return name

    def node(self, op, inputs, name, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [name], name, **attributes))
        return name

    def conv(self, x, name, c_in, c_out, kernel, stride=1, pad=0, bias=True):
        inputs = [x, self.weight(name + ".weight", (c_out, c_in, kernel, kernel), c_in * kernel * kernel)]
        if bias:
            inputs.append(self.filled(name + ".bias", (c_out,), 0.0))
        return self.node("Conv", inputs, name, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4)

    def batch_norm(self, x, name, channels):
        inputs = [x] + [self.filled(f"{name}.{part}", (channels,), value) for part, value in
                        (("weight", 1.0), ("bias", 0.0), ("running_mean", 0.0), ("running_var", 1.0))]
        return self.node("BatchNormalization", inputs, name, epsilon=1e-5, momentum=0.9)

    def linear(self, x, name, n_in, n_out):
        inputs = [x, self.weight(name + ".weight", (n_out, n_in), n_in), self.filled(name + ".bias", (n_out,), 0.0)]
        return self.node("Gemm", inputs, name, transB=1)

    def relu(self, x):
        return self.node("Relu", [x], x + ".relu")


def mlp(b, _):
    x = b.relu(b.linear("input", "fc1", 784, 512))
    x = b.relu(b.linear(x, "fc2", 512, 512))
    return b.linear(x, "fc3", 512, 10)


def lenet(b, _):
    x = b.relu(b.conv("input", "conv1", 1, 6, 5, pad=2))
    x = b.node("MaxPool", [x], "pool1", kernel_shape=[2, 2], strides=[2, 2])
    x = b.relu(b.conv(x, "conv2", 6, 16, 5))
    x = b.node("MaxPool", [x], "pool2", kernel_shape=[2, 2], strides=[2, 2])
    x = b.node("Flatten", [x], "flat", axis=1)
    x = b.relu(b.linear(x, "fc1", 400, 120))
    x = b.relu(b.linear(x, "fc2", 120, 84))
    return b.linear(x, "fc3", 84, 10)


def block(b, x, name, c_in, c_out, stride):
    y = b.conv(x, name + ".conv1", c_in, c_out, 3, stride, 1, bias=False)
    y = b.relu(b.batch_norm(y, name + ".bn1", c_out))
    y = b.conv(y, name + ".conv2", c_out, c_out, 3, 1, 1, bias=False)
    y = b.batch_norm(y, name + ".bn2", c_out)
    if stride != 1 or c_in != c_out:
        x = b.conv(x, name + ".downsample.0", c_in, c_out, 1, stride, 0, bias=False)
        x = b.batch_norm(x, name + ".downsample.1", c_out)
    return b.relu(b.node("Add", [y, x], name + ".add"))


def resnet18(b, _):
    x = b.relu(b.batch_norm(b.conv("input", "conv1", 3, 64, 7, 2, 3, bias=False), "bn1", 64))
    x = b.node("MaxPool", [x], "maxpool", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    c_in = 64
    for i, c_out in enumerate((64, 128, 256, 512)):
        for k in range(2):
            x = block(b, x, f"layer{i + 1}.{k}", c_in, c_out, 2 if i > 0 and k == 0 else 1)
            c_in = c_out
    x = b.node("GlobalAveragePool", [x], "avgpool")
    x = b.node("Flatten", [x], "flat", axis=1)
    return b.linear(x, "fc", 512, 1000)


MODELS = {  # builder, input shape without the batch, classes, batch
    "mlp": (mlp, [784], 10, 64),
    "lenet": (lenet, [1, 28, 28], 10, 64),
    "resnet18": (resnet18, [3, 224, 224], 1000, 8),
}


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in MODELS:
        sys.exit(__doc__)
    build, shape, classes, batch = MODELS[sys.argv[1]]
    if len(sys.argv) > 3:
        batch = int(sys.argv[3]) if sys.argv[3].isdigit() else sys.argv[3]
    if len(sys.argv) > 4:
        shape = shape[:1] + [int(sys.argv[4])] * 2
    b = Builder()
    output = build(b, shape)
    graph = helper.make_graph(
        b.nodes, sys.argv[1], [helper.make_tensor_value_info("input", TensorProto.FLOAT, [batch] + shape)],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, [batch, classes])], b.initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, sys.argv[2])


main()
