#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records five steps of PyTorch's optimizers in f64 as optimizers_recorded.h, which lies beside this.

Usage: record_optimizers.py > optimizers_recorded.h

All numbers are multiples of powers of two, so that attributes in f32 are the same numbers.
"""

import torch

START = [1.0, -2.0, 0.5, 0.125]
GRADIENTS = [
    [0.125, -0.25, 0.5, 0.0],
    [-0.375, 0.125, 0.25, 1.0],
    [0.0625, 0.5, -0.125, -2.0],
    [0.25, 0.75, 0.0, 0.5],
    [-1.0, -0.5, 0.375, 0.25],
]
EPSILON = 2.0**-10
CASES = [
    ("AdamW", "AdamOptimizer", "alpha = [0.875], beta = [0.96875], epsilon = [0.0009765625], lambda = [0.125]",
     lambda p: torch.optim.AdamW([p], lr=0.125, betas=(0.875, 0.96875), eps=EPSILON, weight_decay=0.125)),
    ("Adam", "AdamOptimizer", "alpha = [0.75], beta = [0.9375], epsilon = [0.0009765625]",
     lambda p: torch.optim.Adam([p], lr=0.125, betas=(0.75, 0.9375), eps=EPSILON)),
    ("SGD", "SGDOptimizer", "", lambda p: torch.optim.SGD([p], lr=0.125)),
    ("SGD, decay", "SGDOptimizer", "weight_decay = [0.0625]", lambda p: torch.optim.SGD([p], lr=0.125, weight_decay=0.0625)),
    ("SGD, momentum", "SGDOptimizer", "momentum = [0.875], weight_decay = [0.0625]",
     lambda p: torch.optim.SGD([p], lr=0.125, momentum=0.875, weight_decay=0.0625)),
    ("SGD, Nesterov", "SGDOptimizer", "momentum = [0.875], weight_decay = [0.0625], nesterov = [1]",
     lambda p: torch.optim.SGD([p], lr=0.125, momentum=0.875, weight_decay=0.0625, nesterov=True)),
    ("Adagrad", "AdagradOptimizer", "lr_decay = [0.25], weight_decay = [0.0625], epsilon = [0.0009765625]",
     lambda p: torch.optim.Adagrad([p], lr=0.125, lr_decay=0.25, weight_decay=0.0625, eps=EPSILON)),
    ("RMSprop", "RMSPropOptimizer", "alpha = [0.875], epsilon = [0.0009765625], weight_decay = [0.0625]",
     lambda p: torch.optim.RMSprop([p], lr=0.125, alpha=0.875, eps=EPSILON, weight_decay=0.0625)),
    ("RMSprop, momentum", "RMSPropOptimizer", "alpha = [0.875], epsilon = [0.0009765625], momentum = [0.75]",
     lambda p: torch.optim.RMSprop([p], lr=0.125, alpha=0.875, eps=EPSILON, momentum=0.75)),
]


def numbers(values):
    return "{" + ", ".join(repr(float(value)) for value in values) + "}"


def main():
    print("// SPDX-License-Identifier: Apache-2.0")
    print(f"// Made by record_optimizers.py with PyTorch {torch.__version__}.")
    print("// clang-format off")
    print(f"enum {{ RECORDED_N = {len(START)}, RECORDED_STEPS = {len(GRADIENTS)} }};")
    print("static const double recorded_lr = 0.125;")
    print(f"static const double recorded_start[RECORDED_N] = {numbers(START)};")
    print("static const double recorded_gradients[RECORDED_STEPS][RECORDED_N] = {")
    for row in GRADIENTS:
        print(f"    {numbers(row)},")
    print("};")
    print("static const struct recorded {\n    const char *name, *op, *attrs;\n    double w[RECORDED_STEPS][RECORDED_N];\n} recorded[] = {")
    for name, op, attrs, make in CASES:
        parameter = torch.nn.Parameter(torch.tensor(START, dtype=torch.float64))
        optimizer = make(parameter)
        print(f'    {{"{name}", "{op}", "{attrs}", {{')
        for row in GRADIENTS:
            parameter.grad = torch.tensor(row, dtype=torch.float64)
            optimizer.step()
            print(f"        {numbers(parameter.detach().tolist())},")
        print("    }},")
    print("};")


if __name__ == "__main__":
    main()
