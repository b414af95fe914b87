# SPDX-License-Identifier: Apache-2.0
"""PyTorch modules as models for :class:`onnxtrain.ORTTrainer`. Only this file imports torch."""

from __future__ import annotations

import contextlib
import copy
import inspect
import io
import logging
import sys
import warnings
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, NamedTuple, Sequence

import numpy as np

from onnxtrain import _arrays, _core
from onnxtrain._asserts import InvalidUse
from onnxtrain._inference import InferenceSession

if TYPE_CHECKING:
    import onnx
    import torch

    from onnxtrain.model_desc_validation import _ORTTrainerModelDesc

_PREFIX = "model."  # of the names within the combined module
# Arguments that only the classic exporter takes: errors name one of them where it is gone.
_CLASSIC_ALONE = ("'dynamo'", "dynamo=False", "'training'", "'do_constant_folding'", "'dynamic_axes'")
_NEWER_OPSET = 18  # the least that the newer exporter writes
_Axes = Dict[str, Dict[int, str]]
# check_model_export compares to these
_RELATIVE, _ABSOLUTE = 1e-2, 1e-6


class Exported(NamedTuple):
    """A module's model, and which of its initializers do not train."""

    model: onnx.ModelProto
    buffers: list[str]
    others: list[str]


def is_module(model: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def _combined(module: torch.nn.Module, loss_fn: Callable[..., Any] | None, names: Sequence[str]) -> torch.nn.Module:
    """A module that takes the described inputs by position, and gives loss and prediction where there is a loss."""
    import torch

    parameters = inspect.signature(module.forward).parameters
    inputs = names if loss_fn is None else names[:-1]

    class Combined(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = module
            self.loss_fn = loss_fn

        def forward(self, *values: Any) -> Any:
            given = dict(zip(inputs, values))
            named = {name: value for name, value in given.items() if name in parameters}
            found = self.model(*(value for name, value in given.items() if name not in named), **named)
            return found if loss_fn is None else (loss_fn(found, values[-1]), found)

    return Combined()


def _copy(module: torch.nn.Module) -> torch.nn.Module:
    """A copy on the CPU that may be run without a trace; the module itself where it cannot be copied."""
    try:
        return copy.deepcopy(module).cpu()
    except Exception as error:
        warnings.warn(f"the module cannot be copied ({error}): it is exported itself, and runs once", stacklevel=2)
        return module


@contextlib.contextmanager
def _unchanged(module: torch.nn.Module) -> Iterator[None]:
    """Mode, buffers and random numbers are afterwards what they were."""
    import torch

    modes = {one: one.training for one in module.modules()}
    buffers = {name: buffer.detach().clone() for name, buffer in module.named_buffers()}
    with torch.random.fork_rng(devices=[]):
        try:
            yield
        finally:
            for one, training in modes.items():
                one.training = training
            with torch.no_grad():
                for name, buffer in module.named_buffers():
                    buffer.copy_(buffers[name])


def _tensors(inputs: Sequence[Any]) -> list[torch.Tensor]:
    import torch

    return [torch.as_tensor(one) for one in inputs]


def _axes(description: _ORTTrainerModelDesc) -> dict[str, dict[int, str]]:
    """The axes whose size is a symbol."""
    return {
        one.name: {axis: size for axis, size in enumerate(one.shape) if isinstance(size, str)}
        for one in (*description.inputs, *description.outputs)
    }


def _classic(combined: torch.nn.Module, inputs: list[Any], opset: int, axes: _Axes, named: dict[str, list[str]]) -> Any:
    """By the exporter that traces; TypeError or the like with "dynamo" in its text where torch no longer has it."""
    import onnx
    import torch

    file = io.BytesIO()
    classic = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
    torch.onnx.export(
        combined,
        tuple(inputs),
        file,
        opset_version=opset,
        dynamic_axes={name: sizes for name, sizes in axes.items() if sizes},
        do_constant_folding=False,
        training=torch.onnx.TrainingMode.TRAINING,
        **named,
        **classic,
    )
    return onnx.load_from_string(file.getvalue())


def _newer(combined: torch.nn.Module, inputs: list[Any], opset: int, axes: _Axes, named: dict[str, list[str]]) -> Any:
    """By the one over torch.export, which must leave the parameters as they are."""
    import torch

    dynamic = [{axis: torch.export.Dim.AUTO for axis in axes[name]} for name in named["input_names"]]
    program = torch.onnx.export(
        combined.train(),
        tuple(inputs),
        opset_version=max(opset, _NEWER_OPSET),
        dynamic_shapes=(tuple(dynamic),),
        optimize=False,
        verbose=False,
        **named,
    )
    return program.model_proto


def _export(combined: torch.nn.Module, inputs: list[Any], description: _ORTTrainerModelDesc, opset: int) -> Any:
    import torch

    axes = _axes(description)
    named = {
        "input_names": [one.name for one in description.inputs],
        "output_names": [one.name for one in description.outputs],
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            return _classic(combined, inputs, opset, axes, named)
        except torch.onnx.errors.UnsupportedOperatorError as error:
            text = str(error).split(". ")[0]
            logging.getLogger("onnxtrain").info("%s: the newer exporter of torch exports", text)
        except (TypeError, ValueError, NotImplementedError, RuntimeError) as error:
            if not any(word in str(error) for word in _CLASSIC_ALONE):
                raise
        return _newer(combined, inputs, opset, axes, named)


def _strip(model: onnx.ModelProto) -> None:
    """Initializers get the names that they have in the module."""
    new = {one.name: one.name[len(_PREFIX) :] for one in model.graph.initializer if one.name.startswith(_PREFIX)}
    nodes = [name for node in model.graph.node for name in node.output]
    taken = {*nodes, *(one.name for one in model.graph.input)} & set(new.values())
    if taken:
        raise _core.InvalidArgument(
            f"inputs or values of the model have names of parameters: {', '.join(sorted(taken))}; rename them in the "
            "description or in the module"
        )
    for one in model.graph.initializer:
        one.name = new.get(one.name, one.name)
    _rename_uses(model.graph, new)


def _rename_uses(graph: onnx.GraphProto, new: dict[str, str]) -> None:
    for node in graph.node:
        node.input[:] = [new.get(name, name) for name in node.input]
        for attribute in node.attribute:
            for below in (attribute.g, *attribute.graphs):
                _rename_uses(below, new)
    for value in graph.output:
        value.name = new.get(value.name, value.name)


def _restore(model: onnx.ModelProto, buffers: dict[str, Any]) -> None:
    """Running statistics as they were before the module ran to be exported."""
    from onnx import numpy_helper

    for one in model.graph.initializer:
        if one.name in buffers:
            one.CopyFrom(numpy_helper.from_array(buffers[one.name], one.name))


def export(
    module: torch.nn.Module,
    loss_fn: Callable[..., Any] | None,
    description: _ORTTrainerModelDesc,
    inputs: Sequence[Any],
    opset: int,
) -> Exported:
    """The model of a module with its loss, traced with a batch."""
    own = _copy(module)
    combined = _combined(own, loss_fn, [one.name for one in description.inputs])
    buffers = {name: one.detach().cpu().numpy().copy() for name, one in own.named_buffers(remove_duplicate=False)}
    trained = {name for name, one in own.named_parameters(remove_duplicate=False) if one.requires_grad}
    with _unchanged(own):
        model = _export(combined, _tensors(inputs), description, opset)
    _strip(model)
    _restore(model, buffers)
    names = [one.name for one in model.graph.initializer]
    others = [name for name in names if name not in trained and name not in buffers]
    return Exported(model, [name for name in names if name in buffers], others)


def _for_inference(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy whose Dropout and BatchNormalization do what they do in inference, whatever they say."""
    own = type(model)()
    own.CopyFrom(model)
    for node in own.graph.node:
        if node.op_type == "Dropout":
            del node.input[2:]
        elif node.op_type == "BatchNormalization":
            del node.output[1:]
            for attribute in node.attribute:
                if attribute.name == "training_mode":
                    attribute.i = 0
    return own


def _leaves(value: Any) -> list[Any]:
    """The tensors in what a module gives."""
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in _leaves(item)]
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value] if _arrays.is_torch(value) else []


def check(
    module: torch.nn.Module,
    loss_fn: Callable[..., Any] | None,
    description: _ORTTrainerModelDesc,
    inputs: Sequence[Any],
    model: onnx.ModelProto,
) -> None:
    """AssertionError where the model gives something else than the module does."""
    import torch

    own = _copy(module)
    combined = _combined(own, loss_fn, [one.name for one in description.inputs])
    with _unchanged(own), torch.no_grad():
        wanted = _leaves(combined.eval()(*_tensors(inputs)))
    session = InferenceSession(_for_inference(model).SerializeToString())
    feeds = {one.name: value for one, value in zip(description.inputs, inputs)}
    taken = [one.name for one in session.get_inputs()]
    found = session.run(None, {name: _arrays.to_numpy(_arrays.to_tensor(feeds[name])) for name in taken})
    for one, mine, own_value in zip(description.outputs, found, wanted):
        theirs = own_value.numpy()
        if mine.shape != theirs.shape or not np.allclose(mine, theirs, _RELATIVE, _ABSOLUTE):
            far = np.abs(mine - theirs).max() if mine.shape == theirs.shape else "of another shape"
            raise InvalidUse(f"output '{one.name}' of the exported model differs from the module's: {far}")
