#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records cases of the operators that sample images, with PyTorch's and torchvision's values in f64.

Usage: record_sampling.py grid_sample > grid_sample_recorded.h; all operators: OPERATORS below

What PyTorch lacks (maxima of RoiAlign) is of the reference implementation in the package onnx.
"""

import sys

import numpy
import torch
import torch.nn.functional as F

numbers = numpy.random.default_rng(7)


def draw(*shape, low=-2.0, high=2.0):
    """Numbers with few digits, which are the same in text."""
    return torch.tensor(numbers.integers(int(low * 64), int(high * 64) + 1, shape) / 64.0)


def draw_off(*shape, low, high):
    """The same, away from elements and from the middles between them."""
    return draw(*shape, low=low, high=high) + 1 / 256


def shuffle(*shape):
    """Numbers of which none is there twice."""
    count = int(numpy.prod(shape))
    return torch.tensor((numbers.permutation(count).reshape(shape) - count // 2) / 64.0)


def text(tensor):
    kind = "i64" if tensor.dtype == torch.int64 else "f32"
    elements = ",".join(f"{v:.7g}" for v in tensor.flatten().tolist())
    return f"{kind}[{','.join(str(n) for n in tensor.shape)}]{{{elements}}}"


def row(name, inputs, attrs, output, opset=None, flags=None):
    ins = ", ".join('""' if x is None else f'"{x if isinstance(x, str) else text(x)}"' for x in inputs)
    print(f'    {{.name = "{name}",\n     .in = {{{ins}}},')
    if attrs:
        escaped = attrs.replace('"', '\\"')
        print(f'     .attrs = "{escaped}",')
    print(f'     .out = {{"{text(output)}"}}', end="")
    if opset:
        print(f",\n     .opset = {opset}", end="")
    if flags:
        print(f",\n     .flags = {flags}", end="")
    print("},")


# ---- GridSample ----

def grid_sample():
    images = {4: (draw(2, 2, 3, 4), draw_off(2, 2, 3, 2, low=-1.6, high=1.6)), 5: (draw(1, 2, 2, 3, 4), draw_off(1, 1, 3, 3, 3, low=-1.6, high=1.6))}
    for rank, (x, grid) in images.items():
        for mode in ("linear", "nearest") + (("cubic",) if rank == 4 else ()):
            for padding in ("zeros", "border", "reflection"):
                for align in (0, 1):
                    name = {"linear": "bilinear", "nearest": "nearest", "cubic": "bicubic"}[mode]
                    y = F.grid_sample(x, grid, mode=name, padding_mode=padding, align_corners=bool(align))
                    attrs = [f'mode = "{mode}"', f'padding_mode = "{padding}"'] + ["align_corners = 1"] * align
                    row(f"{mode}, {padding}, {rank - 2} axes" + ", aligned" * align, (x, grid), ", ".join(attrs), y)
    # Opset 16 has PyTorch's names, and bilinear without one.
    x, grid = images[4]
    row("opset 16", (x, grid), "", F.grid_sample(x, grid, align_corners=False), opset=16)
    row("opset 16, bilinear", (x, grid), 'mode = "bilinear"', F.grid_sample(x, grid, align_corners=False), opset=16)
    y = F.grid_sample(x, grid, mode="bicubic", align_corners=False)
    row("opset 16, bicubic", (x, grid), 'mode = "bicubic"', y, opset=16)
    far = torch.tensor([[[[1e30, 0.25], [-1e30, 0.25], [float("inf"), -0.5], [float("nan"), 0.5]]]], dtype=torch.float64)
    row("zeros beyond all", (x[:1], far), "", torch.zeros(1, 2, 1, 4, dtype=torch.float64), flags="OT_CASE_NO_GRAD")


# ---- AffineGrid ----

def affine_grid():
    for name, theta, size in (("two axes", draw(2, 2, 3), (2, 3, 2, 3)), ("three axes", draw(2, 3, 4), (2, 1, 2, 1, 3)),
                              ("axes of size 1", draw(1, 2, 3), (1, 1, 1, 1))):
        for align in (0, 1):
            y = F.affine_grid(theta, size, align_corners=bool(align))
            row(name + ", aligned" * align, (theta, text(torch.tensor(size)) + " const"), "align_corners = 1" * align, y)


# ---- MaxUnpool ----

def max_unpool():
    x = draw(2, 2, 6, 4)
    y, at = F.max_pool2d(x, 2, 2, return_indices=True)
    planes = torch.arange(4).reshape(2, 2, 1, 1)
    row("what a pool has left", (y, at + planes * 24), "kernel_shape = [2, 2], strides = [2, 2]", F.max_unpool2d(y, at, 2, 2))
    x = draw(1, 2, 10)
    y, at = F.max_pool1d(x, 3, 3, 1, return_indices=True)
    row("one axis, pads", (y, at + torch.arange(2).reshape(1, 2, 1) * 10), "kernel_shape = [3], strides = [3], pads = [1, 1]",
        F.max_unpool1d(y, at, 3, 3, 1))
    x = draw(1, 2, 4, 2, 4)
    y, at = F.max_pool3d(x, 2, 2, return_indices=True)
    row("three axes", (y, at + torch.arange(2).reshape(1, 2, 1, 1, 1) * 32), "kernel_shape = [2, 2, 2], strides = [2, 2, 2]",
        F.max_unpool3d(y, at, 2, 2))


# ---- RoiAlign and MaxRoiPool ----

def regions(count, height, width, batch):
    """Random, with one that reaches outside and a small one."""
    rois = []
    for _ in range(count):
        y, x = sorted(numbers.integers(0, height * 64, 2) / 64.0), sorted(numbers.integers(0, width * 64, 2) / 64.0)
        rois.append([x[0], y[0], x[1], y[1]])
    rois[0] = [-2.25, -1.125, width + 1.5, height + 2.0625]
    rois[1] = [1.125, 1.375, 1.1875, 1.40625]
    return torch.tensor(rois, dtype=torch.float64), torch.tensor(numbers.integers(0, batch, count))


def roi_align():
    import torchvision
    from onnx.reference.ops.op_roi_align import RoiAlign

    x = shuffle(2, 2, 7, 6)
    rois, images = regions(4, 7, 6, 2)
    rois += 1 / 512
    boxes = torch.cat([images[:, None].double(), rois], 1)
    for ratio in (0, 2):
        for aligned in (True, False):
            for size, scale in (((2, 3), 1.0), ((3, 2), 0.5)):
                y = torchvision.ops.roi_align(x, boxes, size, scale, ratio if ratio else -1, aligned)
                attrs = f"output_height = {size[0]}, output_width = {size[1]}, sampling_ratio = {ratio}, spatial_scale = {scale}"
                name = f"means, {ratio or 'as many'} points, {'' if aligned else 'not '}shifted, scale {scale}"
                place = "" if aligned else ', coordinate_transformation_mode = "output_half_pixel"'
                row(name, (x, rois, images), attrs + place, y)
                if not aligned and scale == 1:
                    row(name + ", opset 10", (x, rois, images), attrs, y, opset=10)
            top = numpy.empty((4, 2, 2, 2)).flatten()
            RoiAlign.roi_align_forward((4, 2, 2, 2), x.numpy().flatten(), 1.0, 7, 6, ratio, rois.numpy().flatten(), 4, top, "max", aligned,
                                       images.numpy())
            attrs = f'mode = "max", output_height = 2, output_width = 2, sampling_ratio = {ratio}'
            place = "" if aligned else ', coordinate_transformation_mode = "output_half_pixel"'
            row(f"maxima, {ratio or 'as many'} points, {'' if aligned else 'not '}shifted", (x, rois, images), attrs + place,
                torch.tensor(top.reshape(4, 2, 2, 2)))


def max_roi_pool():
    import torchvision

    x = shuffle(2, 2, 7, 6)
    rois, images = regions(4, 7, 6, 2)
    boxes = torch.cat([images[:, None].double(), rois], 1)
    for size, scale in (((2, 3), 1.0), ((3, 2), 0.5), ((7, 7), 1.0)):
        y = torchvision.ops.roi_pool(x, boxes, size, scale)
        row(f"{size[0]} by {size[1]}, scale {scale}", (x, text(boxes) + " const"), f"pooled_shape = [{size[0]}, {size[1]}], spatial_scale = {scale}", y)


# ---- DeformConv ----

def deform_conv():
    import torchvision

    for name, groups, offset_groups, stride, pad, dilation, masked, biased in (
            ("plain", 1, 1, 1, 0, 1, False, False), ("bias and mask", 1, 1, 1, 1, 1, True, True), ("groups", 2, 1, 1, 0, 1, False, True),
            ("groups of offsets", 1, 2, 1, 0, 1, True, False), ("strides and dilations", 2, 2, (2, 1), (1, 2), (1, 2), True, True)):
        x, w = draw(2, 4, 5, 4), draw(2, 4 // groups, 2, 2)
        b = draw(2) if biased else None
        like = F.conv2d(x, w, None, stride, pad, dilation, groups)
        offset = draw(2, offset_groups * 8, *like.shape[2:], low=-1.5, high=1.5) + 1 / 128
        mask = draw(2, offset_groups * 4, *like.shape[2:], low=0, high=1) if masked else None
        y = torchvision.ops.deform_conv2d(x, offset, w, b, stride, pad, dilation, mask)
        pair = lambda n: n if isinstance(n, tuple) else (n, n)
        pads = list(pair(pad)) * 2
        attrs = (f"group = {groups}, offset_group = {offset_groups}, strides = {list(pair(stride))}, pads = {pads}, "
                 f"dilations = {list(pair(dilation))}")
        row(name, (x, w, offset, b, mask) if masked else (x, w, offset, b) if biased else (x, w, offset), attrs, y)


OPERATORS = {f.__name__: f for f in (grid_sample, affine_grid, max_unpool, roi_align, max_roi_pool, deform_conv)}


def main():
    print("// SPDX-License-Identifier: Apache-2.0")
    print(f"// Made by record_sampling.py with PyTorch {torch.__version__}: rows of a table of cases.")
    print("// clang-format off")
    OPERATORS[sys.argv[1]]()


main()
