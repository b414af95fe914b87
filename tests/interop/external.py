# SPDX-License-Identifier: Apache-2.0
"""A checkpoint whose parameters are in a second file, <path>.data, as ONNX Runtime writes it from 1.8 GiB on.

Neither runtime makes such a small one by itself; both keep one in two files.
"""
import flatbuffers
from onnx import numpy_helper

ALIGNMENT = 8


def vector(builder, offsets):
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return builder.EndVector()


def tensor(builder, initializer, offset):
    name = builder.CreateString(initializer.name)
    builder.StartVector(8, len(initializer.dims), 8)
    for dim in reversed(initializer.dims):
        builder.PrependInt64(dim)
    dims = builder.EndVector()
    builder.StartObject(7)
    builder.PrependUOffsetTRelativeSlot(0, name, 0)
    builder.PrependUOffsetTRelativeSlot(2, dims, 0)
    builder.PrependInt32Slot(3, initializer.data_type, 0)
    builder.PrependInt64Slot(6, offset, -1)
    return builder.EndObject()


def write_checkpoint(path, trained, frozen):
    """`trained` and `frozen` are TensorProtos."""
    builder, data = flatbuffers.Builder(0), bytearray()
    vectors = []
    for initializers in (trained, frozen):
        tensors = []
        for initializer in initializers:
            tensors.append(tensor(builder, initializer, len(data)))
            data += numpy_helper.to_array(initializer).tobytes()
            data += bytes(-len(data) % ALIGNMENT)
        vectors.append(vector(builder, tensors))
    builder.StartObject(4)
    for slot, offset in enumerate(vectors):
        builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
    builder.PrependBoolSlot(3, True, False)
    module_state = builder.EndObject()
    builder.StartObject(4)
    builder.PrependInt32Slot(0, 2, 0)  # the version
    builder.PrependUOffsetTRelativeSlot(1, module_state, 0)
    builder.Finish(builder.EndObject(), b"ODTC")
    with open(path, "wb") as file:
        file.write(builder.Output())
    with open(f"{path}.data", "wb") as file:
        file.write(data)
